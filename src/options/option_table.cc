#include "src/options/option_table.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <utility>

#include "reshard/tensor.h"

namespace reshard {
namespace {

using Parts = OptionParts;
using Value = OptionValue;
using Key = std::shared_ptr<const EncryptionKey>;
using Texts = std::vector<std::string>;
using Names = std::map<std::string, std::string>;

constexpr uint32_t kConversions = kConvertCall | kPlanCall | kReportCall | kAgainstCall;
constexpr uint32_t kWrites = kConvertCall | kPlanCall;
constexpr uint32_t kReads =
    kConversions | kRecodeCall | kMergeCall | kVerifyCall | kDigestCall | kDiffCall | kInspectCall;

// The place of a word among those of its option.
template <typename Enum, size_t kCount>
Enum OneOf(const std::array<std::pair<std::string_view, Enum>, kCount>& words, const Value& value) {
  const auto& text = std::get<std::string>(value);
  const auto found = std::find_if(words.begin(), words.end(),
                                  [&](const auto& entry) { return entry.first == text; });
  return found->second;  // the value is one of the option's words
}

constexpr std::array<std::pair<std::string_view, TargetFormat>, 4> kFormats = {
    {{"ckpt", TargetFormat::kCkpt},
     {"safetensors", TargetFormat::kSafetensors},
     {"unified", TargetFormat::kUnified},
     {"huggingface", TargetFormat::kHuggingFace}}};
constexpr std::array<std::pair<std::string_view, Resume>, 2> kResumes = {
    {{"true", Resume::kTrust}, {"verify", Resume::kVerify}}};
constexpr std::array<std::pair<std::string_view, CheckReplicas>, 4> kReplicas = {
    {{"true", CheckReplicas::kAll},
     {"none", CheckReplicas::kNone},
     {"sample", CheckReplicas::kSample},
     {"all", CheckReplicas::kAll}}};
constexpr std::array<std::pair<std::string_view, UnmatchedPolicy>, 3> kPolicies = {
    {{"copy", UnmatchedPolicy::kCopy},
     {"drop", UnmatchedPolicy::kDrop},
     {"error", UnmatchedPolicy::kError}}};

constexpr Option kOptions[] = {
    {.name = "source.strategy",
     .word = "src_strategy",
     .type = OptionType::kFile,
     .calls = kConversions | kRanksCall,
     .value = "S",
     .help = "Strategy of the source, a file or a folder of stage files; none: full tensors",
     .set = [](const Parts& parts,
               const Value& v) { parts.source->strategy = std::get<std::string>(v); }},
    {.name = "target.strategy",
     .word = "dst_strategy",
     .type = OptionType::kFile,
     .calls = kConversions | kRanksCall,
     .value = "D",
     .help = "Strategy of the target, as above; none: full tensors in one rank",
     .set = [](const Parts& parts,
               const Value& v) { parts.target->strategy = std::get<std::string>(v); }},
    {.name = "ranks",
     .word = "rank",
     .type = OptionType::kRanks,
     .calls = kWrites | kAgainstCall,
     .value = "N",
     .help = "Only these target ranks, such as 3 or 0-7,9",
     .set = [](const Parts& parts,
               const Value& v) { parts.selection->ranks = std::get<std::vector<int64_t>>(v); }},
    {.name = "force",
     .word = "force",
     .calls = kWrites | kReportCall | kRecodeCall | kMergeCall,
     .help = "Replace existing outputs",
     .set = [](const Parts& parts, const Value& v) { *parts.force = std::get<bool>(v); }},
    {.name = "resume",
     .word = "resume",
     .type = OptionType::kSwitchOrWord,
     .calls = kWrites | kRecodeCall,
     .value = "[=verify]",
     .help = "Keep what an interrupted run of the same command finished; =verify checks its "
             "digests first",
     .words = "true|verify",
     .set = [](const Parts& parts, const Value& v) { *parts.resume = OneOf(kResumes, v); }},
    {.name = "format",
     .word = "format",
     .type = OptionType::kWord,
     .calls = kConversions,
     .value = "ckpt|safetensors|unified|huggingface",
     .help = "Format of the target files (default: the source's)",
     .words = "ckpt|safetensors|unified|huggingface",
     .set = [](const Parts& parts, const Value& v) { parts.target->format = OneOf(kFormats, v); }},

    {.name = "source.files",
     .word = "source",
     .type = OptionType::kRankFiles,
     .calls = kWrites | kAgainstCall,
     .group = "Source",
     .value = "RANK=FILE",
     .help = "File of one source rank, instead of SRC; with --rank, those that these ranks need",
     .set =
         [](const Parts& parts, const Value& v) {
           parts.source->files = std::get<std::map<int64_t, std::string>>(v);
         }},
    {.name = "suffix",
     .word = "suffix",
     .type = OptionType::kText,
     .calls = kConversions | kDigestCall | kInspectCall,
     .group = "Source",
     .value = "-E_S",
     .help = "Take the checkpoints -EPOCH_STEP, as in --suffix=-1_100 (default: the latest)",
     .set = [](const Parts& parts,
               const Value& v) { parts.source->suffix = std::get<std::string>(v); }},
    {.name = "name_map",
     .word = "name_map",
     .type = OptionType::kNameMap,
     .calls = kWrites | kAgainstCall,
     .group = "Source",
     .value = "MAP.json",
     .help = "JSON file {\"name\": \"name in the source\", ...}, where the source has other names",
     .set = [](const Parts& parts,
               const Value& v) { parts.source->name_map = std::get<Names>(v); }},
    {.name = "group_info",
     .word = "group_info",
     .type = OptionType::kFiles,
     .calls = kWrites | kAgainstCall,
     .group = "Source",
     .value = "FILE",
     .help = "group_info.pb of the training run, or a pattern with {rank}; ranks in one list "
             "replace each other",
     .set = [](const Parts& parts,
               const Value& v) { parts.source->group_info = std::get<Texts>(v); }},
    {.name = "key",
     .word = "key_file",
     .type = OptionType::kKeyFile,
     .calls = kReads,
     .group = "Source",
     .value = "FILE",
     .help = "File with the key of encrypted .ckpt files",
     .set = [](const Parts& parts, const Value& v) { *parts.key = std::get<Key>(v); }},
    {.name = "key",
     .word = "key_env",
     .type = OptionType::kKeyVariable,
     .calls = kReads,
     .group = "Source",
     .value = "VAR",
     .help = "Environment variable with this key",
     .set = [](const Parts& parts, const Value& v) { *parts.key = std::get<Key>(v); }},

    {.name = "prefix",
     .word = "prefix",
     .type = OptionType::kText,
     .calls = kWrites | kAgainstCall,
     .group = "Target",
     .value = "P",
     .help = "Begin the names of target files with P (default checkpoint_)",
     .set = [](const Parts& parts,
               const Value& v) { parts.target->prefix = std::get<std::string>(v); }},
    {.name = "part_size",
     .word = "part_size",
     .type = OptionType::kDecimalSize,
     .calls = kConversions,
     .group = "Target",
     .value = "SIZE",
     .help = "Size of a file of --format unified (default 3G)",
     .set = [](const Parts& parts,
               const Value& v) { parts.target->part_size = std::get<uint64_t>(v); }},
    {.name = "shard_size",
     .word = "shard_size",
     .type = OptionType::kDecimalSize,
     .calls = kConversions,
     .group = "Target",
     .value = "SIZE",
     .help = "Size of a file of --format huggingface (default 5GB; 1GB is 1000^3 bytes, 1G is "
             "1024^3)",
     .set = [](const Parts& parts,
               const Value& v) { parts.target->shard_size = std::get<uint64_t>(v); }},
    {.name = "names",
     .word = "names",
     .type = OptionType::kText,
     .calls = kConversions,
     .group = "Target",
     .value = "PATTERN",
     .help = "Names of the target files (default rank_{rank}/{prefix}{rank}.{ext})",
     .set = [](const Parts& parts,
               const Value& v) { parts.target->names = std::get<std::string>(v); }},
    {.name = "prune",
     .word = "prune",
     .calls = kWrites,
     .group = "Target",
     .help = "Remove files that only the replaced manifest lists",
     .set = [](const Parts& parts, const Value& v) { *parts.prune = std::get<bool>(v); }},
    {.name = "encryption",
     .word = "encrypt",
     .type = OptionType::kWord,
     .calls = kWrites | kRecodeCall,
     .group = "Target",
     .value = "MODE",
     .help = "Encrypt the target .ckpt files by AES-GCM, AES-CBC or SM4-CBC; needs one of the next "
             "two",
     .words = "AES-GCM|AES-CBC|SM4-CBC",
     .set =
         [](const Parts& parts, const Value& v) {
           *parts.encryption = ParseEncryptionMode(std::get<std::string>(v));
         }},
    {.name = "encryption_key",
     .word = "encrypt_key_file",
     .type = OptionType::kKeyFile,
     .calls = kWrites | kRecodeCall | kAgainstCall,
     .group = "Target",
     .value = "FILE",
     .help = "File with the key for the target files",
     .set = [](const Parts& parts, const Value& v) { *parts.encryption_key = std::get<Key>(v); }},
    {.name = "encryption_key",
     .word = "encrypt_key_env",
     .type = OptionType::kKeyVariable,
     .calls = kWrites | kRecodeCall | kAgainstCall,
     .group = "Target",
     .value = "VAR",
     .help = "Environment variable with this key",
     .set = [](const Parts& parts, const Value& v) { *parts.encryption_key = std::get<Key>(v); }},
    {.name = "crc",
     .word = "crc",
     .calls = kWrites | kRecodeCall,
     .group = "Target",
     .help = "Add a CRC-32, for load_checkpoint(crc_check=True)",
     .set = [](const Parts& parts, const Value& v) { *parts.states_crc = std::get<bool>(v); }},

    {.name = "include",
     .word = "include",
     .type = OptionType::kTexts,
     .calls = kConversions | kMergeCall | kDigestCall | kDiffCall,
     .group = "Parameters",
     .value = "GLOB",
     .help = "Only parameters whose names in the source match GLOB",
     .set = [](const Parts& parts, const Value& v) { *parts.include = std::get<Texts>(v); }},
    {.name = "exclude",
     .word = "exclude",
     .type = OptionType::kTexts,
     .calls = kConversions | kMergeCall | kDigestCall | kDiffCall,
     .group = "Parameters",
     .value = "GLOB",
     .help = "Leave out what matches GLOB; wins over --include",
     .set = [](const Parts& parts, const Value& v) { *parts.exclude = std::get<Texts>(v); }},
    {.name = "renames",
     .word = "rename",
     .type = OptionType::kRenames,
     .calls = kConversions | kRecodeCall,
     .group = "Parameters",
     .value = "MAP.json",
     .help = "JSON file of new names: {\"old name\": \"new name\"} or {\"patterns\": {\"old.*\": "
             "\"new.*\"}}",
     .set = [](const Parts& parts, const Value& v) { *parts.renames = std::get<Renames>(v); }},
    {.name = "casts",
     .word = "dtype",
     .type = OptionType::kCasts,
     .calls = kConversions,
     .group = "Parameters",
     .value = "[GLOB=]TYPE",
     .help = "Cast floats whose source names match GLOB (without it: all but optimizer states and "
             "tensors of one element) to TYPE: float16, bfloat16, float32, float64, float8_e4m3fn, "
             "float8_e5m2 or keep; the first match counts",
     .set = [](const Parts& parts,
               const Value& v) { parts.selection->casts = std::get<std::vector<CastRule>>(v); }},
    {.name = "checks.refuse_overflow",
     .word = "dtype_overflow",
     .type = OptionType::kWord,
     .calls = kWrites,
     .group = "Parameters",
     .value = "warn|error",
     .help = "What to do if --dtype makes finite values infinite or NaN (default warn)",
     .words = "warn|error",
     .set =
         [](const Parts& parts, const Value& v) {
           parts.checks->refuse_overflow = std::get<std::string>(v) == "error";
         }},
    {.name = "unmatched",
     .word = "unmatched",
     .type = OptionType::kWord,
     .calls = kWrites | kAgainstCall,
     .group = "Parameters",
     .value = "copy|drop|error",
     .help = "What to do with a parameter that only one of the two strategies describes (default "
             "copy)",
     .words = "copy|drop|error",
     .set = [](const Parts& parts,
               const Value& v) { parts.selection->unmatched = OneOf(kPolicies, v); }},

    {.name = "checks.replicas",
     .word = "check_replicas",
     .type = OptionType::kSwitchOrWord,
     .calls = kWrites,
     .group = "Checks",
     .value = "[=none|sample|all]",
     .help = "Compare the source's replicas before writing: all bytes, a sample (default) or none; "
             "exit 3 if they differ",
     .words = "true|none|sample|all",
     .set = [](const Parts& parts,
               const Value& v) { parts.checks->replicas = OneOf(kReplicas, v); }},
    {.name = "checks.reference",
     .word = "reference",
     .type = OptionType::kFile,
     .calls = kWrites,
     .group = "Checks",
     .value = "FILE",
     .help = "Refuse other dtypes or full shapes than those of FILE, a full checkpoint of the same "
             "model",
     .set = [](const Parts& parts,
               const Value& v) { parts.checks->reference = std::get<std::string>(v); }},
    {.name = "checks.parameters",
     .word = "expect_parameters",
     .type = OptionType::kParameterCount,
     .calls = kWrites,
     .group = "Checks",
     .value = "N",
     .help = "Refuse a source of more or fewer parameters, as in 6.74B; counted to the digits that "
             "are given",
     .set = [](const Parts& parts,
               const Value& v) { parts.checks->parameters = std::get<RoundedCount>(v); }},
    {.name = "partial",
     .word = "partial",
     .calls = kWrites | kMergeCall,
     .group = "Checks",
     .help = "Take a file that says it is one of several, as -00001-of-00002 does, without the "
             "others",
     .set = [](const Parts& parts, const Value& v) { *parts.partial = std::get<bool>(v); }},
    {.name = "checksum",
     .word = "no_checksum",
     .calls = kWrites | kRecodeCall,
     .group = "Checks",
     .help = "Neither check nor write checksums; verify then compares sizes only",
     .set = [](const Parts& parts, const Value& v) { *parts.checksum = !std::get<bool>(v); }},

    {.name = "memory_limit",
     .word = "memory_limit",
     .type = OptionType::kSize,
     .calls = kWrites | kMergeCall,
     .group = "Run",
     .value = "SIZE",
     .help = "Use at most SIZE, page cache included (default 256M, or a quarter of the memory if "
             "less)",
     .set = [](const Parts& parts,
               const Value& v) { *parts.memory_limit = std::get<uint64_t>(v); }},
    {.name = "io",
     .word = "io",
     .type = OptionType::kIo,
     .calls = kWrites,
     .group = "Run",
     .value = "auto|map|pread|direct|buffered[,HOW]",
     .help = "map or pread for sources, direct or buffered for targets, or one of each (default "
             "auto)",
     .set = [](const Parts& parts, const Value& v) { *parts.io = std::get<IoChoice>(v); }},
    {.name = "shard",
     .word = "shard",
     .type = OptionType::kShare,
     .calls = kConvertCall,
     .group = "Run",
     .value = "I/N|auto",
     .help = "Do share I of N, counted from 0; auto takes both from mpirun, Slurm, Kubernetes, "
             "torchrun or msrun",
     .set = [](const Parts& parts, const Value& v) { *parts.shard = std::get<WorkerShare>(v); }},
    {.name = "waiting",
     .word = "wait",
     .type = OptionType::kSeconds,
     .calls = kConvertCall | kCommitCall,
     .group = "Run",
     .value = "SECONDS",
     .help = "Wait at most SECONDS for another process, then exit 6 (default: for ever)",
     .set =
         [](const Parts& parts, const Value& v) {
           parts.waiting->most = std::chrono::seconds(static_cast<int64_t>(std::get<uint64_t>(v)));
         }},
};

constexpr std::pair<std::string_view, std::optional<DType>> kCastWords[] = {
    {"float16", DType::kFloat16},
    {"bfloat16", DType::kBFloat16},
    {"float32", DType::kFloat32},
    {"float64", DType::kFloat64},
    {"float8_e4m3fn", DType::kFloat8E4M3FN},
    {"float8_e5m2", DType::kFloat8E5M2},
    {"keep", std::nullopt}};

}  // namespace

std::span<const Option> AllOptions() { return kOptions; }

const Option* FindOptionNamed(std::string_view name) {
  const auto found = std::find_if(std::begin(kOptions), std::end(kOptions),
                                  [&](const Option& option) { return option.name == name; });
  return found == std::end(kOptions) ? nullptr : found;
}

std::string OnCommandLine(const Option& option) {
  std::string text = "--" + std::string(option.word);
  std::replace(text.begin() + 2, text.end(), '_', '-');
  return text;
}

std::vector<std::string_view> WordsOf(const Option& option) {
  std::vector<std::string_view> words;
  for (std::string_view left = option.words; !left.empty();) {
    const size_t bar = std::min(left.find('|'), left.size());
    words.push_back(left.substr(0, bar));
    left.remove_prefix(std::min(bar + 1, left.size()));
  }
  return words;
}

std::span<const std::pair<std::string_view, std::optional<DType>>> CastWords() {
  return kCastWords;
}

}  // namespace reshard
