// Reads metadata.json of a MindFormers 2.0 checkpoint: its tensors, their slices, and the files
// that hold them (SPEC.md).
//
// Functions without state; any thread.
#ifndef RESHARD_FORMAT_MINDFORMERS_METADATA_METADATA_READER_H_
#define RESHARD_FORMAT_MINDFORMERS_METADATA_METADATA_READER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "format/container/container.h"
#include "reshard/status.h"
#include "reshard/tensor.h"
#include "src/base/memory_check.h"

namespace reshard {

// The most bytes of a metadata.json.
inline constexpr uint64_t kMostMindFormersMetadata = uint64_t{1} << 30;

struct MindFormersSlice {
  std::vector<int64_t> begin;   // of its box, which has the extent MindFormersTensor::slice_shape
  std::vector<uint32_t> files;  // that hold it, places in MindFormersMetadata::files; at least one
};

struct MindFormersTensor {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape full;
  Shape slice_shape;
  std::vector<MindFormersSlice> slices;  // each box once; some may be missing
};

struct MindFormersMetadata {
  std::vector<MindFormersTensor> tensors;  // each name once
  std::vector<std::string> files;          // bare names, ascending, each once
};

// Reads the file in blocks, each once.
// Errors:
//   kCorrupt: breaks SPEC.md, or contradicts itself; names path, tensor, expected and found values
//   kUnsupported: interleaved parallelism
//   kResourceExhausted: a larger file
//   as `file` and `memory`, which is called now and then
Result<MindFormersMetadata> ReadMindFormersMetadata(const FileBytes& file,
                                                    const MemoryCheck& memory = {});

}  // namespace reshard

#endif  // RESHARD_FORMAT_MINDFORMERS_METADATA_METADATA_READER_H_
