// What `reshard verify --against` found, as text and as JSON. Pure functions.
#ifndef RESHARD_TOOLS_CLI_AGAINST_REPORT_H_
#define RESHARD_TOOLS_CLI_AGAINST_REPORT_H_

#include <nlohmann/json.hpp>
#include <string>

#include "reshard/verify_against.h"

namespace reshard {

// Lines for each file and each parameter that differ; "" where nothing does.
std::string AgainstAsText(const AgainstReport& report);

// The members of the document that say what was found.
nlohmann::ordered_json AgainstAsJson(const AgainstReport& report);

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_AGAINST_REPORT_H_
