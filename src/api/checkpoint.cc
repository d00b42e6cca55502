#include "reshard/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "reshard/parameters.h"
#include "src/base/out_of_memory.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/convert/file_warnings.h"
#include "src/convert/opened_source.h"
#include "src/convert/strategy_check.h"
#include "src/io/shared_work.h"
#include "src/io/source_files.h"
#include "src/io/storage.h"
#include "src/mindspore/mindspore_target.h"
#include "src/mindspore/rank_folder.h"
#include "src/mindspore/rank_pattern.h"
#include "src/mindspore/run_folder.h"
#include "src/mindspore/unmatched_names.h"
#include "src/os/fresh_pages.h"
#include "src/os/local_file.h"
#include "src/plan/make_copies.h"
#include "src/sharded/lone_parts.h"
#include "src/source/indexed_file.h"
#include "src/source/table_cache.h"
#include "src/tensor/byte_box.h"
#include "src/write/gather.h"

namespace reshard {
namespace {

Status NoSuchTensor(std::string_view name) {
  return NotFoundError(fmt::format("the checkpoint has no tensor {}", Quote(name)));
}

const UnreadTensor* FindUnread(const std::vector<UnreadTensor>& tensors, std::string_view name) {
  const auto found =
      std::find_if(tensors.begin(), tensors.end(),
                   [name](const UnreadTensor& tensor) { return tensor.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

Status CannotRead(std::string_view where, const UnreadTensor& tensor) {
  return UnsupportedError(
      fmt::format("{}: tensor {} cannot be read: {}", where, Quote(tensor.name), tensor.why));
}

Result<bool> IsEncrypted(SourceFiles& files, FileId id) {
  RESHARD_ASSIGN_OR_RETURN(const SourceReader reader, files.OpenReader(id));
  return reader.decryption() != Decryption::kNone;
}

// Returns the first byte of the file at `path`; the pointer keeps the map. Null if the file is
// empty, or is on a storage or a file system without maps.
Result<std::shared_ptr<const std::byte>> MapOf(const std::string& path) {
  RESHARD_ASSIGN_OR_RETURN(const std::unique_ptr<ByteSource> file, Storage::Of(path).Open(path));
  const std::shared_ptr<const std::byte> none;
  if (file->size() == 0 || file->pages() == nullptr) return none;
  Result<std::shared_ptr<std::byte>> map = file->pages()->MapWhole(MapAccess::kRead);
  if (map.status().system_error() == ENODEV) return none;  // such as a mount without page cache
  if (!map.ok()) return map.status();
  return std::shared_ptr<const std::byte>(*std::move(map));
}

// Whether the listed file at `path` is empty, and another listed file is not.
bool IsOfRankWithoutParameters(const RankFiles& listed, const std::string& path) {
  const auto has_bytes = [](const std::string& of) {
    const Result<FileIdentity> file = Storage::Of(of).Stat(of);
    return !file.ok() || file->size() > 0;
  };
  return !has_bytes(path) &&
         std::any_of(listed.files.begin(), listed.files.end(),
                     [&](const RankFiles::File& other) { return has_bytes(other.path); });
}

std::vector<RankFiles::File> ListFiles(const OpenedSource& source) {
  std::vector<RankFiles::File> files;
  files.reserve(source.chosen().size());
  for (const ChosenFile& file : source.chosen()) {
    files.push_back({file.rank, source.path(file)});
  }
  return files;
}

// Bytes that a thread reads at a time.
constexpr uint64_t kReadBytes = uint64_t{4} << 20;
constexpr uint64_t kCodePointBytes = 4;

// The files that copies read from, ascending.
std::vector<FileId> FilesOfCopies(const std::vector<BlockCopy>& copies) {
  std::vector<FileId> files;
  files.reserve(copies.size());
  for (const BlockCopy& copy : copies) files.push_back(copy.source);
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  return files;
}

bool IsBoxOf(const Box& box, const Shape& shape) {
  if (box.begin.size() != shape.size() || box.extent.size() != shape.size()) return false;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (box.begin[d] < 0 || box.extent[d] < 0 || box.begin[d] > shape[d] ||
        box.extent[d] > shape[d] - box.begin[d]) {
      return false;
    }
  }
  return true;
}

}  // namespace

// Of a file that is not mapped: its texts, read when they are asked for, by any thread.
class CopiedTexts {
 public:
  CopiedTexts(std::unique_ptr<SourceFiles> files, FileId id) : files_(std::move(files)), id_(id) {}

  Result<std::span<const std::byte>> Get(const StoredArray& text) {
    return CatchOutOfMemory([&]() -> Result<std::span<const std::byte>> {
      const std::lock_guard lock(mutex_);
      auto found = texts_.find(text.name);
      if (found == texts_.end()) {
        std::vector<std::byte> content(text.bytes);
        std::span<std::byte> left(content);
        for (const ByteRange& range : text.content) {
          RESHARD_RETURN_IF_ERROR(files_->Read(id_, range.offset, left.first(range.length)));
          left = left.subspan(range.length);
        }
        found = texts_.emplace(text.name, std::move(content)).first;
      }
      return std::span<const std::byte>(found->second);
    });
  }

 private:
  std::mutex mutex_;
  std::unique_ptr<SourceFiles> files_;
  FileId id_;
  std::unordered_map<std::string_view, std::vector<std::byte>> texts_;  // by the table's names
};

struct Checkpoint::State {
  std::string path;
  std::shared_ptr<OpenedSource> folder;  // the owner of its table, if not its own
  TableHandle table;
  std::optional<IndexedFile> own;
  // Of the file; null if it is encrypted, or MapOf returned null.
  std::shared_ptr<const std::byte> map;
  std::unique_ptr<CopiedTexts> texts = nullptr;  // of a file that is not mapped
  std::vector<Warning> warnings = {};
  // Of a file that was not opened, but told by the metadata of its folder: `place` in the list.
  struct Told {
    RankFiles listed;
    size_t place = 0;
    std::shared_ptr<const EncryptionKey> key;
    std::mutex mutex;
    std::optional<Checkpoint> opened = {};  // guarded by mutex
  };
  std::unique_ptr<Told> told = nullptr;

  const IndexedFile& index() const { return own ? *own : *table; }

  using ReadTable = Result<IndexedFile>(SourceFiles&, FileId, const MemoryCheck&,
                                        const std::shared_ptr<const FileTable>&);
  static Result<Checkpoint> Open(const std::string& path, std::shared_ptr<const EncryptionKey> key,
                                 ReadTable* read_table, Purpose purpose);
  // Opens a file of `listed`, which are indexed.
  static Result<Checkpoint> OpenListed(const RankFiles& listed, size_t place,
                                       std::shared_ptr<const EncryptionKey> key);
  // Returns `file`, or the opened one if it was told by metadata.
  static Result<const Checkpoint*> OpenTold(const Checkpoint& file);
};

Checkpoint::Checkpoint(std::unique_ptr<State> state) : state_(std::move(state)) {}
Checkpoint::Checkpoint(Checkpoint&&) noexcept = default;
Checkpoint& Checkpoint::operator=(Checkpoint&&) noexcept = default;
Checkpoint::~Checkpoint() = default;

Result<Checkpoint> Checkpoint::Open(const std::string& path,
                                    std::shared_ptr<const EncryptionKey> key, Purpose purpose) {
  return State::Open(path, std::move(key), ReadFileTable, purpose);
}

Result<Checkpoint> Checkpoint::State::Open(const std::string& path,
                                           std::shared_ptr<const EncryptionKey> key,
                                           ReadTable* read_table, Purpose purpose) {
  return CatchOutOfMemory([&]() -> Result<Checkpoint> {
    auto files =
        std::make_unique<SourceFiles>(SourceFiles::Options{.max_open = 1, .key = std::move(key)});
    const FileId id = files->Add(path);
    auto state = std::make_unique<State>();
    state->path = path;
    RESHARD_ASSIGN_OR_RETURN(state->own, read_table(*files, id, {}, nullptr));
    if (purpose == Purpose::kValues) {
      RESHARD_RETURN_IF_ERROR(CheckHoldsNoPart(path, *state->own, {}, LoneParts::kRefused));
    }
    state->warnings = ListingWarnings(path, *state->own);
    RESHARD_ASSIGN_OR_RETURN(const bool is_encrypted, IsEncrypted(*files, id));
    if (!is_encrypted) {
      RESHARD_ASSIGN_OR_RETURN(state->map, MapOf(path));
      // The map has the indexed file.
      RESHARD_RETURN_IF_ERROR(files->VerifyUnchanged());
    }
    if (state->map == nullptr && state->own->file_size() > 0) {
      state->texts = std::make_unique<CopiedTexts>(std::move(files), id);
    }
    return Checkpoint(std::move(state));
  });
}

Result<Checkpoint> Checkpoint::Open(const RankFiles& listed, size_t place,
                                    std::shared_ptr<const EncryptionKey> key) {
  if (place >= listed.files.size()) {
    return InvalidArgumentError(
        fmt::format("there is no file {} of the {} that are listed", place, listed.files.size()));
  }
  if (listed.indexed == nullptr) {
    const std::string& path = listed.files[place].path;
    return IsOfRankWithoutParameters(listed, path)
               ? State::Open(path, std::move(key), ReadTableInSet, Purpose::kListing)
               : State::Open(path, std::move(key), ReadFileTable, Purpose::kListing);
  }
  return CatchOutOfMemory([&]() -> Result<Checkpoint> {
    const OpenedSource& folder = *listed.indexed;
    const ChosenFile& file = folder.chosen()[place];
    RESHARD_ASSIGN_OR_RETURN(std::optional<IndexedFile> told, folder.Tell(file));
    if (!told) return State::OpenListed(listed, place, std::move(key));
    auto state = std::make_unique<State>();
    state->path = folder.path(file);
    state->own = std::move(told);
    state->told = std::make_unique<State::Told>();
    state->told->listed = {.files = {}, .indexed = listed.indexed};
    state->told->place = place;
    state->told->key = std::move(key);
    return Checkpoint(std::move(state));
  });
}

Result<Checkpoint> Checkpoint::State::OpenListed(const RankFiles& listed, size_t place,
                                                 std::shared_ptr<const EncryptionKey> key) {
  OpenedSource& folder = *listed.indexed;
  const ChosenFile& file = folder.chosen()[place];
  auto state = std::make_unique<State>();
  state->path = folder.path(file);
  state->folder = listed.indexed;
  Result<TableHandle> found = folder.tables().Get(file.id);
  if (found.status().code() == StatusCode::kNotFound && folder.index()) {
    return NotFoundError(fmt::format("{}: is not there, but {} names it; complete the folder",
                                     Escape(state->path), Escape(folder.index()->relative_path)));
  }
  RESHARD_ASSIGN_OR_RETURN(state->table, std::move(found));
  RESHARD_ASSIGN_OR_RETURN(state->map, MapOf(state->path));
  // The map has the indexed file.
  RESHARD_RETURN_IF_ERROR(folder.files().VerifyUnchanged({&file.id, 1}));
  if (state->map == nullptr) {
    auto files =
        std::make_unique<SourceFiles>(SourceFiles::Options{.max_open = 1, .key = std::move(key)});
    const FileId id = files->Add(state->path, file.identity);
    state->texts = std::make_unique<CopiedTexts>(std::move(files), id);
  }
  return Checkpoint(std::move(state));
}

Result<const Checkpoint*> Checkpoint::State::OpenTold(const Checkpoint& file) {
  if (file.state_->told == nullptr) return &file;
  return CatchOutOfMemory([&]() -> Result<const Checkpoint*> {
    Told& from = *file.state_->told;
    const std::lock_guard lock(from.mutex);
    if (!from.opened) {
      RESHARD_ASSIGN_OR_RETURN(Checkpoint opened, OpenListed(from.listed, from.place, from.key));
      from.opened.emplace(std::move(opened));
    }
    return &*from.opened;
  });
}

const std::string& Checkpoint::path() const { return state_->path; }
uint64_t Checkpoint::file_size() const { return state_->index().file_size(); }
const std::vector<StoredArray>& Checkpoint::parameters() const { return state_->index().arrays(); }
const StoredArray* Checkpoint::Find(std::string_view name) const {
  return state_->index().Find(name);
}
std::string_view Checkpoint::GroupOf(const StoredArray& parameter) const {
  const std::string_view group = OptimizerGroup(
      parameter.name, [this](std::string_view name) { return Find(name) != nullptr; });
  const bool single =
      parameter.kind == ArrayKind::kTensor && ElementCount(parameter.shape) == uint64_t{1};
  // A learning rate is a single element, unless it changes from step to step.
  if (!group.empty() && !(single && group == parameter.name)) return group;
  return single || parameter.kind == ArrayKind::kText ? "others" : "weights";
}
const std::vector<Warning>& Checkpoint::warnings() const { return state_->warnings; }
std::optional<uint64_t> Checkpoint::crc() const {
  const std::optional<StatedCrc>& crc = state_->index().crc();
  return crc ? std::optional(crc->value) : std::nullopt;
}

const std::vector<UnreadTensor>& Checkpoint::unread() const {
  return state_->index().beside().unread;
}
Result<std::vector<std::span<const std::byte>>> Checkpoint::View(std::string_view name) const {
  RESHARD_ASSIGN_OR_RETURN(const Checkpoint* const opened, State::OpenTold(*this));
  if (opened != this) return opened->View(name);
  const StoredArray* parameter = Find(name);
  if (parameter == nullptr) {
    if (const UnreadTensor* const tensor = FindUnread(unread(), name)) {
      return CannotRead(Escape(path()), *tensor);
    }
    return NotFoundError(fmt::format("{}: has no parameter {}", Escape(path()), Quote(name)));
  }
  if (state_->map == nullptr && parameter->kind == ArrayKind::kText) {
    RESHARD_ASSIGN_OR_RETURN(const auto text, state_->texts->Get(*parameter));
    return std::vector{text};
  }
  if (state_->map == nullptr) {
    return UnsupportedError(
        fmt::format("{}: an encrypted file, or one that cannot be mapped, cannot be viewed in "
                    "place; read it through a ShardedCheckpoint, which copies",
                    Escape(path())));
  }
  std::vector<std::span<const std::byte>> spans;
  const auto add = [&](const ByteRange& range) {
    spans.emplace_back(state_->map.get() + range.offset, range.length);
  };
  for (const ByteRange& range : parameter->content) add(range);
  for (const StoredArray::MapTensorPart& part : parameter->map_tensor) add(part.content);
  return spans;
}

Result<bool> Checkpoint::IsAligned(std::string_view name) const {
  RESHARD_ASSIGN_OR_RETURN(const Checkpoint* const opened, State::OpenTold(*this));
  if (opened != this) return opened->IsAligned(name);
  const StoredArray* parameter = Find(name);
  if (parameter == nullptr) {
    return NotFoundError(fmt::format("{}: has no parameter {}", Escape(path()), Quote(name)));
  }
  if (parameter->kind != ArrayKind::kTensor || state_->map == nullptr) return false;
  // The map begins at a page.
  const uint64_t item_bytes = ItemBytes(parameter->dtype);
  return std::has_single_bit(item_bytes) &&
         std::all_of(
             parameter->content.begin(), parameter->content.end(),
             [item_bytes](const ByteRange& range) { return range.offset % item_bytes == 0; });
}

struct ShardedCheckpoint::State {
  std::unique_ptr<OpenedSource> source;
  std::vector<ShardedCheckpoint::Tensor> tensors;
  std::vector<TensorInfo> others;
  std::vector<UnreadTensor> unread;
  std::vector<Warning> warnings;
  std::vector<RankFiles::File> files;
  std::unordered_map<std::string_view, size_t> by_name;  // views of the names in tensors

  static Result<ShardedCheckpoint> Open(const SourceSpec& spec,
                                        IoChoice::Source io = IoChoice::Source::kAuto);
  Status List();
  // Returns the error that there is no tensor `name`, or that it cannot be read.
  Status NoTensor(std::string_view name) const;
  // Returns the copies that fill a box of a tensor. Errors: as Read.
  Result<std::vector<BlockCopy>> CopiesFrom(std::string_view name, const Box& box) const;
  // Returns `status` of reading a tensor, or that its file turned out to hold it unreadable.
  Status AfterReading(const Status& status, std::string_view name) const;
  // Fails unless there is such a tensor, with such a box, and of `bytes` bytes if given. Returns
  // the bytes.
  Result<uint64_t> CheckBox(std::string_view name, const Box& box,
                            std::optional<uint64_t> bytes) const;
};

ShardedCheckpoint::ShardedCheckpoint(std::unique_ptr<State> state) : state_(std::move(state)) {}
ShardedCheckpoint::ShardedCheckpoint(ShardedCheckpoint&&) noexcept = default;
ShardedCheckpoint& ShardedCheckpoint::operator=(ShardedCheckpoint&&) noexcept = default;
ShardedCheckpoint::~ShardedCheckpoint() = default;

Status ShardedCheckpoint::State::List() {
  RESHARD_ASSIGN_OR_RETURN(
      const std::vector<std::string> names,
      MindSporeTarget(source->tensors(), source->rule(), "", Selection::Unmatched::kCopy)
          .NamesInOrder(0));
  PlanFindings findings;
  const std::map<std::string, std::string> unreadable = source->Unread();
  for (const std::string& name : names) {
    if (unreadable.contains(name)) continue;  // a part of it at least
    RESHARD_ASSIGN_OR_RETURN(const SourceTensor tensor, source->tensors().DescribeFull(name));
    findings.Add(tensor);
    if (tensor.kind == ArrayKind::kTensor) {
      tensors.push_back({tensor.Info(), tensor.stage, !tensor.rank});
    } else if (tensor.kind != ArrayKind::kPacked) {
      others.push_back(tensor.Info());
    }
  }
  RESHARD_RETURN_IF_ERROR(CheckNames(source->rule(), findings));
  for (const auto& [name, why] : source->Unread()) unread.push_back({name, why});
  for (size_t i = 0; i < tensors.size(); ++i) by_name.emplace(tensors[i].name, i);
  return {};
}

Status ShardedCheckpoint::State::NoTensor(std::string_view name) const {
  const UnreadTensor* const tensor = FindUnread(unread, name);
  return tensor == nullptr ? NoSuchTensor(name) : CannotRead(Escape(source->spec().path), *tensor);
}

Result<std::vector<BlockCopy>> ShardedCheckpoint::State::CopiesFrom(std::string_view name,
                                                                    const Box& box) const {
  RESHARD_ASSIGN_OR_RETURN(const SourceTensor tensor, source->tensors().DescribeFull(name));
  Result<std::vector<BlockCopy>> copies = CopiesOf(source->tensors(), tensor, box);
  if (!copies.ok()) return AfterReading(copies.status(), name);
  return copies;
}

Status ShardedCheckpoint::State::AfterReading(const Status& status, std::string_view name) const {
  if (status.code() != StatusCode::kMismatch) return status;
  const std::map<std::string, std::string> unreadable = source->Unread();
  const auto found = unreadable.find(std::string(name));
  if (found == unreadable.end()) return status;
  return CannotRead(Escape(source->spec().path), {found->first, found->second});
}

Result<uint64_t> ShardedCheckpoint::State::CheckBox(std::string_view name, const Box& box,
                                                    std::optional<uint64_t> bytes) const {
  const auto found = by_name.find(name);
  if (found == by_name.end()) return NoTensor(name);
  const ShardedCheckpoint::Tensor& tensor = tensors[found->second];
  if (!IsBoxOf(box, tensor.shape)) {
    return InvalidArgumentError(fmt::format("parameter {}: box {} is not in the full shape {}",
                                            Quote(name), ToString(box), ToString(tensor.shape)));
  }
  const uint64_t expected = Volume(ToByteBox(box, tensor.dtype));
  if (bytes && *bytes != expected) {
    return InvalidArgumentError(fmt::format("parameter {}: box {} has {} bytes, the destination {}",
                                            Quote(name), ToString(box), expected, *bytes));
  }
  return expected;
}

Result<ShardedCheckpoint> ShardedCheckpoint::State::Open(const SourceSpec& spec,
                                                         IoChoice::Source io) {
  return CatchOutOfMemory([&]() -> Result<ShardedCheckpoint> {
    auto state = std::make_unique<State>();
    SourceLimits limits;
    limits.access = io;
    RESHARD_ASSIGN_OR_RETURN(state->source, OpenSource(spec, {.lists_unread = true}, limits));
    RESHARD_RETURN_IF_ERROR(state->List());
    state->files = ListFiles(*state->source);
    RESHARD_RETURN_IF_ERROR(CheckStagesOfFiles(*state->source, ParameterChoice()));
    state->warnings = state->source->warnings();
    return ShardedCheckpoint(std::move(state));
  });
}

Result<ShardedCheckpoint> ShardedCheckpoint::Open(const std::string& folder,
                                                  const StrategyRef& strategy,
                                                  const std::string& suffix,
                                                  std::shared_ptr<const EncryptionKey> key) {
  return State::Open(
      {.path = folder, .strategy = strategy, .suffix = suffix, .key = std::move(key)});
}

Result<ShardedCheckpoint> ShardedCheckpoint::Open(const SourceSpec& source, IoChoice::Source io) {
  return State::Open(source, io);
}

const std::vector<ShardedCheckpoint::Tensor>& ShardedCheckpoint::tensors() const {
  return state_->tensors;
}
const std::vector<TensorInfo>& ShardedCheckpoint::others() const { return state_->others; }

const std::vector<UnreadTensor>& ShardedCheckpoint::unread() const { return state_->unread; }

const ShardedCheckpoint::Tensor* ShardedCheckpoint::Find(std::string_view name) const {
  const auto found = state_->by_name.find(name);
  return found == state_->by_name.end() ? nullptr : &state_->tensors[found->second];
}

const std::vector<std::string>& ShardedCheckpoint::notes() const { return state_->source->notes(); }

const std::vector<Warning>& ShardedCheckpoint::warnings() const { return state_->warnings; }

const std::vector<RankFiles::File>& ShardedCheckpoint::files() const { return state_->files; }

Result<std::vector<ShardedCheckpoint::Shard>> ShardedCheckpoint::Shards(
    std::string_view name) const {
  return CatchOutOfMemory([&]() -> Result<std::vector<ShardedCheckpoint::Shard>> {
    if (Find(name) == nullptr) return state_->NoTensor(name);
    const Source& source = state_->source->tensors();
    RESHARD_ASSIGN_OR_RETURN(const SourceTensor tensor, source.DescribeFull(name));
    RESHARD_ASSIGN_OR_RETURN(std::vector<Source::HeldPart> parts, source.PartsOf(tensor));
    std::vector<ShardedCheckpoint::Shard> shards;
    shards.reserve(parts.size());
    for (Source::HeldPart& part : parts) {
      shards.push_back({std::move(part.box), std::move(part.ranks)});
    }
    return shards;
  });
}

Status ShardedCheckpoint::Read(std::string_view name, const Box& box,
                               std::span<std::byte> destination) const {
  return CatchOutOfMemory([&]() -> Status {
    RESHARD_RETURN_IF_ERROR(state_->CheckBox(name, box, destination.size()).status());
    const Source& source = state_->source->tensors();
    RESHARD_ASSIGN_OR_RETURN(const std::vector<BlockCopy> copies, state_->CopiesFrom(name, box));
    SourceFiles& files = source.files();
    RESHARD_RETURN_IF_ERROR(Gather(files, copies, 0, destination));
    const std::vector<FileId> used = FilesOfCopies(copies);
    return files.VerifyUnchanged(used);
  });
}

Status ShardedCheckpoint::Read(std::span<const ShardedCheckpoint::BoxRead> boxes,
                               const RunOptions& run) const {
  return CatchOutOfMemory([&]() -> Status {
    RESHARD_RETURN_IF_ERROR(CheckJobs(run.jobs));
    std::vector<uint64_t> sizes;
    sizes.reserve(boxes.size());
    Progress all;
    for (const ShardedCheckpoint::BoxRead& read : boxes) {
      RESHARD_ASSIGN_OR_RETURN(const uint64_t bytes,
                               state_->CheckBox(read.name, read.box, read.destination.size()));
      sizes.push_back(bytes);
      all.total_bytes += bytes;
    }
    const Source& source = state_->source->tensors();
    SourceFiles& files = source.files();
    const CountedWork work(run, all);
    std::mutex mutex;
    std::set<FileId> used;  // guarded by `mutex`
    const auto read_piece = [&](size_t index, ByteRange piece, const std::stop_token&) -> Status {
      const ShardedCheckpoint::BoxRead& read = boxes[index];
      RESHARD_ASSIGN_OR_RETURN(const std::vector<BlockCopy> copies,
                               state_->CopiesFrom(read.name, read.box));
      const std::span<std::byte> part = read.destination.subspan(piece.offset, piece.length);
      MakePagesPresent(part);
      RESHARD_RETURN_IF_ERROR(Gather(files, copies, piece.offset, part));
      if (work.work().progress) work.work().progress(piece.length);
      const std::vector<FileId> of_piece = FilesOfCopies(copies);
      const std::lock_guard lock(mutex);
      used.insert(of_piece.begin(), of_piece.end());
      return {};
    };
    RESHARD_RETURN_IF_ERROR(ForEachPiece(sizes, kReadBytes, work.work(), read_piece));
    return files.VerifyUnchanged(std::vector<FileId>(used.begin(), used.end()));
  });
}

Result<std::vector<ShardedCheckpoint::Part>> ShardedCheckpoint::Locate(std::string_view name,
                                                                       const Box& box) const {
  return CatchOutOfMemory([&]() -> Result<std::vector<ShardedCheckpoint::Part>> {
    RESHARD_RETURN_IF_ERROR(state_->CheckBox(name, box, std::nullopt).status());
    const Source& source = state_->source->tensors();
    RESHARD_ASSIGN_OR_RETURN(const SourceTensor tensor, source.DescribeFull(name));
    Result<std::vector<PlacedPiece>> pieces = source.Cover(tensor, box, 0);
    if (!pieces.ok()) return state_->AfterReading(pieces.status(), name);
    std::vector<ShardedCheckpoint::Part> parts;
    parts.reserve(pieces->size());
    for (PlacedPiece& piece : *pieces) {
      parts.push_back(
          {std::move(piece.box), piece.rank, source.PathOf(piece.file), std::move(piece.content)});
    }
    return parts;
  });
}

Result<ShardedCheckpoint::MappedFile> ShardedCheckpoint::Map(int64_t rank, bool is_private) const {
  return CatchOutOfMemory([&]() -> Result<ShardedCheckpoint::MappedFile> {
    const std::vector<ChosenFile>& chosen = state_->source->chosen();
    const auto file = std::find_if(chosen.begin(), chosen.end(),
                                   [rank](const auto& entry) { return entry.rank == rank; });
    if (file == chosen.end())
      return NotFoundError(fmt::format("there is no file of rank {}", rank));
    SourceFiles& files = state_->source->files();
    const std::string& path = files.path(file->id);
    {
      RESHARD_ASSIGN_OR_RETURN(const SourceReader reader, files.OpenReader(file->id));
      if (reader.decryption() != Decryption::kNone) {
        return UnsupportedError(fmt::format(
            "{}: an encrypted file has no bytes that can be looked at in place", Escape(path)));
      }
    }
    const MapAccess access = is_private ? MapAccess::kPrivate : MapAccess::kRead;
    RESHARD_ASSIGN_OR_RETURN(const std::unique_ptr<ByteSource> opened,
                             Storage::Of(path).Open(path));
    if (opened->pages() == nullptr) {
      return UnsupportedError(fmt::format(
          "{}: lies where files have no bytes that can be looked at in place", Escape(path)));
    }
    RESHARD_ASSIGN_OR_RETURN(std::shared_ptr<std::byte> map, opened->pages()->MapWhole(access));
    RESHARD_ASSIGN_OR_RETURN(const FileIdentity known, files.Identity(file->id));
    if (opened->identity() != known) {
      return ChangedError(
          fmt::format("{}: another file than when the checkpoint was opened", Escape(path)));
    }
    return ShardedCheckpoint::MappedFile{std::move(map), opened->size()};
  });
}

Result<std::vector<ShardedCheckpoint::StoredPart>> ShardedCheckpoint::ReadOther(
    std::string_view name) const {
  return CatchOutOfMemory([&]() -> Result<std::vector<ShardedCheckpoint::StoredPart>> {
    const auto is_named = [name](const TensorInfo& other) { return other.name == name; };
    if (std::none_of(state_->others.begin(), state_->others.end(), is_named)) {
      return NotFoundError(fmt::format("the checkpoint has no text or MapTensor {}", Quote(name)));
    }
    const Source& source = state_->source->tensors();
    RESHARD_ASSIGN_OR_RETURN(const SourceTensor tensor, source.DescribeFull(name));
    RESHARD_ASSIGN_OR_RETURN(const TableHandle table, source.TableOf(tensor));
    const StoredArray* const array = table->Find(name);
    if (array == nullptr) return NoSuchTensor(name);
    SourceFiles& files = source.files();
    std::vector<ShardedCheckpoint::StoredPart> parts;
    const auto add = [&](const std::string& type, const Shape& shape, const ByteRange& content) {
      parts.push_back({type, shape, std::vector<std::byte>(content.length)});
      return files.Read(tensor.file, content.offset, parts.back().bytes);
    };
    for (const ByteRange& content : array->content) {
      RESHARD_RETURN_IF_ERROR(
          add("str", {static_cast<int64_t>(content.length / kCodePointBytes)}, content));
    }
    for (const StoredArray::MapTensorPart& part : array->map_tensor) {
      RESHARD_RETURN_IF_ERROR(add(part.type, part.shape, part.content));
    }
    RESHARD_RETURN_IF_ERROR(files.VerifyUnchanged({&tensor.file, 1}));
    return parts;
  });
}

std::string ShardedCheckpoint::step() const { return StepText(state_->source->step()); }

bool ShardedCheckpoint::HasThreads() const { return state_->source->files().HasReadFiles(); }

inline namespace v0_1 {

Result<RankFiles> ListRankFiles(const SourceSpec& source) {
  return CatchOutOfMemory([&]() -> Result<RankFiles> {
    RankFiles files;
    const SourceSpec spec{.path = source.path, .format = source.format};
    RESHARD_ASSIGN_OR_RETURN(const PathKind kind, Storage::Of(spec.path).KindOf(spec.path));
    const bool of_family = source.format.value_or(SourceFormat::kPlain) != SourceFormat::kPlain;
    if (of_family || (kind == PathKind::kDirectory && source.suffix.empty())) {
      RESHARD_ASSIGN_OR_RETURN(auto opened,
                               OpenOfFamily(spec, {.opens_any_file = true, .lists_unread = true},
                                            {.lone_parts = LoneParts::kListed}));
      if (opened != nullptr) {
        files.files = ListFiles(*opened);
        files.warnings = opened->warnings();
        files.indexed = std::move(opened);
        return files;
      }
    }
    const std::string path = InRunFolder(spec, files.notes).path;
    RESHARD_ASSIGN_OR_RETURN(RankFolder found, FindRankFiles(path, {source.suffix}));
    files.step = StepText(found.files.front().step);
    for (RankFile& file : found.files) files.files.push_back({file.rank, std::move(file.path)});
    files.warnings = std::move(found.warnings);
    return files;
  });
}

}  // namespace v0_1
}  // namespace reshard
