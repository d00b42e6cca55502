// ShardedCheckpoint and Checkpoint as the classes Store and File of _reshard. Both are used from
// any number of Python threads: what touches the disk runs without the GIL.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "python/src/module.h"
#include "reshard/checkpoint.h"
#include "reshard/encryption.h"
#include "reshard/tensor.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace reshard::python {
namespace {

using Dims = std::vector<int64_t>;
using Destination = nb::ndarray<uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ReadOnlyBytes = nb::ndarray<nb::numpy, const uint8_t, nb::ndim<1>>;

const char* KindName(ArrayKind kind) {
  switch (kind) {
    case ArrayKind::kTensor:
      return "tensor";
    case ArrayKind::kText:
      return "text";
    case ArrayKind::kMapTensor:
      return "map";
    case ArrayKind::kPacked:
      return "packed";
  }
  return "";
}

class File {
 public:
  static File Open(const nb::bytes& path, const nb::bytes& key) {
    const std::string name = Bytes(path);
    std::shared_ptr<const EncryptionKey> decryption = KeyOf(key);
    const nb::gil_scoped_release released;
    return File(std::make_shared<Checkpoint>(Take(Checkpoint::Open(name, decryption))));
  }

  // (name, kind, dtype, bytes of an item, shape, bytes) of each parameter, in file order.
  nb::list Parameters() const {
    nb::list parameters;
    for (const StoredArray& array : checkpoint_->parameters()) {
      parameters.append(nb::make_tuple(Text(array.name), KindName(array.kind),
                                       Text(DTypeName(array.dtype)), ItemBytes(array.dtype),
                                       nb::tuple(nb::cast(array.shape)), array.bytes));
    }
    return parameters;
  }

  // The CRC-32 that the file states, or None.
  nb::object Crc() const {
    const std::optional<uint64_t> crc = checkpoint_->crc();
    return crc ? nb::cast(*crc) : nb::none();
  }

  // The content of a parameter, one array for each Value; each keeps the file mapped.
  nb::list View(const nb::bytes& name) const {
    nb::list views;
    for (const std::span<const std::byte> span : Take(checkpoint_->View(Bytes(name)))) {
      auto owner = std::make_unique<std::shared_ptr<Checkpoint>>(checkpoint_);
      const nb::capsule capsule(owner.get(), [](void* held) noexcept {
        delete static_cast<std::shared_ptr<Checkpoint>*>(held);
      });
      static_cast<void>(owner.release());
      views.append(
          ReadOnlyBytes(reinterpret_cast<const uint8_t*>(span.data()), {span.size()}, capsule));
    }
    return views;
  }

 private:
  explicit File(std::shared_ptr<Checkpoint> checkpoint) : checkpoint_(std::move(checkpoint)) {}

  std::shared_ptr<Checkpoint> checkpoint_;
};

class Store {
 public:
  static Store Open(const nb::bytes& path, const nb::bytes& strategy, const nb::bytes& suffix,
                    const nb::bytes& key) {
    const std::string folder = Bytes(path);
    const std::string strategy_path = Bytes(strategy);
    const std::string ending = Bytes(suffix);
    std::shared_ptr<const EncryptionKey> decryption = KeyOf(key);
    const nb::gil_scoped_release released;
    return Store(Take(ShardedCheckpoint::Open(folder, strategy_path, ending, decryption)));
  }

  // (name, dtype, bytes of an item, shape, bytes, stage, in_strategy) of each tensor.
  nb::list Tensors() const {
    nb::list tensors;
    for (const LogicalTensor& tensor : checkpoint_.tensors()) {
      tensors.append(nb::make_tuple(Text(tensor.name), Text(DTypeName(tensor.dtype)),
                                    ItemBytes(tensor.dtype), nb::tuple(nb::cast(tensor.shape)),
                                    tensor.bytes, tensor.stage, tensor.in_strategy));
    }
    return tensors;
  }

  nb::list Warnings() const {
    nb::list warnings;
    for (const Warning& warning : checkpoint_.warnings()) warnings.append(Text(warning.message));
    return warnings;
  }

  // (rank, path) of each file.
  nb::list Files() const {
    nb::list files;
    for (const RankFileSummary& file : checkpoint_.files()) {
      const nb::bytes path(file.path.data(), file.path.size());
      files.append(nb::make_tuple(file.rank, path));
    }
    return files;
  }

  // (begin, extent, ranks) of each part that the tensor is cut into.
  nb::list Shards(size_t tensor) const {
    std::vector<Shard> found;
    {
      const nb::gil_scoped_release released;
      found = Take(checkpoint_.Shards(checkpoint_.tensors().at(tensor).name));
    }
    nb::list shards;
    for (const Shard& shard : found) {
      shards.append(nb::make_tuple(nb::tuple(nb::cast(shard.box.begin)),
                                   nb::tuple(nb::cast(shard.box.extent)),
                                   nb::tuple(nb::cast(shard.ranks))));
    }
    return shards;
  }

  void Read(size_t tensor, Dims begin, Dims extent, const Destination& out) const {
    const Box box{std::move(begin), std::move(extent)};
    const std::span<std::byte> bytes(reinterpret_cast<std::byte*>(out.data()), out.size());
    const nb::gil_scoped_release released;
    Check(checkpoint_.Read(checkpoint_.tensors().at(tensor).name, box, bytes));
  }

 private:
  explicit Store(ShardedCheckpoint checkpoint) : checkpoint_(std::move(checkpoint)) {}

  ShardedCheckpoint checkpoint_;
};

}  // namespace

void AddStore(nb::module_& module) {
  nb::class_<File>(module, "File")
      .def_static("open", &File::Open, "path"_a, "key"_a)
      .def("parameters", &File::Parameters)
      .def("crc", &File::Crc)
      .def("view", &File::View, "name"_a);
  nb::class_<Store>(module, "Store")
      .def_static("open", &Store::Open, "path"_a, "strategy"_a, "suffix"_a, "key"_a)
      .def("tensors", &Store::Tensors)
      .def("warnings", &Store::Warnings)
      .def("files", &Store::Files)
      .def("shards", &Store::Shards, "tensor"_a)
      .def("read", &Store::Read, "tensor"_a, "begin"_a, "extent"_a, "out"_a);
}

}  // namespace reshard::python
