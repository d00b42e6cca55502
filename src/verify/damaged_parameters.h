// Which parameters of a target file are damaged.
//
// All state is in the arguments; any number of threads may call.
#ifndef RESHARD_SRC_VERIFY_DAMAGED_PARAMETERS_H_
#define RESHARD_SRC_VERIFY_DAMAGED_PARAMETERS_H_

#include <cstdint>
#include <stop_token>
#include <vector>

#include "reshard/byte_range.h"
#include "reshard/damage.h"
#include "reshard/status.h"
#include "src/io/source_files.h"

namespace reshard {

// A target file of which something is bad, and its part record, which is whole.
struct DamagedFile {
  FileId file = 0;
  FileId record = 0;
  uint64_t size = 0;                   // bytes that there are
  std::vector<ByteRange> blocks = {};  // the bad ones, in file order; they may end beyond `size`
};

// Names in `damage` the parameters whose content in a bad block has not its logical digest. Where
// all have, the damage is in what lies between the contents: then those whose header lies in a bad
// block are named.
// Errors: those of SourceFiles; kCorrupt when the record is not whole; kCancelled.
Status NameParameters(SourceFiles& files, const DamagedFile& damaged, const std::stop_token& stop,
                      Damage& damage);

}  // namespace reshard

#endif  // RESHARD_SRC_VERIFY_DAMAGED_PARAMETERS_H_
