#include "reshard/status.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/memory_watch.h"
#include "src/base/named_options.h"
#include "src/base/out_of_memory.h"

namespace reshard {

inline namespace v0_1 {

std::string_view StatusCodeName(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return "ok";
    case StatusCode::kInvalidArgument:
      return "invalid argument";
    case StatusCode::kNotFound:
      return "not found";
    case StatusCode::kCorrupt:
      return "corrupt";
    case StatusCode::kUnsupported:
      return "unsupported";
    case StatusCode::kMismatch:
      return "mismatch";
    case StatusCode::kChanged:
      return "changed";
    case StatusCode::kIo:
      return "I/O error";
    case StatusCode::kResourceExhausted:
      return "resource exhausted";
    case StatusCode::kAlreadyExists:
      return "already exists";
    case StatusCode::kInternal:
      return "internal error";
    case StatusCode::kCancelled:
      return "cancelled";
  }
  return "unknown";
}

std::string_view WarningCodeName(WarningCode code) {
  switch (code) {
    case WarningCode::kMissingRanks:
      return "missing ranks";
    case WarningCode::kRanksBeyondStrategy:
      return "ranks beyond strategy";
    case WarningCode::kEmptyRankFolders:
      return "empty rank folders";
    case WarningCode::kOtherChoice:
      return "other choice";
    case WarningCode::kUnmatchedParameters:
      return "unmatched parameters";
    case WarningCode::kWithoutLayout:
      return "without layout";
    case WarningCode::kAbsentParameters:
      return "absent parameters";
    case WarningCode::kLeftOut:
      return "left out";
    case WarningCode::kOtherShapes:
      return "other shapes";
    case WarningCode::kEmptyTargets:
      return "empty targets";
    case WarningCode::kUnusedPatterns:
      return "unused patterns";
    case WarningCode::kUnusedRenames:
      return "unused renames";
    case WarningCode::kReplicasDiffer:
      return "replicas differ";
    case WarningCode::kReplicasEqual:
      return "replicas equal";
    case WarningCode::kNotCompared:
      return "not compared";
    case WarningCode::kNotInReference:
      return "not in reference";
    case WarningCode::kMemory:
      return "memory";
    case WarningCode::kFilesNotRead:
      return "files not read";
    case WarningCode::kIndexDisagrees:
      return "index disagrees";
    case WarningCode::kFilesGone:
      return "files gone";
    case WarningCode::kFilesAbandoned:
      return "files abandoned";
    case WarningCode::kLeftovers:
      return "leftovers";
    case WarningCode::kSharesLeft:
      return "shares left";
    case WarningCode::kDropped:
      return "dropped";
    case WarningCode::kRepeatedNames:
      return "repeated names";
    case WarningCode::kSourceOrder:
      return "source order";
    case WarningCode::kAmbiguousLayouts:
      return "ambiguous layouts";
    case WarningCode::kOtherConversion:
      return "other conversion";
    case WarningCode::kWaiting:
      return "waiting";
    case WarningCode::kCountersDiffer:
      return "counters differ";
    case WarningCode::kRepeatedWeights:
      return "repeated weights";
    case WarningCode::kNotLoadable:
      return "not loadable";
    case WarningCode::kNotCut:
      return "not cut";
    case WarningCode::kSeveralStages:
      return "several stages";
    case WarningCode::kOtherDType:
      return "other dtype";
    case WarningCode::kValuesLost:
      return "values lost";
    case WarningCode::kKeyNotUsed:
      return "key not used";
  }
  return "unknown";
}

struct Status::Failure {
  Failure(StatusCode failed, std::string text, int error)
      : code(failed), system_error(error), message(std::move(text)) {
    for (const NamedOption& named : NamedOptions(message)) {
      if (named.name.find_first_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ") != std::string_view::npos) {
        continue;
      }
      option = named.name;
      return;
    }
  }

  std::atomic<int> holders = 1;
  const StatusCode code;
  const int system_error;
  const std::string message;
  std::string option;
};

Status::Status(StatusCode code, std::string message, int system_error)
    : failure_(code == StatusCode::kOk ? nullptr
                                       : new Failure(code, std::move(message), system_error)) {}

StatusCode Status::code() const { return ok() ? StatusCode::kOk : failure_->code; }

const std::string& Status::message() const {
  static const std::string& none = *new std::string;
  return ok() ? none : failure_->message;
}

const std::string& Status::option() const { return ok() ? message() : failure_->option; }

int Status::system_error() const { return ok() ? 0 : failure_->system_error; }

Status Status::WithMessage(std::string message) const {
  return {code(), std::move(message), system_error()};
}

void Status::Share() noexcept { failure_->holders.fetch_add(1, std::memory_order_relaxed); }

void Status::Release() noexcept {
  if (failure_->holders.fetch_sub(1, std::memory_order_acq_rel) == 1) delete failure_;
}

int ExitCode(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return 0;
    case StatusCode::kInvalidArgument:
      return 2;
    case StatusCode::kNotFound:
    case StatusCode::kCorrupt:
    case StatusCode::kUnsupported:
    case StatusCode::kMismatch:
    case StatusCode::kChanged:
      return 3;
    case StatusCode::kIo:
      return 4;
    case StatusCode::kResourceExhausted:
      return 5;
    case StatusCode::kAlreadyExists:
      return 6;
    case StatusCode::kInternal:
      return 70;
    case StatusCode::kCancelled:
      return 130;
  }
  return 70;
}

Status InvalidArgumentError(std::string message) {
  return {StatusCode::kInvalidArgument, std::move(message)};
}
Status NotFoundError(std::string message) { return {StatusCode::kNotFound, std::move(message)}; }
Status CorruptError(std::string message) { return {StatusCode::kCorrupt, std::move(message)}; }
Status UnsupportedError(std::string message) {
  return {StatusCode::kUnsupported, std::move(message)};
}
Status MismatchError(std::string message) { return {StatusCode::kMismatch, std::move(message)}; }
Status ChangedError(std::string message) { return {StatusCode::kChanged, std::move(message)}; }
Status IoError(std::string message, int system_error) {
  return {StatusCode::kIo, std::move(message), system_error};
}
Status ResourceExhaustedError(std::string message) {
  return {StatusCode::kResourceExhausted, std::move(message)};
}
Status AlreadyExistsError(std::string message) {
  return {StatusCode::kAlreadyExists, std::move(message)};
}
Status InternalError(std::string message) { return {StatusCode::kInternal, std::move(message)}; }
Status CancelledError(std::string message) { return {StatusCode::kCancelled, std::move(message)}; }

void EndForMisuse(std::string_view reason, const Status& status) noexcept {
  std::string text = "reshard: ";
  text.append(reason).append(": ").append(StatusCodeName(status.code()));
  if (!status.message().empty()) text.append(": ").append(status.message());
  text += '\n';
  std::fputs(text.c_str(), stderr);
  std::abort();
}

}  // namespace v0_1

namespace {

// Made before memory can run out.
const Status& out_of_memory = *new Status(StatusCode::kResourceExhausted, "out of memory");

}  // namespace

Status OutOfMemoryError(const std::bad_alloc& error) noexcept {
  const MemoryWatch::Unwatched unwatched;
  try {
    if (const auto* const refused = dynamic_cast<const MemoryRefused*>(&error)) {
      return refused->status();
    }
    return ResourceExhaustedError("out of memory; use fewer jobs, or raise the memory limit");
  } catch (const std::bad_alloc&) {
    return out_of_memory;
  }
}

}  // namespace reshard
