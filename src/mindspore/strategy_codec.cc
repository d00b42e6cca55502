#include "src/mindspore/strategy_codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "reshard/parameters.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/mindspore/foreign_file.h"
#include "src/mindspore/strategy_json.h"
#include "src/mindspore/strategy_wire.h"

namespace reshard {
namespace {

// U+FEFF in UTF-8, with which some editors begin a text. JSON may not begin with it.
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// Returns the lists of a repeated message, without empty lists. MindSpore writes an empty one for a
// parameter without lists, and behind the only list of a nested tensor map.
template <typename Messages>
std::vector<std::vector<int64_t>> Lists(const Messages& messages) {
  std::vector<std::vector<int64_t>> lists;
  for (const auto& message : messages) {
    if (message.dim_size() > 0) lists.emplace_back(message.dim().begin(), message.dim().end());
  }
  return lists;
}

// `layouts` has a device matrix and a tensor map.
ParameterLayout LayoutOf(const ParallelLayouts& layouts) {
  ParameterLayout layout;
  const auto& matrix = layouts.dev_matrix(0).dim();
  layout.device_matrix.assign(matrix.begin(), matrix.end());
  layout.tensor_map = Lists(layouts.tensor_map());
  if (layout.tensor_map.empty()) layout.tensor_map.emplace_back();  // a scalar's
  layout.param_split_shape = Lists(layouts.param_split_shape());
  layout.indices_offset = Lists(layouts.indices_offset());
  layout.field = layouts.field();
  layout.opt_weight_shard_step = layouts.opt_weight_shard_step();
  layout.opt_weight_shard_size = layouts.opt_weight_shard_size();
  return layout;
}

Result<StrategyFile> ParseProtobuf(const std::string& path, std::string_view bytes,
                                   const MemoryCheck& memory) {
  StrategyFile file;
  file.path = path;
  // Models repeat few layouts: the bytes of the one added last, and of the one being parsed.
  std::string last;
  std::string encoded;
  const StrategyItemVisitor visitor = {
      .on_strategy = [&](uint64_t, const ParallelStrategyItem& item) -> Status {
        if (!file.first_item_stage) file.first_item_stage = item.parallel_strategys().stage();
        return {};
      },
      .on_layout = [&](uint64_t offset, const ParallelLayoutItem& item) -> Status {
        const ParallelLayouts& layouts = item.parallel_layouts();
        if (layouts.dev_matrix_size() == 0 || layouts.tensor_map_size() == 0) {
          return CorruptError(fmt::format(
              "{}: parameter {} at offset {}: expected a layout with dev_matrix and tensor_map, "
              "found no {}",
              Escape(path), Quote(item.param_name()), offset,
              layouts.dev_matrix_size() == 0 ? "dev_matrix" : "tensor_map"));
        }
        if (file.layouts.size() == kMaxStrategyLayouts) {
          return CorruptError(
              fmt::format("{}: expected at most {} layouts, found more at offset {}", Escape(path),
                          kMaxStrategyLayouts, offset));
        }
        file.layouts.push_back(Strategy::Entry{item.param_name(), LayoutOf(layouts)});
        last.swap(encoded);
        encoded.clear();
        return file.layouts.size() % kMemoryCheckInterval == 0 ? CheckMemory(memory) : Status();
      },
      .on_encoded_layout =
          [&](std::string_view name, std::string_view layouts) {
            const size_t count = file.layouts.size();
            // on_layout makes the checks, if there are any.
            if (layouts.empty() || layouts != last || count == kMaxStrategyLayouts ||
                (count + 1) % kMemoryCheckInterval == 0) {
              encoded = layouts;
              return false;
            }
            file.layouts.push_back(Strategy::Entry{name, file.layouts[count - 1].layout});
            return true;
          }};
  RESHARD_RETURN_IF_ERROR(VisitStrategyItems(path, bytes, visitor));
  return file;
}

}  // namespace

StrategyEncoding StrategyEncodingOf(std::string_view bytes) {
  const size_t first = bytes.find_first_not_of(" \t\r\n");
  const bool is_json =
      first != std::string_view::npos && (bytes[first] == '{' || bytes[first] == '[');
  return is_json ? StrategyEncoding::kJson : StrategyEncoding::kProtobuf;
}

Result<StrategyFile> ParseStrategy(const std::string& path, std::string_view bytes,
                                   const MemoryCheck& memory) {
  if (bytes.size() > kMaxStrategyFileBytes) {
    RESHARD_RETURN_IF_ERROR(ForeignFileError(path, bytes));
    return CorruptError(fmt::format("{}: expected a strategy file of at most {}, found one of {}",
                                    Escape(path), FormatBytes(kMaxStrategyFileBytes),
                                    FormatBytes(bytes.size())));
  }
  if (bytes.starts_with(kByteOrderMark)) {
    return CorruptError(fmt::format(
        "{}: expected a strategy file (protobuf or JSON), found a byte order mark; save "
        "it as UTF-8 without one",
        Escape(path)));
  }
  auto file = StrategyEncodingOf(bytes) == StrategyEncoding::kJson
                  ? ParseStrategyJson(path, bytes, memory)
                  : ParseProtobuf(path, bytes, memory);
  if (file.status().code() == StatusCode::kResourceExhausted) return file;
  if (!file.ok() || file->layouts.empty()) {
    // The kind of the file says more than the place of the first error.
    RESHARD_RETURN_IF_ERROR(ForeignFileError(path, bytes));
  }
  if (file.ok() && file->layouts.empty()) {
    return CorruptError(fmt::format(
        "{}: expected a strategy file, found no layouts (parallel_layout_item) in its {} bytes",
        Escape(path), bytes.size()));
  }
  return file;
}

}  // namespace reshard
