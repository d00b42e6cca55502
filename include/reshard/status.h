// Status and Result: how every function of reshard that can fail reports it.
//
// The API does not throw. Only a wrong use of a Result ends the program. A Status is a code and a
// message. The message says what is wrong, where (file, parameter, offset), what was expected, what
// was found, what to do.
//
// Messages and warnings name options and functions in backticks: "pass `force`",
// "`unmatched=copy`". An option has the name of its field in the options struct. Front ends replace
// these names by their own. Names from files and from the caller have no backtick in a message.
//
// All classes are plain values: copy and move them freely; no locking.
//
// Implemented in src/base.
#ifndef RESHARD_STATUS_H_
#define RESHARD_STATUS_H_

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reshard {
inline namespace v0_1 {

// Stable: a number keeps its meaning, and new codes come at the end.
enum class StatusCode {
  kOk = 0,
  kInvalidArgument = 1,    // the call itself
  kNotFound = 2,           // a file, folder, rank or parameter that has to exist does not
  kCorrupt = 3,            // bytes that no valid file of the format can hold
  kUnsupported = 4,        // valid, but reshard does not convert it (another format)
  kMismatch = 5,           // inputs that do not fit each other: strategies, shards, steps
  kChanged = 6,            // a source changed while it was read
  kIo = 7,                 // the system refused or failed an operation, lack of space included
  kResourceExhausted = 8,  // over budget
  kAlreadyExists = 9,      // an output exists, or the target is locked
  kInternal = 10,          // a bug of reshard
  kCancelled = 11,         // stopped on request
};

// Returns the code's name in words, such as "corrupt".
std::string_view StatusCodeName(StatusCode code);

// Returns the exit code of the command line tool for `code` (docs/reference/cli.md lists them).
int ExitCode(StatusCode code);

class [[nodiscard]] Status {
 public:
  Status() = default;  // ok
  // `message` and `system_error` have no effect with kOk.
  Status(StatusCode code, std::string message, int system_error = 0);
  // Copies share what they say, without an allocation.
  Status(const Status& other) noexcept : failure_(other.failure_) {
    if (failure_ != nullptr) Share();
  }
  Status(Status&& other) noexcept : failure_(std::exchange(other.failure_, nullptr)) {}
  Status& operator=(Status other) noexcept {
    std::swap(failure_, other.failure_);
    return *this;
  }
  ~Status() {
    if (failure_ != nullptr) Release();
  }

  bool ok() const { return failure_ == nullptr; }
  StatusCode code() const;
  const std::string& message() const;
  // The option that the error is about, by its field in the options struct: the first one that the
  // message names; empty if it names no option.
  const std::string& option() const;
  // The errno if the system refused an operation, such as ENOSPC; else 0.
  int system_error() const;
  // The same failure in other words.
  Status WithMessage(std::string message) const;

 private:
  struct Failure;  // counts the objects that share it

  void Share() noexcept;
  void Release() noexcept;

  Failure* failure_ = nullptr;  // null if ok
};

// The subject of a warning. Stable: a number keeps its meaning, and new codes come at the end.
enum class WarningCode {
  kMissingRanks = 1,         // source ranks without a file
  kRanksBeyondStrategy = 2,  // ranks that the strategy does not have, not used
  kEmptyRankFolders = 3,     // rank folders without a checkpoint
  kOtherChoice = 4,          // MindSpore would take another file of a rank's folder
  kUnmatchedParameters = 5,  // parameters in only one of the strategies
  kWithoutLayout = 6,        // parameters that a strategy has no layout for
  kAbsentParameters = 7,     // of a strategy, in no source file
  kLeftOut = 8,              // not held by the target's format, not in an index, or not readable
  kOtherShapes = 9,          // a strategy states other full shapes
  kEmptyTargets = 10,        // target files without a parameter
  kUnusedPatterns = 11,      // patterns that match no parameter
  kUnusedRenames = 12,       // renames of names that no parameter has, parameters without a rule
  kReplicasDiffer = 13,      // ranks have their own values of parameters that no layout cuts
  kReplicasEqual = 14,       // shards that ought to differ are equal
  kNotCompared = 15,         // parameters that were not or only partly compared
  kNotInReference = 16,      // parameters that the reference does not have
  kMemory = 17,              // the run needs more than the default memory limit
  kFilesNotRead = 18,        // files of the source that are not read
  kIndexDisagrees = 19,      // an index and its files
  kFilesGone = 20,           // files of earlier runs, no longer listed
  kFilesAbandoned = 21,      // of an earlier conversion, no longer in any manifest
  kLeftovers = 22,           // of a run, that could not be removed
  kSharesLeft = 23,          // only one share of a conversion was done, or others have not ended
  kDropped = 24,             // details that the other encoding of a strategy cannot hold
  kRepeatedNames = 25,       // items with repeated names
  kSourceOrder = 26,         // the order of the files decides
  kAmbiguousLayouts = 27,    // other layouts fit as well
  kOtherConversion = 28,     // the sizes fit another conversion
  kWaiting = 29,             // for another process
  kKeyNotUsed = 30,          // a key was given, but a file is not encrypted
  kValuesLost = 31,          // casts made finite values infinite or NaN, or others zero
  kCountersDiffer = 32,      // ranks disagree in a step counter or a learning rate
  kRepeatedWeights = 33,     // names with a prefix repeat the weights
  kNotLoadable = 34,         // tensors that MindSpore cannot load, or loads as something else
  kNotCut = 35,              // matrices that tensor parallelism leaves whole
  kSeveralStages = 36,       // matrices of several pipeline stages
  kOtherDType = 37,          // config.json of the companions states another dtype
};

// Returns the code's name in words, such as "missing ranks".
std::string_view WarningCodeName(WarningCode code);

// A warning of a successful call. The message has the form of a Status's message.
struct Warning {
  WarningCode code;
  std::string message;
};

Status InvalidArgumentError(std::string message);
Status NotFoundError(std::string message);
Status CorruptError(std::string message);
Status UnsupportedError(std::string message);
Status MismatchError(std::string message);
Status ChangedError(std::string message);
Status IoError(std::string message, int system_error = 0);
Status ResourceExhaustedError(std::string message);
Status AlreadyExistsError(std::string message);
Status InternalError(std::string message);
Status CancelledError(std::string message);

// Ends the program with `reason` and the status in words on stderr.
[[noreturn]] void EndForMisuse(std::string_view reason, const Status& status) noexcept;

// A value, or the Status that says why there is none. Two uses are programming errors and end the
// program with the status in words: taking the value of a failed Result, and making a Result of an
// ok Status.
template <typename T>
class [[nodiscard]] Result {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): so that `return value;` works
  Result(T value) : value_(std::move(value)) {}
  // `status` is not ok.
  // NOLINTNEXTLINE(google-explicit-constructor): so that `return status;` works
  Result(Status status) : status_(std::move(status)) {
    if (status_.ok()) EndForMisuse("a Result without a value was made of the status", status_);
  }

  bool ok() const { return value_.has_value(); }
  // The reason of failure; an ok Status when there is a value.
  Status status() const { return status_; }

  // The value; only when ok().
  T& value() & { return Checked(*this); }
  const T& value() const& { return Checked(*this); }
  T&& value() && { return std::move(Checked(*this)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  template <typename Self>
  static auto& Checked(Self& self) {
    if (!self.ok()) EndForMisuse("the value of a failed Result was taken", self.status_);
    return *self.value_;
  }

  std::optional<T> value_;
  Status status_;  // ok if there is a value
};

}  // namespace v0_1
}  // namespace reshard

#endif  // RESHARD_STATUS_H_
