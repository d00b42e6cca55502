#include "format/safetensors/safetensors_encoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/safetensors/safetensors_types.h"
#include "src/base/json_string.h"
#include "src/base/number_text.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"

namespace reshard {
namespace {

constexpr size_t kAlignment = 8;

// The facts about a tensor that are held until the header is complete.
struct Entry {
  const SafetensorsType* type = nullptr;
  std::string name;
  std::string shape;  // as in the header
  uint64_t bytes = 0;
  size_t array = 0;
  bool is_int4 = false;
};

// Returns the JSON string of a name, as serde_json writes it.
Result<std::string> AsJson(std::string_view name) {
  if (name == kSafetensorsMetadata) {
    return UnsupportedError(
        fmt::format("parameter {}: safetensors files use this name for their metadata; rename it",
                    Quote(name)));
  }
  if (!IsUtf8(name)) {
    return UnsupportedError(
        fmt::format("parameter {}: its name is not UTF-8, as safetensors files require; rename it",
                    Quote(name)));
  }
  return JsonString(name);
}

Result<Entry> EntryOf(const ArrayHeader& array, size_t number) {
  const bool packed = array.opaque != nullptr && array.opaque->kind == ArrayKind::kPacked;
  const DType dtype = packed ? array.opaque->dtype : array.dtype;
  const SafetensorsType* const type =
      array.opaque == nullptr || packed ? SafetensorsTypeOf(dtype) : nullptr;
  if (type == nullptr) {
    return UnsupportedError(
        fmt::format("parameter {}: safetensors files have no type for {}", Quote(array.name),
                    array.opaque == nullptr                       ? DTypeName(dtype)
                    : array.opaque->kind == ArrayKind::kMapTensor ? "a MapTensor"
                                                                  : "a text"));
  }
  Entry entry{type, std::string(array.name), "[", 0, number, dtype == DType::kInt4};
  const Shape shape =
      packed ? array.opaque->shape : LogicalShape(ArrayKind::kTensor, dtype, *array.shape);
  for (const int64_t size : shape) {
    if (entry.shape.size() > 1) entry.shape += ',';
    AppendNumber(entry.shape, static_cast<uint64_t>(size));
  }
  entry.shape += ']';
  entry.bytes = packed ? array.opaque->bytes : array.bytes;
  return entry;
}

// Appends `"__metadata__":{...}`, if there is any.
Status AppendMetadata(const FileMetadata& metadata, const std::vector<Entry>& entries,
                      std::string& header) {
  std::string members;
  const auto add = [&members](std::string_view key, std::string_view value) {
    if (!members.empty()) members += ',';
    members += key;
    members += ':';
    members += value;
  };
  // MindSpore takes metadata of a tensor's name for its dtype.
  const auto is_taken = [&entries](std::string_view key) {
    return std::any_of(entries.begin(), entries.end(),
                       [key](const Entry& entry) { return entry.name == key; });
  };
  // Readers of a set without redundancy expect every file to say so.
  const bool removes = metadata.removes_redundancy.value_or(false);
  if ((!entries.empty() || removes) && !is_taken(kFormatKey)) {
    add("\"format\"", JsonString(metadata.format));
  }
  if (metadata.removes_redundancy && (!entries.empty() || removes) &&
      !is_taken("remove_redundancy")) {
    add("\"remove_redundancy\"", removes ? "\"True\"" : "\"False\"");
  }
  if (metadata.states_crc) {
    if (is_taken(kSafetensorsCrc)) {
      return UnsupportedError(
          "parameter \"crc_num\": safetensors files use this name for their CRC-32; rename it, or "
          "write no CRC");
    }
    if (!members.empty()) members += ',';
    members += kCrcMember;
    members += metadata.crc ? fmt::format("{}\"", *metadata.crc) : CrcMemberValue(0);
  }
  FileStrings others;
  if (!entries.empty()) others = metadata.others;
  for (const Entry& entry : entries) {
    if (entry.is_int4) others.insert_or_assign(entry.name, kInt4Mark);
  }
  for (const auto& [key, value] : others) {
    RESHARD_ASSIGN_OR_RETURN(const std::string name, AsJson(key));
    add(name, JsonString(value));
  }
  if (members.empty()) return {};
  header += "\"__metadata__\":{";
  header += members;
  header += '}';
  return {};
}

Result<std::string> HeaderOf(const FileMetadata& metadata, const std::vector<Entry>& entries) {
  std::string header(kAlignment, '\0');  // for its length
  header += '{';
  RESHARD_RETURN_IF_ERROR(AppendMetadata(metadata, entries, header));
  uint64_t end = 0;
  for (const Entry& entry : entries) {
    if (header.back() != '{') header += ',';
    RESHARD_ASSIGN_OR_RETURN(const std::string name, AsJson(entry.name));
    header += name;
    header += ":{\"dtype\":\"";
    header += entry.type->name;
    header += "\",\"shape\":";
    header += entry.shape;
    header += ",\"data_offsets\":[";
    AppendNumber(header, end);
    header += ',';
    end += entry.bytes;
    AppendNumber(header, end);
    header += "]}";
  }
  header += '}';
  header.append((kAlignment - header.size() % kAlignment) % kAlignment, ' ');
  uint64_t length = header.size() - kAlignment;
  if (length > kMostSafetensorsHeader) {
    return UnsupportedError(fmt::format(
        "{} tensors make a header of {} bytes; a safetensors file may have {}, so write "
        "fewer into one file",
        entries.size(), length, kMostSafetensorsHeader));
  }
  for (size_t i = 0; i < kAlignment; ++i) {
    header[i] = static_cast<char>(length & 0xFF);
    length >>= 8;
  }
  return header;
}

}  // namespace

std::string CrcMemberValue(uint32_t crc) { return fmt::format("{:<11}", fmt::format("{}\"", crc)); }

Status EncodeSafetensors(const FileMetadata& metadata, size_t arrays,
                         const ArrayHeaderAt& header_at, const TakeLiteral& take_literal,
                         const TakeFrames& take) {
  std::vector<Entry> entries;
  entries.reserve(arrays);
  for (size_t i = 0; i < arrays; ++i) {
    RESHARD_ASSIGN_OR_RETURN(const ArrayHeader array, header_at(i));
    RESHARD_ASSIGN_OR_RETURN(Entry entry, EntryOf(array, i));
    entries.push_back(std::move(entry));
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.type == b.type ? a.name < b.name : OrderOf(*a.type) < OrderOf(*b.type);
  });
  RESHARD_ASSIGN_OR_RETURN(std::string header, HeaderOf(metadata, entries));
  RESHARD_RETURN_IF_ERROR(take_literal(std::move(header)));
  for (const Entry& entry : entries) {
    RESHARD_ASSIGN_OR_RETURN(const ArrayHeader array, header_at(entry.array));
    // An array that is taken as it stands is so by its place in its file.
    std::vector<Frame> frames;
    if (array.opaque == nullptr) {
      frames.push_back({"", {0, entry.bytes}});
    } else {
      for (const ByteRange& content : array.opaque->content) frames.push_back({"", content});
    }
    RESHARD_RETURN_IF_ERROR(take(frames));
  }
  return {};
}

}  // namespace reshard
