#include "reshard/value_statistics.h"

#include <utility>

#include "src/api/source_tensors.h"
#include "src/base/out_of_memory.h"
#include "src/base/status_macros.h"
#include "src/convert/counted_work.h"
#include "src/verify/value_sums.h"

namespace reshard {
namespace {

ValueStatistics StatisticsOf(const ValueSums& sums) {
  ValueStatistics statistics{.values = sums.values,
                             .nans = sums.nans,
                             .infinities = sums.infinities,
                             .least = std::nullopt,
                             .greatest = std::nullopt,
                             .mean = std::nullopt};
  if (sums.finite() == 0) return statistics;
  statistics.least = sums.least;
  statistics.greatest = sums.greatest;
  statistics.mean = sums.sum / static_cast<double>(sums.finite());
  return statistics;
}

}  // namespace

Result<StatisticsReport> MeasureValues(const StatisticsOptions& options) {
  return CatchOutOfMemory([&]() -> Result<StatisticsReport> {
    RESHARD_RETURN_IF_ERROR(CheckJobs(options.jobs));
    RESHARD_ASSIGN_OR_RETURN(
        SourceTensors opened,
        OpenTensors({options.path, options.strategy, "", options.suffix}, options.stop));
    if (options.select) {
      std::erase_if(opened.tensors,
                    [&](const SourceTensor& parameter) { return !options.select(parameter.name); });
    }
    StatisticsReport report;
    for (const SourceTensor& parameter : opened.tensors) {
      if (HasValues(parameter)) report.bytes += parameter.Bytes();
    }
    const CountedWork work(options.jobs, options.stop, options.progress, report.bytes);
    OpenedSource& source = *opened.source;
    RESHARD_ASSIGN_OR_RETURN(const std::vector<std::optional<ValueSums>> sums,
                             SumParameters(source.tensors(), opened.tensors, work.work()));
    RESHARD_RETURN_IF_ERROR(source.files().VerifyUnchanged());
    for (size_t i = 0; i < sums.size(); ++i) {
      const SourceTensor& tensor = opened.tensors[i];
      ParameterStatistics parameter{tensor.Info(), std::nullopt};
      if (sums[i]) parameter.statistics = StatisticsOf(*sums[i]);
      report.parameters.push_back(std::move(parameter));
    }
    report.warnings = std::move(opened.warnings);
    return report;
  });
}

}  // namespace reshard
