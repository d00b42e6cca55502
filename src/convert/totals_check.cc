#include "src/convert/totals_check.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

#include "src/base/status_macros.h"
#include "src/mindspore/source_totals.h"

namespace reshard {
namespace {

// The stage that the source is of, where another strategy, or the number of the stage, tells that
// there are more.
std::optional<int64_t> StageAlone(const ConversionRule& rule) {
  if (rule.stage_alone()) return rule.stage_alone();
  const Strategy* strategy = rule.source();
  if (strategy == nullptr || strategy->is_pipeline() || strategy->own_stage() == 0) return {};
  return strategy->own_stage();
}

// The rest is left for the sample of replicas.
TotalsLimits LimitsFor(const OpenedSource& source, bool expected) {
  if (expected) {
    return {.files = SampleLimits().files, .headers = std::numeric_limits<size_t>::max()};
  }
  const SampleLimits all = SampleLimitsFor(source.path(source.chosen().front()));
  return {.files = all.files / 4, .headers = all.reads / 4 * 3};
}

Status NotExpected(const ParameterTotals& totals, const RoundedCount& expected) {
  return MismatchError(fmt::format(
      "the weights of the source have {} parameters ({}), expected {}{}; is the source strategy "
      "this checkpoint's, and is it the checkpoint of this model?",
      totals.weights, ParameterCountText(totals.weights), expected.count,
      expected.precision == 1 ? "" : fmt::format(" to the nearest {}", expected.precision)));
}

}  // namespace

Result<SampleLimits> CheckTotals(const OpenedSource& source,
                                 const std::optional<RoundedCount>& expected,
                                 const std::stop_token& stop, PlanFindings& findings) {
  findings.stage_alone = StageAlone(source.rule());
  if (findings.stage_alone) {
    if (!expected) return SampleLimits{0, 0};
    return InvalidArgumentError(
        fmt::format("how many parameters the source has cannot be told: it is stage {} of several",
                    *findings.stage_alone));
  }
  const TotalsLimits most = LimitsFor(source, expected.has_value());
  TotalsLimits left = most;
  const Result<ParameterTotals> totals = CountParameters(source.shards(), left, stop);
  if (totals.ok()) findings.totals = *totals;
  if (!totals.ok() && (expected || totals.status().code() == StatusCode::kCancelled)) {
    return totals.status();
  }
  if (expected && !RoundsTo(totals->weights, *expected)) return NotExpected(*totals, *expected);
  return SampleLimits{most.headers - left.headers, most.files - left.files};
}

}  // namespace reshard
