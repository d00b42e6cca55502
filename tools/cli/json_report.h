// Results as JSON, with the names and the order of src/frontend/report_fields.cc.
#ifndef RESHARD_TOOLS_CLI_JSON_REPORT_H_
#define RESHARD_TOOLS_CLI_JSON_REPORT_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/frontend/report_fields.h"

namespace reshard {

// Puts a JSON value together. Options have their names on the command line.
class JsonReport final : public ReportSink {
 public:
  // The fields of the report are added to `document`, an object.
  explicit JsonReport(nlohmann::ordered_json document = nlohmann::ordered_json::object())
      : done_(std::move(document)) {}

  void BeginObject(const ReportClass& of) override;
  void Name(std::string_view field) override { open_.back().name = field; }
  void EndObject() override { End(); }
  void BeginList() override { open_.push_back({nlohmann::ordered_json::array(), {}}); }
  void EndList() override { End(); }
  void BeginMap() override { open_.push_back({nlohmann::ordered_json::object(), {}}); }
  void EndMap() override { End(); }

  void None() override { Add(nullptr); }
  void Value(bool value) override { Add(value); }
  void Value(int64_t value) override { Add(value); }
  void Value(uint64_t value) override { Add(value); }
  void Value(double value) override { Add(value); }
  void Value(std::string_view text) override { Add(text); }
  void Message(std::string_view text) override;

  // Returns the finished value.
  nlohmann::ordered_json Take() { return std::move(done_); }

 private:
  // An object or a list that is not complete, and the name of the next member.
  struct Open {
    nlohmann::ordered_json value;
    std::string name;
  };

  void Add(nlohmann::ordered_json value);
  void End();

  std::vector<Open> open_;
  nlohmann::ordered_json done_;
};

// Returns a part of the results of `inspect`, or a warning, as JSON.
template <typename Part>
nlohmann::ordered_json AsJson(const Part& part) {
  JsonReport json;
  Describe(part, json);
  return json.Take();
}

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_JSON_REPORT_H_
