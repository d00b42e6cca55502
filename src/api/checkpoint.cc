#include "reshard/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>

#include "src/base/out_of_memory.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/convert/opened_source.h"
#include "src/convert/strategy_check.h"
#include "src/full/full_folder.h"
#include "src/io/byte_source.h"
#include "src/io/source_files.h"
#include "src/mindspore/mindspore_target.h"
#include "src/mindspore/rank_folder.h"
#include "src/mindspore/rank_pattern.h"
#include "src/mindspore/unmatched_names.h"
#include "src/os/paths.h"
#include "src/plan/make_copies.h"
#include "src/source/indexed_file.h"
#include "src/source/table_cache.h"
#include "src/tensor/byte_box.h"
#include "src/write/gather.h"

namespace reshard {
namespace {

Status NoSuchTensor(std::string_view name) {
  return NotFoundError(fmt::format("the checkpoint has no tensor {}", Quote(name)));
}

// Whether `path` is a folder of whole tensors.
Result<bool> IsFullFolder(const std::string& path) {
  RESHARD_ASSIGN_OR_RETURN(const PathKind kind, KindOf(path));
  if (kind != PathKind::kDirectory) return false;
  RESHARD_ASSIGN_OR_RETURN(const std::optional<FullFolder> found, FindFullFolder(path));
  return found.has_value();
}

std::vector<RankFileSummary> ListFiles(const OpenedSource& source) {
  std::vector<RankFileSummary> files;
  files.reserve(source.chosen().size());
  for (const OpenedSource::File& file : source.chosen()) {
    files.push_back({file.rank, source.path(file)});
  }
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

struct RankFiles::Indexed {
  std::unique_ptr<OpenedSource> source;
};

struct Checkpoint::State {
  std::string path;
  std::shared_ptr<RankFiles::Indexed> folder;  // whose table it is, if not its own
  TableHandle table;
  std::optional<IndexedFile> own;
  std::optional<LocalFile> source;  // mapped; none where the file is encrypted

  const IndexedFile& index() const { return own ? *own : *table; }
};

Checkpoint::Checkpoint(std::unique_ptr<State> state) : state_(std::move(state)) {}
Checkpoint::Checkpoint(Checkpoint&&) noexcept = default;
Checkpoint& Checkpoint::operator=(Checkpoint&&) noexcept = default;
Checkpoint::~Checkpoint() = default;

Result<Checkpoint> Checkpoint::Open(const std::string& path,
                                    std::shared_ptr<const EncryptionKey> key) {
  return CatchOutOfMemory([&]() -> Result<Checkpoint> {
    SourceFiles files({.max_open = 1, .key = std::move(key)});
    const FileId id = files.Add(path);
    RESHARD_ASSIGN_OR_RETURN(IndexedFile index, ReadFileTable(files, id));
    RESHARD_ASSIGN_OR_RETURN(const SourceReader reader, files.OpenReader(id));
    if (reader.decryption() != Decryption::kNone) {
      return Checkpoint(
          std::make_unique<State>(State{path, nullptr, {}, std::move(index), std::nullopt}));
    }
    RESHARD_ASSIGN_OR_RETURN(LocalFile source, LocalFile::Open(path));
    RESHARD_RETURN_IF_ERROR(source.Map());
    // What was mapped is what was indexed.
    RESHARD_RETURN_IF_ERROR(files.VerifyUnchanged());
    return Checkpoint(
        std::make_unique<State>(State{path, nullptr, {}, std::move(index), std::move(source)}));
  });
}

Result<Checkpoint> Checkpoint::Open(const RankFiles& listed, size_t place,
                                    std::shared_ptr<const EncryptionKey> key) {
  if (place >= listed.files.size()) {
    return InvalidArgumentError(
        fmt::format("there is no file {} of the {} that are listed", place, listed.files.size()));
  }
  if (listed.indexed == nullptr) return Open(listed.files[place].path, std::move(key));
  return CatchOutOfMemory([&]() -> Result<Checkpoint> {
    OpenedSource& folder = *listed.indexed->source;
    const OpenedSource::File& file = folder.chosen()[place];
    RESHARD_ASSIGN_OR_RETURN(TableHandle table, folder.tables().Get(file.id));
    const std::string& path = folder.path(file);
    RESHARD_ASSIGN_OR_RETURN(LocalFile source, LocalFile::Open(path));
    RESHARD_RETURN_IF_ERROR(source.Map());
    // What was mapped is what was indexed.
    RESHARD_RETURN_IF_ERROR(folder.files().VerifyUnchanged({&file.id, 1}));
    return Checkpoint(std::make_unique<State>(
        State{path, listed.indexed, std::move(table), std::nullopt, std::move(source)}));
  });
}

const std::string& Checkpoint::path() const { return state_->path; }
uint64_t Checkpoint::file_size() const { return state_->index().file_size(); }
const std::vector<StoredArray>& Checkpoint::parameters() const { return state_->index().arrays(); }
const StoredArray* Checkpoint::Find(std::string_view name) const {
  return state_->index().Find(name);
}
std::optional<uint64_t> Checkpoint::crc() const {
  const std::optional<StatedCrc>& crc = state_->index().crc();
  return crc ? std::optional(crc->value) : std::nullopt;
}

Result<std::vector<std::span<const std::byte>>> Checkpoint::View(std::string_view name) const {
  const StoredArray* parameter = Find(name);
  if (parameter == nullptr) {
    return NotFoundError(fmt::format("{}: has no parameter {}", path(), Quote(name)));
  }
  if (!state_->source) {
    return UnsupportedError(
        fmt::format("{}: an encrypted file has no bytes that can be looked at in place; a "
                    "ShardedCheckpoint of it "
                    "copies them",
                    Escape(path())));
  }
  std::vector<std::span<const std::byte>> spans;
  const auto add = [&](const ByteRange& range) {
    spans.emplace_back(state_->source->map() + range.offset, range.length);
  };
  for (const ByteRange& range : parameter->content) add(range);
  for (const MapTensorPart& part : parameter->map_tensor) add(part.content);
  return spans;
}

Result<bool> Checkpoint::IsAligned(std::string_view name) const {
  const StoredArray* parameter = Find(name);
  if (parameter == nullptr) {
    return NotFoundError(fmt::format("{}: has no parameter {}", path(), Quote(name)));
  }
  if (parameter->kind != ArrayKind::kTensor || !state_->source) return false;
  // The map begins at a page.
  const uint64_t item_bytes = ItemBytes(parameter->dtype);
  return std::has_single_bit(item_bytes) &&
         std::all_of(
             parameter->content.begin(), parameter->content.end(),
             [item_bytes](const ByteRange& range) { return range.offset % item_bytes == 0; });
}

struct ShardedCheckpoint::State {
  std::unique_ptr<OpenedSource> source;
  std::vector<LogicalTensor> tensors;
  std::vector<RankFileSummary> files;
  std::unordered_map<std::string_view, size_t> by_name;  // views of the names in tensors

  static Result<ShardedCheckpoint> Open(const SourceSpec& spec);
  Status List();
};

ShardedCheckpoint::ShardedCheckpoint(std::unique_ptr<State> state) : state_(std::move(state)) {}
ShardedCheckpoint::ShardedCheckpoint(ShardedCheckpoint&&) noexcept = default;
ShardedCheckpoint& ShardedCheckpoint::operator=(ShardedCheckpoint&&) noexcept = default;
ShardedCheckpoint::~ShardedCheckpoint() = default;

Status ShardedCheckpoint::State::List() {
  RESHARD_ASSIGN_OR_RETURN(
      const std::vector<std::string> names,
      MindSporeTarget(source->tensors(), source->rule(), "", UnmatchedPolicy::kCopy)
          .NamesInOrder(0));
  PlanFindings findings;
  for (const std::string& name : names) {
    RESHARD_ASSIGN_OR_RETURN(const SourceTensor tensor, source->tensors().DescribeFull(name));
    findings.Add(tensor);
    if (tensor.kind != ArrayKind::kTensor) continue;
    tensors.push_back({tensor.Info(), tensor.stage, !tensor.rank});
  }
  RESHARD_RETURN_IF_ERROR(CheckNames(source->rule(), findings));
  for (size_t i = 0; i < tensors.size(); ++i) by_name.emplace(tensors[i].name, i);
  return {};
}

Result<ShardedCheckpoint> ShardedCheckpoint::State::Open(const SourceSpec& spec) {
  return CatchOutOfMemory([&]() -> Result<ShardedCheckpoint> {
    auto state = std::make_unique<State>();
    RESHARD_ASSIGN_OR_RETURN(state->source, OpenSource(spec));
    RESHARD_RETURN_IF_ERROR(state->List());
    state->files = ListFiles(*state->source);
    RESHARD_RETURN_IF_ERROR(CheckStagesOfFiles(*state->source, ParameterChoice()));
    return ShardedCheckpoint(std::move(state));
  });
}

Result<ShardedCheckpoint> ShardedCheckpoint::Open(const std::string& folder,
                                                  const std::string& strategy,
                                                  const std::string& suffix,
                                                  std::shared_ptr<const EncryptionKey> key) {
  return State::Open(
      {.path = folder, .strategy = strategy, .suffix = suffix, .key = std::move(key)});
}

Result<ShardedCheckpoint> ShardedCheckpoint::Open(const std::string& folder,
                                                  const Strategy& strategy,
                                                  const std::string& suffix,
                                                  std::shared_ptr<const EncryptionKey> key) {
  const std::shared_ptr<const Strategy> borrowed(std::shared_ptr<void>(), &strategy);
  return State::Open(
      {.path = folder, .suffix = suffix, .layouts = borrowed, .key = std::move(key)});
}

const std::vector<LogicalTensor>& ShardedCheckpoint::tensors() const { return state_->tensors; }

const LogicalTensor* ShardedCheckpoint::Find(std::string_view name) const {
  const auto found = state_->by_name.find(name);
  return found == state_->by_name.end() ? nullptr : &state_->tensors[found->second];
}

const std::vector<Warning>& ShardedCheckpoint::warnings() const {
  return state_->source->warnings();
}

const std::vector<RankFileSummary>& ShardedCheckpoint::files() const { return state_->files; }

Result<std::vector<Shard>> ShardedCheckpoint::Shards(std::string_view name) const {
  return CatchOutOfMemory([&]() -> Result<std::vector<Shard>> {
    if (Find(name) == nullptr) return NoSuchTensor(name);
    const Source& source = state_->source->tensors();
    RESHARD_ASSIGN_OR_RETURN(const SourceTensor tensor, source.DescribeFull(name));
    RESHARD_ASSIGN_OR_RETURN(std::vector<Source::HeldPart> parts, source.PartsOf(tensor));
    std::vector<Shard> shards;
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
    if (Find(name) == nullptr) return NoSuchTensor(name);
    const Source& source = state_->source->tensors();
    RESHARD_ASSIGN_OR_RETURN(const SourceTensor tensor, source.DescribeFull(name));
    if (!IsBoxOf(box, tensor.full_shape)) {
      return InvalidArgumentError(fmt::format("parameter {}: box {} is not in the full shape {}",
                                              Quote(name), ToString(box),
                                              ToString(tensor.full_shape)));
    }
    const uint64_t bytes = Volume(ToByteBox(box, tensor.dtype));
    if (destination.size() != bytes) {
      return InvalidArgumentError(
          fmt::format("parameter {}: box {} has {} bytes, the destination {}", Quote(name),
                      ToString(box), bytes, destination.size()));
    }
    RESHARD_ASSIGN_OR_RETURN(const std::vector<BlockCopy> copies, CopiesOf(source, tensor, box));
    SourceFiles& files = source.files();
    RESHARD_RETURN_IF_ERROR(Gather(files, copies, 0, destination));
    std::vector<FileId> used;
    used.reserve(copies.size());
    for (const BlockCopy& copy : copies) used.push_back(copy.source);
    std::sort(used.begin(), used.end());
    used.erase(std::unique(used.begin(), used.end()), used.end());
    return files.VerifyUnchanged(used);
  });
}

Result<RankFiles> v0_1::ListRankFiles(const std::string& folder, const std::string& suffix) {
  return CatchOutOfMemory([&]() -> Result<RankFiles> {
    RankFiles files;
    if (!IsRankPattern(folder) && suffix.empty()) {
      RESHARD_ASSIGN_OR_RETURN(const bool is_folder, IsFullFolder(folder));
      if (is_folder) {
        RESHARD_ASSIGN_OR_RETURN(auto source, OpenSource({.path = folder}));
        files.files = ListFiles(*source);
        files.warnings = source->warnings();
        files.indexed = std::make_shared<RankFiles::Indexed>();
        files.indexed->source = std::move(source);
        return files;
      }
    }
    RESHARD_ASSIGN_OR_RETURN(RankFolder found, FindRankFiles(folder, {suffix}));
    for (RankFile& file : found.files) files.files.push_back({file.rank, std::move(file.path)});
    files.warnings = std::move(found.warnings);
    return files;
  });
}

}  // namespace reshard
