// The page of a layout report: one HTML file that needs nothing beside it.
#ifndef RESHARD_TOOLS_CLI_REPORT_PAGE_H_
#define RESHARD_TOOLS_CLI_REPORT_PAGE_H_

#include <string>
#include <string_view>

#include "reshard/layout_report.h"

namespace reshard {

// Returns the page; the same bytes for the same report. `source` is what was looked at; `run` is a
// section about a run, or nothing; the title says which.
std::string ReportPage(const LayoutReport& report, const std::string& source,
                       std::string_view run = {});

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_REPORT_PAGE_H_
