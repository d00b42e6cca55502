#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/container/container.h"
#include "reshard/checkpoint.h"
#include "src/base/out_of_memory.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/cipher/encrypted_block.h"
#include "src/convert/conversion_plan.h"
#include "src/digest/crc32.h"
#include "src/io/shared_work.h"
#include "src/job/target_check.h"
#include "src/os/write_file.h"
#include "src/tensor/byte_box.h"
#include "src/write/encrypted_chunk.h"
#include "src/write/part_writer.h"

namespace reshard {
namespace {

// The limit of written bytes on their way to the disk.
constexpr uint64_t kWriteBackBytes = uint64_t{64} << 20;
constexpr std::string_view kRemoveRedundancy = "remove_redundancy";

// The next part of the file: encoded bytes, then bytes of an array.
struct Piece {
  std::string literal;
  std::span<const std::byte> content;
};

struct EncodedFile {
  std::vector<Piece> pieces;
  uint64_t size = 0;
};

Status CheckFormat(const WriteCheckpointOptions& options) {
  if (IsWholeFolder(options.format)) {
    return InvalidArgumentError(
        "expected `format=ckpt` or `format=safetensors`; the other formats are folders");
  }
  if (!options.encryption || ContainerOf(options.format).may_be_encrypted) return {};
  return InvalidArgumentError(
      "`encryption`: MindSpore encrypts .ckpt files alone; expected `format=ckpt`");
}

Status CheckArrays(std::span<const ArrayToWrite> arrays) {
  std::set<std::string_view> names;
  for (const ArrayToWrite& array : arrays) {
    const std::string where = fmt::format("parameter {}", Quote(array.name));
    if (array.name.empty()) return InvalidArgumentError("a parameter has no name");
    if (!names.insert(array.name).second) return InvalidArgumentError(where + ": is there twice");
    if (array.kind == ArrayKind::kText) {
      if (array.bytes.empty() || array.bytes.size() % sizeof(char32_t) != 0) {
        return InvalidArgumentError(
            fmt::format("{}: expected code points of 4 bytes, one or more, found {} bytes", where,
                        array.bytes.size()));
      }
      continue;
    }
    if (array.kind != ArrayKind::kTensor) {
      return UnsupportedError(where + ": expected a tensor or a text");
    }
    const std::optional<uint64_t> expected = TensorBytes(array.shape, array.dtype);
    if (array.bytes.size() != expected) {
      return InvalidArgumentError(
          fmt::format("{}: {} {}: expected {} bytes, found {}", where, DTypeName(array.dtype),
                      ToString(array.shape),
                      expected ? fmt::format("{}", *expected) : "sizes that can be multiplied",
                      array.bytes.size()));
    }
  }
  return {};
}

Status CheckWriteEncryption(const WriteCheckpointOptions& options) {
  if (!options.encryption && options.encryption_key == nullptr) return {};
  if (!options.encryption || options.encryption_key == nullptr) {
    return InvalidArgumentError(
        "`encryption` and `encryption_key` belong together: give both or leave both out");
  }
  if (options.states_crc) {
    return InvalidArgumentError("`crc`: an encrypted file states no CRC; leave it out");
  }
  return CheckKey(*options.encryption_key, *options.encryption);
}

// The number that a safetensors file states: of names and contents, in the order of the names.
uint32_t CrcByName(std::span<const ArrayToWrite> arrays) {
  std::vector<const ArrayToWrite*> ordered;
  for (const ArrayToWrite& array : arrays) ordered.push_back(&array);
  std::sort(ordered.begin(), ordered.end(),
            [](const ArrayToWrite* a, const ArrayToWrite* b) { return a->name < b->name; });
  Crc32 crc;
  for (const ArrayToWrite* array : ordered) {
    crc.Update(std::as_bytes(std::span(array->name)));
    crc.Update(array->bytes);
  }
  return crc.value();
}

FileMetadata MetadataOf(const Container& container, std::span<const ArrayToWrite> arrays,
                        const WriteCheckpointOptions& options) {
  FileMetadata metadata;
  metadata.states_crc = options.states_crc;
  if (options.states_crc && container.crc.place == CrcPlace::kInHeader) {
    metadata.crc = CrcByName(arrays);
  }
  // MindSpore takes metadata of a tensor's name for its dtype.
  const bool is_taken = std::any_of(arrays.begin(), arrays.end(), [](const ArrayToWrite& array) {
    return array.name == kRemoveRedundancy;
  });
  if (options.removes_redundancy && !is_taken) {
    metadata.others.emplace(kRemoveRedundancy, *options.removes_redundancy ? "True" : "False");
  }
  return metadata;
}

Result<EncodedFile> EncodeFile(const Container& container, std::span<const ArrayToWrite> arrays,
                               const FileMetadata& metadata) {
  EncodedFile file;
  const auto add = [&file](std::string literal, std::span<const std::byte> content) {
    file.size += literal.size() + content.size();
    file.pieces.push_back({std::move(literal), content});
  };
  const ArrayToWrite* last = nullptr;  // that was asked for
  // The opaque array of a text. It has no name, so that the encoder makes its headers: there is no
  // file with headers to copy.
  const Shape text_shape{0};
  ByteRange text_content;
  const StoredArray text{.name = {},
                         .kind = ArrayKind::kText,
                         .dtype = DType::kString,
                         .shape = text_shape,
                         .bytes = 0,
                         .framed = {},
                         .content = {&text_content, 1},
                         .map_tensor = {}};
  const auto header_at = [&](size_t number) -> Result<ArrayHeader> {
    last = &arrays[number];
    ArrayHeader header;
    header.name = last->name;
    header.bytes = last->bytes.size();
    if (last->kind == ArrayKind::kText) {
      text_content = {0, last->bytes.size()};
      header.opaque = &text;
      return header;
    }
    header.dtype = last->dtype;
    header.shape = &last->shape;
    return header;
  };
  const auto take_literal = [&](std::string literal) -> Status {
    add(std::move(literal), {});
    return {};
  };
  const auto take_frames = [&](std::span<Frame> frames) -> Status {
    for (Frame& frame : frames) {
      add(std::move(frame.literal),
          last->bytes.subspan(frame.content.offset, frame.content.length));
    }
    return {};
  };
  RESHARD_RETURN_IF_ERROR(
      container.encode(metadata, arrays.size(), header_at, take_literal, take_frames));
  return file;
}

// Takes the plain bytes of a file in their order, and writes them or their encrypted form.
class FileStream {
 public:
  // For `size` bytes; encrypted if there is a cipher.
  FileStream(StagedFile& file, std::optional<BlockCipher> cipher, uint64_t size)
      : file_(file), cipher_(std::move(cipher)) {
    if (cipher_) buffer_.reserve(std::min(size, kChunkBytes));
  }

  Status Add(std::span<const std::byte> bytes, const SharedWork& work) {
    return InSteps({0, bytes.size()}, kChunkBytes, work.stop, work.progress,
                   [&](ByteRange step) { return Write(bytes.subspan(step.offset, step.length)); });
  }

  // After all bytes.
  Status Finish() {
    RESHARD_RETURN_IF_ERROR(Encrypt());
    return file_.Finish();
  }

 private:
  Status Write(std::span<const std::byte> bytes) {
    if (!cipher_) {
      RESHARD_RETURN_IF_ERROR(file_.WriteAt(next_, bytes));
      next_ += bytes.size();
      return {};
    }
    while (!bytes.empty()) {
      const size_t length = std::min(bytes.size(), kChunkBytes - buffer_.size());
      buffer_.insert(buffer_.end(), bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(length));
      bytes = bytes.subspan(length);
      if (buffer_.size() == kChunkBytes) RESHARD_RETURN_IF_ERROR(Encrypt());
    }
    return {};
  }

  // Encrypts the content of the buffer: kChunkBytes, or the file's last bytes.
  Status Encrypt() {
    if (buffer_.empty()) return {};
    RESHARD_ASSIGN_OR_RETURN(const EncryptedChunk chunk, EncryptChunk(*cipher_, next_, buffer_));
    RESHARD_RETURN_IF_ERROR(file_.WritePieces(chunk.offset, chunk.pieces));
    next_ += buffer_.size();
    buffer_.clear();
    return {};
  }

  static_assert(kChunkBytes % kPlainBlockBytes == 0);

  StagedFile& file_;
  const std::optional<BlockCipher> cipher_;
  std::vector<std::byte> buffer_;  // that are to be encrypted in place
  uint64_t next_ = 0;              // plain byte to be written
};

Status Write(const EncodedFile& encoded, const WriteCheckpointOptions& options,
             const SharedWork& work, StagedFile& file) {
  std::optional<BlockCipher> cipher;
  if (options.encryption) {
    RESHARD_ASSIGN_OR_RETURN(cipher,
                             BlockCipher::Make(options.encryption_key, *options.encryption));
  }
  FileStream stream(file, std::move(cipher), encoded.size);
  Crc32 crc;
  const CrcStatement& statement = ContainerOf(options.format).crc;
  const bool counts = options.states_crc && statement.place == CrcPlace::kBehind;
  for (const Piece& piece : encoded.pieces) {
    std::string_view literal = piece.literal;
    std::string trailer;
    if (counts && &piece == &encoded.pieces.back()) {
      RESHARD_ASSIGN_OR_RETURN(CrcText text, statement.text({}, encoded.size, crc.value()));
      trailer = std::move(text.bytes);
      literal = trailer;
    }
    for (const auto bytes : {std::as_bytes(std::span(literal)), piece.content}) {
      if (counts) crc.Update(bytes);
      RESHARD_RETURN_IF_ERROR(stream.Add(bytes, work));
    }
  }
  return stream.Finish();
}

}  // namespace

inline namespace v0_1 {

Result<uint64_t> WriteCheckpoint(std::span<const ArrayToWrite> arrays,
                                 const WriteCheckpointOptions& options) {
  return CatchOutOfMemory([&]() -> Result<uint64_t> {
    RESHARD_RETURN_IF_ERROR(CheckFormat(options));
    const Container& container = ContainerOf(options.format);
    RESHARD_RETURN_IF_ERROR(CheckWriteEncryption(options));
    RESHARD_RETURN_IF_ERROR(CheckArrays(arrays));
    RESHARD_ASSIGN_OR_RETURN(const EncodedFile encoded,
                             EncodeFile(container, arrays, MetadataOf(container, arrays, options)));
    const uint64_t size =
        options.encryption ? EncryptedBytes(*options.encryption, encoded.size) : encoded.size;
    RESHARD_ASSIGN_OR_RETURN(SingleOutput output,
                             SingleOutput::Claim(options.output, options.force));
    RESHARD_RETURN_IF_ERROR(CheckSpace(output.folder(), size).status());
    const CountedWork work(options.run,
                           {.total_bytes = encoded.size, .phase = Progress::Phase::kWrite});
    WriteBack write_back(kWriteBackBytes);
    RESHARD_ASSIGN_OR_RETURN(StagedFile file,
                             output.Create(size, {IoChoice::Target::kBuffered, &write_back}));
    RESHARD_RETURN_IF_ERROR(Write(encoded, options, work.work(), file));
    work.Enter(Progress::Phase::kPublish);
    RESHARD_RETURN_IF_ERROR(output.Publish());
    return size;
  });
}

}  // namespace v0_1

}  // namespace reshard
