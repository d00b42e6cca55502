// ShardedCheckpoint and Checkpoint as the classes Store and File of _reshard. Any number of Python
// threads may use both: code that touches the disk runs without the GIL.
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
#include <string_view>
#include <utility>
#include <vector>

#include "python/src/forked_object.h"
#include "python/src/interpreter.h"
#include "python/src/keywords.h"
#include "python/src/module.h"
#include "python/src/reports.h"
#include "python/src/watched_call.h"
#include "reshard/checkpoint.h"
#include "reshard/encryption.h"
#include "reshard/options.h"
#include "reshard/tensor.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace reshard::python {
namespace {

using Dims = std::vector<int64_t>;
using Destination = nb::ndarray<uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using WritableBytes = nb::ndarray<nb::numpy, uint8_t, nb::ndim<1>>;
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
    const WithoutGil released;
    auto checkpoint = std::make_shared<Checkpoint>(Take(Checkpoint::Open(name, decryption)));
    // Callers load all parameters.
    if (!checkpoint->unread().empty()) {
      Check(checkpoint->View(checkpoint->unread().front().name).status());
    }
    return File(std::move(checkpoint));
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

struct OpenOptions : SourceSpec {
  IoChoice::Source io = IoChoice::Source::kAuto;
};

constexpr std::pair<std::string_view, IoChoice::Source> kWays[] = {
    {"auto", IoChoice::Source::kAuto},
    {"map", IoChoice::Source::kMap},
    {"pread", IoChoice::Source::kPread}};

constexpr Keyword<OpenOptions> kOpen[] = {
    {"path", [](OpenOptions& o, nb::handle v) { SetSource(o, v); }},
    {"strategy", [](OpenOptions& o, nb::handle v) { Set(o.strategy, v); }},
    {"suffix", [](OpenOptions& o, nb::handle v) { Set(o.suffix, v); }},
    {"group_info", [](OpenOptions& o, nb::handle v) { Set(o.group_info, v); }},
    {"io", [](OpenOptions& o, nb::handle v) { o.io = OneOf<IoChoice::Source>(kWays, v); }},
    {"key", [](OpenOptions& o, nb::handle v) { o.key = KeyOf(nb::cast<const Key*>(v)); }},
};

OptionParts PartsOf(OpenOptions& options) { return {.source = &options}; }

class Store {
 public:
  static Store OpenSource(const nb::dict& keywords) {
    OpenOptions options;
    Fill<OpenOptions>(options, keywords, kInspectCall,
                      {std::span<const Keyword<OpenOptions>>(kOpen)});
    const WithoutGil released;
    return Store(Take(ShardedCheckpoint::Open(options, options.io)));
  }

  static Store Open(const nb::bytes& path, const nb::bytes& strategy, const nb::bytes& suffix,
                    const nb::bytes& key) {
    const std::string folder = Bytes(path);
    const std::string strategy_path = Bytes(strategy);
    const std::string ending = Bytes(suffix);
    std::shared_ptr<const EncryptionKey> decryption = KeyOf(key);
    const WithoutGil released;
    return Store(Take(ShardedCheckpoint::Open(folder, strategy_path, ending, decryption)));
  }

  Store(Store&&) = default;
  Store& operator=(Store&&) = delete;

  bool IsLost() { return opened_.IsLost(); }

  // (name, dtype, bytes of an item, shape, bytes, stage, in_strategy) of each tensor.
  nb::list Tensors() const {
    nb::list tensors;
    for (const ShardedCheckpoint::Tensor& tensor : checkpoint().tensors()) {
      tensors.append(nb::make_tuple(Text(tensor.name), Text(DTypeName(tensor.dtype)),
                                    ItemBytes(tensor.dtype), nb::tuple(nb::cast(tensor.shape)),
                                    tensor.bytes, tensor.stage, tensor.in_strategy));
    }
    return tensors;
  }

  // (name, kind, bytes) of each text and MapTensor.
  nb::list Others() const {
    nb::list others;
    for (const TensorInfo& other : checkpoint().others()) {
      others.append(nb::make_tuple(Text(other.name), KindName(other.kind), other.bytes));
    }
    return others;
  }

  // (type, shape, bytes) of each part of a text or a MapTensor.
  nb::list ReadOther(size_t other) const {
    std::vector<ShardedCheckpoint::StoredPart> found;
    {
      const Use use(opened_);
      found = Take(checkpoint().ReadOther(checkpoint().others().at(other).name));
    }
    nb::list parts;
    for (const ShardedCheckpoint::StoredPart& part : found) {
      const nb::bytes bytes(part.bytes.data(), part.bytes.size());
      parts.append(nb::make_tuple(Text(part.type), nb::tuple(nb::cast(part.shape)), bytes));
    }
    return parts;
  }

  // The reason of each tensor that cannot be read, by name.
  nb::dict Unread() const {
    nb::dict unread;
    for (const UnreadTensor& tensor : checkpoint().unread()) {
      unread[Text(tensor.name)] = Text(tensor.why);
    }
    return unread;
  }

  nb::object Step() const { return Text(checkpoint().step()); }

  nb::tuple Warnings(const nb::dict& words) const {
    return TupleOf(checkpoint().warnings(), words);
  }

  // (rank, path) of each file.
  nb::list Files() const {
    nb::list files;
    for (const RankFiles::File& file : checkpoint().files()) {
      const nb::bytes path(file.path.data(), file.path.size());
      files.append(nb::make_tuple(file.rank, path));
    }
    return files;
  }

  // (begin, extent, ranks) of each part that the tensor is cut into.
  nb::list Shards(size_t tensor) const {
    std::vector<ShardedCheckpoint::Shard> found;
    {
      const Use use(opened_);
      found = Take(checkpoint().Shards(checkpoint().tensors().at(tensor).name));
    }
    nb::list shards;
    for (const ShardedCheckpoint::Shard& shard : found) {
      shards.append(nb::make_tuple(nb::tuple(nb::cast(shard.box.begin)),
                                   nb::tuple(nb::cast(shard.box.extent)),
                                   nb::tuple(nb::cast(shard.ranks))));
    }
    return shards;
  }

  void Read(size_t tensor, Dims begin, Dims extent, const Destination& out) const {
    const Box box{std::move(begin), std::move(extent)};
    const std::span<std::byte> bytes(reinterpret_cast<std::byte*>(out.data()), out.size());
    const Use use(opened_);
    Check(checkpoint().Read(checkpoint().tensors().at(tensor).name, box, bytes));
  }

  // Each request is (tensor, begin, extent, out). If `watch` is None it is not watched, cannot be
  // stopped, and needs no extra thread.
  void ReadMany(const nb::list& requests, int jobs, const nb::object& watch) const {
    std::vector<Destination> destinations;  // keeps the arrays
    std::vector<ShardedCheckpoint::BoxRead> reads;
    for (const nb::handle request : requests) {
      const Destination& out = destinations.emplace_back(nb::cast<Destination>(request[3]));
      const auto tensor = nb::cast<size_t>(request[0]);
      reads.push_back({checkpoint().tensors().at(tensor).name,
                       {nb::cast<Dims>(request[1]), nb::cast<Dims>(request[2])},
                       {reinterpret_cast<std::byte*>(out.data()), out.size()}});
    }
    if (watch.is_none()) {
      const Use use(opened_);
      return Check(checkpoint().Read(reads, {.jobs = jobs}));
    }
    RunWatched(jobs, watch, [&](const RunOptions& run) -> Result<bool> {
      const User user(opened_);
      if (const Status status = checkpoint().Read(reads, run); !status.ok()) return status;
      return true;
    });
  }

  // (begin, extent, rank, path, [(offset, bytes)]) of each part of the box.
  nb::list Locate(size_t tensor, Dims begin, Dims extent) const {
    std::vector<ShardedCheckpoint::Part> found;
    {
      const Box box{std::move(begin), std::move(extent)};
      const Use use(opened_);
      found = Take(checkpoint().Locate(checkpoint().tensors().at(tensor).name, box));
    }
    nb::list parts;
    for (const ShardedCheckpoint::Part& part : found) {
      nb::list content;
      for (const ByteRange& range : part.content) {
        content.append(nb::make_tuple(range.offset, range.length));
      }
      parts.append(nb::make_tuple(nb::tuple(nb::cast(part.box.begin)),
                                  nb::tuple(nb::cast(part.box.extent)), part.rank,
                                  nb::bytes(part.path.data(), part.path.size()), content));
    }
    return parts;
  }

  // The bytes of a rank's file, mapped as long as an array refers to them: read-only, or private.
  nb::object Map(int64_t rank, bool is_private) const {
    ShardedCheckpoint::MappedFile file;
    {
      const Use use(opened_);
      file = Take(checkpoint().Map(rank, is_private));
    }
    auto owner = std::make_unique<std::shared_ptr<std::byte>>(file.data);
    const nb::capsule capsule(owner.get(), [](void* held) noexcept {
      delete static_cast<std::shared_ptr<std::byte>*>(held);
    });
    static_cast<void>(owner.release());
    auto* const data = reinterpret_cast<uint8_t*>(file.data.get());
    if (is_private) return nb::cast(WritableBytes(data, {file.size}, capsule));
    return nb::cast(ReadOnlyBytes(data, {file.size}, capsule));
  }

 private:
  using Opened = ForkedObject<ShardedCheckpoint>;
  using User = Opened::User;
  using Use = Opened::Use;

  explicit Store(ShardedCheckpoint checkpoint) : opened_(std::move(checkpoint)) {}

  const ShardedCheckpoint& checkpoint() const { return *opened_; }

  Opened opened_;
};

}  // namespace

void AddStore(nb::module_& module) {
  nb::class_<Key>(module, "Key")
      .def_static(
          "from_file",
          [](const nb::bytes& path) { return Key{Take(EncryptionKey::FromFile(Bytes(path)))}; },
          "path"_a)
      .def_static(
          "from_environment",
          [](const nb::bytes& variable) {
            return Key{Take(EncryptionKey::FromEnvironment(Bytes(variable)))};
          },
          "variable"_a);
  nb::class_<File>(module, "File")
      .def_static("open", &File::Open, "path"_a, "key"_a)
      .def("parameters", &File::Parameters)
      .def("crc", &File::Crc)
      .def("view", &File::View, "name"_a);
  nb::class_<Store>(module, "Store")
      .def_static("open", &Store::Open, "path"_a, "strategy"_a, "suffix"_a, "key"_a)
      .def_static("open_source", &Store::OpenSource, "keywords"_a)
      .def("is_lost", &Store::IsLost)
      .def("tensors", &Store::Tensors)
      .def("others", &Store::Others)
      .def("read_other", &Store::ReadOther, "other"_a)
      .def("unread", &Store::Unread)
      .def("step", &Store::Step)
      .def("read_many", &Store::ReadMany, "requests"_a, "jobs"_a, "watch"_a.none())
      .def("locate", &Store::Locate, "tensor"_a, "begin"_a, "extent"_a)
      .def("map", &Store::Map, "rank"_a, "is_private"_a)
      .def("warnings", &Store::Warnings, "words"_a)
      .def("files", &Store::Files)
      .def("shards", &Store::Shards, "tensor"_a)
      .def("read", &Store::Read, "tensor"_a, "begin"_a, "extent"_a, "out"_a);
}

}  // namespace reshard::python
