// The page of a layout report: one HTML file that needs nothing beside it.
#ifndef RESHARD_TOOLS_PAGE_REPORT_PAGE_H_
#define RESHARD_TOOLS_PAGE_REPORT_PAGE_H_

#include <functional>
#include <string>
#include <string_view>

#include "src/frontend/layout_report.h"

namespace reshard {

struct ReportContent {
  std::string source;  // as it was named
  LayoutReport layout;
  std::string source_layout;  // the strategies in words
  std::string target_layout;
};

// Errors: those of MakeLayoutReport and ReadStrategy.
Result<ReportContent> MakeReportContent(const LayoutReportOptions& options);

// Puts into a message the names that the options have where it is read.
using WordsOfMessage = std::function<std::string(std::string_view message)>;

// Returns the page; the same bytes for the same content. `run` is a section about a run, or
// nothing; the title says which.
std::string ReportPage(const ReportContent& content, const WordsOfMessage& words,
                       std::string_view run = {});

}  // namespace reshard

#endif  // RESHARD_TOOLS_PAGE_REPORT_PAGE_H_
