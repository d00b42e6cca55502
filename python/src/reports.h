// Reports of the library as dicts with the names and values of the command line's JSON.
//
// Called with the GIL held.
#ifndef RESHARD_PYTHON_REPORTS_H_
#define RESHARD_PYTHON_REPORTS_H_

#include <nanobind/nanobind.h>

#include <cstdint>
#include <vector>

#include "reshard/checkpoint.h"
#include "reshard/compare.h"
#include "reshard/convert.h"
#include "reshard/merge.h"
#include "reshard/status.h"
#include "reshard/strategy.h"
#include "reshard/verify.h"

namespace reshard::python {

nanobind::dict ReportOf(const AgainstReport& report);
nanobind::dict ReportOf(const ConvertReport& report);
nanobind::dict ReportOf(const DamageReport& report);
nanobind::dict ReportOf(const DiffReport& report);
nanobind::dict ReportOf(const DigestReport& report);
nanobind::dict ReportOf(const MergeReport& report);
nanobind::dict ReportOf(const PlanReport& report);
nanobind::dict ReportOf(const RecodeReport& report);
nanobind::dict ReportOf(const CommitReport& report);
nanobind::dict ReportOf(const InferStrategyReport& report);
nanobind::dict ReportOf(const MakeStrategyReport& report);
nanobind::dict ReportOf(const StrategyConversionReport& report);
nanobind::dict ReportOf(const StrategyMergeReport& report);
nanobind::dict ReportOf(const StatisticsReport& report);
// Of a page of so many bytes.
nanobind::dict ReportOfPage(uint64_t bytes, const std::vector<Warning>& warnings);

// The entry of a file in the report of `inspect`, with the parameters that `takes` does: a function
// of a name.
nanobind::dict ReportOf(const Checkpoint& checkpoint, const nanobind::object& takes);
nanobind::dict ReportOf(const Strategy& strategy, const nanobind::object& takes);
// A list of warnings as reports have them.
nanobind::object ReportOf(const std::vector<Warning>& warnings);

}  // namespace reshard::python

#endif  // RESHARD_PYTHON_REPORTS_H_
