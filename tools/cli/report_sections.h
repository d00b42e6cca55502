// The sections of a layout report's page: a heading, pictures, and the figures in tables.
#ifndef RESHARD_TOOLS_CLI_REPORT_SECTIONS_H_
#define RESHARD_TOOLS_CLI_REPORT_SECTIONS_H_

#include <string>

#include "reshard/layout_report.h"

namespace reshard {

// Each returns HTML; nothing where there is nothing to show.
std::string TotalsSection(const LayoutReport& report);
std::string DevicesSection(const LayoutReport& report);
std::string FlowSection(const LayoutReport& report);
std::string BytesSection(const LayoutReport& report);
std::string RunsSection(const LayoutReport& report);
std::string WarningsSection(const std::vector<std::string>& warnings);

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_REPORT_SECTIONS_H_
