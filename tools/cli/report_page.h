// The page of a layout report: one HTML file that needs nothing beside it.
#ifndef RESHARD_TOOLS_CLI_REPORT_PAGE_H_
#define RESHARD_TOOLS_CLI_REPORT_PAGE_H_

#include <string>
#include <string_view>

#include "reshard/layout_report.h"

namespace reshard {

struct ReportContent {
  std::string source;  // as it was named
  LayoutReport layout;
  std::string source_layout;  // the strategies in words
  std::string target_layout;
};

// Errors: those of MakeLayoutReport and ReadStrategy.
Result<ReportContent> MakeReportContent(const LayoutReportOptions& options);

// Returns the page; the same bytes for the same content. `run` is a section about a run, or
// nothing; the title says which.
std::string ReportPage(const ReportContent& content, std::string_view run = {});

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_REPORT_PAGE_H_
