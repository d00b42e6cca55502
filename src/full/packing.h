// Packing: which whole tensors share a file of a folder.
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

// Packs tensors of these bytes as MindSpore's unified_safetensors does: into so many files of
// `most_bytes` (above 0) as they fill, but no more than there are tensors; the largest first, each
// into the file with the least bytes so far, the first of equal ones. A file lists its tensors in
// that order. Tensors of one size keep theirs.
Packing PackUnified(std::span<const uint64_t> bytes, uint64_t most_bytes);

// Packs tensors of these bytes as huggingface_hub does: one after the other into a file until the
// next one would make it more than `most_bytes`. A tensor that is larger alone has a file of its
// own, before the one that is being filled.
Packing PackHuggingFace(std::span<const uint64_t> bytes, uint64_t most_bytes);

}  // namespace reshard

#endif  // RESHARD_SRC_FULL_PACKING_H_
