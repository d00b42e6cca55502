#include "src/mindspore/strategy_wire.h"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "src/base/quote.h"
#include "src/base/status_macros.h"

namespace reshard {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedOutputStream;

// Parses into `item`, which keeps the memory of the item before.
template <typename Item>
Status VisitItem(const WireReader& reader, std::string_view bytes, Item& item,
                 const std::function<Status(uint64_t, Item&)>& visit) {
  if (!item.ParsePartialFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return reader.Unexpected("a malformed item");
  }
  return visit(reader.offset(), item);
}

// Whether the visitor needs no more of an item, whose layouts are still encoded.
bool VisitEncoded(std::string_view bytes, EncodedLayoutItem& item,
                  const StrategyItemVisitor& visitor) {
  return visitor.on_encoded_layout &&
         item.ParsePartialFromArray(bytes.data(), static_cast<int>(bytes.size())) &&
         item.parallel_layouts_size() == 1 &&
         visitor.on_encoded_layout(item.param_name(), item.parallel_layouts(0));
}

template <typename Item>
void AppendField(char key, const Item& item, std::string* out) {
  const std::string bytes = item.SerializePartialAsString();
  out->push_back(key);
  AppendVarint(bytes.size(), out);
  out->append(bytes);
}

}  // namespace

WireReader::WireReader(const std::string& path, std::string_view kind, std::string_view bytes)
    : path_(path),
      kind_(kind),
      bytes_(bytes),
      input_(reinterpret_cast<const uint8_t*>(bytes.data()), static_cast<int>(bytes.size())) {}

bool WireReader::AtEnd() { return input_.CurrentPosition() >= static_cast<int>(bytes_.size()); }

Status WireReader::Unexpected(std::string_view what) const {
  return CorruptError(
      fmt::format("{}: expected {}, found {} at offset {}", Escape(path_), kind_, what, offset_));
}

Result<uint32_t> WireReader::ReadKey() {
  offset_ = static_cast<uint64_t>(input_.CurrentPosition());
  key_ = input_.ReadTag();
  if (WireFormatLite::GetTagFieldNumber(key_) == 0) return Unexpected("bytes that begin no field");
  return key_;
}

Result<uint64_t> WireReader::ReadNumber() {
  uint64_t number = 0;
  if (input_.ReadVarint64(&number)) return number;
  return Unexpected(fmt::format("a malformed field {}", WireFormatLite::GetTagFieldNumber(key_)));
}

Result<std::string_view> WireReader::ReadBytes() {
  uint64_t length = 0;
  if (!input_.ReadVarint64(&length)) return Unexpected("a malformed length");
  const auto begin = static_cast<uint64_t>(input_.CurrentPosition());
  if (length > bytes_.size() - begin) {
    return Unexpected(fmt::format("a field of {} bytes where {} are left; is the file cut off?",
                                  length, bytes_.size() - begin));
  }
  input_.Skip(static_cast<int>(length));
  return bytes_.substr(begin, length);
}

Status WireReader::Skip() {
  if (WireFormatLite::SkipField(&input_, key_)) return {};
  return Unexpected(fmt::format("a malformed field {}", WireFormatLite::GetTagFieldNumber(key_)));
}

Status VisitStrategyItems(const std::string& path, std::string_view bytes,
                          const StrategyItemVisitor& visitor) {
  WireReader reader(path, "a strategy file (protobuf or JSON)", bytes);
  ParallelStrategyItem strategy;
  ParallelLayoutItem layout;
  EncodedLayoutItem encoded;
  while (!reader.AtEnd()) {
    RESHARD_ASSIGN_OR_RETURN(const uint32_t key, reader.ReadKey());
    if (key == static_cast<uint32_t>(kCurrentStageKey)) {
      RESHARD_ASSIGN_OR_RETURN(const uint64_t stage, reader.ReadNumber());
      if (visitor.on_current_stage) visitor.on_current_stage(stage);
      continue;
    }
    if (WireFormatLite::GetTagWireType(key) != WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
      RESHARD_RETURN_IF_ERROR(reader.Skip());
      continue;
    }
    RESHARD_ASSIGN_OR_RETURN(const std::string_view item, reader.ReadBytes());
    const bool is_strategy = key == static_cast<uint32_t>(kStrategyItemKey);
    if (!is_strategy && key != static_cast<uint32_t>(kLayoutItemKey)) continue;
    if (item.size() > kMaxStrategyItemBytes) {
      return reader.Unexpected(
          fmt::format("an item of {} bytes (more than {})", item.size(), kMaxStrategyItemBytes));
    }
    if (!is_strategy && VisitEncoded(item, encoded, visitor)) continue;
    RESHARD_RETURN_IF_ERROR(is_strategy ? VisitItem(reader, item, strategy, visitor.on_strategy)
                                        : VisitItem(reader, item, layout, visitor.on_layout));
  }
  return {};
}

void AppendItem(const ParallelStrategyItem& item, std::string* out) {
  AppendField(kStrategyItemKey, item, out);
}

void AppendItem(const ParallelLayoutItem& item, std::string* out) {
  AppendField(kLayoutItemKey, item, out);
}

void AppendVarint(uint64_t number, std::string* out) {
  std::array<uint8_t, 10> bytes;
  const uint8_t* end = CodedOutputStream::WriteVarint64ToArray(number, bytes.data());
  out->append(bytes.begin(), bytes.begin() + (end - bytes.data()));
}

}  // namespace reshard
