// The page of a layout report: one HTML file that needs nothing beside it.
#ifndef RESHARD_TOOLS_CLI_REPORT_PAGE_H_
#define RESHARD_TOOLS_CLI_REPORT_PAGE_H_

#include <string>

#include "reshard/layout_report.h"

namespace reshard {

// Returns the page; the same bytes for the same report. `source` is what was looked at.
std::string ReportPage(const LayoutReport& report, const std::string& source);

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_REPORT_PAGE_H_
