// PartSink: the destination of the parts of target files that a run writes.
//
// There are implementations for a conversion alone and for one of several workers (src/job), and
// for a single file. Any thread may call the functions, several at a time, each for its own parts.
#ifndef RESHARD_SRC_WRITE_PART_SINK_H_
#define RESHARD_SRC_WRITE_PART_SINK_H_

#include <cstddef>
#include <functional>
#include <stop_token>

#include "reshard/byte_range.h"
#include "reshard/status.h"
#include "src/os/output_directory.h"
#include "src/os/staged_file.h"
#include "src/record/part_record.h"

namespace reshard {

// A part of a target file, mostly the whole file.
struct FilePart {
  size_t file = 0;  // number in the list of files
  ByteRange range;  // begins at a multiple of kDigestBlockBytes, ends at one or at the file's end

  friend bool operator==(const FilePart&, const FilePart&) = default;
};

// The facts about a part once all its bytes are written.
struct FinishedPart {
  // The part is a whole file that states its CRC-32 before its contents: now it is to be found and
  // written.
  bool lacks_crc = false;
  // Hands on the bytes of a part record for a whole file, of a block record for any other part.
  // `found` are the digests of a file that lacked its CRC, else null.
  std::function<Status(const FileDigests* found, const OutputDirectory::ByteSink& out)> record;
};

class PartSink {
 public:
  virtual ~PartSink() = default;

  // Whether the part need not be written, because it was. A request of `stop` ends the call with
  // kCancelled.
  virtual Result<bool> IsKept(const FilePart& part, const std::stop_token& stop) const = 0;
  // Makes or opens a file that takes exactly the bytes of the part. Errors: as StagedFile.
  virtual Result<StagedFile> Create(const FilePart& part, const WriteOptions& options) const = 0;
  // All bytes of the part are in `file`. Makes them durable, and then writes a durable record. A
  // request of `stop` may end the call with kCancelled. Errors: as StagedFile and as the record;
  // kIo.
  virtual Status Finish(const FilePart& part, StagedFile file, const FinishedPart& finished,
                        const std::stop_token& stop) const = 0;
};

}  // namespace reshard

#endif  // RESHARD_SRC_WRITE_PART_SINK_H_
