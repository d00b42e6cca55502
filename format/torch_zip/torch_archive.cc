#include "format/torch_zip/torch_archive.h"

#include <fmt/format.h>

#include <utility>

#include "src/base/quote.h"
#include "src/base/status_macros.h"

namespace reshard {
namespace {

constexpr std::string_view kPickle = "data.pkl";

// Returns the folder of the members, with the slash.
std::string ArchiveFolder(const ZipDirectory& directory) {
  if (directory.members().empty()) return "";
  const std::string_view first = directory.members().front().name;
  return std::string(first.substr(0, first.find('/') + 1));
}

}  // namespace

const ZipMember* TorchArchive::Find(std::string_view name) const {
  return directory_.Find(fmt::format("{}{}", folder_, name));
}

Status TorchArchive::InPickle(const Status& status) const {
  if (status.ok()) return status;
  return directory_.ErrorIn(*Find(kPickle), status.code(), status.message());
}

Result<TorchArchive> TorchArchive::Open(const FileBytes& file, ByteRange zip,
                                        const MemoryCheck& memory) {
  RESHARD_ASSIGN_OR_RETURN(ZipDirectory directory, ZipDirectory::Read(file, zip, memory));
  TorchArchive archive(std::move(directory));
  archive.folder_ = ArchiveFolder(archive.directory_);
  if (archive.folder_.empty() || archive.Find(kPickle) == nullptr) {
    return archive.directory_.Error(
        StatusCode::kCorrupt,
        fmt::format("a zip without the member {}, so torch.save did not make it",
                    Quote(archive.folder_ + std::string(kPickle))));
  }
  if (archive.Find("constants.pkl") != nullptr) {
    return archive.directory_.Error(
        StatusCode::kUnsupported,
        "a program of TorchScript (torch.jit.save); save its state_dict() with torch.save");
  }
  if (const ZipMember* const order = archive.Find("byteorder")) {
    RESHARD_ASSIGN_OR_RETURN(const std::string text,
                             archive.directory_.ReadChecked(*order, memory));
    if (text == "big") {
      return archive.directory_.Error(
          StatusCode::kUnsupported,
          "its numbers have the big-endian byte order; save it on a little-endian machine");
    }
    if (text != "little") {
      return archive.directory_.ErrorIn(
          *order, StatusCode::kCorrupt,
          fmt::format("expected little or big, found {}", Quote(text)));
    }
  }
  return archive;
}

Result<std::string> TorchArchive::ReadPickleBytes(const MemoryCheck& memory) {
  return directory_.ReadChecked(*Find(kPickle), memory);
}

const ZipMember* TorchArchive::FindStorage(std::string_view key) const {
  return Find(fmt::format("data/{}", key));
}

Result<const ZipMember*> TorchArchive::StorageOf(const TorchTensor& tensor) const {
  const ZipMember* const member = FindStorage(tensor.storage);
  const bool fits = member != nullptr && member->size >= tensor.storage_bytes &&
                    member->size - tensor.storage_bytes < tensor.storage_item;
  if (fits) return member;
  if (member == nullptr && tensor.storage_bytes == 0) return member;
  return CorruptError(
      fmt::format("its storage of {} bytes is the member {}, which {}", tensor.storage_bytes,
                  Quote(fmt::format("{}data/{}", folder_, tensor.storage)),
                  member == nullptr ? "the zip lacks" : fmt::format("has {}", member->size)));
}

}  // namespace reshard
