// The flow: which source ranks feed which target ranks.
#ifndef RESHARD_TOOLS_CLI_FLOW_CHART_H_
#define RESHARD_TOOLS_CLI_FLOW_CHART_H_

#include <string>

#include "reshard/layout_report.h"

namespace reshard {

// Returns "rank 3" or "ranks 16-31", "3" or "16-31".
std::string RankWords(const FileBin& bin);
std::string RankNumbers(const FileBin& bin);

// Returns an <svg>: source ranks downwards, target ranks to the right, the more bytes the darker.
// Only of a report with a plan.
std::string FlowChart(const LayoutReport& report);

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_FLOW_CHART_H_
