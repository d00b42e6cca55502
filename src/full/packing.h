// Packing: which full tensors share a file of a folder.
//
// Pure functions; any thread.
#ifndef RESHARD_SRC_FULL_PACKING_H_
#define RESHARD_SRC_FULL_PACKING_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace reshard {

// The places of tensors, file by file.
using Packing = std::vector<std::vector<size_t>>;

// Packs tensors with these sizes as MindSpore's unified_safetensors does. The number of files
// follows from the total and `most_bytes` (above 0), but is at most the number of tensors. The
// largest tensor comes first. Each goes into the file with the least bytes so far (the first if
// several are equal). A file lists its tensors in that order. Tensors of equal size keep their
// order.
Packing PackUnified(std::span<const uint64_t> bytes, uint64_t most_bytes);

// Packs tensors with these sizes as huggingface_hub does: one after the other into a file until the
// next one would exceed `most_bytes`. A single larger tensor has its own file, before the file that
// is being filled.
Packing PackHuggingFace(std::span<const uint64_t> bytes, uint64_t most_bytes);

}  // namespace reshard

#endif  // RESHARD_SRC_FULL_PACKING_H_
