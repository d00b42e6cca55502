// LineValues: reads the values of a line of origin.jsonl.
//
// One thread at a time.
#ifndef RESHARD_SRC_RECORD_LINE_VALUES_H_
#define RESHARD_SRC_RECORD_LINE_VALUES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reshard/options.h"

namespace reshard {

// Members are named by the path of their keys, such as "options.casts". A missing member is empty.
// After a member of an unexpected form, ok() is false and all results are invalid.
class LineValues {
 public:
  // Returns no value if the line is not a JSON object.
  static std::optional<LineValues> Read(std::string_view line);

  bool ok() const { return ok_; }
  void Refuse() { ok_ = false; }
  bool Has(const std::string& member) const { return values_.contains(member); }

  // A word or a path: any bytes (SPEC.md, "Names and paths").
  std::optional<std::string> Text(const std::string& member);
  std::optional<uint64_t> Size(const std::string& member);
  std::optional<int64_t> Number(const std::string& member);
  bool Truth(const std::string& member);
  std::vector<std::string> Texts(const std::string& member);
  std::vector<int64_t> Numbers(const std::string& member);
  // [["key","value"],...]
  std::map<std::string, std::string> Pairs(const std::string& member);
  // [["GLOB" or null,"DType" or null],...]
  std::vector<Selection::CastRule> Casts(const std::string& member);

 private:
  class Reader;
  struct Value {
    std::optional<std::string> text;  // a number, true or false as in the JSON; no value for null
    int lists = 0;                    // that it lies in
  };
  using Values = std::map<std::string, std::vector<Value>>;

  explicit LineValues(Values values) : values_(std::move(values)) {}

  const std::vector<Value>& Of(const std::string& member, int lists);
  std::vector<std::string> TextsIn(const std::string& member, int lists);

  Values values_;
  bool ok_ = true;
};

}  // namespace reshard

#endif  // RESHARD_SRC_RECORD_LINE_VALUES_H_
