#include "tools/cli/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace reshard {
namespace {

constexpr int kSchemaVersion = 1;

}  // namespace

Command::Command(CLI::App& parent, const std::string& name, const std::string& description,
                 const std::vector<std::string>& examples)
    : app_(*parent.add_subcommand(name, description)), full_name_(name) {
  if (parent.get_parent() != nullptr) full_name_ = parent.get_name() + " " + name;
  constexpr const char* kGroup = "Output";
  app_.add_flag("--json", json_, "Print the data as one JSON document on standard output")
      ->group(kGroup);
  app_.add_flag("-q,--quiet", quiet_, "Say nothing but warnings and errors")->group(kGroup);
  app_.add_flag("-v,--verbose", verbose_, "Say more")->group(kGroup);
  std::string footer = "Examples:\n";
  for (const std::string& example : examples) footer += fmt::format("  $ {}\n", example);
  footer.pop_back();
  app_.footer(footer);
}

nlohmann::ordered_json Command::JsonDocument() const {
  return {{"schema_version", kSchemaVersion}, {"command", full_name_}};
}

CLI::Validator WholeNumber(size_t most_digits) {
  const auto check = [most_digits](std::string& text) -> std::string {
    const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
    if (!digits) return "has to be a whole number, 0 or more; found " + text;
    // CLI11 would take leading zeros for octal numbers.
    text.erase(0, std::min(text.find_first_not_of('0'), text.size() - 1));
    return text.size() <= most_digits
               ? ""
               : fmt::format("has to be less than 10^{}; found {}", most_digits, text);
  };
  return {check, ""};
}

void AddJobsOption(CLI::App& app, int& jobs, const std::string& description) {
  constexpr size_t kMostDigits = 9;  // of an int
  app.add_option("--jobs", jobs, description)->type_name("J")->transform(WholeNumber(kMostDigits));
}

std::string ToJsonText(const nlohmann::ordered_json& value) {
  return value.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace reshard
