#include "tools/gen/sample_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <system_error>
#include <vector>

#include "format/mindspore_checkpoint/checkpoint_encoder.h"
#include "reshard/options.h"
#include "src/base/status_macros.h"
#include "src/mindspore/layout_grid.h"
#include "src/os/output_directory.h"
#include "src/os/staged_file.h"
#include "src/os/system_call.h"
#include "src/source/shard_grid.h"
#include "tools/gen/sample_model.h"
#include "tools/gen/sample_values.h"

namespace reshard {
namespace {

// The row-major bytes of a shard of a vector or matrix.
class ShardContent {
 public:
  ShardContent(const SampleParameter& parameter, const Box& box)
      : values_(parameter.name, parameter.dtype) {
    const uint64_t item = ItemBytes(parameter.dtype);
    const auto bytes = [item](int64_t elements) { return static_cast<uint64_t>(elements) * item; };
    row_bytes_ = bytes(box.extent.back());
    stride_ = bytes(parameter.full_shape.back());
    begin_ = bytes(box.begin.back());
    if (box.dims() == 2) begin_ += static_cast<uint64_t>(box.begin[0]) * stride_;
  }

  // Fills `out` with the shard's bytes from `offset` on.
  void Fill(uint64_t offset, std::span<std::byte> out) const {
    while (!out.empty()) {
      const uint64_t in_row = offset % row_bytes_;
      const size_t length = std::min<size_t>(out.size(), row_bytes_ - in_row);
      values_.Fill(begin_ + offset / row_bytes_ * stride_ + in_row, out.first(length));
      offset += length;
      out = out.subspan(length);
    }
  }

 private:
  SampleValues values_;
  uint64_t row_bytes_;  // of the shard
  uint64_t stride_;     // from row to row of the full tensor
  uint64_t begin_;      // of the shard's first row in the full tensor
};

// A stretch of a file: bytes as they are, then bytes of a shard.
struct Piece {
  std::string literal;
  std::optional<ShardContent> content;
  uint64_t offset = 0;  // in the content
  uint64_t length = 0;  // of the content
};

Result<std::vector<Piece>> MakePieces(const std::vector<SampleParameter>& parameters,
                                      int64_t rank) {
  std::vector<Piece> pieces;
  for (const SampleParameter& parameter : parameters) {
    const auto header = [&parameter](const Shape& dims, uint64_t content_bytes) {
      return EncodeValueHeader(parameter.name, parameter.dtype, dims, content_bytes);
    };
    const std::string& constant = parameter.constant;
    if (!parameter.layout) {
      pieces.push_back({header(parameter.full_shape, constant.size()) + constant, {}});
      continue;
    }
    RESHARD_ASSIGN_OR_RETURN(
        const ShardGrid grid,
        MakeGrid(*parameter.layout, parameter.full_shape.size(), parameter.name));
    RESHARD_ASSIGN_OR_RETURN(const Shape shard,
                             grid.ShardShape(parameter.full_shape, parameter.name));
    const Box box = grid.BoxOf(rank, shard);
    const uint64_t bytes = Volume(box) * ItemBytes(parameter.dtype);
    for (uint64_t offset = 0; offset < bytes; offset += kValueContentBytes) {
      const uint64_t length = std::min(bytes - offset, kValueContentBytes);
      pieces.push_back({header(shard, length), ShardContent(parameter, box), offset, length});
    }
  }
  return pieces;
}

Status WriteDense(const std::vector<Piece>& pieces, uint64_t size, const OutputDirectory& folder,
                  const std::string& name) {
  RESHARD_ASSIGN_OR_RETURN(
      StagedFile file,
      StagedFile::Create(folder, name, size, {.mode = IoChoice::Target::kBuffered}));
  std::vector<std::byte> buffer(size_t{4} << 20);
  uint64_t place = 0;
  for (const Piece& piece : pieces) {
    RESHARD_RETURN_IF_ERROR(file.WriteAt(place, std::as_bytes(std::span(piece.literal))));
    place += piece.literal.size();
    for (uint64_t done = 0; done < piece.length;) {
      const auto part =
          std::span(buffer).first(std::min<size_t>(buffer.size(), piece.length - done));
      piece.content->Fill(piece.offset + done, part);
      RESHARD_RETURN_IF_ERROR(file.WriteAt(place, part));
      done += part.size();
      place += part.size();
    }
  }
  return file.Finish();
}

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

Status WriteSparse(const std::vector<Piece>& pieces, uint64_t size, const std::string& path) {
  std::unique_ptr<std::FILE, FileCloser> file(std::fopen(path.c_str(), "wbxe"));
  if (file == nullptr) return ErrnoStatus(errno, "make", path);
  for (const Piece& piece : pieces) {
    if (std::fwrite(piece.literal.data(), 1, piece.literal.size(), file.get()) !=
            piece.literal.size() ||
        std::fseek(file.get(), static_cast<long>(piece.length), SEEK_CUR) != 0) {
      return ErrnoStatus(errno, "write", path);
    }
  }
  if (std::fclose(file.release()) != 0) return ErrnoStatus(errno, "close", path);
  std::error_code error;  // a hole at the end is not there yet
  std::filesystem::resize_file(path, size, error);
  return error ? ErrnoStatus(error.value(), "resize", path) : Status();
}

Result<uint64_t> WriteCheckpoint(const std::vector<SampleParameter>& parameters, int64_t rank,
                                 bool sparse, const OutputDirectory& folder) {
  const std::string name = "llama-1_100.ckpt";
  RESHARD_ASSIGN_OR_RETURN(const std::vector<Piece> pieces, MakePieces(parameters, rank));
  uint64_t size = 0;
  for (const Piece& piece : pieces) size += piece.literal.size() + piece.length;
  RESHARD_RETURN_IF_ERROR(sparse ? WriteSparse(pieces, size, folder.PathOf(name))
                                 : WriteDense(pieces, size, folder, name));
  return size;
}

// Opens the folder for a new sample. One in the same folder as another would leave ranks and stages
// of the first behind.
Result<OutputDirectory> MakeEmptyFolder(const std::string& path) {
  std::vector<std::string> made;
  RESHARD_ASSIGN_OR_RETURN(OutputDirectory folder, OutputDirectory::Create(path, made));
  RESHARD_ASSIGN_OR_RETURN(const std::vector<std::string> names, folder.Names());
  if (names.empty()) return folder;
  return AlreadyExistsError(
      fmt::format("{}: the folder is not empty; remove it or name another one", path));
}

}  // namespace

Result<uint64_t> WriteSample(const SampleOptions& options) {
  RESHARD_ASSIGN_OR_RETURN(const auto stages, MakeStages(options.model));
  RESHARD_ASSIGN_OR_RETURN(const OutputDirectory folder, MakeEmptyFolder(options.folder));
  RESHARD_ASSIGN_OR_RETURN(const OutputDirectory strategies, folder.MakeFolder("strategy"));
  const int64_t devices = options.model.devices_per_stage();
  uint64_t bytes = 0;
  int64_t stage = 0;
  for (const auto& parameters : stages) {
    const auto encoding = options.json ? StrategyEncoding::kJson : StrategyEncoding::kProtobuf;
    RESHARD_ASSIGN_OR_RETURN(const std::string strategy, EncodeStage(parameters, stage, encoding));
    RESHARD_RETURN_IF_ERROR(strategies.WriteFile(
        fmt::format("strategy_{}.{}", stage, options.json ? "json" : "ckpt"), strategy));
    for (int64_t rank = 0; rank < devices && !options.strategy_only; ++rank) {
      RESHARD_ASSIGN_OR_RETURN(const OutputDirectory rank_folder,
                               folder.MakeFolder(fmt::format("rank_{}", stage * devices + rank)));
      RESHARD_ASSIGN_OR_RETURN(const uint64_t size,
                               WriteCheckpoint(parameters, rank, options.sparse, rank_folder));
      bytes += size;
    }
    ++stage;
  }
  return bytes;
}

}  // namespace reshard
