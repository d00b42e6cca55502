// The option table: a row for every option of a call of the library. A row has the name, the type,
// the calls that take it, the help text, the destination of the value, and its effect on the
// output.
//
// Command lines, Python's keywords and the records of conversions come from it. An option is a
// member of a struct in include/reshard and a row here. If a call takes fewer words than others, or
// means something else by the option, it has a row of its own, after the one that records follow.
// Constants; any thread.
#ifndef RESHARD_SRC_OPTIONS_OPTION_TABLE_H_
#define RESHARD_SRC_OPTIONS_OPTION_TABLE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "reshard/encryption.h"
#include "reshard/options.h"

namespace reshard {

// The calls that take options of the table. An option has a set of calls.
enum Call : uint32_t {
  kNoCall = 0,
  kConvertCall = 1 << 0,
  kPlanCall = 1 << 1,
  kReportCall = 1 << 2,
  kAgainstCall = 1 << 3,  // VerifyAgainst
  kRecodeCall = 1 << 4,
  kMergeCall = 1 << 5,
  kVerifyCall = 1 << 6,
  kDigestCall = 1 << 7,
  kDiffCall = 1 << 8,
  kInspectCall = 1 << 9,
  kCommitCall = 1 << 10,
  kRanksCall = 1 << 11,  // SourceRanks
  kCatCall = 1 << 12,    // TargetView, to pass on a single file
  kViewCall = 1 << 13,   // TargetView
  kMountCall = 1 << 14,  // TargetView, to serve all files
  kMakeStrategyCall = 1 << 15,
  kConvertStrategyCall = 1 << 16,
  kMergeStrategiesCall = 1 << 17,
  kInferStrategyCall = 1 << 18,
  kShowStrategyCall = 1 << 19,
};

// The kind of value that an option takes.
enum class OptionType {
  kSwitch,          // none: it is given, or not
  kSwitchOrWord,    // none, which is the word "true", or another one of Option::words
  kWord,            // one of Option::words
  kText,            // any
  kPatterns,        // "GLOB,GLOB", several times
  kFile,            // a path
  kFiles,           // paths
  kRanks,           // "3", "0-7,9", several times
  kRankFiles,       // "3=a.ckpt", several times
  kSize,            // bytes: "200M"; KB is 1024
  kDecimalSize,     // bytes: "5GB"; KB is 1000, K is 1024
  kParameterCount,  // "6.74B"
  kSeconds,         // a whole number
  kNumber,          // a whole number
  kCount,           // a whole number from 1 on
  kCounts,          // "10,11,11"
  kSwitchOrCount,   // none, which is -1, or a whole number from 1 on
  kSwitchOrFile,    // none, which is "", or a path
  kShare,           // "0/4", "auto"
  kIo,              // "auto", "map", "direct", "map,direct"
  kCasts,           // "GLOB=TYPE" or "TYPE", several times
  kRenames,         // a JSON file of new names
  kKeyFile,         // a file with a key
  kKeyVariable,     // an environment variable with a key
};

// How records store an option (src/record/SPEC.md).
enum class Effect {
  kNone,   // no effect on the bytes of a target, and not recorded
  kBytes,  // it does: "options" of origin.jsonl has it, and the fingerprint of a plan counts it
  // As kBytes. The fingerprint counts it in its own way (src/convert).
  kBytesAsBefore,
  kBytesToldApart,  // as kBytesAsBefore, and origin.jsonl has separate members for it
};

// A value, by the type of its option: kWord and kSwitchOrWord have a text. A strategy is a text,
// its path, or a StrategyRef.
using OptionValue = std::variant<bool, uint64_t, int64_t, std::string, std::vector<std::string>,
                                 std::vector<int64_t>, std::map<int64_t, std::string>, WorkerShare,
                                 IoChoice, std::vector<Selection::CastRule>, Renames, StrategyRef,
                                 std::shared_ptr<const EncryptionKey>>;

// A word that an option takes, and the value of the member that it stands for, as a number.
struct WordMeaning {
  std::string_view word;
  int meaning;
};

// The destinations of options in a call; null: the call has no option there.
struct OptionParts {
  SourceSpec* source = nullptr;
  TargetSpec* target = nullptr;
  Selection* selection = nullptr;
  CheckChoice* checks = nullptr;
  OutputChoice* output = nullptr;
  // Members of these that other calls have by themselves.
  std::shared_ptr<const EncryptionKey>* key = nullptr;
  std::vector<std::string>* include = nullptr;
  std::vector<std::string>* exclude = nullptr;
  bool* weights_only = nullptr;
  Renames* renames = nullptr;
  bool* force = nullptr;
  uint64_t* memory_limit = nullptr;
  IoChoice* io = nullptr;
  std::optional<WorkerShare>* shard = nullptr;
  RunOptions* run = nullptr;
  Cluster* cluster = nullptr;
  // Members of the options of one or two calls.
  SourceSpec* second_source = nullptr;
  std::string* full_tensors = nullptr;  // a checkpoint of full tensors
  std::string* file_names = nullptr;
  bool* decrypt = nullptr;
  bool* segments = nullptr;
  bool* values = nullptr;
  bool* one_replica = nullptr;
};

// A member that is one of the values of an enum, or a bool. Points to it.
class WordPlace {
 public:
  template <typename Enum>
  explicit WordPlace(Enum* member)
      : member_(member),
        set_([](void* to, int meaning) { *static_cast<Enum*>(to) = static_cast<Enum>(meaning); }),
        get_([](const void* from) -> std::optional<int> {
          return static_cast<int>(*static_cast<const Enum*>(from));
        }) {}
  template <typename Enum>
  explicit WordPlace(std::optional<Enum>* member)
      : member_(member),
        set_([](void* to, int meaning) {
          *static_cast<std::optional<Enum>*>(to) = static_cast<Enum>(meaning);
        }),
        get_([](const void* from) -> std::optional<int> {
          const auto& value = *static_cast<const std::optional<Enum>*>(from);
          if (!value) return std::nullopt;
          return static_cast<int>(*value);
        }) {}

  void Set(int meaning) const { set_(member_, meaning); }
  std::optional<int> Get() const { return get_(member_); }
  friend bool operator==(const WordPlace& place, std::nullptr_t) {
    return place.member_ == nullptr;
  }

 private:
  void* member_;
  void (*set_)(void*, int);
  std::optional<int> (*get_)(const void*);
};

// The member that an option sets.
using OptionPlace =
    std::variant<WordPlace, bool*, uint64_t*, int64_t*, std::string*, std::vector<std::string>*,
                 std::vector<int64_t>*, std::map<int64_t, std::string>*,
                 std::optional<WorkerShare>*, std::optional<std::chrono::milliseconds>*, IoChoice*,
                 std::vector<Selection::CastRule>*, Renames*, StrategyRef*,
                 std::optional<std::string>*, std::shared_ptr<const EncryptionKey>*>;

struct Option {
  std::string_view name;  // in the library's messages and in records: "casts"
  // "dtype": --dtype of a command line, the keyword dtype in Python. "from_" is --from.
  std::string_view word;
  std::string_view other_word = {};  // which a command line takes, too
  OptionType type = OptionType::kSwitch;
  uint32_t calls = 0;                       // a set of Call
  std::string_view group = {};              // of help; empty: the common ones
  std::string_view value = {};              // the placeholder for a value in help; empty: the words
  std::string_view help;                    // one sentence, without a stop
  std::span<const WordMeaning> words = {};  // of kWord and kSwitchOrWord
  std::optional<TargetFormat> only_with = {};  // the one format that it is for
  bool negates = false;                        // a switch: when it is given, the member is false
  bool is_required = false;                    // the calls do not go without it
  Effect effect = Effect::kNone;
  OptionPlace (*place)(const OptionParts& parts) = nullptr;
};

// In the order of help.
std::span<const Option> AllOptions();

// Returns the first option of this name that `call` takes, by default any call; or null.
const Option* FindOptionNamed(std::string_view name, uint32_t call = ~uint32_t{0});

// Returns how a command line has the option: "--dst-strategy" for "dst_strategy".
std::string OnCommandLine(const Option& option);

// Returns the words that an option takes.
std::vector<std::string_view> WordsOf(const Option& option);

// Returns the meaning of the word, or null if the option does not take it.
const WordMeaning* FindWord(const Option& option, std::string_view word);

// Returns whether records have the option among their options.
bool IsRecorded(const Option& option);

// Returns the placeholder for a value in help: "GLOB", "copy|drop|error", "[=verify]"; empty for a
// switch.
std::string ValueInHelp(const Option& option);

// Returns the destinations for options of a conversion. Points into `spec`.
OptionParts PartsOf(ConversionSpec& spec);

// Sets the member of an option. `value` is of the option's type, and one of its words.
void SetOption(const Option& option, const OptionParts& parts, const OptionValue& value);

// Returns the value of an option; no value if its member has none, or there is no member.
std::optional<OptionValue> ValueIn(const Option& option, const OptionParts& parts);

// Returns whether the option has its default in `options`. PartsOf has to accept `options`.
template <typename Options>
bool IsUsual(const Option& option, Options& options) {
  Options usual;
  return ValueIn(option, PartsOf(options)) == ValueIn(option, PartsOf(usual));
}

// Dtypes that floats may be cast to, by their words; no value: they are kept.
std::span<const std::pair<std::string_view, std::optional<DType>>> CastWords();

}  // namespace reshard

#endif  // RESHARD_SRC_OPTIONS_OPTION_TABLE_H_
