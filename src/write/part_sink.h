// PartSink: where the parts of target files go that a run writes.
//
// Implemented for a conversion alone and for one of several workers (src/job), and for a single
// file. The functions are called by any thread, several at a time, each with parts of its own.
#ifndef RESHARD_SRC_WRITE_PART_SINK_H_
#define RESHARD_SRC_WRITE_PART_SINK_H_

#include <cstddef>
#include <stop_token>

#include "reshard/byte_range.h"
#include "reshard/status.h"
#include "src/os/output_directory.h"
#include "src/os/staged_file.h"

namespace reshard {

// A part of a target file; mostly the whole of it.
struct FilePart {
  size_t file = 0;  // number in the list of files
  ByteRange range;  // begins at a multiple of kDigestBlockBytes, ends at one or at the file's end

  friend bool operator==(const FilePart&, const FilePart&) = default;
};

class PartSink {
 public:
  virtual ~PartSink() = default;

  // Whether the part need not be written, because it was. A request of `stop` ends the call with
  // kCancelled.
  virtual Result<bool> IsKept(const FilePart& part, const std::stop_token& stop) const = 0;
  // Makes, or opens, the file that takes just the bytes of the part. Errors: those of StagedFile.
  virtual Result<StagedFile> Create(const FilePart& part, const WriteOptions& options) const = 0;
  // All bytes of the part are in `file`: makes them durable, then `record`, which is a part record
  // for a whole file and a block record for any other part. Errors: those of StagedFile and
  // `record`; kIo.
  virtual Status Finish(const FilePart& part, StagedFile file,
                        const OutputDirectory::ByteSource& record) const = 0;
};

}  // namespace reshard

#endif  // RESHARD_SRC_WRITE_PART_SINK_H_
