// A file of torch.save, or the data.pkl of one: arrays lie in the contents that state a CRC-32, and
// take the bytes that their shapes say.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/container_table/container_table.h"
#include "format/torch_zip/tensor_item.h"
#include "src/tensor/byte_box.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/torch_bytes.h"
#include "tests/support/zip_bytes.h"

namespace reshard {
namespace {

FileBytes BytesInMemory(std::string_view bytes) {
  return {"a.pt", bytes.size(),
          [bytes](uint64_t offset, std::span<std::byte> out) -> Status {
            if (offset > bytes.size() || out.size() > bytes.size() - offset) {
              return InternalError("a read beyond the end");
            }
            std::memcpy(out.data(), bytes.data() + offset, out.size());
            return {};
          },
          [](ByteRange) { return Status(); }};
}

bool LiesIn(ByteRange inner, ByteRange outer) {
  return inner.offset >= outer.offset && inner.end() <= outer.end();
}

std::string TableFault(const TableOfFile& read, std::string_view bytes) {
  uint64_t end = 0;
  for (const ContentCrc& crc : read.content_crcs) {
    if (crc.covered.offset < end) return "contents that overlap";
    end = crc.covered.end();
    if (end > bytes.size()) return "a content beyond the file";
  }
  for (const StoredArray& array : read.table->arrays()) {
    const ByteRange& content = array.content.front();
    if (TensorBytes(array.shape, array.dtype) != content.length)
      return "other bytes than its shape";
    if (read.table->Find(array.name) != &array) return "a name is not found";
    if (content.length > 0 &&
        std::none_of(read.content_crcs.begin(), read.content_crcs.end(),
                     [&](const ContentCrc& crc) { return LiesIn(content, crc.covered); })) {
      return "an array outside of the contents";
    }
  }
  return "";
}

std::string FileFault(std::string_view bytes) {
  const FileBytes file = BytesInMemory(bytes);
  const auto item = ReadTensorItem(file, {0, bytes.size()}, {});
  if (!item.ok()) {
    std::string fault = RefusalFault(item.status());
    if (!fault.empty()) return fault;
  } else if (item->content.length != TensorBytes(item->shape, item->dtype) ||
             (item->content.length > 0 && !LiesIn(item->content, item->crc.covered)) ||
             item->crc.covered.end() > bytes.size()) {
    return "another content of an item";
  }
  const auto read = ReadTable(file);
  return read.ok() ? TableFault(*read, bytes) : RefusalFault(read.status());
}

}  // namespace

std::string FuzzTorchZip(std::string_view bytes) {
  if (bytes.starts_with("PK\3\4")) return FileFault(bytes);
  // The storages have some sizes, so that tensors fit.
  const std::string file =
      TorchFile(bytes, {"0123", "01234567", std::string(1600, 'x'), std::string(64, 'y')});
  if (std::string fault = FileFault(file); !fault.empty()) return fault;
  const std::string_view text = file;
  const auto read = ReadTable(BytesInMemory(text));
  if (!read.ok()) return "";
  for (const ContentCrc& crc : read->content_crcs) {
    if (NaiveCrc32(text.substr(crc.covered.offset, crc.covered.length)) != crc.value) {
      return "another CRC-32";
    }
  }
  return "";
}

}  // namespace reshard
