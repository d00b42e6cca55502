#include "reshard/checkpoint.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "src/base/out_of_memory.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/io/byte_source.h"
#include "src/io/source_files.h"
#include "src/source/indexed_file.h"
#include "src/source/read_file_table.h"

namespace reshard {

struct Checkpoint::State {
  std::string path;
  IndexedFile index;
  ByteSource source;
};

Checkpoint::Checkpoint(std::unique_ptr<State> state) : state_(std::move(state)) {}
Checkpoint::Checkpoint(Checkpoint&&) noexcept = default;
Checkpoint& Checkpoint::operator=(Checkpoint&&) noexcept = default;
Checkpoint::~Checkpoint() = default;

Result<Checkpoint> Checkpoint::Open(const std::string& path) {
  return CatchOutOfMemory([&]() -> Result<Checkpoint> {
    SourceFiles files(1);
    const FileId id = files.Add(path);
    RESHARD_ASSIGN_OR_RETURN(IndexedFile index, ReadFileTable(files, id));
    RESHARD_ASSIGN_OR_RETURN(ByteSource source, ByteSource::Open(path));
    RESHARD_RETURN_IF_ERROR(source.Map());
    // What was mapped is what was indexed.
    RESHARD_RETURN_IF_ERROR(files.VerifyUnchanged());
    return Checkpoint(std::make_unique<State>(State{path, std::move(index), std::move(source)}));
  });
}

const std::string& Checkpoint::path() const { return state_->path; }
uint64_t Checkpoint::file_size() const { return state_->index.file_size(); }
const std::vector<StoredArray>& Checkpoint::parameters() const {
  return state_->index.parameters();
}
const StoredArray* Checkpoint::Find(std::string_view name) const {
  return state_->index.Find(name);
}
std::optional<uint64_t> Checkpoint::crc() const {
  const std::optional<StatedCrc>& crc = state_->index.crc();
  return crc ? std::optional(crc->value) : std::nullopt;
}

Result<std::vector<std::span<const std::byte>>> Checkpoint::View(std::string_view name) const {
  const StoredArray* parameter = Find(name);
  if (parameter == nullptr) {
    return NotFoundError(fmt::format("{}: has no parameter {}", path(), Quote(name)));
  }
  std::vector<std::span<const std::byte>> spans;
  const auto add = [&](const ByteRange& range) {
    spans.emplace_back(state_->source.map() + range.offset, range.length);
  };
  for (const ByteRange& range : parameter->content) add(range);
  for (const MapTensorPart& part : parameter->map_tensor) add(part.content);
  return spans;
}

}  // namespace reshard
