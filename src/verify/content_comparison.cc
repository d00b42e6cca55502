#include "src/verify/content_comparison.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "src/base/status_macros.h"
#include "src/io/in_steps.h"
#include "src/tensor/laid_out.h"
#include "src/verify/copied_bytes.h"

namespace reshard {
namespace {

uint64_t BytesOfEach(const EqualContents& group) {
  uint64_t bytes = 0;
  for (const ByteRange& range : group.contents.front().ranges) bytes += range.length;
  return bytes;
}

}  // namespace

uint64_t BytesToCompare(std::span<const EqualContents> groups) {
  uint64_t bytes = 0;
  for (const EqualContents& group : groups) bytes += BytesOfEach(group) * group.contents.size();
  return bytes;
}

Result<std::vector<ContentDifference>> CompareContents(SourceFiles& files,
                                                       std::span<const EqualContents> groups,
                                                       const SharedWork& work) {
  std::vector<uint64_t> sizes;
  for (const EqualContents& group : groups) sizes.push_back(BytesOfEach(group));
  std::mutex mutex;                                     // guards first
  std::map<std::pair<size_t, size_t>, uint64_t> first;  // offset by group and content
  const auto compare = [&](size_t index, ByteRange piece, const std::stop_token& stop) -> Status {
    const std::vector<StoredContent>& contents = groups[index].contents;
    std::vector<std::vector<BlockCopy>> copies;
    copies.reserve(contents.size());
    for (const StoredContent& content : contents) {
      copies.push_back(LayOut(content.file, content.ranges));
    }
    const auto buffer = std::make_unique_for_overwrite<std::byte[]>(kComparisonStepBytes);
    const auto count = [&](uint64_t bytes) {
      if (work.progress) work.progress(bytes * contents.size());
    };
    return InSteps(piece, kComparisonStepBytes, stop, count, [&](ByteRange part) -> Status {
      const std::span<std::byte> expected(buffer.get(), part.length);
      RESHARD_RETURN_IF_ERROR(CollectBytes(files, copies[0], part.offset, expected));
      for (size_t i = 1; i < contents.size(); ++i) {
        ByteDifference found;
        RESHARD_RETURN_IF_ERROR(CompareBytes(files, copies[i], part.offset, expected, found));
        if (found.count == 0) continue;
        const std::scoped_lock lock(mutex);
        uint64_t& offset = first.try_emplace({index, i}, found.target).first->second;
        offset = std::min(offset, found.target);
      }
      return {};
    });
  };
  RESHARD_RETURN_IF_ERROR(ForEachPiece(sizes, kPieceBytes, work, compare));
  std::vector<ContentDifference> differences;
  differences.reserve(first.size());
  for (const auto& [place, offset] : first) {
    differences.push_back({place.first, place.second, offset});
  }
  return differences;
}

}  // namespace reshard
