// The execution of a conversion: every target file, written and finished.
#ifndef RESHARD_SRC_CONVERT_WRITE_TARGETS_H_
#define RESHARD_SRC_CONVERT_WRITE_TARGETS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "reshard/convert.h"
#include "reshard/status.h"
#include "src/convert/memory_budget.h"
#include "src/convert/opened_conversion.h"
#include "src/convert/opened_source.h"
#include "src/convert/work_list.h"
#include "src/io/shared_work.h"
#include "src/job/target_job.h"
#include "src/os/storage_kind.h"
#include "src/write/part_sink.h"
#include "src/write/target_record.h"

namespace reshard {

// A part of a target file of a conversion.
struct TargetShare {
  size_t target = 0;  // number in WorkList::targets
  FilePart part;      // as the job knows it
};

// Returns `parts` of a job's `files` with the numbers that the files have in `list`, by them.
std::vector<TargetShare> SharesOf(const WorkList& list, const std::vector<ManifestFile>& files,
                                  const std::vector<FilePart>& parts);

// Returns the numbers of `parts` in groups of at most `most`. Parts with the same source ranks are
// in one group, in order; a part that shares its sources with no other is alone. Groups are ordered
// by their first part.
std::vector<std::vector<size_t>> GroupParts(const WorkList& list,
                                            const std::vector<TargetShare>& parts, size_t most);

struct Written {
  uint64_t kept = 0;         // parts that need not be written
  uint64_t bytes_read = 0;   // content bytes taken from the sources for the others
  uint64_t memory_peak = 0;  // by now, as in ConvertReport
  ConvertReport::IoUsed io;
};

// Returns the chosen files, as part records name them.
SourceNames NamesOf(const OpenedSource& source);

// Starts reading the source bytes of the first files if a server has to be asked: as much as there
// is room for after planning. It gives this room to the source's windows, and WriteTargets finds
// the bytes there. Does not wait. The later read reports errors.
void BeginReading(OpenedConversion& opened, const MemoryBudget& budget);

// The destination of target files.
struct Destination {
  const PartSink& sink;
  StorageKind storage;
  std::string fingerprint;                        // of the plan of all files, for the records
  std::function<void(uint64_t bytes)> kept = {};  // called for each part that is; may be empty
};

// Writes `parts` of the files, on several threads. A plan that is not kept is made in its turn, so
// that few plans are in memory at a time. Only progress and stop of `shared` count. The timeline
// gets the amounts.
// Errors: from planning, reading and writing; kInternal if the digests of both sides differ;
// kCancelled.
Result<Written> WriteTargets(const Conversion& conversion, const std::vector<TargetShare>& parts,
                             const Destination& destination, const SharedWork& shared);

// Reads the files of `list` from an interrupted publication, and compares them with the digests of
// its manifest, several at a time. Errors: kCorrupt, naming a file that differs; as SourceFiles;
// kCancelled.
Status CheckPublication(const WorkList& list, const TargetJob& job, const SharedWork& shared);

}  // namespace reshard

#endif  // RESHARD_SRC_CONVERT_WRITE_TARGETS_H_
