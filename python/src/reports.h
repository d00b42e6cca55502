// Reports of the library as dicts with the names and values of the command line's JSON.
//
// Called with the GIL held.
#ifndef RESHARD_PYTHON_REPORTS_H_
#define RESHARD_PYTHON_REPORTS_H_

#include <nanobind/nanobind.h>

#include "reshard/compare.h"
#include "reshard/convert.h"
#include "reshard/merge.h"
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

}  // namespace reshard::python

#endif  // RESHARD_PYTHON_REPORTS_H_
