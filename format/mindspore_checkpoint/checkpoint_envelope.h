// What a checkpoint has around its Values: the optional CRC trailer; and the first bytes that tell
// other files from a checkpoint (SPEC.md, "Trailer" and "Encrypted").
#ifndef RESHARD_FORMAT_MINDSPORE_CHECKPOINT_CHECKPOINT_ENVELOPE_H_
#define RESHARD_FORMAT_MINDSPORE_CHECKPOINT_CHECKPOINT_ENVELOPE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "reshard/status.h"

namespace reshard {

// Bytes of the trailer: `crc_num` and a 10-byte big-endian number.
inline constexpr size_t kCrcTrailerBytes = 17;

// Returns the CRC-32 of the trailer when `tail`, the last bytes of a file, is one, or nothing. It
// has to be looked for before the Values are parsed: its first letter begins a group for protobuf.
// Errors: kCorrupt when the number is not one of 32 bits.
Result<std::optional<uint64_t>> ParseCrcTrailer(std::span<const std::byte, kCrcTrailerBytes> tail);

// The bytes that CheckSignature looks at.
inline constexpr size_t kSignatureBytes = 9;

// Looks for the beginning of a file that is no plain checkpoint; `head` is the first
// kSignatureBytes bytes of a file of `file_size` bytes, or all of a smaller one. Ok says only that
// it is not one of these. Errors: kUnsupported for an encrypted checkpoint (naming the mode) and a
// safetensors file, kCorrupt for JSON text and an empty file.
Status CheckSignature(std::span<const std::byte> head, uint64_t file_size);

}  // namespace reshard

#endif  // RESHARD_FORMAT_MINDSPORE_CHECKPOINT_CHECKPOINT_ENVELOPE_H_
