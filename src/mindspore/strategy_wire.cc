#include "src/mindspore/strategy_wire.h"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <array>

#include "src/base/quote.h"
#include "src/base/status_macros.h"

namespace reshard {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;

Status WireError(const std::string& path, uint64_t offset, std::string_view what) {
  return CorruptError(
      fmt::format("{}: expected a strategy file (protobuf or JSON), found {} at offset {}",
                  Escape(path), what, offset));
}

template <typename Item>
Status VisitItem(const std::string& path, uint64_t offset, std::string_view bytes,
                 const std::function<Status(uint64_t, Item&)>& visit) {
  Item item;
  if (!item.ParsePartialFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return WireError(path, offset, "a malformed item");
  }
  return visit(offset, item);
}

template <typename Item>
void AppendField(char key, const Item& item, std::string* out) {
  const std::string bytes = item.SerializePartialAsString();
  out->push_back(key);
  AppendVarint(bytes.size(), out);
  out->append(bytes);
}

}  // namespace

Status VisitStrategyItems(const std::string& path, std::string_view bytes,
                          const StrategyItemVisitor& visitor) {
  const auto size = static_cast<int>(bytes.size());
  CodedInputStream input(reinterpret_cast<const uint8_t*>(bytes.data()), size);
  while (input.CurrentPosition() < size) {
    const auto offset = static_cast<uint64_t>(input.CurrentPosition());
    const uint32_t key = input.ReadTag();
    if (WireFormatLite::GetTagFieldNumber(key) == 0) {
      return WireError(path, offset, "bytes that begin no field");
    }
    if (key == static_cast<uint32_t>(kCurrentStageKey)) {
      uint64_t stage = 0;
      if (!input.ReadVarint64(&stage)) return WireError(path, offset, "a malformed field 1");
      if (visitor.on_current_stage) visitor.on_current_stage(stage);
      continue;
    }
    if (WireFormatLite::GetTagWireType(key) != WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
      if (WireFormatLite::SkipField(&input, key)) continue;
      return WireError(path, offset, fmt::format("a malformed field {}", key >> 3));
    }
    uint64_t length = 0;
    if (!input.ReadVarint64(&length)) return WireError(path, offset, "a malformed length");
    const auto begin = static_cast<uint64_t>(input.CurrentPosition());
    if (length > bytes.size() - begin) {
      return WireError(path, offset,
                       fmt::format("a field of {} bytes where {} are left; is the file cut off?",
                                   length, bytes.size() - begin));
    }
    input.Skip(static_cast<int>(length));
    if (key != static_cast<uint32_t>(kStrategyItemKey) &&
        key != static_cast<uint32_t>(kLayoutItemKey)) {
      continue;
    }
    if (length > kMaxStrategyItemBytes) {
      return WireError(
          path, offset,
          fmt::format("an item of {} bytes (more than {})", length, kMaxStrategyItemBytes));
    }
    const std::string_view item = bytes.substr(begin, length);
    RESHARD_RETURN_IF_ERROR(key == static_cast<uint32_t>(kStrategyItemKey)
                                ? VisitItem(path, offset, item, visitor.on_strategy)
                                : VisitItem(path, offset, item, visitor.on_layout));
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
