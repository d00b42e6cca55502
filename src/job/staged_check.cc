#include "src/job/staged_check.h"

#include <span>

#include "src/base/status_macros.h"
#include "src/digest/xxh3.h"
#include "src/io/in_steps.h"
#include "src/io/source_files.h"
#include "src/record/part_record.h"

namespace reshard {

namespace {

// Hands the bytes of a file to `take`, in order, under the fault guard; after each call to it comes
// one of `taken`, with the end of what was taken.
template <typename Take, typename Taken>
Status ReadInOrder(SourceFiles& files, FileId file, uint64_t size, const std::stop_token& stop,
                   const Take& take, const Taken& taken) {
  return InSteps({0, size}, kWindowBytes, stop, {}, [&](ByteRange part) -> Status {
    RESHARD_ASSIGN_OR_RETURN(const Window window, files.Open(file, part.offset, part.length));
    RESHARD_RETURN_IF_ERROR(
        window.Read([&](const std::byte* data) { take(std::span(data, part.length)); }));
    taken(part.end());
    return {};
  });
}

}  // namespace

Result<bool> IsAsRecorded(const std::string& path, uint64_t expected_size,
                          const std::string& expected_digest, const std::stop_token& stop) {
  SourceFiles files(1);
  const FileId file = files.Add(path);
  RESHARD_ASSIGN_OR_RETURN(const uint64_t size, files.Size(file));
  if (size != expected_size) return false;
  Xxh3 digest;
  RESHARD_RETURN_IF_ERROR(ReadInOrder(
      files, file, size, stop, [&](std::span<const std::byte> part) { digest.Update(part); },
      [](uint64_t) {}));
  return digest.HexDigest() == expected_digest;
}

Result<FileDigests> DigestFile(const std::string& path, const std::stop_token& stop) {
  static_assert(kDigestBlockBytes % kWindowBytes == 0);
  SourceFiles files(1);
  const FileId file = files.Add(path);
  RESHARD_ASSIGN_OR_RETURN(const uint64_t size, files.Size(file));
  FileDigests digests;
  Xxh3 whole;
  Xxh3 block;
  const auto take = [&](std::span<const std::byte> part) {
    whole.Update(part);
    block.Update(part);
  };
  const auto taken = [&](uint64_t end) {
    if (end % kDigestBlockBytes != 0 && end != size) return;
    digests.blocks.push_back(block.HexDigest());
    block.Reset();
  };
  RESHARD_RETURN_IF_ERROR(ReadInOrder(files, file, size, stop, take, taken));
  digests.file = whole.HexDigest();
  return digests;
}

}  // namespace reshard
