#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "reshard/strategy.h"
#include "src/api/source_tensors.h"
#include "src/base/out_of_memory.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/convert/cluster_source.h"
#include "src/mindspore/cluster_layouts.h"
#include "src/mindspore/spec_layouts.h"
#include "src/mindspore/strategy_loader.h"
#include "src/mindspore/strategy_tables.h"
#include "src/mindspore/strategy_writer.h"
#include "src/os/file_use.h"
#include "src/os/write_file.h"

namespace reshard {
namespace {

Result<SourceTensors> OpenFull(const SourceSpec& spec) {
  return OpenTensors(spec, {}, RanksRead::kOneReplica, 1, {});
}

// Puts what was told before into `made`.
MadeStrategy WithEarlier(std::vector<Warning> warnings, std::vector<std::string> notes,
                         MadeStrategy made) {
  for (Warning& warning : made.warnings) warnings.push_back(std::move(warning));
  for (std::string& note : made.notes) notes.push_back(std::move(note));
  return {made.strategy, std::move(warnings), std::move(notes)};
}

Result<MadeStrategy> MadeForCluster(const SourceSpec& like, const Cluster& cluster) {
  std::vector<Warning> warnings;
  std::vector<std::string> notes;
  ClusterSource source;
  Result<SourceTensors> opened = OpenFull(like);
  if (opened.ok()) {
    warnings = std::move(opened->warnings);
    notes = std::move(opened->notes);
    RESHARD_ASSIGN_OR_RETURN(source, SourceOfTensors(*opened->source, like.path, opened->tensors));
  } else {
    // A strategy alone tells how to cut, too.
    const bool is_path_alone = like.strategy.empty() && !like.format;
    const Result<Strategy> strategy =
        is_path_alone ? LoadStrategy(like.path) : Result<Strategy>(opened.status());
    if (!strategy.ok()) return opened.status();
    RESHARD_ASSIGN_OR_RETURN(source, SourceOfStrategy(*strategy));
    notes.push_back(
        fmt::format("{}: a strategy has no shapes; whether these cuts divide them is not checked",
                    Escape(like.path)));
  }
  RESHARD_ASSIGN_OR_RETURN(MadeStrategy made, LayoutsForCluster(cluster, source));
  return WithEarlier(std::move(warnings), std::move(notes), std::move(made));
}

Result<MadeStrategy> MadeOfSpec(const MakeStrategyOptions& options) {
  RESHARD_ASSIGN_OR_RETURN(const StrategySpec spec,
                           options.spec_text.empty()
                               ? ReadStrategySpec(options.spec)
                               : ParseStrategySpec("the specification", options.spec_text));
  if (options.checkpoint.empty()) return LayoutsOfNames(spec);
  RESHARD_ASSIGN_OR_RETURN(SourceTensors opened, OpenFull({.path = options.checkpoint}));
  std::vector<FullTensor> tensors;
  for (SourceTensor& tensor : opened.tensors) {
    if (tensor.kind != ArrayKind::kTensor) continue;
    tensors.push_back({std::move(tensor.name), std::move(tensor.full_shape)});
  }
  RESHARD_ASSIGN_OR_RETURN(MadeStrategy made, LayoutsOfTensors(spec, options.checkpoint, tensors));
  return WithEarlier(std::move(opened.warnings), {}, std::move(made));
}

Status CheckMakeOptions(const MakeStrategyOptions& options) {
  const bool has_spec = !options.spec.empty() || !options.spec_text.empty();
  if (options.like.path.empty()) {
    if (has_spec) return {};
    return InvalidArgumentError("a specification or a source (`like`) is needed");
  }
  if (!has_spec && options.checkpoint.empty()) return {};
  return InvalidArgumentError(fmt::format("`like` takes the place of {}; choose one",
                                          has_spec ? "a specification" : "`checkpoint`"));
}

}  // namespace

inline namespace v0_1 {

Result<StrategyReport> MakeStrategy(const MakeStrategyOptions& options) {
  return CatchOutOfMemory([&]() -> Result<StrategyReport> {
    FileUse use;
    RESHARD_RETURN_IF_ERROR(CheckMakeOptions(options));
    RESHARD_RETURN_IF_ERROR(use.AddOutput(options.output));
    RESHARD_ASSIGN_OR_RETURN(MadeStrategy made,
                             options.like.path.empty()
                                 ? MadeOfSpec(options)
                                 : MadeForCluster(options.like, options.cluster));
    RESHARD_ASSIGN_OR_RETURN(const std::string bytes,
                             EncodeStrategy(made.strategy, StrategyEncodingOfName(options.output)));
    RESHARD_RETURN_IF_ERROR(WriteFile(options.output, bytes, options.force));
    StrategyReport report = ReportOf(made.strategy, bytes.size());
    report.warnings = std::move(made.warnings);
    report.notes = std::move(made.notes);
    return report;
  });
}

}  // namespace v0_1
}  // namespace reshard
