#include "reshard/strategy_spec.h"

#include <fmt/format.h>

#include <span>
#include <utility>

#include "reshard/used_paths.h"
#include "src/base/out_of_memory.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/io/source_files.h"
#include "src/mindspore/spec_layouts.h"
#include "src/mindspore/spec_parser.h"
#include "src/mindspore/strategy_writer.h"
#include "src/os/input_file.h"
#include "src/os/write_file.h"
#include "src/source/indexed_file.h"

namespace reshard {
namespace {

Result<StrategySpec> ReadSpec(const std::string& path) {
  RESHARD_ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(path));
  if (file.size() > kMaxSpecBytes) {
    return CorruptError(fmt::format(
        "{}: expected the specification of a strategy, of at most {} bytes, found {} bytes",
        Escape(path), kMaxSpecBytes, file.size()));
  }
  std::string bytes(file.size(), '\0');
  RESHARD_RETURN_IF_ERROR(file.ReadAt(0, std::as_writable_bytes(std::span(bytes))));
  return ParseStrategySpec(path, bytes);
}

Result<std::vector<FullTensor>> TensorsOf(const std::string& path) {
  SourceFiles files(1);
  RESHARD_ASSIGN_OR_RETURN(const IndexedFile index, IndexedFile::Make(files, files.Add(path)));
  std::vector<FullTensor> tensors;
  for (const StoredArray& parameter : index.parameters()) {
    if (parameter.kind == ArrayKind::kTensor) {
      tensors.push_back({parameter.name, parameter.shape});
    }
  }
  return tensors;
}

Result<SpecLayouts> LayoutsOf(const StrategySpec& spec, const std::string& checkpoint) {
  if (checkpoint.empty()) return LayoutsOfNames(spec);
  RESHARD_ASSIGN_OR_RETURN(const std::vector<FullTensor> tensors, TensorsOf(checkpoint));
  return LayoutsOfTensors(spec, checkpoint, tensors);
}

}  // namespace

Result<MakeStrategyReport> MakeStrategy(const MakeStrategyOptions& options) {
  return CatchOutOfMemory([&]() -> Result<MakeStrategyReport> {
    RESHARD_RETURN_IF_ERROR(
        CheckOutput(options.output, {.files = {options.spec, options.checkpoint}}));
    RESHARD_ASSIGN_OR_RETURN(const StrategySpec spec, ReadSpec(options.spec));
    RESHARD_ASSIGN_OR_RETURN(SpecLayouts layouts, LayoutsOf(spec, options.checkpoint));
    RESHARD_ASSIGN_OR_RETURN(
        const std::string bytes,
        EncodeStrategy(layouts.stages, spec.is_pipeline, StrategyEncodingOfName(options.output)));
    RESHARD_RETURN_IF_ERROR(WriteFile(options.output, bytes, options.force));
    MakeStrategyReport report;
    report.stages = static_cast<int64_t>(layouts.stages.size());
    report.devices_per_stage = spec.devices;
    for (const StageLayouts& stage : layouts.stages) report.layouts += stage.layouts.size();
    report.bytes = bytes.size();
    report.warnings = std::move(layouts.warnings);
    report.notes = std::move(layouts.notes);
    return report;
  });
}

}  // namespace reshard
