#include "format/dcp/dcp_items.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "format/torch_zip/tensor_item.h"
#include "format/torch_zip/zip_directory.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/tensor/byte_box.h"

namespace reshard {
namespace {

// Asks for the ends of items ahead. If two items adjoin, an end and a head are one range.
class ItemsAhead {
 public:
  ItemsAhead(const FileBytes& file, std::span<const DcpArray> arrays)
      : file_(file), arrays_(arrays), most_(std::max<uint64_t>(file.bytes_ahead / kOfItem, 1)) {}

  // Asks for items up to some behind `next`, which is read next: all of its bytes are asked for.
  Status Reach(size_t next) {
    for (; asked_ < arrays_.size() && asked_ < next + most_; ++asked_) {
      const ByteRange item = arrays_[asked_].range();
      const uint64_t head = std::min(item.length, kZipHeadBytes);
      const uint64_t tail = std::min(item.length, kZipTailBytes);
      RESHARD_RETURN_IF_ERROR(Add({item.offset, head}));
      RESHARD_RETURN_IF_ERROR(Add({item.end() - tail, tail}));
    }
    const bool is_needed = open_.offset < arrays_[next].range().end();
    return is_needed || asked_ == arrays_.size() ? Flush() : Status();
  }

 private:
  // Of an item, with the pages around.
  static constexpr uint64_t kOfItem = 2 * kHeaderPage;

  Status Add(ByteRange range) {
    if (open_.length > 0 && range.offset <= open_.end() + kHeaderPage) {
      open_.length = std::max(open_.end(), range.end()) - open_.offset;
      return {};
    }
    RESHARD_RETURN_IF_ERROR(Flush());
    open_ = range;
    return {};
  }

  Status Flush() {
    const ByteRange range = std::exchange(open_, {});
    return range.length == 0 ? Status() : file_.prefetch(range);
  }

  const FileBytes& file_;
  const std::span<const DcpArray> arrays_;
  const uint64_t most_;
  size_t asked_ = 0;
  ByteRange open_;  // not asked for yet
};

// Returns a message about a file without its path, which others say.
std::string WithoutPath(const Status& status, std::string_view path) {
  std::string_view message = status.message();
  const std::string before = Escape(path);
  if (message.starts_with(before)) {
    message.remove_prefix(std::min(message.size(), before.size() + 2));  // ": " or ", "
  }
  return std::string(message);
}

// Checks that the items of a file lie in its bytes.
Status CheckInside(std::span<const DcpArray> arrays, std::string_view path, uint64_t size,
                   std::string_view metadata) {
  for (const DcpArray& array : arrays) {
    if (array.range().end() <= size) continue;
    return CorruptError(fmt::format(
        "{}: has {} bytes, but {} lists {} bytes at offset {} ({}); copy the file again",
        Escape(path), size, Escape(metadata), array.range().length, array.range().offset,
        Quote(array.tensor->name)));
  }
  return {};
}

// Returns `read` with the table that `builder` has.
Result<TableOfFile> WithTable(TableOfFile read, TableBuilder builder, std::string_view path) {
  read.table = std::move(builder).Finish();
  const auto twice = read.table->FindTwice();
  if (!twice) return read;
  return MismatchError(fmt::format("{}: two arrays would have the name {}; rename the tensor",
                                   Escape(path), Quote(twice->first->name)));
}

}  // namespace

constinit const Container kDcpContainer = {
    .name = "dcp",
    .kind = "a file of a DCP checkpoint (weights)",
};

std::string DcpArray::Name() const {
  return is_alone ? tensor->name : fmt::format("{} {}", tensor->name, ToString(box()));
}

Result<TableOfFile> ReadDcpItems(const FileBytes& file, std::span<const DcpArray> arrays,
                                 std::string_view metadata, const MemoryCheck& memory) {
  RESHARD_RETURN_IF_ERROR(CheckInside(arrays, file.path, file.size, metadata));
  TableOfFile read;
  TableBuilder builder(kDcpContainer);
  std::unordered_set<std::string_view> names_unread;  // a tensor may have several chunks
  ItemsAhead ahead(file, arrays);
  for (size_t i = 0; i < arrays.size(); ++i) {
    const DcpArray& array = arrays[i];
    RESHARD_RETURN_IF_ERROR(ahead.Reach(i));
    const Result<TorchTensorItem> read_item = ReadTensorItem(file, array.range(), memory);
    const std::string& tensor = array.tensor->name;
    if (read_item.status().code() == StatusCode::kUnsupported) {
      if (names_unread.insert(tensor).second) {
        read.beside.unread.push_back({tensor, WithoutPath(read_item.status(), file.path)});
      }
      continue;
    }
    if (!read_item.ok()) {
      return read_item.status().WithMessage(
          fmt::format("{} (tensor {})", read_item.status().message(), Quote(tensor)));
    }
    const TorchTensorItem& item = *read_item;
    const Shape extent = array.box().extent;
    if (item.dtype != array.tensor->dtype || item.shape != extent) {
      return MismatchError(fmt::format(
          "{}, item at {}: {}: expected {} {} as in {}, found {} {}; do the files belong to one "
          "checkpoint?",
          Escape(file.path), array.range().offset, Quote(array.tensor->name),
          DTypeName(*array.tensor->dtype), ToString(extent), Escape(metadata),
          DTypeName(item.dtype), ToString(item.shape)));
    }
    if (item.crc.covered.length > 0) read.content_crcs.push_back(item.crc);
    const std::string name = array.Name();
    builder.Add({.name = name,
                 .dtype = item.dtype,
                 .shape = item.shape,
                 .bytes = item.content.length,
                 .framed = std::span(&item.content, 1),
                 .content = std::span(&item.content, 1),
                 .map_tensor = {}});
    if (i % kMemoryCheckInterval == 0) RESHARD_RETURN_IF_ERROR(CheckMemory(memory));
  }
  return WithTable(std::move(read), std::move(builder), file.path);
}

Result<TableOfFile> StatedDcpItems(std::string_view path, uint64_t size,
                                   std::span<const DcpArray> arrays, std::string_view metadata) {
  RESHARD_RETURN_IF_ERROR(CheckInside(arrays, path, size, metadata));
  TableBuilder builder(kDcpContainer);
  for (const DcpArray& array : arrays) {
    const std::string name = array.Name();
    const Shape extent = array.box().extent;
    const ByteRange item = array.range();
    builder.Add({.name = name,
                 .dtype = *array.tensor->dtype,
                 .shape = extent,
                 .framed = std::span(&item, 1),
                 .content = {},
                 .map_tensor = {}});
  }
  return WithTable({}, std::move(builder), path);
}

}  // namespace reshard
