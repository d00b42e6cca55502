#include "tools/cli/json_report.h"

#include "tools/cli/messages.h"

namespace reshard {

void JsonReport::BeginObject(const ReportClass& /*of*/) {
  open_.push_back({open_.empty() ? std::move(done_) : nlohmann::ordered_json::object(), {}});
}

void JsonReport::Message(std::string_view text) { Add(AsTyped(text)); }

void JsonReport::Add(nlohmann::ordered_json value) {
  Open& into = open_.back();
  if (into.value.is_array()) {
    into.value.push_back(std::move(value));
  } else {
    into.value[into.name] = std::move(value);
  }
}

void JsonReport::End() {
  nlohmann::ordered_json value = std::move(open_.back().value);
  open_.pop_back();
  if (open_.empty()) {
    done_ = std::move(value);
  } else {
    Add(std::move(value));
  }
}

}  // namespace reshard
