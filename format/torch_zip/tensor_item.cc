#include "format/torch_zip/tensor_item.h"

#include <string>
#include <utility>

#include "format/pickle/pickle_reader.h"
#include "format/torch_zip/torch_archive.h"
#include "format/torch_zip/torch_tensor.h"
#include "format/torch_zip/zip_directory.h"
#include "src/base/status_macros.h"

namespace reshard {

Result<TorchTensorItem> ReadTensorItem(const FileBytes& file, ByteRange item,
                                       const MemoryCheck& memory) {
  RESHARD_ASSIGN_OR_RETURN(TorchArchive archive, TorchArchive::Open(file, item, memory));
  RESHARD_ASSIGN_OR_RETURN(const std::string bytes, archive.ReadPickleBytes(memory));
  const Result<Pickle> pickle = ReadPickle(bytes, {}, memory);
  RESHARD_RETURN_IF_ERROR(archive.InPickle(pickle.status()));
  Result<TorchTensor> tensor = ReadTorchTensor(*pickle, pickle->top());
  RESHARD_RETURN_IF_ERROR(archive.InPickle(tensor.status()));
  const Result<const ZipMember*> storage = archive.StorageOf(*tensor);
  RESHARD_RETURN_IF_ERROR(archive.InPickle(storage.status()));
  TorchTensorItem read{.dtype = tensor->dtype,
                       .shape = std::move(tensor->shape),
                       .content = {item.offset, 0},
                       .crc = {{item.offset, 0}, 0}};
  if (*storage == nullptr || tensor->place.length == 0) return read;
  RESHARD_ASSIGN_OR_RETURN(const ByteRange member, archive.directory().ContentOf(**storage));
  read.content = {member.offset + tensor->place.offset, tensor->place.length};
  if (archive.directory().states_crcs()) read.crc = {member, (*storage)->crc};
  return read;
}

}  // namespace reshard
