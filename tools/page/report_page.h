// The page of a layout report: a single HTML file without references to other files.
#ifndef RESHARD_TOOLS_PAGE_REPORT_PAGE_H_
#define RESHARD_TOOLS_PAGE_REPORT_PAGE_H_

#include <functional>
#include <string>
#include <string_view>

#include "src/frontend/layout_report.h"

namespace reshard {

// Replaces the names of options in a message by the front end's.
using WordsOfMessage = std::function<std::string(std::string_view message)>;

// Returns the page; the same bytes for the same report. `run` is a section about a run, or empty;
// the title depends on it.
std::string ReportPage(const LayoutReport& report, const WordsOfMessage& words,
                       std::string_view run = {});

}  // namespace reshard

#endif  // RESHARD_TOOLS_PAGE_REPORT_PAGE_H_
