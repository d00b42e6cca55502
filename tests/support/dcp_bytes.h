// DcpBytes: the .metadata of a DCP checkpoint, made member by member.
//
// Plain values and pure functions; any thread.
#ifndef RESHARD_TESTS_SUPPORT_DCP_BYTES_H_
#define RESHARD_TESTS_SUPPORT_DCP_BYTES_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace reshard {

struct DcpChunkBytes {
  std::vector<int64_t> offsets = {};
  std::vector<int64_t> sizes = {};
  std::string path = "__0_0.distcp";
  int64_t offset = 0;
  int64_t length = 0;
  std::vector<std::string> transforms = {};
  bool is_stored = true;  // whether storage_data has it
};

struct DcpTensorBytes {
  std::string name;
  std::string dtype = "float32";
  std::string layout = "torch.strided";
  std::vector<int64_t> size = {};
  std::vector<DcpChunkBytes> chunks = {};
};

struct DcpBytes {
  std::vector<DcpTensorBytes> tensors = {};
  std::vector<std::string> objects = {};
  std::string module = "torch.distributed.checkpoint";
  size_t properties = 6;  // members of TensorProperties
};

// Returns the .metadata.
std::string DcpMetadataOf(const DcpBytes& checkpoint);

// Returns an item: the file that torch.save makes of a tensor of F32 with this content.
std::string DcpItemOf(const std::vector<int64_t>& shape, const std::string& content);

}  // namespace reshard

#endif  // RESHARD_TESTS_SUPPORT_DCP_BYTES_H_
