#include "reshard/strategy_conversion.h"

#include "reshard/used_paths.h"
#include "src/base/out_of_memory.h"
#include "src/base/status_macros.h"
#include "src/mindspore/strategy_loader.h"
#include "src/mindspore/strategy_recoding.h"
#include "src/mindspore/strategy_writer.h"
#include "src/os/write_file.h"

namespace reshard {

Result<StrategyConversionReport> ConvertStrategyFile(const std::string& input,
                                                     const std::string& output, bool force) {
  return CatchOutOfMemory([&]() -> Result<StrategyConversionReport> {
    RESHARD_RETURN_IF_ERROR(CheckOutput(output, {.files = {input}}));
    StrategyConversionReport report;
    RESHARD_ASSIGN_OR_RETURN(const std::string bytes, ReadStrategyBytes(input, report.notes));
    RESHARD_ASSIGN_OR_RETURN(RecodedStrategy recoded,
                             RecodeStrategy(input, bytes, StrategyEncodingOfName(output)));
    RESHARD_RETURN_IF_ERROR(WriteFile(output, recoded.bytes, force));
    report.layouts = recoded.layouts;
    report.bytes = recoded.bytes.size();
    report.warnings = std::move(recoded.warnings);
    return report;
  });
}

}  // namespace reshard
