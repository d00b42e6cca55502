// WindowCopier: copies runs of source files into buffers, through windows.
//
// Knows runs only, no plans. One thread uses an object at a time.
#ifndef RESHARD_SRC_WRITE_WINDOW_COPIER_H_
#define RESHARD_SRC_WRITE_WINDOW_COPIER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "reshard/byte_range.h"
#include "reshard/status.h"
#include "src/io/source_files.h"
#include "src/write/source_stretch.h"
#include "src/write/target_digest.h"

namespace reshard {

// Bytes of this number stay in the cache of a core between two uses.
inline constexpr uint64_t kCacheBytes = uint64_t{256} << 10;

// Equally long runs at equal distances.
struct RunRow {
  uint64_t source = 0;  // offset in the source file
  uint64_t out = 0;     // offset in the output buffer
  uint64_t length = 0;  // of a run
  uint64_t count = 1;
  uint64_t source_stride = 0;
  uint64_t out_stride = 0;
};

// Collects rows with ascending source offsets until they fill a window, then copies them together.
// For each copy: Begin, Add for each row, Flush. After an error it is of no more use.
//
// If several copies read a stretch, its window stays open for the later ones. All such windows
// together hold at most kMostSharedBytes.
class WindowCopier {
 public:
  // `stretches`: those that the copies to come need.
  explicit WindowCopier(SourceFiles& files, std::vector<Stretch> stretches = {});

  // Begins a copy from `file`, after the last copy was flushed. Adds the copied bytes to `digest`
  // too, unless it is null. `out` and `digest` are used until Flush.
  void Begin(FileId file, std::span<std::byte> out, CopyDigest* digest);
  // Adds a row that begins behind the rows before it. Errors: as SourceFiles.
  Status Add(const RunRow& row) {
    added_bytes_ += row.length * row.count;
    return SplitAtWindows(row);
  }
  // Copies the rows that were added and not copied yet. Errors: as SourceFiles.
  Status Flush();

  // The bytes of the rows added since Begin.
  uint64_t added_bytes() const { return added_bytes_; }

 private:
  struct SharedWindow {
    FileId file;
    ByteRange range;
    Window window;
  };

  const SharedWindow* FindOrOpenShared(ByteRange range);
  void MakeRoomFor(uint64_t length);
  Status CopyRows(const Window& window, uint64_t begin);
  Status SplitAtWindows(RunRow row);
  Status AddPart(const RunRow& part);

  SourceFiles& files_;
  std::vector<Stretch> stretches_;    // that several copies read
  std::vector<SharedWindow> shared_;  // at most one of a file
  FileId file_ = 0;
  std::span<std::byte> out_;
  CopyDigest* digest_ = nullptr;
  std::array<RunRow, 128> rows_;
  size_t size_ = 0;     // of rows_
  uint64_t begin_ = 0;  // the source bytes of the rows
  uint64_t end_ = 0;
  uint64_t added_bytes_ = 0;
};

}  // namespace reshard

#endif  // RESHARD_SRC_WRITE_WINDOW_COPIER_H_
