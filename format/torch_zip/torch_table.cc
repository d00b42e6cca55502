#include "format/torch_zip/torch_zip_container.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/container/file_table.h"
#include "format/pickle/pickle_expansion.h"
#include "format/pickle/pickle_reader.h"
#include "format/torch_zip/dtensor.h"
#include "format/torch_zip/state_dict.h"
#include "format/torch_zip/torch_archive.h"
#include "format/torch_zip/torch_tensor.h"
#include "src/base/memory_check.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"

namespace reshard {
namespace {

// Local headers that are requested ahead, each at its own place.
constexpr size_t kMostAhead = 15;

// Makes the table of a file.
class TorchTableReader {
 public:
  TorchTableReader(const Pickle& pickle, TorchArchive& archive, PickleExpansion& expansion,
                   const MemoryCheck& memory)
      : pickle_(pickle),
        archive_(archive),
        expansion_(expansion),
        dtensors_(pickle, archive, memory),
        memory_(memory),
        of_unread_(pickle) {}

  // Errors: without a path.
  Status Take(const std::string& path, const PickleValue& value) {
    const Status status = Add(path, value);
    if (status.code() == StatusCode::kUnsupported) {
      RESHARD_RETURN_IF_ERROR(Count(sizeof(UnreadTensor) + path.size() + status.message().size()));
      for (const std::string_view key : of_unread_.Find(value)) {
        if (const ZipMember* const member = archive_.FindStorage(key)) named_.insert(member);
      }
      beside_.unread.push_back({path, status.message()});
    } else if (!status.ok()) {
      return status.WithMessage(fmt::format("tensor {}: {}", Quote(path), status.message()));
    }
    return tensors_.size() % kMemoryCheckInterval == 0 ? CheckMemory(memory_) : Status();
  }

  // Takes a value that holds storages.
  Status TakeObject(const std::string& path, const PickleValue& value,
                    const std::vector<std::string_view>& storages) {
    Holder holder{{path, pickle_.Shown(value)}, {}};
    for (const std::string_view key : storages) {
      if (const ZipMember* const member = archive_.FindStorage(key)) {
        holder.members.push_back(member);
      }
    }
    holders_.push_back(std::move(holder));
    return Count(sizeof(Holder) + path.size() + holders_.back().object.kind.size() +
                 storages.size() * sizeof(void*));
  }

  Result<TableOfFile> Finish(uint64_t others) && {
    RESHARD_RETURN_IF_ERROR(FindContents());
    FindObjects();
    TableBuilder builder(kTorchZipContainer);
    TableOfFile read{.table = nullptr, .crc = {}};
    read.beside = std::move(beside_);
    read.beside.values = others;
    read.shards.mesh = std::move(mesh_);
    for (Named& tensor : tensors_) {
      ByteRange content{0, 0};
      if (tensor.storage != nullptr) {
        const ByteRange& member = contents_.at(tensor.storage);
        content = {member.offset + tensor.place.offset, tensor.place.length};
      }
      builder.Add({.name = tensor.name,
                   .kind = ArrayKind::kTensor,
                   .dtype = tensor.dtype,
                   .shape = tensor.shape,
                   .bytes = content.length,
                   .framed = {&content, 1},
                   .content = {&content, 1},
                   .map_tensor = {}});
    }
    builder.SortByContent();
    RESHARD_RETURN_IF_ERROR(CheckMemory(memory_, builder.BytesToFinish()));
    if (archive_.directory().states_crcs()) {
      for (const auto& [member, content] : contents_) {
        read.content_crcs.push_back({content, member->crc});
      }
    }
    read.table = std::move(builder).Finish();
    if (const auto twice = read.table->FindTwice()) {
      return archive_.InPickle(
          CorruptError(fmt::format("tensor {}: its name occurs twice", Quote(twice->first->name))));
    }
    return read;
  }

 private:
  struct Named {
    std::string name;
    DType dtype;
    Shape shape;
    ByteRange place;
    const ZipMember* storage;  // null: no content
  };

  // An object that holds storages.
  struct Holder {
    BesideObject object;
    std::vector<const ZipMember*> members;
  };

  Status Add(const std::string& path, const PickleValue& value) {
    const PickleValue* const local = dtensors_.LocalTensorOf(value);
    std::optional<MeshTensor> whole;
    if (local != nullptr) {
      RESHARD_ASSIGN_OR_RETURN(whole, dtensors_.Read(path, value));
    }
    RESHARD_ASSIGN_OR_RETURN(TorchTensor tensor,
                             ReadTorchTensor(pickle_, local == nullptr ? value : *local));
    RESHARD_ASSIGN_OR_RETURN(const ZipMember* const storage, archive_.StorageOf(tensor));
    if (whole && whole->is_cut()) {
      RESHARD_RETURN_IF_ERROR(Count(whole->memory()));
      mesh_.push_back(*std::move(whole));
    }
    RESHARD_RETURN_IF_ERROR(
        Count(sizeof(Named) + path.size() + tensor.shape.size() * sizeof(int64_t)));
    tensors_.push_back({path, tensor.dtype, std::move(tensor.shape), tensor.place,
                        tensor.place.length == 0 ? nullptr : storage});
    return {};
  }

  // Finds the objects with storages that no tensor has.
  void FindObjects() {
    for (Holder& holder : holders_) {
      for (const ZipMember* const member : holder.members) {
        if (contents_.contains(member) || !named_.insert(member).second) continue;
        holder.object.bytes += member->size;
      }
      if (holder.object.bytes > 0) beside_.objects.push_back(std::move(holder.object));
    }
  }

  // Counts bytes of the table.
  Status Count(uint64_t bytes) {
    bytes_ += bytes;
    if (bytes_ > kMaxTableBytes) {
      return ResourceExhaustedError(fmt::format("its table of {} tensors takes more than {} MiB",
                                                tensors_.size(), kMaxTableBytes >> 20));
    }
    return expansion_.Take(bytes);
  }

  // Reads the local headers of all members that hold a tensor, in file order.
  Status FindContents() {
    for (const Named& tensor : tensors_) {
      if (tensor.storage != nullptr) contents_.emplace(tensor.storage, ByteRange{});
    }
    auto ahead = contents_.begin();
    size_t done = 0;
    size_t asked = 0;
    for (auto& [member, content] : contents_) {
      for (; ahead != contents_.end() && asked < done + kMostAhead; ++ahead, ++asked) {
        RESHARD_RETURN_IF_ERROR(archive_.directory().PrefetchHeader(*ahead->first));
      }
      RESHARD_ASSIGN_OR_RETURN(content, archive_.directory().ContentOf(*member));
      if (++done % kMemoryCheckInterval == 0) RESHARD_RETURN_IF_ERROR(CheckMemory(memory_));
    }
    return {};
  }

  const Pickle& pickle_;
  TorchArchive& archive_;
  PickleExpansion& expansion_;
  DTensorReader dtensors_;
  const MemoryCheck& memory_;
  std::vector<Named> tensors_;
  std::vector<MeshTensor> mesh_;
  BesideArrays beside_;
  TorchStorageFinder of_unread_;
  std::set<const ZipMember*> named_;  // that tensors or objects of beside_ hold
  std::vector<Holder> holders_;
  size_t bytes_ = 0;
  // In file order: members of a directory lie side by side in that order.
  std::map<const ZipMember*, ByteRange> contents_;
};

// Returns whether a file that begins with `head` is a zip.
Likeness LikenessOfTorchZip(std::span<const std::byte> head) {
  constexpr std::string_view kZip("PK\3\4");
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  return text.starts_with(kZip) ? Likeness::kCertain : Likeness::kNone;
}

// Reads the table of a file from its directory and data.pkl, never touching content (SPEC.md).
// Arrays are in the order of their bytes, those without bytes first. Arrays may share bytes, as
// tied weights do. Holds data.pkl and its values meanwhile.
//
// More errors than those of Container::read_table:
//   kCorrupt: as ReadTensorItem; two tensors with one name
//   kUnsupported: as ReadTensorItem; no dict of tensors
// NOLINTNEXTLINE(performance-unnecessary-value-param): as Container has it
Result<TableOfFile> ReadTorchTable(const FileBytes& file, std::vector<std::byte> /*head*/,
                                   const MemoryCheck& memory,
                                   const std::shared_ptr<const FileTable>& /*like*/) {
  RESHARD_ASSIGN_OR_RETURN(TorchArchive archive, TorchArchive::Open(file, {0, file.size}, memory));
  RESHARD_ASSIGN_OR_RETURN(const std::string bytes, archive.ReadPickleBytes(memory));
  const Result<Pickle> pickle = ReadPickle(bytes, {}, memory);
  RESHARD_RETURN_IF_ERROR(archive.InPickle(pickle.status()));
  PickleExpansion expansion(bytes.size());
  TorchTableReader reader(*pickle, archive, expansion, memory);
  const Result<uint64_t> others = ForEachTorchTensor(
      *pickle, bytes.size(), expansion,
      {.tensor = [&](const std::string& path,
                     const PickleValue& tensor) { return reader.Take(path, tensor); },
       .object =
           [&](const std::string& path, const PickleValue& object,
               const std::vector<std::string_view>& storages) {
             return reader.TakeObject(path, object, storages);
           }});
  RESHARD_RETURN_IF_ERROR(archive.InPickle(others.status()));
  return std::move(reader).Finish(*others);
}

}  // namespace

constinit const Container kTorchZipContainer = {
    .name = "torch",
    .kind = "a file of torch.save (weights)",
    .has_other_values = true,
    .likeness = LikenessOfTorchZip,
    .read_table = ReadTorchTable,
};

}  // namespace reshard
