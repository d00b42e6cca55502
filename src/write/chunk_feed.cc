#include "src/write/chunk_feed.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <variant>

#include "src/base/out_of_memory.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/os/memory_usage.h"
#include "src/write/target_record.h"

namespace reshard {
namespace {

constexpr uint64_t kSmallestChunk = uint64_t{256} << 10;
// A plan of so many holds some MiB in small pieces, which the next one need not find.
constexpr size_t kManySegments = 10'000;

// A chunk size such that a group's parts fit half of the windows with the reads of a step and of
// the next. Encrypted files get whole blocks.
uint64_t ChunkBytes(const LaneOptions& options, size_t parts, bool is_encrypted) {
  const uint64_t share = options.window_bytes / 4 / std::max<size_t>(parts, 1);
  const uint64_t unit = is_encrypted ? kPlainBlockBytes : uint64_t{StagedFile::kAlignment};
  const uint64_t bytes = std::min(options.chunk_bytes, std::max({share, kSmallestChunk, unit}));
  return bytes < unit ? bytes : bytes - bytes % unit;
}

// Returns the bytes of `range` that come from the sources.
uint64_t ContentBytes(const TargetPlan& plan, ByteRange range) {
  uint64_t bytes = 0;
  for (const Segment& segment : plan.segments) {
    const auto* const content = std::get_if<Content>(&segment);
    if (content == nullptr) continue;
    bytes += content->ImageRange(Overlap(content->target, range)).length;
  }
  return bytes;
}

}  // namespace

ChunkFeed::ChunkFeed(const SourceFiles& files, const PartWork& work, const PartSink& sink,
                     const LaneOptions& options, WriteCounts& counts)
    : files_(files), work_(work), sink_(sink), options_(options), counts_(counts) {}

ChunkFeed::~ChunkFeed() = default;

TargetPart& ChunkFeed::Chunk::part() const { return *entry_->part; }

bool ChunkFeed::done() const {
  return next_group_ == work_.groups.size() && groups_.empty() && open_.empty();
}

std::optional<ChunkFeed::Chunk> ChunkFeed::Take() {
  std::unique_lock lock(mutex_);
  while (true) {
    if (MayOpenAhead()) {
      OpenNext(lock);
      continue;
    }
    if (std::optional<Chunk> chunk = NextChunk()) return chunk;
    if (failed_) {
      if (!IsWantedBeingOpened()) return std::nullopt;
      changed_.wait(lock);
    } else if (next_group_ < work_.groups.size()) {
      if (alive_ >= options_.most_open) {
        changed_.wait(lock);  // other lanes and writers finish the open chunks
      } else {
        OpenNext(lock);
      }
    } else if (groups_.empty()) {
      return std::nullopt;
    } else {
      changed_.wait(lock);  // other lanes are opening the last parts
    }
  }
}

std::optional<ChunkFeed::Chunk> ChunkFeed::NextChunk() {
  for (auto group = groups_.begin(); group != groups_.end();) {
    if (group->missing > 0) {  // they begin together
      ++group;
      continue;
    }
    if (group->entries.empty()) {
      group = groups_.erase(group);
      continue;
    }
    const auto behind = std::min_element(
        group->entries.begin(), group->entries.end(),
        [](const Entry* a, const Entry* b) { return PlaceOf(*a, a->next) < PlaceOf(*b, b->next); });
    Entry* const entry = *behind;
    if (!IsPlaceWanted(PlaceOf(*entry, entry->next))) return std::nullopt;
    const ByteRange part = entry->part->range;
    const uint64_t length = std::min(entry->chunk_bytes, part.length - entry->next);
    Chunk chunk;
    chunk.entry_ = entry;
    chunk.number_ = entry->taken++;
    chunk.range_ = {part.offset + entry->next, length};
    entry->next += length;
    AskAhead(*group, *entry, chunk);
    if (chunk.later_.empty() && files_.HasReadFiles() && IsAsked(*group)) AskBehind(*group, chunk);
    if (entry->next == part.length) group->entries.erase(behind);
    return chunk;
  }
  return std::nullopt;
}

void ChunkFeed::Ask(Entry& entry, ByteRange range, Chunk& chunk) {
  if (range.length == 0) return;
  chunk.later_.push_back({entry.part, {entry.part->range.offset + range.offset, range.length}});
  entry.asked = range.end();
}

void ChunkFeed::AskAhead(const Group& group, Entry& entry, Chunk& chunk) const {
  if (group.entries.size() == 1 || files_.HasReadFiles()) {
    return Ask(entry, LaterBytes(entry, group.entries.size()), chunk);
  }
  const uint64_t begin = chunk.range_.offset - entry.part->range.offset;
  for (Entry* const other : group.entries) Ask(*other, StepBytes(*other, entry, begin), chunk);
}

ByteRange ChunkFeed::StepBytes(const Entry& entry, const Entry& taken, uint64_t begin) {
  // Up to the chunk behind the taken one, in whole chunks. Never farther than this part's own next
  // chunk, because chunks of a short part are large steps.
  const double done = static_cast<double>(taken.next + taken.chunk_bytes) /
                      static_cast<double>(taken.part->range.length);
  const uint64_t length = entry.part->range.length;
  const auto chunks = static_cast<uint64_t>(
      std::ceil(done * static_cast<double>(length) / static_cast<double>(entry.chunk_bytes)));
  const uint64_t end = std::min({length, chunks * entry.chunk_bytes,
                                 entry.next + (&entry == &taken ? 1 : 2) * entry.chunk_bytes});
  begin = std::max(entry.asked, &entry == &taken ? begin : entry.next);
  return begin < end ? ByteRange{begin, end - begin} : ByteRange{};
}

ByteRange ChunkFeed::LaterBytes(const Entry& entry, size_t parts) const {
  const uint64_t length = entry.part->range.length;
  uint64_t begin = 0;
  uint64_t end = 0;
  if (files_.HasReadFiles()) {
    begin = std::max(entry.asked, entry.next);
    end = entry.next + std::max(RoomAhead(parts) / parts, parts == 1 ? entry.chunk_bytes : 0);
  } else {
    // As many chunks later as lanes come back to this part before this one does.
    begin = entry.next + (options_.lanes - 1) * entry.chunk_bytes;
    end = begin + entry.chunk_bytes;
  }
  end = std::min(end, length);
  return begin < end ? ByteRange{begin, end - begin} : ByteRange{};
}

uint64_t ChunkFeed::RoomAhead(size_t parts) const {
  // Several parts come back to windows that they share. An equal number of windows stays for them;
  // if there is little room, all stay.
  const uint64_t room = parts == 1 ? options_.window_bytes / 4 * 3 : options_.window_bytes / 2;
  return room - std::min(room, options_.lanes * options_.chunk_bytes);
}

bool ChunkFeed::IsAsked(const Group& group) {
  return group.missing == 0 &&
         std::all_of(group.entries.begin(), group.entries.end(), [](const Entry* entry) {
           return std::max(entry->asked, entry->next) == entry->part->range.length;
         });
}

bool ChunkFeed::MayOpenAhead() const {
  if (!files_.HasReadFiles() || failed_ || next_group_ == work_.groups.size() ||
      alive_ >= options_.most_open) {
    return false;
  }
  // One that was begun is opened to its end.
  return std::all_of(groups_.begin(), groups_.end(),
                     [](const Group& group) { return group.missing > 0 || IsAsked(group); });
}

void ChunkFeed::AskBehind(const Group& group, Chunk& chunk) {
  uint64_t ahead = 0;  // asked for and not handed out
  bool is_behind = false;
  for (Group& next : groups_) {
    if (next.missing > 0) continue;
    is_behind = is_behind || &next == &group;
    for (const Entry* entry : next.entries)
      ahead += entry->asked - std::min(entry->asked, entry->next);
    if (!is_behind || IsAsked(next)) continue;
    Entry* const entry = *std::min_element(next.entries.begin(), next.entries.end(),
                                           [](const Entry* a, const Entry* b) {
                                             return PlaceOf(*a, a->asked) < PlaceOf(*b, b->asked);
                                           });
    const uint64_t room = RoomAhead(next.entries.size());
    const uint64_t begin = std::max(entry->asked, entry->next);
    const uint64_t length =
        std::min(room - std::min(room, ahead), entry->part->range.length - begin);
    return Ask(*entry, {begin, length}, chunk);
  }
}

void ChunkFeed::OpenNext(std::unique_lock<std::mutex>& lock) {
  const std::vector<size_t>& parts = work_.groups[next_group_];
  if (next_part_ == 0) {
    Group group;
    group.entries.reserve(parts.size());
    group.chunk_bytes = ChunkBytes(options_, parts.size(), work_.encryption.has_value());
    group.missing = parts.size();
    group.number = next_group_;
    groups_.push_back(std::move(group));
  }
  // A group is erased only when all its parts are there.
  Group& group = groups_.back();
  const size_t number = parts[next_part_++];
  const size_t group_number = next_group_;
  if (next_part_ == parts.size()) {
    next_part_ = 0;
    ++next_group_;
  }
  ++alive_;
  lock.unlock();
  auto entry = CatchOutOfMemory([&] { return Open(number, group_number, group.chunk_bytes); });
  if (!entry.ok()) {
    FailAtPlace({group_number, -1.0, number}, entry.status());  // before its group begins
    lock.lock();
    return;
  }
  lock.lock();
  if (*entry) {
    group.entries.push_back(entry->get());
    Entry* const key = entry->get();
    open_.emplace(key, std::move(*entry));
  } else {
    --alive_;
  }
  --group.missing;
  changed_.notify_all();
}

Result<std::unique_ptr<TargetPart>> ChunkFeed::OpenPart(const FilePart& part) {
  RESHARD_ASSIGN_OR_RETURN(const bool is_kept, sink_.IsKept(part, stop_.get_token()));
  if (is_kept) {
    ++counts_.kept;
    if (work_.progress) work_.progress(part.range.length, true);
    if (work_.part_done) work_.part_done();
    return std::unique_ptr<TargetPart>();
  }
  RESHARD_ASSIGN_OR_RETURN(auto plan, work_.plan(part.file));
  counts_.content_bytes += ContentBytes(*plan, part.range);
  RESHARD_ASSIGN_OR_RETURN(StagedFile file, sink_.Create(part, work_.write));
  return std::make_unique<TargetPart>(std::move(plan), part.range, std::move(file), work_);
}

Status ChunkFeed::Finish(const FilePart& part, TargetPart& written) {
  const TargetPlan& plan = written.plan;
  const TargetDigest* const digest = written.digest ? &*written.digest : nullptr;
  if (digest != nullptr) RESHARD_RETURN_IF_ERROR(Prove(*digest, files_));
  const std::vector<LostValues> lost = written.lost.values();
  if (work_.refuse_overflow) RESHARD_RETURN_IF_ERROR(CheckNoOverflow(plan.path, lost));
  ++(written.file.direct() ? counts_.direct : counts_.buffered);
  FinishedPart finished;
  const bool whole = part.range.length == plan.size;
  finished.lacks_crc = whole && plan.StatesCrc(CrcPlace::kInHeader);
  const RecordFacts facts{work_.fingerprint, work_.sources, digest, lost};
  finished.record = [&](const FileDigests* found, const OutputDirectory::ByteSink& out) -> Status {
    if (whole) return EncodeTargetRecord(plan, facts, found, out);
    RESHARD_ASSIGN_OR_RETURN(const std::string blocks, EncodePartBlocks(plan, part.range, facts));
    return out(blocks);
  };
  RESHARD_RETURN_IF_ERROR(sink_.Finish(part, std::move(written.file), finished, stop_.get_token()));
  if (work_.part_done) work_.part_done();
  return {};
}

// Returns null if there are no bytes to hand out: the part is kept, or it is empty.
Result<std::unique_ptr<ChunkFeed::Entry>> ChunkFeed::Open(size_t number, size_t group,
                                                          uint64_t chunk_bytes) {
  RESHARD_ASSIGN_OR_RETURN(std::unique_ptr<TargetPart> part, OpenPart(work_.parts[number]));
  if (part == nullptr) return std::unique_ptr<Entry>();
  if (part->range.length == 0) {
    RESHARD_RETURN_IF_ERROR(Finish(work_.parts[number], *part));
    return std::unique_ptr<Entry>();
  }
  auto entry = std::make_unique<Entry>();
  entry->number = number;
  entry->group = group;
  entry->part = std::move(part);
  entry->chunk_bytes = chunk_bytes;
  return entry;
}

bool ChunkFeed::WaitForBaton(const Chunk& chunk) {
  const Place place = PlaceOf(chunk, chunk.range_.offset);
  std::unique_lock lock(mutex_);
  changed_.wait(lock,
                [&] { return !IsPlaceWanted(place) || chunk.entry_->digested == chunk.number_; });
  return IsPlaceWanted(place);
}

void ChunkFeed::PassBaton(const Chunk& chunk) {
  const std::scoped_lock lock(mutex_);
  ++chunk.entry_->digested;
  changed_.notify_all();
}

void ChunkFeed::Written(const Chunk& chunk) {
  Entry* const entry = chunk.entry_;
  {
    const std::scoped_lock lock(mutex_);
    entry->written += chunk.range_.length;
    if (entry->written < entry->part->range.length) return;
  }
  FinishEntry(entry);
}

void ChunkFeed::FinishEntry(Entry* entry) {
  Status status =
      CatchOutOfMemory([&] { return Finish(work_.parts[entry->number], *entry->part); });
  if (!status.ok()) {
    return FailAtPlace(PlaceOf(*entry, entry->part->range.length), std::move(status));
  }
  std::unique_ptr<Entry> finished;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = open_.find(entry);
    finished = std::move(found->second);
    open_.erase(found);
  }
  const bool large = finished->part->plan.segments.size() >= kManySegments;
  finished.reset();
  if (large) ReturnFreeMemory();
  const std::scoped_lock lock(mutex_);
  --alive_;
  changed_.notify_all();
}

ChunkFeed::Place ChunkFeed::PlaceOf(const Entry& entry, uint64_t done) {
  return {entry.group, static_cast<double>(done) / static_cast<double>(entry.part->range.length),
          entry.number};
}

ChunkFeed::Place ChunkFeed::PlaceOf(const Chunk& chunk, uint64_t offset) {
  const uint64_t begin = chunk.part().range.offset;
  return PlaceOf(*chunk.entry_, offset - std::min(offset, begin));
}

bool ChunkFeed::IsPlaceWanted(const Place& place) const { return !failed_ || place < failed_at_; }

bool ChunkFeed::IsWantedBeingOpened() const {
  return std::any_of(groups_.begin(), groups_.end(), [this](const Group& group) {
    return group.missing > 0 && group.number < failed_at_.group;
  });
}

bool ChunkFeed::IsWanted(const Chunk& chunk) const {
  const std::scoped_lock lock(mutex_);
  return IsPlaceWanted(PlaceOf(chunk, chunk.range_.offset));
}

void ChunkFeed::FailAt(const Chunk& chunk, uint64_t offset, Status status) {
  FailAtPlace(PlaceOf(chunk, offset), std::move(status));
}

void ChunkFeed::FailAtPlace(const Place& place, Status status) {
  const std::scoped_lock lock(mutex_);
  if (!IsPlaceWanted(place)) return;
  failed_ = true;
  failed_at_ = place;
  failure_ = std::move(status);
  changed_.notify_all();
}

void ChunkFeed::Fail(Status status) {
  {
    const std::scoped_lock lock(mutex_);
    if (!failed_) failure_ = std::move(status);
    EndAtOnce();
  }
  stop_.request_stop();
}

void ChunkFeed::Cancel() {
  {
    const std::scoped_lock lock(mutex_);
    if (done()) return;
    if (!failed_) failure_ = std::move(cancelled_);
    EndAtOnce();
  }
  stop_.request_stop();
}

void ChunkFeed::EndAtOnce() {
  failed_ = true;
  failed_at_ = {0, -1.0, 0};
  changed_.notify_all();
}

}  // namespace reshard
