#include "src/verify/rank_file_digests.h"

#include <algorithm>
#include <compare>
#include <deque>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

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

// A parameter whose digest is wanted, as far as it lies in a piece of its file.
struct WantedArray {
  const StoredArray* array = nullptr;
  size_t number = 0;   // DigestUse's
  size_t copies = 0;   // how many there are
  uint64_t bytes = 0;  // of the whole parameter
  Digest128 sum = {};  // of the bytes in the piece
  uint64_t read = 0;
};

// Parameters that are read together: a single one, or many that lie close to each other in a window
// of the file.
struct ReadUnit {
  std::vector<WantedArray> arrays;
  std::vector<BlockCopy> copies;  // the copies of all arrays in order
  ByteRange range;                // from their first byte to their last one in the piece
};

// Few enough to be held while they are read.
constexpr size_t kMostInUnit = 256;
// The largest gap between two parameters that is read to save another window.
constexpr uint64_t kMostBetween = uint64_t{64} << 10;

// Bytes that a thread requests from a server, ahead of its reads.
constexpr uint64_t kAheadOfServer = 4 * kWindowBytes;

bool InOneWindow(ByteRange range) {
  return range.length > 0 && range.offset / kWindowBytes == (range.end() - 1) / kWindowBytes;
}

// Adds `wanted` with its copies to the unit; `range` has their bytes in the piece. Returns whether
// it belongs there.
bool Join(const ByteRange& range, const WantedArray& wanted, std::span<BlockCopy> copies,
          ReadUnit& unit) {
  const bool is_first = unit.arrays.empty();
  const ByteRange joined{unit.range.offset, range.end() - unit.range.offset};
  if (!is_first && (unit.arrays.size() == kMostInUnit || range.offset < unit.range.end() ||
                    range.offset - unit.range.end() > kMostBetween || !InOneWindow(joined))) {
    return false;
  }
  unit.range = is_first ? range : joined;
  unit.arrays.push_back(wanted);
  std::move(copies.begin(), copies.end(), std::back_inserter(unit.copies));
  return true;
}

// Reads pieces of files. Parameters that lie in several pieces are put together.
class PieceReader {
 public:
  PieceReader(const Source& source, const DigestUse& use, const SharedWork& work)
      : source_(source), use_(use), work_(work) {}

  Status Read(const RankFileOfStage& rank, ByteRange piece, const std::stop_token& stop) {
    RESHARD_ASSIGN_OR_RETURN(const TableHandle index, source_.TableOf(rank.stage, rank.local));
    PieceWork work{rank, piece, stop};
    // The first one is read when as much behind it is known as is to be read ahead meanwhile.
    std::deque<ReadUnit> units;
    std::vector<BlockCopy> copies;
    for (const StoredArray& parameter : index->arrays()) {
      const ByteRange span = SpanOf(parameter);
      // One without bytes is of the piece that it begins in, or, at the end of the file, of the
      // last.
      const bool at_end = span.offset == index->file_size() && piece.end() == span.offset;
      if (span.offset >= piece.end() && !at_end) break;
      if (span.end() <= piece.offset && span.offset < piece.offset) continue;
      copies.clear();
      RESHARD_ASSIGN_OR_RETURN(const std::optional<size_t> number,
                               use_.places(rank, parameter, copies));
      if (!number) continue;
      WantedArray wanted{.array = &parameter, .number = *number, .copies = copies.size()};
      ByteRange range;
      for (const BlockCopy& copy : copies) {
        wanted.bytes += copy.bytes();
        const ByteRange part = Overlap(copy.SourceSpan(), piece);
        if (part.length == 0) continue;
        range = range.length == 0 ? part : ByteRange{range.offset, part.end() - range.offset};
        wanted.read += part.length;
      }
      if (wanted.read == 0) {
        RESHARD_RETURN_IF_ERROR(TakeUnread(work, wanted));
        continue;
      }
      if (!units.empty() && Join(range, wanted, copies, units.back())) continue;
      RESHARD_RETURN_IF_ERROR(AskServer(rank.file, units));
      Join(range, wanted, copies, units.emplace_back());
      while (IsEnoughAhead(units)) RESHARD_RETURN_IF_ERROR(ReadFirst(work, units));
    }
    RESHARD_RETURN_IF_ERROR(AskServer(rank.file, units));
    while (!units.empty()) RESHARD_RETURN_IF_ERROR(ReadFirst(work, units));
    Tell(work, piece.length - work.told);
    return {};
  }

 private:
  // A file has a name once. Several parameters may begin at one offset.
  struct PartKey {
    int64_t stage = 0;
    int64_t local = 0;
    std::string name;

    friend auto operator<=>(const PartKey&, const PartKey&) = default;
  };
  struct Part {
    Digest128 sum;
    uint64_t bytes = 0;
  };

  // The work of a thread.
  struct PieceWork {
    const RankFileOfStage& rank;
    ByteRange piece;
    const std::stop_token& stop;
    LogicalHasher hasher = {};
    std::vector<CopyRows> rows = {};  // of the copies of the unit that is read
    uint64_t told = 0;                // bytes of the piece, as progress
  };

  // Reports bytes as read. Parameters may share them; then they count once.
  void Tell(PieceWork& work, uint64_t bytes) const {
    bytes = std::min(bytes, work.piece.length - work.told);
    work.told += bytes;
    if (work_.progress) work_.progress(bytes);
  }

  // A parameter without bytes counts at its offset.
  Status TakeUnread(const PieceWork& work, const WantedArray& wanted) const {
    if (wanted.bytes > 0 || SpanOf(*wanted.array).offset < work.piece.offset) return {};
    return use_.take(work.rank, *wanted.array, wanted.number, wanted.sum);
  }

  // Has a server send the last of the units, to which no more parameters are added.
  Status AskServer(FileId file, const std::deque<ReadUnit>& units) const {
    if (units.empty() || !source_.files().HasReadFiles()) return {};
    const ByteRange range = units.back().range;
    return source_.files().Prefetch(file, range.offset, range.length);
  }

  // Whether there is a unit to be read ahead while the first one is read. Of a server, which takes
  // a while to answer, several windows.
  bool IsEnoughAhead(const std::deque<ReadUnit>& units) const {
    const uint64_t enough = source_.files().HasReadFiles() ? kAheadOfServer : 1;
    uint64_t ahead = 0;
    for (size_t i = 1; i < units.size() && ahead < enough; ++i) ahead += units[i].range.length;
    return ahead >= enough;
  }

  Status ReadFirst(PieceWork& work, std::deque<ReadUnit>& units) {
    RESHARD_RETURN_IF_ERROR(
        ReadWhole(work, units.front(), units.size() > 1 ? units[1].range : ByteRange{}));
    units.pop_front();
    return {};
  }

  // Reads all of `unit`, and asks for the begin of `next`, which may be empty, ahead.
  Status ReadWhole(PieceWork& work, ReadUnit& unit, ByteRange next) {
    // Made here, because the fault guard forbids allocations.
    work.rows.clear();
    for (const BlockCopy& copy : unit.copies) work.rows.emplace_back(copy);
    // If this fails, unneeded bytes between the parameters may be the cause. Then each is read
    // alone.
    if (!InOneWindow(unit.range) || !ReadTogether(work, unit, next).ok()) {
      std::span<const CopyRows> left(work.rows);
      for (WantedArray& wanted : unit.arrays) {
        wanted.sum = Digest128();
        RESHARD_RETURN_IF_ERROR(
            ReadAlone(work, left.first(wanted.copies), unit.range, next, wanted.sum));
        left = left.subspan(wanted.copies);
      }
    }
    for (WantedArray& wanted : unit.arrays) {
      Part part{wanted.sum, wanted.read};
      if (part.bytes < wanted.bytes && !Complete(work.rank, wanted, part)) continue;
      RESHARD_RETURN_IF_ERROR(use_.take(work.rank, *wanted.array, wanted.number, part.sum));
    }
    return {};
  }

  // Reads one parameter of a unit that covers `unit`, a window at a time.
  Status ReadAlone(PieceWork& work, std::span<const CopyRows> copies, ByteRange unit,
                   ByteRange next, Digest128& sum) const {
    for (const CopyRows& rows : copies) {
      const ByteRange range = Overlap(rows.copy().SourceSpan(), work.piece);
      if (range.length == 0) continue;
      const auto step = [&](ByteRange part) -> Status {
        const ByteRange behind{part.end(), unit.end() - part.end()};
        RESHARD_RETURN_IF_ERROR(ReadAhead(work.rank.file, behind.length > 0 ? behind : next));
        return rows.ForEach(source_.files(), part,
                            [&](const CopyRow& row) { AddRow(row, work.hasher, sum); });
      };
      RESHARD_RETURN_IF_ERROR(InSteps(
          range, kWindowBytes, work.stop, [&](uint64_t bytes) { Tell(work, bytes); }, step));
    }
    return {};
  }

  // Reads parameters that lie in one window. After an error their sums are undefined.
  Status ReadTogether(PieceWork& work, ReadUnit& unit, ByteRange next) const {
    if (work.stop.stop_requested()) return CancelledError("stopped on request");
    RESHARD_RETURN_IF_ERROR(ReadAhead(work.rank.file, next));
    RESHARD_ASSIGN_OR_RETURN(
        const Window window,
        source_.files().Open(work.rank.file, unit.range.offset, unit.range.length));
    uint64_t read = 0;
    RESHARD_RETURN_IF_ERROR(window.Read([&](const std::byte* data) {
      const CopyRows* rows = work.rows.data();
      for (WantedArray& wanted : unit.arrays) {
        const auto add = [&work, &wanted](const CopyRow& row) {
          AddRow(row, work.hasher, wanted.sum);
        };
        for (const CopyRows* const end = rows + wanted.copies; rows != end; ++rows) {
          const ByteRange range = Overlap(rows->copy().SourceSpan(), work.piece);
          if (range.length == 0) continue;
          rows->ForEachInWindow(range, data + (range.offset - unit.range.offset), add);
        }
        read += wanted.read;
      }
    }));
    Tell(work, read);
    return {};
  }

  Status ReadAhead(FileId file, ByteRange range) const {
    if (range.length == 0) return {};
    SourceFiles& files = source_.files();
    return files.Prefetch(file, range.offset, files.BytesToAskAhead(range.offset, range.length));
  }

  // Adds the sums of other pieces to `part`. Returns whether all bytes of `wanted` are complete;
  // otherwise keeps the sum.
  bool Complete(const RankFileOfStage& rank, const WantedArray& wanted, Part& part) {
    const std::scoped_lock lock(mutex_);
    const auto place =
        parts_.try_emplace({rank.stage, rank.local, std::string(wanted.array->name)}, Part()).first;
    part.sum ^= place->second.sum;
    part.bytes += place->second.bytes;
    if (part.bytes < wanted.bytes) {
      place->second = part;
      return false;
    }
    parts_.erase(place);
    return true;
  }

  const Source& source_;
  const DigestUse& use_;
  const SharedWork& work_;
  std::mutex mutex_;               // guards parts_
  std::map<PartKey, Part> parts_;  // of parameters in several pieces
};

}  // namespace

std::vector<RankFileOfStage> FilesOfStages(const Source& source, std::span<const int64_t> stages) {
  std::vector<RankFileOfStage> ranks;
  for (const int64_t stage : std::set<int64_t>(stages.begin(), stages.end())) {
    for (const int64_t local : source.ranks().LocalRanks(stage)) {
      const int64_t rank = source.RankOf(stage, local);
      ranks.push_back({stage, local, source.ranks().files.at(rank)});
    }
  }
  return ranks;
}

Status DigestRankFiles(const Source& source, std::span<const RankFileOfStage> ranks,
                       const DigestUse& use, const SharedWork& work, uint64_t piece_bytes) {
  // The last file comes first: after indexing in order, most of its bytes are still cached.
  const std::vector<RankFileOfStage> last_first(ranks.rbegin(), ranks.rend());
  std::vector<uint64_t> sizes(last_first.size());
  const auto look = [&](size_t i, const std::stop_token&) -> Status {
    RESHARD_ASSIGN_OR_RETURN(sizes[i], source.files().Size(last_first[i].file));
    return {};
  };
  RESHARD_RETURN_IF_ERROR(RunWorkers(work.workers, last_first.size(), look, work.stop));
  PieceReader reader(source, use, work);
  return ForEachPiece(sizes, piece_bytes, work,
                      [&](size_t index, ByteRange piece, const std::stop_token& stop) {
                        return reader.Read(last_first[index], piece, stop);
                      });
}

}  // namespace reshard
