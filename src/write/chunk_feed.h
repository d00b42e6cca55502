// ChunkFeed: hands out the chunks of all parts that a run writes, and tracks each chunk.
//
// A lane without other work opens the parts of the next group. In a group, the part that is
// furthest behind goes on, so that all parts read near the same places of their sources. The chunks
// of a part come in order. Their file digest is a baton that goes from chunk to chunk.
//
// After a failure, lanes finish all chunks whose place comes before the failure's place, and only
// these. So the first failure by place is reported, for every number of lanes and every chunk size.
// Places are ordered by group, then by the number of the part's bytes before the place, then by
// part. A failed write has no place and ends everything at once.
//
// Thread-safe. No deadlock: among the chunks handed out and not yet digested, the lowest one of
// each part does not wait. This requires that a lane holds a buffer before it takes a chunk.
#ifndef RESHARD_SRC_WRITE_CHUNK_FEED_H_
#define RESHARD_SRC_WRITE_CHUNK_FEED_H_

#include <compare>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include "reshard/byte_range.h"
#include "reshard/status.h"
#include "src/io/source_files.h"
#include "src/os/staged_file.h"
#include "src/plan/target_plan.h"
#include "src/write/lost_in_casts.h"
#include "src/write/part_sink.h"
#include "src/write/part_writer.h"
#include "src/write/target_digest.h"

namespace reshard {

// A part of a target file that is being written.
//
// It stays at its address, because the digest refers to the plan. Any number of threads may fill
// and write its chunks. One thread at a time uses the digest, as ChunkFeed hands it on.
struct TargetPart {
  // `staged` expects the bytes `bytes`, or their encrypted form.
  TargetPart(PlanHandle target_plan, ByteRange bytes, StagedFile staged, const PartWork& work)
      : kept(std::move(target_plan)), plan(*kept), range(bytes), file(std::move(staged)) {
    if (work.digests) digest.emplace(plan, range);
  }
  TargetPart(const TargetPart&) = delete;
  TargetPart& operator=(const TargetPart&) = delete;

  const PlanHandle kept;
  const TargetPlan& plan;  // which it points to
  const ByteRange range;
  StagedFile file;
  std::optional<TargetDigest> digest;  // no value if no proof is wanted
  LostInCasts lost;
};

class ChunkFeed {
 private:
  struct Entry;

 public:
  // Bytes of a part that are to be read ahead.
  struct Later {
    std::shared_ptr<const TargetPart> part;  // another lane may finish it meanwhile
    ByteRange range;
  };
  // A part of a TargetPart's range, handed out to one lane.
  class Chunk {
   public:
    TargetPart& part() const;
    ByteRange range() const { return range_; }
    // The chunks to read ahead together. In the same part: the chunk that a lane will take after
    // about as many other chunks as there are lanes. In a group of several parts: the first lane
    // asks for the bytes that all parts take at the next place, because one part skips bytes that
    // another takes.
    //
    // If the files are on servers, the list goes as far ahead as there is room, into other parts if
    // this one has been asked for completely. Each answer takes a while, and many come at once.
    // Empty if there are no more bytes, or no room.
    const std::vector<Later>& later() const { return later_; }

   private:
    friend class ChunkFeed;
    Entry* entry_ = nullptr;
    uint64_t number_ = 0;  // within the part
    ByteRange range_;
    std::vector<Later> later_;
  };

  // All arguments must outlive the feed. If the proof of a part fails, `files` tells whether
  // sources have changed.
  ChunkFeed(const SourceFiles& files, const PartWork& work, const PartSink& sink,
            const LaneOptions& options, WriteCounts& counts);
  ~ChunkFeed();
  ChunkFeed(const ChunkFeed&) = delete;
  ChunkFeed& operator=(const ChunkFeed&) = delete;

  // Returns the next chunk; opens parts, or waits for other lanes that do. Returns no value once
  // all chunks are handed out, or after a failure.
  std::optional<Chunk> Take();

  // Waits until the chunks before this one have passed the baton. Returns false after a failure.
  bool WaitForBaton(const Chunk& chunk);
  void PassBaton(const Chunk& chunk);

  // The chunk is in its file. With the last one of its part, finishes the part.
  void Written(const Chunk& chunk);

  // The chunk cannot be filled, from byte `offset` of the target file on.
  void FailAt(const Chunk& chunk, uint64_t offset, Status status);
  // These end everything at once; an earlier failure stays. Cancel's message needs no memory.
  void Fail(Status status);
  void Cancel();
  // Whether a failure leaves the chunk to be done.
  bool IsWanted(const Chunk& chunk) const;

  // Only when no lane is at work any more.
  Status TakeFailure() { return std::move(failure_); }

 private:
  // A part that is open.
  struct Entry {
    size_t number = 0;  // of the part
    size_t group = 0;
    std::shared_ptr<TargetPart> part;
    uint64_t chunk_bytes = 0;
    uint64_t next = 0;      // offset of the next chunk, from the part's beginning
    uint64_t asked = 0;     // the end of the bytes handed out for reading ahead
    uint64_t taken = 0;     // chunks
    uint64_t digested = 0;  // chunks: the number of the one that has the baton
    uint64_t written = 0;   // bytes
  };
  struct Place {
    size_t group = 0;
    double done = 0;  // the share of the part's bytes that are before it
    size_t part = 0;

    friend auto operator<=>(const Place&, const Place&) = default;
  };
  struct Group {
    size_t number = 0;
    std::vector<Entry*> entries;  // with chunks to hand out
    uint64_t chunk_bytes = 0;
    size_t missing = 0;  // parts that are not open yet
  };

  // These want the lock to be held, and hold it when they return.
  std::optional<Chunk> NextChunk();
  // Has bytes read ahead with `chunk`, which was taken of `entry` of the group.
  void AskAhead(const Group& group, Entry& entry, Chunk& chunk) const;
  // Returns the bytes of the entry's part to be read ahead, from the part's beginning; `parts` of
  // its group have chunks to hand out.
  ByteRange LaterBytes(const Entry& entry, size_t parts) const;
  // As above, for a group of several parts. `taken` has just got the chunk at `begin`.
  static ByteRange StepBytes(const Entry& entry, const Entry& taken, uint64_t begin);
  // Hands `range`, from the beginning of the entry's part, out with the chunk.
  static void Ask(Entry& entry, ByteRange range, Chunk& chunk);
  // Room for reading ahead in a group of this many parts, without bytes that lanes have taken and
  // not used.
  uint64_t RoomAhead(size_t parts) const;
  // Makes `chunk` read ahead in a group behind `group`, if `group` has been asked for completely.
  void AskBehind(const Group& group, Chunk& chunk);
  // Whether all of `group` has been asked for.
  static bool IsAsked(const Group& group);
  // Whether all open parts have been requested, and there are more. Then it is time to open these.
  bool MayOpenAhead() const;
  bool done() const;
  void OpenNext(std::unique_lock<std::mutex>& lock);

  static Place PlaceOf(const Entry& entry, uint64_t done);
  static Place PlaceOf(const Chunk& chunk, uint64_t offset);
  bool IsPlaceWanted(const Place& place) const;
  // Whether others are opening parts of a group that is to be done in spite of a failure.
  bool IsWantedBeingOpened() const;

  void EndAtOnce();

  void FailAtPlace(const Place& place, Status status);
  Result<std::unique_ptr<Entry>> Open(size_t number, size_t group, uint64_t chunk_bytes);
  // Plans a part and makes its file. Null if the part is kept.
  Result<std::unique_ptr<TargetPart>> OpenPart(const FilePart& part);
  // Proves a part whose bytes are all in its file, and finishes it with its record.
  Status Finish(const FilePart& part, TargetPart& written);
  void FinishEntry(Entry* entry);

  const SourceFiles& files_;
  const PartWork& work_;
  const PartSink& sink_;
  const LaneOptions options_;
  WriteCounts& counts_;
  std::stop_source stop_;     // for sink_
  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  size_t next_group_ = 0;    // the one to open parts of next, in work_.groups
  size_t next_part_ = 0;     // in that group
  std::list<Group> groups_;  // those begun, with parts to open or chunks to hand out
  std::map<Entry*, std::unique_ptr<Entry>> open_;
  size_t alive_ = 0;  // parts that are open or being opened or finished
  bool failed_ = false;
  Place failed_at_{};  // after a failure: chunks from this place on are not wanted
  Status failure_;
  // Made before any lane works, because making it could fail for lack of memory.
  Status cancelled_ = CancelledError("stopped on request");
};

}  // namespace reshard

#endif  // RESHARD_SRC_WRITE_CHUNK_FEED_H_
