// The .metadata of a DCP checkpoint: all that is taken fits together.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "format/container/container.h"
#include "format/dcp/dcp_names.h"
#include "format/dcp/dcp_reader.h"
#include "reshard/byte_range.h"
#include "reshard/status.h"
#include "tests/fuzz/fuzz_target.h"

namespace reshard {
namespace {

std::string FaultOfChunk(const DcpMetadata& metadata, const DcpTensor& tensor,
                         const DcpChunk& chunk) {
  const Box box = metadata.BoxOf(tensor, chunk);
  for (size_t d = 0; d < tensor.full.size(); ++d) {
    if (box.begin[d] < 0 || box.extent[d] < 0 || box.begin[d] > tensor.full[d] - box.extent[d]) {
      return "a box outside";
    }
  }
  if (!chunk.item) return box.empty() ? "" : "a chunk without an item";
  if (chunk.item->file >= metadata.files.size()) return "an item in no file";
  return chunk.item->range.end() > static_cast<uint64_t>(INT64_MAX) ? "an item beyond 2^63" : "";
}

}  // namespace

std::string FuzzDcpMetadata(std::string_view bytes) {
  const auto all = std::as_bytes(std::span(bytes));
  const auto read = [all](uint64_t offset, std::span<std::byte> out) {
    const auto from = all.subspan(offset, out.size());
    std::copy(from.begin(), from.end(), out.begin());
    return Status();
  };
  const auto prefetch = [](ByteRange /*range*/) { return Status(); };
  const auto metadata = ReadDcpMetadata({".metadata", bytes.size(), read, prefetch});
  if (!metadata.ok()) {
    return RefusalFault(metadata.status(), ".metadata", StatusCode::kUnsupported);
  }
  for (const std::string& file : metadata->files) {
    if (!IsDcpPath(file) || file.starts_with('/') || file.starts_with("../"))
      return "a path outside";
  }
  std::set<std::string_view> names(metadata->objects.begin(), metadata->objects.end());
  if (names.size() < metadata->objects.size()) return "a name twice";
  size_t next = 0;
  for (const DcpTensor& tensor : metadata->tensors) {
    if (!names.insert(tensor.name).second) return "a name twice";
    if (!tensor.dtype && tensor.unsupported.empty()) return "no dtype, and no reason";
    if (tensor.first_chunk != next) return "chunks of no tensor";
    next += tensor.chunk_count;
    if (next > metadata->chunks.size()) return "chunks beyond the last one";
    for (const DcpChunk& chunk : metadata->ChunksOf(tensor)) {
      std::string fault = FaultOfChunk(*metadata, tensor, chunk);
      if (!fault.empty()) return fault;
    }
  }
  return next == metadata->chunks.size() ? "" : "chunks of no tensor";
}

}  // namespace reshard
