// Calls of the library as functions of _reshard: keywords come as a dict, reports go as objects of
// the package. An option is one line of a table here.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
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
#include "reshard/merge.h"
#include "reshard/options.h"
#include "reshard/parameters.h"
#include "reshard/strategy.h"
#include "reshard/tensor.h"
#include "reshard/verify.h"
#include "src/frontend/layout_report.h"
#include "src/frontend/option_parts.h"
#include "src/frontend/option_words.h"
#include "src/frontend/own_outputs.h"
#include "src/frontend/worker_share.h"
#include "tools/page/charts.h"
#include "tools/page/inspection.h"
#include "tools/page/report_page.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace reshard::python {
namespace {

// The common keywords of convert, plan, report and verify_against.
template <typename Options>
constexpr Keyword<Options> kConversion[] = {
    {"source", [](Options& o, nb::handle v) { SetSource(o.source, v); }},
    {"target", [](Options& o, nb::handle v) { Set(o.target.folder, v); }},
};

// ConvertOptions, and a page about the run.
struct ConvertCall : ConvertOptions {
  std::string report;
};

constexpr Keyword<ConvertCall> kPage[] = {
    {"report", [](ConvertCall& o, nb::handle v) { Set(o.report, v); }},
};

constexpr Keyword<Verification> kVerify[] = {
    {"target", [](Verification& o, nb::handle v) { Set(o.target, v); }},
};

constexpr Keyword<ContentOptions> kDigest[] = {
    {"path", [](ContentOptions& o, nb::handle v) { Set(o.source.path, v); }},
};

constexpr Keyword<InspectOptions> kInspect[] = {
    {"paths", [](InspectOptions& o, nb::handle v) { Set(o.paths, v); }},
    {"values", [](InspectOptions& o, nb::handle v) { Set(o.values, v); }},
};

constexpr Keyword<DiffOptions> kDiff[] = {
    {"a", [](DiffOptions& o, nb::handle v) { Set(o.source.path, v); }},
    {"b", [](DiffOptions& o, nb::handle v) { Set(o.b.path, v); }},
};

constexpr Keyword<MergeOptions> kMerge[] = {
    {"files", [](MergeOptions& o, nb::handle v) { Set(o.files, v); }},
    {"output", [](MergeOptions& o, nb::handle v) { Set(o.output, v); }},
};

constexpr Keyword<RecodeOptions> kRecode[] = {
    {"source", [](RecodeOptions& o, nb::handle v) { Set(o.source.path, v); }},
    {"target", [](RecodeOptions& o, nb::handle v) { Set(o.target.folder, v); }},
};

constexpr Keyword<Commit> kCommit[] = {
    {"target", [](Commit& o, nb::handle v) { Set(o.target, v); }},
};

constexpr Keyword<StrategyInference> kInferStrategy[] = {
    {"source", [](StrategyInference& o, nb::handle v) { Set(o.source, v); }},
    {"output", [](StrategyInference& o, nb::handle v) { Set(o.output, v); }},
};

constexpr Keyword<StrategyMerge> kMergeStrategies[] = {
    {"folder", [](StrategyMerge& o, nb::handle v) { Set(o.folder, v); }},
    {"output", [](StrategyMerge& o, nb::handle v) { Set(o.output, v); }},
};

constexpr Keyword<StrategyConversion> kConvertStrategy[] = {
    {"strategy", [](StrategyConversion& o, nb::handle v) { Set(o.input, v); }},
    {"output", [](StrategyConversion& o, nb::handle v) { Set(o.output, v); }},
};

constexpr Keyword<MakeStrategyOptions> kMakeStrategy[] = {
    {"spec", [](MakeStrategyOptions& o, nb::handle v) { Set(o.spec, v); }},
    {"spec_text", [](MakeStrategyOptions& o, nb::handle v) { Set(o.spec_text, v); }},
    {"output", [](MakeStrategyOptions& o, nb::handle v) { Set(o.output, v); }},
};

// A conversion that is drawn, and not made.
struct ReportCall : ConvertOptions {
  std::string output;
  std::vector<std::string> parameters;
};

constexpr Keyword<ReportCall> kReport[] = {
    {"output", [](ReportCall& o, nb::handle v) { Set(o.output, v); }},
    {"param", [](ReportCall& o, nb::handle v) { Set(o.parameters, v); }},
};

std::string PageOf(const LayoutReport& layout, const nb::dict& words, std::string_view run = {}) {
  const auto in_words = [own = WordsOf(words)](std::string_view message) {
    return InWords(message, FrontEnd::kPython, own);
  };
  return ReportPage(layout, in_words, run);
}

// The path that the report of a call repeats.
template <typename Options>
std::string_view PlaceOf(const Options& options) {
  if constexpr (requires { options.output; }) {
    return options.output;
  } else if constexpr (requires { options.target.folder; }) {
    return options.target.folder;
  } else if constexpr (requires { options.target; }) {
    return options.target;
  } else if constexpr (requires { options.source.path; }) {
    return options.source.path;
  } else {
    return {};
  }
}

using Clock = std::chrono::steady_clock;

// The report of a call that began at `begin`.
template <typename Report, typename Options>
nb::object ReportFrom(const Report& report, const Options& options, Clock::time_point begin,
                      const nb::dict& words) {
  ReportedCall call{.place = PlaceOf(options)};
  call.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  if constexpr (requires { options.source.files; }) call.source = &options.source;
  return ReportOf(report, call, words);
}

nb::object ConvertAndDraw(const nb::dict& keywords, int jobs, const nb::object& watch,
                          const nb::dict& words) {
  const Clock::time_point begin = Clock::now();
  const FileUse use;
  ConvertCall options;
  Fill<ConvertCall>(options, keywords, kConvertCall, {kConversion<ConvertCall>, kPage});
  std::optional<LayoutReport> layout;
  const ConvertReport report =
      RunWatched(jobs, watch, [&](const RunOptions& run) -> Result<ConvertReport> {
        SetWatched(options.run, run);
        FileUse joined(use);
        if (!options.report.empty()) {
          // First, so that its errors come before any write.
          const Status stays = joined.AddOutput(options.report);
          if (!stays.ok()) return stays;
          const Status free = CheckReport(options.report, options.force, options.target.folder);
          if (!free.ok()) return free;
          Result<LayoutReport> made = MakeLayoutReport({options, {}});
          if (!made.ok()) return made.status();
          layout = *std::move(made);
          options.record_timeline = true;
        }
        Result<ConvertReport> made = Convert(options);
        if (!made.ok()) return WithLauncherHint(made.status(), options.shard);
        return made;
      });
  if (layout) {
    const std::string run =
        TimelineSection(*report.timeline, {report.memory_planned, report.memory_limit});
    const Status drawn = WriteReport(options.report, PageOf(*layout, words, run), options.force);
    if (!drawn.ok()) {
      throw StatusError(drawn.WithMessage(
          "the conversion is done, but its report is not written: " + drawn.message()));
    }
  }
  return ReportFrom(report, options, begin, words);
}

nb::object Draw(const nb::dict& keywords, int jobs, const nb::object& watch,
                const nb::dict& words) {
  const FileUse use;
  ReportCall options;
  Fill<ReportCall>(options, keywords, kReportCall, {kConversion<ReportCall>, kReport});
  const LayoutReport layout =
      RunWatched(jobs, watch, [&](const RunOptions& run) -> Result<LayoutReport> {
        SetWatched(options.run, run);
        FileUse joined(use);
        const Status stays = joined.AddOutput(options.output);
        if (!stays.ok()) return stays;
        const Status free = CheckReport(options.output, options.force, "");
        if (!free.ok()) return free;
        return MakeLayoutReport({options, options.parameters});
      });
  const std::string page = PageOf(layout, words);
  Check(WriteReport(options.output, page, options.force));
  return ReportOf(WrittenPage{page.size(), layout.plan.warnings}, {.place = options.output}, words);
}

// Adds a function (keywords, jobs, watch, words) that calls `call`. The tables make the options
// from the keywords, and from the options of the option table that `options_of` takes.
template <typename Options, typename Function, typename... Tables>
void AddCall(nb::module_& module, const char* name, uint32_t options_of, Function call,
             const Tables&... tables) {
  module.def(
      name,
      [call, options_of, &tables...](const nb::dict& keywords, int jobs, const nb::object& watch,
                                     const nb::dict& words) {
        const Clock::time_point begin = Clock::now();
        const FileUse use;  // also for files that are read while the options are filled in
        Options options;
        Fill<Options>(options, keywords, options_of,
                      {std::span<const Keyword<Options>>(tables)...});
        const auto report = RunWatched(jobs, watch, [&](const RunOptions& run) {
          const FileUse joined(use);
          if constexpr (requires { options.run; }) SetWatched(options.run, run);
          return call(options);
        });
        return ReportFrom(report, options, begin, words);
      },
      "keywords"_a, "jobs"_a, "watch"_a, "words"_a);
}

nb::object Worded(const nb::object& message, const nb::dict& own) {
  return Text(InWords(TextOf(message), FrontEnd::kPython, WordsOf(own)));
}

// In the order of OptionType.
constexpr const char* kTypeNames[] = {
    "switch",       "switch_or_word",  "word",           "text",        "texts",
    "file",         "files",           "ranks",          "rank_files",  "size",
    "decimal_size", "parameter_count", "seconds",        "number",      "count",
    "counts",       "switch_or_count", "switch_or_file", "share",       "io",
    "casts",        "renames",         "key_file",       "key_variable"};
static_assert(std::size(kTypeNames) == static_cast<size_t>(OptionType::kKeyVariable) + 1);

constexpr std::pair<const char*, Call> kCalls[] = {{"convert", kConvertCall},
                                                   {"plan", kPlanCall},
                                                   {"report", kReportCall},
                                                   {"commit", kCommitCall},
                                                   {"verify", kVerifyCall},
                                                   {"verify_against", kAgainstCall},
                                                   {"recode", kRecodeCall},
                                                   {"merge", kMergeCall},
                                                   {"digest", kDigestCall},
                                                   {"diff", kDiffCall},
                                                   {"target", kViewCall},
                                                   {"mount", kMountCall},
                                                   {"make_strategy", kMakeStrategyCall},
                                                   {"convert_strategy", kConvertStrategyCall},
                                                   {"merge_strategies", kMergeStrategiesCall},
                                                   {"infer_strategy", kInferStrategyCall}};

// The option table, as far as signatures follow it.
nb::list OptionTable() {
  nb::list options;
  for (const Option& option : AllOptions()) {
    nb::list words;
    for (const std::string_view word : WordsOf(option)) words.append(Text(word));
    nb::list calls;
    for (const auto& [name, call] : kCalls) {
      if ((option.calls & call) != 0) calls.append(nb::str(name));
    }
    nb::dict row;
    row["word"] = Text(option.word);
    row["type"] = nb::str(kTypeNames[static_cast<size_t>(option.type)]);
    row["words"] = words;
    row["calls"] = calls;
    row["required"] = nb::bool_(option.is_required);
    options.append(row);
  }
  return options;
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
  module.def("options", &OptionTable);
  module.def("report_classes", &ReportClasses);
  module.def("in_words", &Worded, "message"_a, "own"_a);
  module.def("convert", &ConvertAndDraw, "keywords"_a, "jobs"_a, "watch"_a, "words"_a);
  module.def("report", &Draw, "keywords"_a, "jobs"_a, "watch"_a, "words"_a);
  AddCall<ConvertOptions>(module, "plan", kPlanCall, Plan, kConversion<ConvertOptions>);
  AddCall<Commit>(
      module, "commit", kCommitCall,
      [](const Commit& options) { return CommitWorkers(options.target, options.run); }, kCommit);
  AddCall<Commit>(
      module, "status", kNoCall, [](const Commit& options) { return FindStatus(options.target); },
      kCommit);
  AddCall<StrategyInference>(
      module, "infer_strategy", kInferStrategyCall,
      [](const StrategyInference& options) {
        return InferStrategy(options.source, options.reference, options.output, options.force,
                             options.run);
      },
      kInferStrategy);
  AddCall<Proof>(
      module, "verify_against", kAgainstCall,
      [](const Proof& options) { return VerifyAgainst(options, options.run); }, kConversion<Proof>);
  AddCall<Verification>(
      module, "verify", kVerifyCall,
      [](const Verification& options) { return Verify(options.target, options.key, options.run); },
      kVerify);
  AddCall<ContentOptions>(module, "digest", kDigestCall, DigestCheckpoint, kDigest);
  AddCall<InspectOptions>(module, "inspect", kInspectCall, InspectAll, kInspect);
  AddCall<DiffOptions>(
      module, "diff", kDiffCall,
      [](DiffOptions& options) {
        options.b.key = options.source.key;
        return Diff(options);
      },
      kDiff);
  AddCall<MergeOptions>(module, "merge", kMergeCall, Merge, kMerge);
  AddCall<RecodeOptions>(
      module, "recode", kRecodeCall,
      [](const RecodeOptions& options) -> Result<RecodedFiles> {
        Result<ConvertReport> report = Recode(options);
        if (!report.ok()) return report.status();
        return RecodedFiles{*std::move(report)};
      },
      kRecode);
  AddCall<StrategyMerge>(
      module, "merge_strategies", kMergeStrategiesCall,
      [](const StrategyMerge& options) {
        return MergeStrategies(options.folder, options.output, options.force);
      },
      kMergeStrategies);
  AddCall<StrategyConversion>(
      module, "convert_strategy", kConvertStrategyCall,
      [](const StrategyConversion& options) {
        return ConvertStrategyFile(options.input, options.output, options.renames, options.force);
      },
      kConvertStrategy);
  AddCall<MakeStrategyOptions>(module, "make_strategy", kMakeStrategyCall, MakeStrategy,
                               kMakeStrategy);
  module.def("source_ranks", &RanksFor, "rank"_a, "src_strategy"_a, "dst_strategy"_a);
  module.def("all_source_ranks", &RanksForAll, "src_strategy"_a, "dst_strategy"_a);
}

}  // namespace reshard::python
