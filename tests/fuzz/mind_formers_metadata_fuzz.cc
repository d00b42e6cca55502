// The metadata.json of MindFormers 2.0 against a tree of the same JSON: what is taken covers no
// element twice, and all of it stands in the tree.

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/container/container.h"
#include "format/mindformers_metadata/metadata_reader.h"
#include "reshard/byte_range.h"
#include "reshard/status.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/unique_json.h"

namespace reshard {
namespace {

using Json = nlohmann::json;

Result<MindFormersMetadata> ParseMetadata(std::string_view text) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(text));
  const auto read = [bytes](uint64_t offset, std::span<std::byte> out) {
    const auto from = bytes.subspan(offset, out.size());
    std::copy(from.begin(), from.end(), out.begin());
    return Status();
  };
  const auto prefetch = [](ByteRange /*range*/) { return Status(); };
  return ReadMindFormersMetadata({"metadata.json", text.size(), read, prefetch, false});
}

std::string FaultOf(const MindFormersTensor& tensor, const Json& entry,
                    const MindFormersMetadata& metadata) {
  if (entry.at("global_shape") != Json(tensor.full)) return "another shape";
  if (entry.at("chunk").size() != tensor.slices.size()) return "other slices";
  std::set<std::vector<int64_t>> begins;
  for (const MindFormersSlice& slice : tensor.slices) {
    if (slice.files.empty() || slice.files.back() >= metadata.files.size()) return "no file";
    if (slice.begin.size() != tensor.full.size()) return "another number of dimensions";
    bool has_elements = true;
    for (size_t d = 0; d < slice.begin.size(); ++d) {
      const int64_t extent = tensor.slice_shape[d];
      has_elements = has_elements && extent > 0;
      if (slice.begin[d] < 0 || slice.begin[d] > tensor.full[d] - extent) return "a box outside";
      if (extent > 0 && slice.begin[d] % extent != 0) return "a box between two slices";
    }
    if (has_elements && !begins.insert(slice.begin).second) return "a box twice";
  }
  return "";
}

}  // namespace

std::string FuzzMindFormersMetadata(std::string_view bytes) {
  const auto metadata = ParseMetadata(bytes);
  if (!metadata.ok()) {
    return RefusalFault(metadata.status(), "metadata.json", StatusCode::kUnsupported);
  }
  for (const std::string& file : metadata->files) {
    if (file.find('/') != std::string::npos || file.starts_with('.')) return "a path outside";
  }
  const auto tree = UniqueJson(bytes);
  if (!tree) return "";  // what is passed over may have names twice
  const Json& entries = tree->at("state_dict_metadata");
  if (entries.size() != metadata->tensors.size()) return "other tensors";
  for (const MindFormersTensor& tensor : metadata->tensors) {
    if (!entries.contains(tensor.name)) return "another name";
    std::string fault = FaultOf(tensor, entries.at(tensor.name), *metadata);
    if (!fault.empty()) return fault;
  }
  return "";
}

}  // namespace reshard
