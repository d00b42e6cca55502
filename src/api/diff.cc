#include "reshard/diff.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "src/api/counted_work.h"
#include "src/api/full_checkpoint.h"
#include "src/base/out_of_memory.h"
#include "src/base/status_macros.h"
#include "src/verify/parameter_comparison.h"
#include "src/verify/value_comparison.h"

namespace reshard {
namespace {

ParameterType TypeOf(const FullParameter& parameter) {
  const SourceTensor& tensor = parameter.tensor;
  return {tensor.kind, tensor.dtype,
          tensor.kind == ParameterKind::kTensor ? tensor.full_shape : Shape()};
}

bool SameType(const ParameterType& a, const ParameterType& b) {
  if (a.kind != b.kind) return false;
  return a.kind == ParameterKind::kMap || (a.dtype == b.dtype && a.full_shape == b.full_shape);
}

// Finds what names and types tell. The pairs whose bytes have to tell are left equal; `pairs` gets
// them, and `places` where they are in the result.
std::vector<ParameterDiff> CompareTypes(const FullCheckpoint& a, const FullCheckpoint& b,
                                        std::vector<ParameterPair>& pairs,
                                        std::vector<size_t>& places) {
  std::unordered_map<std::string_view, const FullParameter*> in_b;
  for (const FullParameter& parameter : b.parameters) {
    in_b.emplace(parameter.tensor.name, &parameter);
  }
  std::vector<ParameterDiff> all;
  for (const FullParameter& parameter : a.parameters) {
    ParameterDiff diff{
        parameter.tensor.name, ParameterRelation::kOnlyInA, TypeOf(parameter), {}, {}};
    if (const auto other = in_b.extract(diff.name)) {
      const FullParameter& same = *other.mapped();
      diff.b = TypeOf(same);
      if (!SameType(*diff.a, *diff.b)) {
        diff.relation = ParameterRelation::kOtherType;
      } else if (parameter.bytes != same.bytes) {  // notes or maps
        diff.relation = ParameterRelation::kDifferent;
      } else {
        diff.relation = ParameterRelation::kEqual;
        pairs.push_back({&parameter, &same});
        places.push_back(all.size());
      }
    }
    all.push_back(std::move(diff));
  }
  for (const FullParameter& parameter : b.parameters) {
    if (!in_b.contains(parameter.tensor.name)) continue;
    all.push_back({parameter.tensor.name, ParameterRelation::kOnlyInB, {}, TypeOf(parameter), {}});
  }
  return all;
}

}  // namespace

uint64_t DiffReport::Count(ParameterRelation relation) const {
  return static_cast<uint64_t>(
      std::count_if(parameters.begin(), parameters.end(),
                    [&](const ParameterDiff& diff) { return diff.relation == relation; }));
}

Result<DiffReport> Diff(const DiffOptions& options) {
  return CatchOutOfMemory([&]() -> Result<DiffReport> {
    RESHARD_RETURN_IF_ERROR(CheckJobs(options.jobs));
    RESHARD_ASSIGN_OR_RETURN(
        const FullCheckpoint a,
        OpenFullCheckpoint(options.a.path, options.a.strategy, options.a.suffix));
    RESHARD_ASSIGN_OR_RETURN(
        const FullCheckpoint b,
        OpenFullCheckpoint(options.b.path, options.b.strategy, options.b.suffix));
    DiffReport report;
    std::vector<ParameterPair> pairs;
    std::vector<size_t> places;
    report.parameters = CompareTypes(a, b, pairs, places);
    for (const ParameterPair& pair : pairs) report.bytes += pair.a->bytes;

    const CountedWork work(options.jobs, options.stop, options.progress, report.bytes);
    RESHARD_ASSIGN_OR_RETURN(const std::vector<PairDifference> found,
                             CompareParameters({a.source->files(), a.source->shards()},
                                               {b.source->files(), b.source->shards()}, pairs,
                                               options.values, work.work()));
    RESHARD_RETURN_IF_ERROR(a.source->files().VerifyUnchanged());
    RESHARD_RETURN_IF_ERROR(b.source->files().VerifyUnchanged());
    for (size_t i = 0; i < found.size(); ++i) {
      if (!found[i].differs) continue;
      ParameterDiff& diff = report.parameters[places[i]];
      diff.relation = ParameterRelation::kDifferent;
      if (options.values && diff.a->kind == ParameterKind::kTensor &&
          HasComparableValues(diff.a->dtype)) {
        diff.values = found[i].values;
      }
    }
    report.warnings = a.warnings;
    report.warnings.insert(report.warnings.end(), b.warnings.begin(), b.warnings.end());
    return report;
  });
}

}  // namespace reshard
