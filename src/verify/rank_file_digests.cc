#include "src/verify/rank_file_digests.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "src/base/status_macros.h"
#include "src/digest/logical_digest.h"
#include "src/io/shared_work.h"
#include "src/os/threads.h"
#include "src/verify/copied_bytes.h"

namespace reshard {
namespace {

// The whole messages of a parameter, from the first to the last, which lie one behind the other.
ByteRange SpanOf(const StoredArray& parameter) {
  const uint64_t begin = parameter.framed.front().offset;
  return {begin, parameter.framed.back().end() - begin};
}

ByteRange Overlap(const ByteRange& a, const ByteRange& b) {
  const uint64_t begin = std::max(a.offset, b.offset);
  const uint64_t end = std::min(a.end(), b.end());
  return {begin, end > begin ? end - begin : 0};
}

// Reads pieces of files. Parameters that lie in several pieces are put together.
class PieceReader {
 public:
  PieceReader(const Source& source, const DigestUse& use, const SharedWork& work)
      : source_(source), use_(use), work_(work) {}

  Status Read(const RankFileOfStage& rank, ByteRange piece, const std::stop_token& stop) {
    RESHARD_ASSIGN_OR_RETURN(const TableHandle index, source_.TableOf(rank.stage, rank.local));
    LogicalHasher hasher;
    uint64_t read = 0;
    for (const StoredArray& parameter : index->arrays()) {
      const ByteRange span = SpanOf(parameter);
      if (span.offset >= piece.end()) break;
      if (span.end() <= piece.offset) continue;
      RESHARD_ASSIGN_OR_RETURN(const auto copies, use_.places(rank, parameter));
      if (!copies) continue;
      Part part;
      uint64_t bytes = 0;  // in all pieces
      for (const BlockCopy& copy : *copies) {
        bytes += copy.bytes();
        const ByteRange range = Overlap(copy.SourceSpan(), piece);
        RESHARD_RETURN_IF_ERROR(AddRange(copy, range, stop, hasher, part.sum));
        part.bytes += range.length;
      }
      read += part.bytes;
      // One without bytes counts where it begins.
      if (part.bytes == 0 && (bytes > 0 || span.offset < piece.offset)) continue;
      if (part.bytes < bytes && !Complete(rank, parameter, bytes, part)) continue;
      RESHARD_RETURN_IF_ERROR(use_.take(rank, parameter, part.sum));
    }
    if (work_.progress) work_.progress(piece.length - read);
    return {};
  }

 private:
  struct Part {
    Digest128 sum;
    uint64_t bytes = 0;
  };

  Status AddRange(const BlockCopy& copy, ByteRange range, const std::stop_token& stop,
                  LogicalHasher& hasher, Digest128& sum) const {
    if (range.length == 0) return {};
    const CopyRows rows(copy);
    return InSteps(range, kWindowBytes, stop, work_.progress, [&](ByteRange step) {
      return rows.ForEach(source_.files(), step,
                          [&](const CopyRow& row) { AddRow(row, hasher, sum); });
    });
  }

  // Adds what other pieces have to `part`. Returns whether these are all `bytes`; else keeps it.
  bool Complete(const RankFileOfStage& rank, const StoredArray& parameter, uint64_t bytes,
                Part& part) {
    const std::scoped_lock lock(mutex_);
    const auto place =
        parts_.try_emplace({rank.file, parameter.framed.front().offset}, Part()).first;
    part.sum ^= place->second.sum;
    part.bytes += place->second.bytes;
    if (part.bytes < bytes) {
      place->second = part;
      return false;
    }
    parts_.erase(place);
    return true;
  }

  const Source& source_;
  const DigestUse& use_;
  const SharedWork& work_;
  std::mutex mutex_;                                   // guards parts_
  std::map<std::pair<FileId, uint64_t>, Part> parts_;  // by file and offset of the parameter
};

}  // namespace

std::vector<RankFileOfStage> FilesOfStages(const Source& source, std::span<const int64_t> stages) {
  std::vector<RankFileOfStage> ranks;
  for (const int64_t stage : std::set<int64_t>(stages.begin(), stages.end())) {
    for (const int64_t local : source.LocalRanks(stage)) {
      const int64_t rank = source.RankOf(stage, local);
      ranks.push_back({stage, local, source.placement().files().at(rank)});
    }
  }
  return ranks;
}

Status DigestRankFiles(const Source& source, std::span<const RankFileOfStage> ranks,
                       const DigestUse& use, const SharedWork& work, uint64_t piece_bytes) {
  std::vector<uint64_t> sizes(ranks.size());
  const auto look = [&](size_t i, const std::stop_token&) -> Status {
    RESHARD_ASSIGN_OR_RETURN(sizes[i], source.files().Size(ranks[i].file));
    return {};
  };
  RESHARD_RETURN_IF_ERROR(RunWorkers(work.workers, ranks.size(), look, work.stop));
  PieceReader reader(source, use, work);
  return ForEachPiece(sizes, piece_bytes, work,
                      [&](size_t index, ByteRange piece, const std::stop_token& stop) {
                        return reader.Read(ranks[index], piece, stop);
                      });
}

}  // namespace reshard
