#include "src/options/option_table.h"

#include <algorithm>
#include <chrono>
#include <type_traits>
#include <utility>

#include "reshard/tensor.h"

namespace reshard {
namespace {

using Parts = OptionParts;

constexpr uint32_t kViews = kCatCall | kViewCall | kMountCall;
constexpr uint32_t kConversions = kConvertCall | kPlanCall | kReportCall | kAgainstCall | kViews;
constexpr uint32_t kWrites = kConvertCall | kPlanCall;
constexpr uint32_t kReads =
    kConversions | kRecodeCall | kMergeCall | kVerifyCall | kDigestCall | kDiffCall | kInspectCall;
constexpr uint32_t kStrategyOutputs =
    kMakeStrategyCall | kConvertStrategyCall | kMergeStrategiesCall | kInferStrategyCall;

template <typename Enum>
constexpr int Of(Enum value) {
  return static_cast<int>(value);
}

template <typename Part, typename Member>
Member* MemberOf(Part* part, Member Part::*member) {
  return part == nullptr ? nullptr : &(part->*member);
}

// Places, of members of a part and of parts that are members.
template <auto kPart, auto kMember>
OptionPlace At(const OptionParts& parts) {
  return MemberOf(parts.*kPart, kMember);
}
template <auto kPart>
OptionPlace At(const OptionParts& parts) {
  return parts.*kPart;
}
template <auto kPart, auto kMember>
OptionPlace WordAt(const OptionParts& parts) {
  return WordPlace(MemberOf(parts.*kPart, kMember));
}

// The first word of a kSwitchOrWord is the meaning of the option without a value. Records have the
// first word of a meaning.
constexpr WordMeaning kFormats[] = {{"ckpt", Of(TargetFormat::kCkpt)},
                                    {"safetensors", Of(TargetFormat::kSafetensors)},
                                    {"unified", Of(TargetFormat::kUnified)},
                                    {"huggingface", Of(TargetFormat::kHuggingFace)},
                                    {"hf", Of(TargetFormat::kHuggingFace)}};
constexpr std::span<const WordMeaning> kFormatsOfRanks = std::span(kFormats).first(2);
constexpr WordMeaning kSourceFormats[] = {
    {"plain", Of(SourceFormat::kPlain)},
    {"huggingface-shards", Of(SourceFormat::kHuggingFaceShards)},
    {"mindformers", Of(SourceFormat::kMindFormers)},
    {"dcp", Of(SourceFormat::kDcp)},
    {"fsdp", Of(SourceFormat::kFsdp)}};
constexpr WordMeaning kResumes[] = {{"true", Of(OutputChoice::Resume::kTrust)},
                                    {"verify", Of(OutputChoice::Resume::kVerify)}};
constexpr WordMeaning kReplicas[] = {{"true", Of(CheckChoice::Replicas::kAll)},
                                     {"none", Of(CheckChoice::Replicas::kNone)},
                                     {"sample", Of(CheckChoice::Replicas::kSample)},
                                     {"all", Of(CheckChoice::Replicas::kAll)}};
constexpr WordMeaning kModes[] = {{"AES-GCM", Of(TargetSpec::EncryptionMode::kAesGcm)},
                                  {"AES-CBC", Of(TargetSpec::EncryptionMode::kAesCbc)},
                                  {"SM4-CBC", Of(TargetSpec::EncryptionMode::kSm4Cbc)}};
constexpr WordMeaning kLosses[] = {{"warn", 0}, {"error", 1}};
constexpr WordMeaning kPolicies[] = {{"copy", Of(Selection::Unmatched::kCopy)},
                                     {"drop", Of(Selection::Unmatched::kDrop)},
                                     {"error", Of(Selection::Unmatched::kError)}};
constexpr WordMeaning kTextPolicies[] = {{"copy", Of(Selection::Unmatched::kCopy)},
                                         {"error", Of(Selection::Unmatched::kError)}};
constexpr std::span<const WordMeaning> kOnlyCopy = std::span(kPolicies).first(1);

constexpr Option kOptions[] = {
    {.name = "source.strategy",
     .word = "src_strategy",
     .other_word = "strategy",
     .type = OptionType::kFile,
     .calls = kConversions | kRanksCall,
     .value = "S",
     .help = "Strategy of the source, a file or a folder of stage files; without it, SRC has full "
             "tensors",
     .effect = Effect::kBytesToldApart,
     .place = At<&Parts::source, &SourceSpec::strategy>},
    {.name = "target.strategy",
     .word = "dst_strategy",
     .type = OptionType::kFile,
     .calls = kConversions | kRanksCall,
     .value = "D",
     .help = "Strategy of the target, a file or a folder; without it, and without --tp, --dp or "
             "--pp, full tensors in one rank",
     .effect = Effect::kBytesToldApart,
     .place = At<&Parts::target, &TargetSpec::strategy>},
    {.name = "a.strategy",
     .word = "a_strategy",
     .type = OptionType::kFile,
     .calls = kDiffCall,
     .value = "S",
     .help = "Strategy of A: a file, or a folder of stage files. Without it A holds full tensors",
     .place = At<&Parts::source, &SourceSpec::strategy>},
    {.name = "b.strategy",
     .word = "b_strategy",
     .type = OptionType::kFile,
     .calls = kDiffCall,
     .value = "S",
     .help = "Strategy of B: a file, or a folder of stage files. Without it B holds full tensors",
     .place = At<&Parts::second_source, &SourceSpec::strategy>},
    {.name = "source.strategy",
     .word = "strategy",
     .type = OptionType::kFile,
     .calls = kDigestCall,
     .value = "S",
     .help = "Strategy file, or folder of stage files. Without it PATH holds full tensors",
     .place = At<&Parts::source, &SourceSpec::strategy>},
    {.name = "source.strategy",
     .word = "strategy",
     .type = OptionType::kFile,
     .calls = kInspectCall,
     .value = "S",
     .help = "Strategy of the checkpoint at PATH, a file or a folder of stage files: list the full "
             "tensors and how they are cut",
     .place = At<&Parts::source, &SourceSpec::strategy>},
    {.name = "source.strategy",
     .word = "strategy",
     .type = OptionType::kFile,
     .calls = kMergeCall,
     .value = "S",
     .help = "Strategy file of the slices' stage. Without it, slices are concatenated along axis 0",
     .place = At<&Parts::source, &SourceSpec::strategy>},
    {.name = "checkpoint",
     .word = "from_",
     .type = OptionType::kFile,
     .calls = kMakeStrategyCall,
     .value = "CKPT",
     .help = "Full checkpoint (file or folder) that gives the names for the patterns, and the "
             "shapes",
     .place = At<&Parts::full_tensors>},
    {.name = "like",
     .word = "like",
     .type = OptionType::kFile,
     .calls = kMakeStrategyCall,
     .value = "SRC",
     .help = "Source that gives names, shapes and cuts: rank folders, a full checkpoint or a "
             "strategy",
     .place = At<&Parts::source, &SourceSpec::path>},
    {.name = "source.strategy",
     .word = "src_strategy",
     .type = OptionType::kFile,
     .calls = kMakeStrategyCall,
     .group = "Source",
     .value = "PATH",
     .help = "Strategy of SRC",
     .place = At<&Parts::source, &SourceSpec::strategy>},
    {.name = "reference",
     .word = "reference",
     .type = OptionType::kFile,
     .calls = kInferStrategyCall,
     .value = "CKPT",
     .help = "Full checkpoint (file or folder) of the same model, best with the same values",
     .is_required = true,
     .place = At<&Parts::full_tensors>},
    {.name = "segments",
     .word = "segments",
     .calls = kMergeCall,
     .help = "Merge segments: each of FILES (a checkpoint, or a folder of some) holds whole "
             "parameters; a parameter in several files has to be equal in all",
     .place = At<&Parts::segments>},
    {.name = "values",
     .word = "values",
     .calls = kDiffCall,
     .help = "Of floats that differ, list how many elements do, by how much at most, and how many "
             "are NaN on one side or NaN with other bits",
     .place = At<&Parts::values>},
    {.name = "one_replica",
     .word = "one_replica",
     .calls = kDiffCall,
     .help = "Read only one replica of each shard, and compare byte by byte: faster, but a rank "
             "that differs from its replica goes unnoticed",
     .place = At<&Parts::one_replica>},
    {.name = "one_replica",
     .word = "one_replica",
     .calls = kDigestCall,
     .help = "Read only one replica of each shard: faster, but a rank that differs goes unnoticed",
     .place = At<&Parts::one_replica>},
    {.name = "ranks",
     .word = "rank",
     .type = OptionType::kRanks,
     .calls = kWrites | kAgainstCall | kViewCall | kMountCall,
     .value = "N",
     .help = "Only these target ranks, such as 3 or 0-7,9",
     .effect = Effect::kBytesAsBefore,
     .place = At<&Parts::selection, &Selection::ranks>},
    {.name = "force",
     .word = "force",
     .calls = kWrites | kReportCall | kRecodeCall | kMergeCall | kCatCall | kStrategyOutputs,
     .help = "Replace existing outputs (default: exit 6 if there are any)",
     .place = At<&Parts::force>},
    {.name = "resume",
     .word = "resume",
     .type = OptionType::kSwitchOrWord,
     .calls = kWrites | kRecodeCall,
     .help = "Keep the files that an interrupted run of the same command finished; =verify checks "
             "their digests first",
     .words = kResumes,
     .place = WordAt<&Parts::output, &OutputChoice::resume>},
    {.name = "format",
     .word = "format",
     .type = OptionType::kWord,
     .calls = kConversions,
     .help = "Format of the target files (default: the source's)",
     .words = kFormats,
     .effect = Effect::kBytesAsBefore,
     .place = WordAt<&Parts::target, &TargetSpec::format>},
    {.name = "format",
     .word = "format",
     .type = OptionType::kWord,
     .calls = kRecodeCall,
     .help = "Format to write, from files of the other one (default: .ckpt files stay .ckpt files, "
             "and --crc, --encrypt, --decrypt or --rename changes them)",
     .words = kFormatsOfRanks,
     .place = WordAt<&Parts::target, &TargetSpec::format>},
    {.name = "files",
     .word = "files",
     .type = OptionType::kText,
     .calls = kRecodeCall,
     .value = "REGEX",
     .help = "Only files with names that this regular expression matches somewhere; for a single "
             "file, its path",
     .place = At<&Parts::file_names>},

    {.name = "source.files",
     .word = "source",
     .type = OptionType::kRankFiles,
     .calls = kWrites | kAgainstCall | kViews,
     .group = "Source",
     .value = "RANK=FILE",
     .help = "File of one source rank, instead of SRC; with --rank, give only the files that these "
             "ranks need",
     .effect = Effect::kBytesToldApart,
     .place = At<&Parts::source, &SourceSpec::files>},
    {.name = "source.format",
     .word = "src_format",
     .type = OptionType::kWord,
     .calls = kConversions | kDigestCall | kInspectCall | kMakeStrategyCall,
     .group = "Source",
     .value = "KIND",
     .help = "Read only files of this kind, if the folder has several: plain (rank folders or full "
             "tensors), huggingface-shards, mindformers (checkpoint 2.0), dcp or fsdp (a file of "
             "torch.save for each rank)",
     .words = kSourceFormats,
     .effect = Effect::kBytes,
     .place = WordAt<&Parts::source, &SourceSpec::format>},
    {.name = "a.format",
     .word = "a_format",
     .type = OptionType::kWord,
     .calls = kDiffCall,
     .group = "Source",
     .value = "KIND",
     .help = "Read only files of this kind in A, as --src-format of convert",
     .words = kSourceFormats,
     .place = WordAt<&Parts::source, &SourceSpec::format>},
    {.name = "b.format",
     .word = "b_format",
     .type = OptionType::kWord,
     .calls = kDiffCall,
     .group = "Source",
     .value = "KIND",
     .help = "Read only files of this kind in B, as --src-format of convert",
     .words = kSourceFormats,
     .place = WordAt<&Parts::second_source, &SourceSpec::format>},
    {.name = "suffix",
     .word = "suffix",
     .type = OptionType::kText,
     .calls = kConversions | kDigestCall | kInspectCall,
     .group = "Source",
     .value = "-E_S|common",
     .help = "In each rank folder take the checkpoint of this epoch and step, as in "
             "--suffix=-1_100, or of the latest step that all ranks have (default: the latest)",
     .effect = Effect::kBytesAsBefore,
     .place = At<&Parts::source, &SourceSpec::suffix>},
    {.name = "name_map",
     .word = "name_map",
     .type = OptionType::kRenames,
     .calls = kWrites | kAgainstCall | kViews,
     .group = "Source",
     .value = "MAP.json",
     .help = "JSON file {\"name\": \"name in the source\"} or {\"patterns\": {\"name.*\": "
             "\"name in the source.*\"}}, if the source has other names than the strategies",
     .effect = Effect::kBytesAsBefore,
     .place = At<&Parts::source, &SourceSpec::name_map>},
    {.name = "group_info",
     .word = "group_info",
     .type = OptionType::kFiles,
     .calls = kWrites | kAgainstCall | kViews,
     .group = "Source",
     .value = "FILE",
     .help = "group_info.pb of the training run, or a pattern with {rank}. It lists ranks with the "
             "same weights: if a rank's file is missing, another rank of its list replaces it",
     .effect = Effect::kBytesAsBefore,
     .place = At<&Parts::source, &SourceSpec::group_info>},
    {.name = "key",
     .word = "key_file",
     .type = OptionType::kKeyFile,
     .calls = kReads,
     .group = "Source",
     .value = "FILE",
     .help = "File with the key of encrypted .ckpt files",
     .place = At<&Parts::key>},
    {.name = "key",
     .word = "key_env",
     .type = OptionType::kKeyVariable,
     .calls = kReads,
     .group = "Source",
     .value = "VAR",
     .help = "Environment variable with this key",
     .place = At<&Parts::key>},

    {.name = "prefix",
     .word = "prefix",
     .type = OptionType::kText,
     .calls = kWrites | kAgainstCall | kViews,
     .group = "Target",
     .value = "P",
     .help = "Begin the names of target files with P (default checkpoint_)",
     .effect = Effect::kBytesAsBefore,
     .place = At<&Parts::target, &TargetSpec::prefix>},
    {.name = "part_size",
     .word = "part_size",
     .type = OptionType::kDecimalSize,
     .calls = kConversions,
     .group = "Target",
     .value = "SIZE",
     .help = "Largest size of a file of --format unified (default 3G)",
     .only_with = TargetFormat::kUnified,
     .effect = Effect::kBytesAsBefore,
     .place = At<&Parts::target, &TargetSpec::part_size>},
    {.name = "shard_size",
     .word = "shard_size",
     .type = OptionType::kDecimalSize,
     .calls = kConversions,
     .group = "Target",
     .value = "SIZE",
     .help = "Largest size of a file of --format huggingface (default 5GB; 1GB is 1000^3 bytes, 1G "
             "is 1024^3)",
     .only_with = TargetFormat::kHuggingFace,
     .effect = Effect::kBytesAsBefore,
     .place = At<&Parts::target, &TargetSpec::shard_size>},
    {.name = "names",
     .word = "names",
     .type = OptionType::kText,
     .calls = kConversions,
     .group = "Target",
     .value = "PATTERN",
     .help = "Names of the target files (default rank_{rank}/{prefix}{rank}.{ext}); mindformers: "
             "those of a MindFormers run, with a meta.json for each rank, so that training resumes",
     .effect = Effect::kBytesAsBefore,
     .place = At<&Parts::target, &TargetSpec::names>},
    {.name = "prune",
     .word = "prune",
     .calls = kWrites,
     .group = "Target",
     .help = "At the end, delete the files of DST that the old manifest.json lists and the new one "
             "does not",
     .place = At<&Parts::output, &OutputChoice::prune>},
    {.name = "encryption",
     .word = "encrypt",
     .type = OptionType::kWord,
     .calls = kWrites | kRecodeCall,
     .group = "Target",
     .value = "MODE",
     .help = "Encrypt the target .ckpt files by AES-GCM, AES-CBC or SM4-CBC; needs "
             "--encrypt-key-file or --encrypt-key-env",
     .words = kModes,
     .effect = Effect::kBytesAsBefore,
     .place = WordAt<&Parts::target, &TargetSpec::encryption>},
    {.name = "encryption_key",
     .word = "encrypt_key_file",
     .type = OptionType::kKeyFile,
     .calls = kWrites | kRecodeCall | kAgainstCall,
     .group = "Target",
     .value = "FILE",
     .help = "File with the key for the target files",
     .place = At<&Parts::target, &TargetSpec::encryption_key>},
    {.name = "encryption_key",
     .word = "encrypt_key_env",
     .type = OptionType::kKeyVariable,
     .calls = kWrites | kRecodeCall | kAgainstCall,
     .group = "Target",
     .value = "VAR",
     .help = "Environment variable with this key",
     .place = At<&Parts::target, &TargetSpec::encryption_key>},
    {.name = "decrypt",
     .word = "decrypt",
     .calls = kRecodeCall,
     .group = "Target",
     .help = "Take .ckpt files and write encrypted ones plain; needs --key-file or --key-env",
     .place = At<&Parts::decrypt>},
    {.name = "crc",
     .word = "crc",
     .calls = kWrites | kRecodeCall | kViews,
     .group = "Target",
     .help = "Add a CRC-32, for load_checkpoint(crc_check=True)",
     .effect = Effect::kBytesAsBefore,
     .place = At<&Parts::target, &TargetSpec::states_crc>},
    {.name = "companions",
     .word = "companions",
     .type = OptionType::kSwitchOrFile,
     .calls = kConversions,
     .group = "Target",
     .value = "[DIR]",
     .help = "Copy config.json, the tokenizer and generation settings from DIR (default: the "
             "source's folder)",
     .effect = Effect::kBytesAsBefore,
     .place = At<&Parts::target, &TargetSpec::companions>},

    {.name = "removes_redundancy",
     .word = "remove_redundancy",
     .calls = kWrites | kAgainstCall | kViews,
     .group = "Target",
     .help = "Write each shard into one file of the ranks that hold it, for "
             "load_checkpoint(remove_redundancy=True)",
     .effect = Effect::kBytes,
     .place = At<&Parts::target, &TargetSpec::removes_redundancy>},

    {.name = "tensor_parallel",
     .word = "tp",
     .type = OptionType::kCount,
     .calls = kWrites | kAgainstCall | kViews | kMakeStrategyCall,
     .group = "New cluster",
     .value = "N",
     .help = "Tensor parallel: parts of each matrix (default 1)",
     .effect = Effect::kBytes,
     .place = At<&Parts::cluster, &Cluster::tensor_parallel>},
    {.name = "data_parallel",
     .word = "dp",
     .type = OptionType::kCount,
     .calls = kWrites | kAgainstCall | kViews | kMakeStrategyCall,
     .group = "New cluster",
     .value = "N",
     .help = "Data parallel: replicas (default 1)",
     .effect = Effect::kBytes,
     .place = At<&Parts::cluster, &Cluster::data_parallel>},
    {.name = "pipeline_stages",
     .word = "pp",
     .type = OptionType::kCount,
     .calls = kWrites | kAgainstCall | kViews | kMakeStrategyCall,
     .group = "New cluster",
     .value = "N",
     .help = "Pipeline parallel: stages (default 1)",
     .effect = Effect::kBytes,
     .place = At<&Parts::cluster, &Cluster::pipeline_stages>},
    {.name = "optimizer_sharding",
     .word = "optimizer_sharding",
     .type = OptionType::kSwitchOrCount,
     .calls = kWrites | kAgainstCall | kViews | kMakeStrategyCall,
     .group = "New cluster",
     .value = "[N]",
     .help = "Cut matrices further over N replicas (without N, over all)",
     .effect = Effect::kBytes,
     .place = At<&Parts::cluster, &Cluster::optimizer_shards>},
    {.name = "stage_layers",
     .word = "stage_layers",
     .type = OptionType::kCounts,
     .calls = kWrites | kAgainstCall | kViews | kMakeStrategyCall,
     .group = "New cluster",
     .value = "N,...",
     .help = "Layers of each stage, such as 10,11,11",
     .effect = Effect::kBytes,
     .place = At<&Parts::cluster, &Cluster::stage_layers>},

    {.name = "include",
     .word = "include",
     .type = OptionType::kPatterns,
     .calls = kConversions | kMergeCall | kDigestCall | kDiffCall,
     .group = "Parameters",
     .value = "GLOB[,GLOB]",
     .help = "Only parameters with source names that match a GLOB",
     .effect = Effect::kBytesAsBefore,
     .place = At<&Parts::include>},
    {.name = "include",
     .word = "include",
     .other_word = "filter",
     .type = OptionType::kPatterns,
     .calls = kInspectCall | kShowStrategyCall,
     .value = "GLOB[,GLOB]",
     .help = "Only parameters with names that match a GLOB",
     .place = At<&Parts::include>},
    {.name = "exclude",
     .word = "exclude",
     .type = OptionType::kPatterns,
     .calls = kInspectCall | kShowStrategyCall,
     .value = "GLOB[,GLOB]",
     .help = "Leave out parameters that match a GLOB; wins over --include",
     .place = At<&Parts::exclude>},
    {.name = "exclude",
     .word = "exclude",
     .type = OptionType::kPatterns,
     .calls = kConversions | kMergeCall | kDigestCall | kDiffCall,
     .group = "Parameters",
     .value = "GLOB[,GLOB]",
     .help = "Leave out parameters that match a GLOB; wins over --include",
     .effect = Effect::kBytesAsBefore,
     .place = At<&Parts::exclude>},
    {.name = "weights_only",
     .word = "weights_only",
     .calls = kConversions | kMergeCall,
     .group = "Parameters",
     .help = "Leave out optimizer states, gradients and counters of training",
     .effect = Effect::kBytes,
     .place = At<&Parts::weights_only>},
    {.name = "renames",
     .word = "rename",
     .type = OptionType::kRenames,
     .calls = kConversions | kRecodeCall,
     .group = "Parameters",
     .value = "MAP.json",
     .help = "JSON file of new names: {\"old name\": \"new name\"} or {\"patterns\": {\"old.*\": "
             "\"new.*\"}}",
     .effect = Effect::kBytesAsBefore,
     .place = At<&Parts::renames>},
    {.name = "name_rules",
     .word = "name_rules",
     .type = OptionType::kText,
     .calls = kConversions | kRecodeCall,
     .group = "Parameters",
     .value = "MODEL:WAY",
     .help =
         "Rename by the rules of a model, such as llama:hf-to-mindformers; `reshard name-rules` "
         "prints them; --rename goes before them",
     .effect = Effect::kBytes,
     .place = At<&Parts::renames, &Renames::rules>},
    {.name = "renames",
     .word = "rename",
     .type = OptionType::kRenames,
     .calls = kConvertStrategyCall,
     .value = "MAP.json",
     .help = "JSON file of new names, as for convert; only the layouts are written",
     .place = At<&Parts::renames>},
    {.name = "name_rules",
     .word = "name_rules",
     .type = OptionType::kText,
     .calls = kConvertStrategyCall,
     .value = "MODEL:WAY",
     .help = "Rename by the rules of a model, as for convert",
     .place = At<&Parts::renames, &Renames::rules>},
    {.name = "casts",
     .word = "dtype",
     .type = OptionType::kCasts,
     .calls = kConversions,
     .group = "Parameters",
     .value = "[GLOB=]TYPE",
     .help = "Cast floats with source names that match GLOB to TYPE (without GLOB: all but "
             "optimizer states and one-element tensors): float16, bfloat16, float32, float64, "
             "float8_e4m3fn, float8_e5m2 or keep; the first match counts",
     .effect = Effect::kBytesAsBefore,
     .place = At<&Parts::selection, &Selection::casts>},
    {.name = "checks.refuse_overflow",
     .word = "dtype_overflow",
     .type = OptionType::kWord,
     .calls = kWrites | kCatCall,
     .group = "Parameters",
     .help = "What to do if --dtype makes finite values infinite or NaN (default warn)",
     .words = kLosses,
     .place = WordAt<&Parts::checks, &CheckChoice::refuse_overflow>},
    {.name = "unmatched",
     .word = "unmatched",
     .type = OptionType::kWord,
     .calls = kWrites | kAgainstCall | kViews,
     .group = "Parameters",
     .help = "A parameter that only one of the two strategies describes: copy it from one source "
             "rank with a warning, drop it with a warning, or fail (default: copy, but fail if a "
             "strategy seems to be another checkpoint's)",
     .words = kPolicies,
     .effect = Effect::kBytesAsBefore,
     .place = WordAt<&Parts::selection, &Selection::unmatched>},
    {.name = "unmatched",
     .word = "unmatched",
     .type = OptionType::kWord,
     .calls = kRecodeCall,
     .help = "What to do with texts, which safetensors files cannot hold: leave them out with a "
             "warning (copy), or refuse them",
     .words = kTextPolicies,
     .place = WordAt<&Parts::selection, &Selection::unmatched>},
    {.name = "unmatched",
     .word = "unmatched",
     .type = OptionType::kWord,
     .calls = kMergeCall,
     .help = "Merge although names tell that the strategy is another checkpoint's (copy)",
     .words = kOnlyCopy,
     .place = WordAt<&Parts::selection, &Selection::unmatched>},

    {.name = "checks.replicas",
     .word = "check_replicas",
     .type = OptionType::kSwitchOrWord,
     .calls = kWrites | kViews,
     .group = "Checks",
     .help = "Compare the source's replicas before writing, and exit 3 if they differ: not at all, "
             "a sample (without this option) or every byte (=all, or no value)",
     .words = kReplicas,
     .place = WordAt<&Parts::checks, &CheckChoice::replicas>},
    {.name = "checks.reference",
     .word = "reference",
     .type = OptionType::kFile,
     .calls = kWrites | kViews,
     .group = "Checks",
     .value = "CKPT",
     .help = "Fail unless dtypes and full shapes equal CKPT's, a full checkpoint (file or folder) "
             "of the same model",
     .place = At<&Parts::checks, &CheckChoice::reference>},
    {.name = "checks.parameters",
     .word = "expect_parameters",
     .type = OptionType::kParameterCount,
     .calls = kWrites | kViews,
     .group = "Checks",
     .value = "N",
     .help = "Fail unless the source has N weights (elements), rounded as given (6.74B)",
     .place = At<&Parts::checks, &CheckChoice::parameters>},
    {.name = "partial",
     .word = "partial",
     .calls = kWrites | kMergeCall | kViews,
     .group = "Checks",
     .help = "Accept a source without the other files of its numbered set, such as -00001-of-00002",
     .place = At<&Parts::checks, &CheckChoice::partial>},
    {.name = "checksum",
     .word = "no_checksum",
     .calls = kWrites | kRecodeCall | kViews,
     .group = "Checks",
     .help = "Do not check or write checksums; verify then compares sizes only",
     .negates = true,
     .place = At<&Parts::checks, &CheckChoice::checksum>},

    {.name = "memory_limit",
     .word = "memory_limit",
     .type = OptionType::kSize,
     .calls = kWrites | kMergeCall | kViews,
     .group = "Run",
     .value = "SIZE",
     .help = "Use at most SIZE, page cache included, or exit 5 (default: 256M, or a quarter of the "
             "memory if less, and more with a warning)",
     .place = At<&Parts::memory_limit>},
    {.name = "io",
     .word = "io",
     .type = OptionType::kIo,
     .calls = kWrites,
     .group = "Run",
     .value = "auto|map|pread|direct|buffered[,HOW]",
     .help = "Read sources by memory map or by pread; write targets direct, past the page cache, "
             "or buffered: one word, or two such as pread,direct (default auto: by file system)",
     .place = At<&Parts::io>},
    {.name = "retries",
     .word = "retries",
     .type = OptionType::kNumber,
     .calls = kConversions | kRecodeCall | kMergeCall | kVerifyCall | kDigestCall | kDiffCall |
              kInferStrategyCall,
     .group = "Run",
     .value = "N",
     .help =
         "On network and FUSE file systems, repeat failed reads up to N times (default 3), within "
         "30 s",
     .place = At<&Parts::run, &RunOptions::retries>},
    {.name = "shard",
     .word = "shard",
     .type = OptionType::kShare,
     .calls = kConvertCall,
     .group = "Run",
     .value = "I/N|auto",
     .help = "Write share I of N, counted from 0; start the same command with each I. auto takes I "
             "and N from mpirun, Slurm, Kubernetes, torchrun or msrun",
     .place = At<&Parts::shard>},
    {.name = "lock_limit",
     .word = "wait",
     .type = OptionType::kSeconds,
     .calls = kConvertCall | kCommitCall,
     .group = "Run",
     .value = "SECONDS",
     .help = "With --shard: wait at most SECONDS while another process begins or publishes, then "
             "exit 6 (default: no limit)",
     .place = At<&Parts::run, &RunOptions::lock_limit>},
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

const Option* FindOptionNamed(std::string_view name, uint32_t call) {
  const auto found = std::find_if(
      std::begin(kOptions), std::end(kOptions),
      [&](const Option& option) { return option.name == name && (option.calls & call) != 0; });
  return found == std::end(kOptions) ? nullptr : found;
}

std::string OnCommandLine(const Option& option) {
  std::string text = "--" + std::string(option.word);
  if (text.ends_with('_')) text.pop_back();  // a word of Python's own
  std::replace(text.begin() + 2, text.end(), '_', '-');
  return text;
}

std::vector<std::string_view> WordsOf(const Option& option) {
  std::vector<std::string_view> words;
  for (const WordMeaning& word : option.words) words.push_back(word.word);
  return words;
}

const WordMeaning* FindWord(const Option& option, std::string_view word) {
  const auto found = std::find_if(option.words.begin(), option.words.end(),
                                  [word](const WordMeaning& it) { return it.word == word; });
  return found == option.words.end() ? nullptr : &*found;
}

bool IsRecorded(const Option& option) {
  return option.effect == Effect::kBytes || option.effect == Effect::kBytesAsBefore;
}

std::string ValueInHelp(const Option& option) {
  if (!option.value.empty()) return std::string(option.value);
  std::string words;
  for (const WordMeaning& word : option.words) {
    if (word.word != "true") words.append(words.empty() ? "" : "|").append(word.word);
  }
  return option.type == OptionType::kSwitchOrWord ? "[=" + words + "]" : words;
}

OptionParts PartsOf(ConversionSpec& spec) {
  return {.source = &spec.source,
          .target = &spec.target,
          .selection = &spec.selection,
          .key = &spec.source.key,
          .include = &spec.selection.include,
          .exclude = &spec.selection.exclude,
          .weights_only = &spec.selection.weights_only,
          .renames = &spec.selection.renames,
          .cluster = &spec.target.cluster};
}

void SetOption(const Option& option, const OptionParts& parts, const OptionValue& value) {
  std::visit(
      [&](const auto& place) {
        using Place = std::decay_t<decltype(place)>;
        if constexpr (std::is_same_v<Place, WordPlace>) {
          place.Set(FindWord(option, std::get<std::string>(value))->meaning);
        } else if constexpr (std::is_same_v<Place, bool*>) {
          *place = std::get<bool>(value) != option.negates;
        } else if constexpr (std::is_same_v<Place, std::optional<std::chrono::milliseconds>*>) {
          *place = std::chrono::seconds(std::get<uint64_t>(value));
        } else if constexpr (std::is_same_v<Place, StrategyRef*>) {
          const auto* path = std::get_if<std::string>(&value);
          *place = path != nullptr ? StrategyRef(*path) : std::get<StrategyRef>(value);
        } else if constexpr (std::is_same_v<Place, Renames*>) {
          const auto& renames = std::get<Renames>(value);
          place->names = renames.names;
          place->patterns = renames.patterns;
        } else if constexpr (std::is_same_v<Place, std::optional<WorkerShare>*> ||
                             std::is_same_v<Place, std::optional<std::string>*>) {
          *place = std::get<typename std::remove_pointer_t<Place>::value_type>(value);
        } else {
          *place = std::get<std::remove_pointer_t<Place>>(value);
        }
      },
      option.place(parts));
}

std::optional<OptionValue> ValueIn(const Option& option, const OptionParts& parts) {
  return std::visit(
      [&](const auto& place) -> std::optional<OptionValue> {
        using Place = std::decay_t<decltype(place)>;
        if (place == nullptr) return std::nullopt;
        if constexpr (std::is_same_v<Place, WordPlace>) {
          const auto meaning = place.Get();
          const auto word =
              std::find_if(option.words.begin(), option.words.end(),
                           [&](const WordMeaning& it) { return it.meaning == meaning; });
          if (word == option.words.end()) return std::nullopt;
          return std::string(word->word);
        } else if constexpr (std::is_same_v<Place, bool*>) {
          return *place != option.negates;
        } else if constexpr (std::is_same_v<Place, std::optional<std::chrono::milliseconds>*>) {
          if (!*place) return std::nullopt;
          return static_cast<uint64_t>(std::chrono::ceil<std::chrono::seconds>(**place).count());
        } else if constexpr (std::is_same_v<Place, std::string*>) {
          // Empty: not given. An empty text of another type is a value.
          if (option.type == OptionType::kParameterCount && place->empty()) return std::nullopt;
          return *place;
        } else if constexpr (std::is_same_v<Place, Renames*>) {
          return Renames{place->names, place->patterns};  // the rules are an option of their own
        } else if constexpr (std::is_same_v<Place, std::optional<WorkerShare>*> ||
                             std::is_same_v<Place, std::optional<std::string>*>) {
          return *place ? std::optional<OptionValue>(**place) : std::nullopt;
        } else {
          return *place;
        }
      },
      option.place(parts));
}

std::span<const std::pair<std::string_view, std::optional<DType>>> CastWords() {
  return kCastWords;
}

}  // namespace reshard
