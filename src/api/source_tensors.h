// The tensors of a source in no layout, as digest, diff and values read them.
#ifndef RESHARD_SRC_API_SOURCE_TENSORS_H_
#define RESHARD_SRC_API_SOURCE_TENSORS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "reshard/compare.h"
#include "reshard/status.h"
#include "src/convert/opened_source.h"
#include "src/convert/source_checks.h"
#include "src/plan/parameter_choice.h"
#include "src/sharded/lone_parts.h"
#include "src/source/placement.h"
#include "src/verify/checkpoint_contents.h"

namespace reshard {

// Returns the window budget for opening a source whose contents are read after its headers. If
// headers are dense, indexing brings all of a file into the page cache, and this budget keeps those
// bytes. Once its files are open, call KeepUsualWindows.
uint64_t WindowsKept();
// Windows of files that are read, not mapped, take memory of their own: of such a source no more
// than usual are kept.
void KeepUsualWindows(OpenedSource& source);

// Which files are to be read of a source that is opened.
enum class RanksRead { kOneReplica, kAll };

struct SourceTensors {
  std::unique_ptr<OpenedSource> source;
  ParameterChoice choice;
  RanksRead ranks = RanksRead::kAll;
  std::vector<SourceTensor> tensors;  // that it takes, in the order of the files
  uint64_t left_out = 0;              // of the others
  std::string first_left_out;
  std::vector<Warning> warnings;
  std::vector<std::string> notes;
};

// Opens a source and lists the tensors that `choice` takes. `workers` threads index its files.
// Errors: as OpenSource, ListTensors and CheckNames, and
//   kMismatch: the strategy is most likely another checkpoint's; unless `lone_parts` takes them,
//     arrays are parts of tensors
//   kInvalidArgument: an empty path
//   kCancelled
Result<SourceTensors> OpenTensors(const SourceSpec& spec, ParameterChoice choice, RanksRead ranks,
                                  size_t workers, const std::stop_token& stop,
                                  LoneParts lone_parts = LoneParts::kRefused);

// The bytes to read.
struct Reading {
  CrcFiles crc;        // of the files that are to be read
  uint64_t bytes = 0;  // of files or shards; files that state a CRC count twice
};
// Returns the files of all ranks, or one replica of each shard, depending on the opening. Errors:
// as FindCrcFiles and CopiesOf.
Result<Reading> FindReading(const SourceTensors& opened);

// Reads the files of all ranks, or one replica of each shard, depending on the opening. Errors: as
// the other ReadContents.
Result<CheckpointContents> ReadContents(const SourceTensors& opened, const SharedWork& work);

}  // namespace reshard

#endif  // RESHARD_SRC_API_SOURCE_TENSORS_H_
