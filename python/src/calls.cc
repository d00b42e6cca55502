// Calls of the library as functions of _reshard: keywords come as a dict, reports go as dicts with
// the names of the command line's JSON. An option is one line of a table here.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "python/src/interpreter.h"
#include "python/src/keywords.h"
#include "python/src/module.h"
#include "python/src/reports.h"
#include "python/src/watched_call.h"
#include "reshard/compare.h"
#include "reshard/convert.h"
#include "reshard/encryption.h"
#include "reshard/file_use.h"
#include "reshard/layout_report.h"
#include "reshard/merge.h"
#include "reshard/options.h"
#include "reshard/parameters.h"
#include "reshard/strategy.h"
#include "reshard/tensor.h"
#include "reshard/verify.h"
#include "reshard/worker_share.h"
#include "tools/page/charts.h"
#include "tools/page/report_page.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace reshard::python {
namespace {

constexpr std::pair<std::string_view, TargetFormat> kFormats[] = {
    {"ckpt", TargetFormat::kCkpt},
    {"safetensors", TargetFormat::kSafetensors},
    {"unified", TargetFormat::kUnified},
    {"huggingface", TargetFormat::kHuggingFace}};
constexpr std::pair<std::string_view, UnmatchedPolicy> kUnmatched[] = {
    {"copy", UnmatchedPolicy::kCopy},
    {"drop", UnmatchedPolicy::kDrop},
    {"error", UnmatchedPolicy::kError}};
constexpr std::pair<std::string_view, bool> kOnlyCopy[] = {{"copy", true}};
constexpr std::pair<std::string_view, CheckReplicas> kCheckReplicas[] = {
    {"none", CheckReplicas::kNone},
    {"sample", CheckReplicas::kSample},
    {"all", CheckReplicas::kAll}};
constexpr std::pair<std::string_view, Resume> kResume[] = {
    {"no", Resume::kNo}, {"trust", Resume::kTrust}, {"verify", Resume::kVerify}};
constexpr std::pair<std::string_view, EncryptionMode> kEncryptionModes[] = {
    {"AES-GCM", EncryptionMode::kAesGcm},
    {"AES-CBC", EncryptionMode::kAesCbc},
    {"SM4-CBC", EncryptionMode::kSm4Cbc}};
constexpr std::pair<std::string_view, bool> kOverflow[] = {{"warn", false}, {"error", true}};
constexpr std::pair<std::string_view, SourceIo> kSourceIo[] = {{"map", SourceIo::kMap},
                                                               {"pread", SourceIo::kPread}};
constexpr std::pair<std::string_view, TargetIo> kTargetIo[] = {{"direct", TargetIo::kDirect},
                                                               {"buffered", TargetIo::kBuffered}};
constexpr std::pair<std::string_view, std::optional<DType>> kCasts[] = {
    {"float16", DType::kFloat16},
    {"bfloat16", DType::kBFloat16},
    {"float32", DType::kFloat32},
    {"float64", DType::kFloat64},
    {"float8_e4m3fn", DType::kFloat8E4M3FN},
    {"float8_e5m2", DType::kFloat8E5M2},
    {"keep", std::nullopt}};

// Pairs of a pattern, empty for all weights, and the name of a dtype.
void SetCasts(std::vector<CastRule>& casts, nb::handle rules) {
  for (const nb::handle rule : rules) {
    casts.push_back({TextOf(rule[0]), OneOf<std::optional<DType>>(kCasts, rule[1])});
  }
}

// A path, or the map itself as the JSON file would have it.
Renames RenamesOf(nb::handle value) {
  if (!nb::isinstance<nb::dict>(value)) return Take(ReadRenames(TextOf(value)));
  Renames renames;
  for (const auto& [name, renamed] : nb::cast<nb::dict>(value)) {
    if (nb::isinstance<nb::dict>(renamed)) {
      Set(renames.patterns, renamed);
    } else {
      Set(renames.names[TextOf(name)], renamed);
    }
  }
  return renames;
}

void SetNameMap(SourceSpec& source, nb::handle value) {
  Renames map = RenamesOf(value);
  if (!map.patterns.empty()) {
    throw StatusError(InvalidArgumentError(
        "has patterns, which rename takes; expected the name in the source for each name"));
  }
  source.name_map = std::move(map.names);
}

// The key of encrypted sources, of options that have it as `key`.
template <typename Options>
constexpr Keyword<Options> kKey[] = {
    {"key_file",
     [](Options& o, nb::handle v) { o.key = Take(EncryptionKey::FromFile(TextOf(v))); }},
    {"key_env",
     [](Options& o, nb::handle v) { o.key = Take(EncryptionKey::FromEnvironment(TextOf(v))); }},
};

template <typename Options>
constexpr Keyword<Options> kWait = {"wait", [](Options& o, nb::handle v) {
                                      o.waiting.most = std::chrono::seconds(nb::cast<int64_t>(v));
                                    }};

// What convert, plan, report and verify_against have in common.
template <typename Options>
constexpr Keyword<Options> kConversion[] = {
    {"source",
     [](Options& o, nb::handle v) {
       if (nb::isinstance<nb::dict>(v)) {
         Set(o.source.files, v);
       } else {
         Set(o.source.path, v);
       }
     }},
    {"target", [](Options& o, nb::handle v) { Set(o.target.folder, v); }},
    {"src_strategy", [](Options& o, nb::handle v) { Set(o.source.strategy, v); }},
    {"dst_strategy", [](Options& o, nb::handle v) { Set(o.target.strategy, v); }},
    {"suffix", [](Options& o, nb::handle v) { Set(o.source.suffix, v); }},
    {"group_info", [](Options& o, nb::handle v) { Set(o.source.group_info, v); }},
    {"name_map", [](Options& o, nb::handle v) { SetNameMap(o.source, v); }},
    {"key_file",
     [](Options& o, nb::handle v) { o.source.key = Take(EncryptionKey::FromFile(TextOf(v))); }},
    {"key_env",
     [](Options& o, nb::handle v) {
       o.source.key = Take(EncryptionKey::FromEnvironment(TextOf(v)));
     }},
    {"encrypt_key_file",
     [](Options& o, nb::handle v) {
       o.target.encryption_key = Take(EncryptionKey::FromFile(TextOf(v)));
     }},
    {"encrypt_key_env",
     [](Options& o, nb::handle v) {
       o.target.encryption_key = Take(EncryptionKey::FromEnvironment(TextOf(v)));
     }},
    {"format",
     [](Options& o, nb::handle v) { o.target.format = OneOf<TargetFormat>(kFormats, v); }},
    {"part_size", [](Options& o, nb::handle v) { Set(o.target.part_size, v); }},
    {"shard_size", [](Options& o, nb::handle v) { Set(o.target.shard_size, v); }},
    {"names", [](Options& o, nb::handle v) { Set(o.target.names, v); }},
    {"prefix", [](Options& o, nb::handle v) { Set(o.target.prefix, v); }},
    {"rank", [](Options& o, nb::handle v) { Set(o.selection.ranks, v); }},
    {"include", [](Options& o, nb::handle v) { Set(o.selection.include, v); }},
    {"exclude", [](Options& o, nb::handle v) { Set(o.selection.exclude, v); }},
    {"rename", [](Options& o, nb::handle v) { o.selection.renames = RenamesOf(v); }},
    {"dtype", [](Options& o, nb::handle v) { SetCasts(o.selection.casts, v); }},
    {"unmatched",
     [](Options& o, nb::handle v) {
       o.selection.unmatched = OneOf<UnmatchedPolicy>(kUnmatched, v);
     }},
};

// ConvertOptions, and a page about the run.
struct ConvertCall : ConvertOptions {
  std::string report;
};

template <typename Options>
constexpr Keyword<Options> kConvert[] = {
    {"memory_limit", [](Options& o, nb::handle v) { Set(o.memory_limit, v); }},
    {"source_io", [](Options& o, nb::handle v) { o.io.source = OneOf<SourceIo>(kSourceIo, v); }},
    {"target_io", [](Options& o, nb::handle v) { o.io.target = OneOf<TargetIo>(kTargetIo, v); }},
    {"force", [](Options& o, nb::handle v) { Set(o.force, v); }},
    {"prune", [](Options& o, nb::handle v) { Set(o.prune, v); }},
    {"encrypt",
     [](Options& o, nb::handle v) {
       o.target.encryption = OneOf<EncryptionMode>(kEncryptionModes, v);
     }},
    {"crc", [](Options& o, nb::handle v) { Set(o.target.states_crc, v); }},
    {"no_checksum", [](Options& o, nb::handle v) { o.checks.checksum = !nb::cast<bool>(v); }},
    {"resume", [](Options& o, nb::handle v) { o.resume = OneOf<Resume>(kResume, v); }},
    {"check_replicas",
     [](Options& o, nb::handle v) { o.checks.replicas = OneOf<CheckReplicas>(kCheckReplicas, v); }},
    {"dtype_overflow",
     [](Options& o, nb::handle v) { o.checks.refuse_overflow = OneOf<bool>(kOverflow, v); }},
    {"reference", [](Options& o, nb::handle v) { Set(o.checks.reference, v); }},
    {"partial", [](Options& o, nb::handle v) { Set(o.checks.partial, v); }},
    {"expect_parameters",
     [](Options& o, nb::handle v) { o.checks.parameters = Take(ParseParameterCount(TextOf(v))); }},
    {"shard",
     [](Options& o, nb::handle v) {
       WorkerShare shard;
       Set(shard.index, v[0]);
       Set(shard.count, v[1]);
       o.shard = shard;
     }},
    kWait<Options>,
};

constexpr Keyword<ConvertCall> kConvertCall[] = {
    {"report", [](ConvertCall& o, nb::handle v) { Set(o.report, v); }},
};

template <typename Options>
constexpr Keyword<Options> kNameChoice[] = {
    {"include", [](Options& o, nb::handle v) { Set(o.include, v); }},
    {"exclude", [](Options& o, nb::handle v) { Set(o.exclude, v); }},
};

constexpr Keyword<VerifyOptions> kVerify[] = {
    {"target", [](VerifyOptions& o, nb::handle v) { Set(o.target, v); }},
};

constexpr Keyword<DigestOptions> kDigest[] = {
    {"path", [](DigestOptions& o, nb::handle v) { Set(o.source.path, v); }},
    {"strategy", [](DigestOptions& o, nb::handle v) { Set(o.source.strategy, v); }},
    {"suffix", [](DigestOptions& o, nb::handle v) { Set(o.source.suffix, v); }},
    {"key_file", [](DigestOptions& o,
                    nb::handle v) { o.source.key = Take(EncryptionKey::FromFile(TextOf(v))); }},
    {"key_env",
     [](DigestOptions& o, nb::handle v) {
       o.source.key = Take(EncryptionKey::FromEnvironment(TextOf(v)));
     }},
    {"one_replica", [](DigestOptions& o, nb::handle v) { Set(o.one_replica, v); }},
};

constexpr Keyword<DiffOptions> kDiff[] = {
    {"a", [](DiffOptions& o, nb::handle v) { Set(o.a.path, v); }},
    {"b", [](DiffOptions& o, nb::handle v) { Set(o.b.path, v); }},
    {"a_strategy", [](DiffOptions& o, nb::handle v) { Set(o.a.strategy, v); }},
    {"b_strategy", [](DiffOptions& o, nb::handle v) { Set(o.b.strategy, v); }},
    {"key_file",
     [](DiffOptions& o, nb::handle v) {
       o.a.key = o.b.key = Take(EncryptionKey::FromFile(TextOf(v)));
     }},
    {"key_env",
     [](DiffOptions& o, nb::handle v) {
       o.a.key = o.b.key = Take(EncryptionKey::FromEnvironment(TextOf(v)));
     }},
    {"values", [](DiffOptions& o, nb::handle v) { Set(o.values, v); }},
    {"one_replica", [](DiffOptions& o, nb::handle v) { Set(o.one_replica, v); }},
};

constexpr Keyword<MergeOptions> kMerge[] = {
    {"files", [](MergeOptions& o, nb::handle v) { Set(o.sources, v); }},
    {"output", [](MergeOptions& o, nb::handle v) { Set(o.output, v); }},
    {"strategy", [](MergeOptions& o, nb::handle v) { Set(o.strategy, v); }},
    {"segments",
     [](MergeOptions& o, nb::handle v) {
       o.kind = nb::cast<bool>(v) ? MergeKind::kSegments : MergeKind::kSlices;
     }},
    {"force", [](MergeOptions& o, nb::handle v) { Set(o.force, v); }},
    {"partial", [](MergeOptions& o, nb::handle v) { Set(o.partial, v); }},
    {"unmatched",
     [](MergeOptions& o, nb::handle v) { o.copies_unmatched = OneOf<bool>(kOnlyCopy, v); }},
    {"memory_limit", [](MergeOptions& o, nb::handle v) { Set(o.memory_limit, v); }},
};

constexpr Keyword<RecodeOptions> kRecode[] = {
    {"source", [](RecodeOptions& o, nb::handle v) { Set(o.source, v); }},
    {"target", [](RecodeOptions& o, nb::handle v) { Set(o.target_folder, v); }},
    {"format", [](RecodeOptions& o, nb::handle v) { o.format = OneOf<TargetFormat>(kFormats, v); }},
    {"file_pattern", [](RecodeOptions& o, nb::handle v) { Set(o.files, v); }},
    {"rename", [](RecodeOptions& o, nb::handle v) { o.renames = RenamesOf(v); }},
    {"unmatched",
     [](RecodeOptions& o, nb::handle v) { o.unmatched = OneOf<UnmatchedPolicy>(kUnmatched, v); }},
    {"encrypt", [](RecodeOptions& o,
                   nb::handle v) { o.encryption = OneOf<EncryptionMode>(kEncryptionModes, v); }},
    {"encrypt_key_file",
     [](RecodeOptions& o, nb::handle v) {
       o.encryption_key = Take(EncryptionKey::FromFile(TextOf(v)));
     }},
    {"encrypt_key_env",
     [](RecodeOptions& o, nb::handle v) {
       o.encryption_key = Take(EncryptionKey::FromEnvironment(TextOf(v)));
     }},
    {"crc", [](RecodeOptions& o, nb::handle v) { Set(o.states_crc, v); }},
    {"no_checksum", [](RecodeOptions& o, nb::handle v) { o.checksum = !nb::cast<bool>(v); }},
    {"resume", [](RecodeOptions& o, nb::handle v) { o.resume = OneOf<Resume>(kResume, v); }},
    {"force", [](RecodeOptions& o, nb::handle v) { Set(o.force, v); }},
};

struct CommitCall : CommitOptions {
  RunOptions run;
};

constexpr Keyword<CommitCall> kCommit[] = {
    {"target", [](CommitCall& o, nb::handle v) { Set(o.target, v); }},
    kWait<CommitCall>,
};

constexpr Keyword<InferStrategyOptions> kInferStrategy[] = {
    {"source", [](InferStrategyOptions& o, nb::handle v) { Set(o.source, v); }},
    {"output", [](InferStrategyOptions& o, nb::handle v) { Set(o.output, v); }},
    {"reference", [](InferStrategyOptions& o, nb::handle v) { Set(o.reference, v); }},
    {"force", [](InferStrategyOptions& o, nb::handle v) { Set(o.force, v); }},
};

struct MergeStrategiesCall {
  std::string folder;
  std::string output;
  bool force = false;
};

constexpr Keyword<MergeStrategiesCall> kMergeStrategies[] = {
    {"folder", [](MergeStrategiesCall& o, nb::handle v) { Set(o.folder, v); }},
    {"output", [](MergeStrategiesCall& o, nb::handle v) { Set(o.output, v); }},
    {"force", [](MergeStrategiesCall& o, nb::handle v) { Set(o.force, v); }},
};

constexpr Keyword<StrategyConversionOptions> kConvertStrategy[] = {
    {"strategy", [](StrategyConversionOptions& o, nb::handle v) { Set(o.input, v); }},
    {"output", [](StrategyConversionOptions& o, nb::handle v) { Set(o.output, v); }},
    {"rename", [](StrategyConversionOptions& o, nb::handle v) { o.renames = RenamesOf(v); }},
    {"force", [](StrategyConversionOptions& o, nb::handle v) { Set(o.force, v); }},
};

constexpr Keyword<MakeStrategyOptions> kMakeStrategy[] = {
    {"spec", [](MakeStrategyOptions& o, nb::handle v) { Set(o.spec, v); }},
    {"spec_text", [](MakeStrategyOptions& o, nb::handle v) { Set(o.spec_text, v); }},
    {"output", [](MakeStrategyOptions& o, nb::handle v) { Set(o.output, v); }},
    {"from_", [](MakeStrategyOptions& o, nb::handle v) { Set(o.checkpoint, v); }},
    {"force", [](MakeStrategyOptions& o, nb::handle v) { Set(o.force, v); }},
};

// A conversion that is drawn, and not made.
struct ReportCall : ConvertOptions {
  std::string output;
  std::vector<std::string> parameters;
};

constexpr Keyword<ReportCall> kReport[] = {
    {"output", [](ReportCall& o, nb::handle v) { Set(o.output, v); }},
    {"param", [](ReportCall& o, nb::handle v) { Set(o.parameters, v); }},
    {"force", [](ReportCall& o, nb::handle v) { Set(o.force, v); }},
};

// `words` is called with a message and returns it with the names that options have in Python.
std::string PageOf(const ReportContent& content, const nb::object& words,
                   std::string_view run = {}) {
  return ReportPage(
      content,
      [&](std::string_view message) {
        return TextOf(CallPython(words, nb::make_tuple(Text(message))));
      },
      run);
}

nb::dict ConvertAndDraw(const nb::dict& keywords, int jobs, const nb::object& watch,
                        const nb::object& words) {
  const FileUse use;
  ConvertCall options;
  Fill<ConvertCall>(options, keywords,
                    {kConversion<ConvertCall>, kConvert<ConvertCall>, kConvertCall});
  std::optional<ReportContent> content;
  const ConvertReport report =
      RunWatched(jobs, watch, [&](const RunOptions& run) -> Result<ConvertReport> {
        options.run = run;
        FileUse joined(use);
        if (!options.report.empty()) {
          // First, so that what is wrong with it is said before anything is written.
          const Status stays = joined.AddOutput(options.report);
          if (!stays.ok()) return stays;
          const Status free = CheckReport(options.report, options.force, options.target.folder);
          if (!free.ok()) return free;
          Result<ReportContent> made = MakeReportContent({options, {}});
          if (!made.ok()) return made.status();
          content = *std::move(made);
          options.record_timeline = true;
        }
        return Convert(options);
      });
  if (content) {
    const std::string run =
        TimelineSection(*report.timeline, {report.memory_planned, report.memory_limit});
    const Status drawn = WriteReport(options.report, PageOf(*content, words, run), options.force);
    if (!drawn.ok()) {
      throw StatusError(drawn.WithMessage(
          "the conversion is done, but its report is not written: " + drawn.message()));
    }
  }
  return ReportOf(report);
}

nb::dict Draw(const nb::dict& keywords, int jobs, const nb::object& watch,
              const nb::object& words) {
  const FileUse use;
  ReportCall options;
  Fill<ReportCall>(options, keywords, {kConversion<ReportCall>, kReport});
  const ReportContent content =
      RunWatched(jobs, watch, [&](const RunOptions& run) -> Result<ReportContent> {
        options.run = run;
        FileUse joined(use);
        const Status stays = joined.AddOutput(options.output);
        if (!stays.ok()) return stays;
        const Status free = CheckReport(options.output, options.force, "");
        if (!free.ok()) return free;
        return MakeReportContent({options, options.parameters});
      });
  const std::string page = PageOf(content, words);
  Check(WriteReport(options.output, page, options.force));
  return ReportOfPage(page.size(), content.layout.plan.warnings);
}

// The share that the environment, a mapping, says.
nb::tuple ShareOf(const nb::object& environment) {
  const WorkerShare share = Take(FindWorkerShare([&](const char* name) {
    const nb::object value = CallPython(environment.attr("get"), nb::make_tuple(name));
    return value.is_none() ? std::optional<std::string>() : TextOf(value);
  }));
  return nb::make_tuple(share.index, share.count);
}

// Adds a function (keywords, jobs, watch) that calls `call` with the options that the tables make
// of the keywords.
template <typename Options, typename Call, typename... Tables>
void AddCall(nb::module_& module, const char* name, Call call, const Tables&... tables) {
  module.def(
      name,
      [call, &tables...](const nb::dict& keywords, int jobs, const nb::object& watch) {
        const FileUse use;  // of what is read while the options are filled in, too
        Options options;
        Fill<Options>(options, keywords, {std::span<const Keyword<Options>>(tables)...});
        return ReportOf(RunWatched(jobs, watch, [&](const RunOptions& run) {
          const FileUse joined(use);
          options.run = run;
          return call(options);
        }));
      },
      "keywords"_a, "jobs"_a, "watch"_a);
}

// The same for a call that takes no time, and can be neither watched nor stopped.
template <typename Options, typename Call, typename Table>
void AddShortCall(nb::module_& module, const char* name, Call call, const Table& table) {
  module.def(
      name,
      [call, &table](const nb::dict& keywords) {
        const FileUse use;
        Options options;
        Fill<Options>(options, keywords, {std::span<const Keyword<Options>>(table)});
        const auto report = [&] {
          const WithoutGil released;
          return Take(call(options));
        }();
        return ReportOf(report);
      },
      "keywords"_a);
}

std::vector<int64_t> RanksFor(int64_t rank, const nb::bytes& src_strategy,
                              const nb::bytes& dst_strategy) {
  const std::string source = Bytes(src_strategy);
  const std::string target = Bytes(dst_strategy);
  const WithoutGil released;
  return Take(SourceRanks(rank, source, target));
}

std::vector<std::pair<int64_t, std::vector<int64_t>>> RanksForAll(const nb::bytes& src_strategy,
                                                                  const nb::bytes& dst_strategy) {
  const std::string source = Bytes(src_strategy);
  const std::string target = Bytes(dst_strategy);
  std::vector<std::pair<int64_t, std::vector<int64_t>>> all;
  const WithoutGil released;
  Check(ForEachSourceRanks(source, target, [&](int64_t rank, const std::vector<int64_t>& ranks) {
    all.emplace_back(rank, ranks);
  }));
  return all;
}

}  // namespace

void AddCalls(nb::module_& module) {
  module.def("convert", &ConvertAndDraw, "keywords"_a, "jobs"_a, "watch"_a, "words"_a);
  module.def("report", &Draw, "keywords"_a, "jobs"_a, "watch"_a, "words"_a);
  module.def("find_worker_share", &ShareOf, "environment"_a);
  AddCall<ConvertOptions>(module, "plan", Plan, kConversion<ConvertOptions>,
                          kConvert<ConvertOptions>);
  AddCall<CommitCall>(
      module, "commit",
      [](CommitCall& options) {
        options.stop = options.run.stop;
        return CommitWorkers(options);
      },
      kCommit);
  AddCall<InferStrategyOptions>(module, "infer_strategy", InferStrategy, kInferStrategy);
  AddCall<AgainstOptions>(module, "verify_against", VerifyAgainst, kConversion<AgainstOptions>);
  AddCall<VerifyOptions>(module, "verify", Verify, kVerify, kKey<VerifyOptions>);
  AddCall<DigestOptions>(module, "digest", DigestCheckpoint, kDigest, kNameChoice<DigestOptions>);
  AddCall<DiffOptions>(module, "diff", Diff, kDiff, kNameChoice<DiffOptions>);
  AddCall<MergeOptions>(module, "merge", Merge, kMerge, kKey<MergeOptions>,
                        kNameChoice<MergeOptions>);
  AddCall<RecodeOptions>(module, "recode", Recode, kRecode, kKey<RecodeOptions>);
  AddShortCall<MergeStrategiesCall>(
      module, "merge_strategies",
      [](const MergeStrategiesCall& options) {
        return MergeStrategies(options.folder, options.output, options.force);
      },
      kMergeStrategies);
  AddShortCall<StrategyConversionOptions>(module, "convert_strategy", ConvertStrategyFile,
                                          kConvertStrategy);
  AddShortCall<MakeStrategyOptions>(module, "make_strategy", MakeStrategy, kMakeStrategy);
  module.def("source_ranks", &RanksFor, "rank"_a, "src_strategy"_a, "dst_strategy"_a);
  module.def("all_source_ranks", &RanksForAll, "src_strategy"_a, "dst_strategy"_a);
}

}  // namespace reshard::python
