#include "format/weight_map/weight_map_codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "format/container/file_blocks.h"
#include "reshard/parameters.h"
#include "src/base/json_reader.h"
#include "src/base/json_string.h"
#include "src/base/natural_order.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"

namespace reshard {
namespace {

constexpr size_t kLongestPath = 4096;
constexpr std::string_view kSafetensorsExtension = ".safetensors";
constexpr std::string_view kTorchExtension = ".bin";

// Returns the fault of a file's name; "" if it lies below the folder.
std::string_view FaultOf(std::string_view path) {
  if (path.size() > kLongestPath) return "is longer than a path can be";
  if (!path.ends_with(kSafetensorsExtension) && !path.ends_with(kTorchExtension)) {
    return "does not end in .safetensors or .bin";
  }
  const bool drive = path.size() > 1 && path[1] == ':';
  if (drive || path.find('\\') != std::string_view::npos) {
    return "has a drive or a backslash; expected a path below the folder";
  }
  if (std::any_of(path.begin(), path.end(),
                  [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; })) {
    return "has control characters";
  }
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") {
      return "leads out of the folder, or has empty parts; expected a path below it: copy or link "
             "the "
             "file into the folder";
    }
    begin = end + 1;
  }
  return {};
}

class WeightMapReader final : public JsonReader {
 public:
  WeightMapReader(const FileBytes& file, const MemoryCheck& memory)
      : JsonReader(file.path), memory_(memory) {}

  Result<WeightMap> Finish() && {
    if (has_map_ && has_flat_) {
      return Error("both a \"weight_map\" and names beside it; remove one");
    }
    if (!has_map_ && !ignored_.empty()) {
      return Error(fmt::format("{}: expected the name of a file", Quote(ignored_)));
    }
    if (map_.weights.empty()) return Error("names no tensor");
    const auto is_before = [](const MappedWeight& a, const MappedWeight& b) {
      return a.name < b.name;
    };
    // Hugging Face's indexes are in order.
    if (!std::is_sorted(map_.weights.begin(), map_.weights.end(), is_before)) {
      std::sort(map_.weights.begin(), map_.weights.end(), is_before);
    }
    const auto twice = std::adjacent_find(
        map_.weights.begin(), map_.weights.end(),
        [](const MappedWeight& a, const MappedWeight& b) { return a.name == b.name; });
    if (twice != map_.weights.end()) {
      return Error(
          fmt::format("tensor {} occurs twice; remove one", Quote(std::string(twice->name))));
    }
    PutFilesInOrder();
    return std::move(map_);
  }

 private:
  Status OnValue(JsonValue& value) override {
    if (depth() == 2 && Key(1) == "metadata") {
      const bool is_size = value.kind == JsonValue::Kind::kUnsigned && Key(2) == "total_size";
      if (is_size) map_.total_size = value.number;
      return {};
    }
    if (depth() == 0 || value.kind != JsonValue::Kind::kString) return Other(value.KindName());
    if (InWeights()) return Add(*value.text);
    if (depth() > 1) return {};
    has_flat_ = true;
    return Add(*value.text);
  }

  Status OnOpen(bool is_list) override {
    if (is_list || depth() != 1) {
      return depth() > 0 || is_list ? Other(is_list ? "an array" : "an object") : Status();
    }
    if (Key(1) == "metadata") return {};
    if (Key(1) != "weight_map") return Other("an object");
    if (has_map_) return Error("\"weight_map\" occurs twice");
    has_map_ = true;
    return {};
  }

  bool InWeights() const { return depth() == 2 && !InList() && Key(1) == "weight_map"; }

  Status Add(const std::string& path) {
    // Neighbours are mostly in one file.
    if (last_ == files_.end() || last_->first != path) {
      last_ = files_.find(path);
      if (last_ == files_.end()) {
        const std::string_view fault = FaultOf(path);
        if (!fault.empty()) {
          return Error(
              fmt::format("tensor {}: the file {} {}", Quote(Key(depth())), Quote(path), fault));
        }
        last_ = files_.emplace(path, static_cast<uint32_t>(files_.size())).first;
      }
    }
    map_.weights.push_back({map_.names.Keep(Key(depth())), last_->second});
    if (map_.weights.size() % kMemoryCheckInterval != 0) return {};
    return CheckMemory(memory_, map_.weights.size() * sizeof(MappedWeight));
  }

  // A value other than the name of a file.
  Status Other(std::string_view found) {
    if (depth() == 0) {
      return Error(fmt::format("expected an object with a \"weight_map\", found {}", found));
    }
    if (InWeights()) {
      return Error(
          fmt::format("tensor {}: expected the name of a file, found {}", Quote(Key(2)), found));
    }
    // Whether it may be there is known when all is read.
    if (depth() == 1 && ignored_.empty()) ignored_ = Key(1);
    return {};
  }

  void PutFilesInOrder() {
    std::vector<std::pair<std::string, uint32_t>> files(files_.begin(), files_.end());
    std::sort(files.begin(), files.end(),
              [](const auto& a, const auto& b) { return IsNaturallyBefore(a.first, b.first); });
    std::vector<uint32_t> places(files.size());
    map_.files.reserve(files.size());
    for (auto& [path, number] : files) {
      places[number] = static_cast<uint32_t>(map_.files.size());
      map_.files.push_back(std::move(path));
    }
    for (MappedWeight& weight : map_.weights) weight.file = places[weight.file];
  }

  const MemoryCheck& memory_;
  WeightMap map_;
  std::map<std::string, uint32_t> files_;
  std::map<std::string, uint32_t>::const_iterator last_ = files_.end();
  bool has_map_ = false;
  bool has_flat_ = false;
  std::string ignored_;  // the first unknown member
};

// `indent` is the indentation of one level; `metadata` is put between braces.
Result<std::string> EncodeMap(std::span<const MappedWeight> weights,
                              std::span<const std::string> files, const std::string& indent,
                              const std::string& metadata) {
  std::string out =
      fmt::format("{{\n{0}\"metadata\": {{{1}\n{0}}},\n{0}\"weight_map\": {{", indent, metadata);
  size_t room = out.size();
  for (const MappedWeight& weight : weights) {
    room += weight.name.size() + files[weight.file].size() + 2 * indent.size() + 8;
  }
  out.reserve(room);
  bool first = true;
  for (const MappedWeight& weight : weights) {
    out += first ? "\n" : ",\n";
    first = false;
    out += indent;
    out += indent;
    if (!IsUtf8(weight.name)) {
      return MismatchError(
          fmt::format("parameter {}: its name is not UTF-8, which an index has to "
                      "be; rename it, or leave it out",
                      Quote(std::string(weight.name))));
    }
    AppendAsciiJsonString(weight.name, out);
    out += ": ";
    AppendAsciiJsonString(files[weight.file], out);
  }
  out += first ? "}\n}" : fmt::format("\n{}}}\n}}", indent);
  return out;
}

}  // namespace

const MappedWeight* WeightMap::Find(std::string_view name) const {
  const auto found =
      std::lower_bound(weights.begin(), weights.end(), name,
                       [](const MappedWeight& a, std::string_view b) { return a.name < b; });
  return found == weights.end() || found->name != name ? nullptr : &*found;
}

Result<WeightMap> ParseWeightMap(const FileBytes& file, const MemoryCheck& memory) {
  if (file.size > kMostWeightMapBytes) {
    return ResourceExhaustedError(fmt::format("{}: {}; an index may have at most {}",
                                              Escape(file.path), FormatBytes(file.size),
                                              FormatBytes(kMostWeightMapBytes)));
  }
  FileBlocks blocks(file, {0, file.size}, memory);
  WeightMapReader reader(file, memory);
  RESHARD_RETURN_IF_ERROR(reader.Read(0, [&blocks] { return blocks.Next(); }));
  return std::move(reader).Finish();
}

Result<std::string> EncodeParamNameMap(std::span<const MappedWeight> weights,
                                       std::span<const std::string> files,
                                       const WeightTotals& totals) {
  return EncodeMap(weights, files, "    ",
                   fmt::format("\n        \"total_size\": {}", totals.bytes));
}

Result<std::string> EncodeHuggingFaceIndex(std::vector<MappedWeight> weights,
                                           std::span<const std::string> files,
                                           const WeightTotals& totals) {
  // By bytes of UTF-8 is by code points.
  std::sort(weights.begin(), weights.end(),
            [](const MappedWeight& a, const MappedWeight& b) { return a.name < b.name; });
  RESHARD_ASSIGN_OR_RETURN(
      std::string out,
      EncodeMap(weights, files, "  ",
                fmt::format("\n    \"total_parameters\": {},\n    \"total_size\": {}",
                            totals.elements, totals.bytes)));
  out += '\n';
  return out;
}

}  // namespace reshard
