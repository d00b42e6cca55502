// The places that source files state about themselves. Their names state the rank, and the number
// among several files. DCP_SHARDING_INFO states the places of their arrays in the tensors.
//
// Any number of threads may call these functions.
#ifndef RESHARD_SRC_CONVERT_STATED_PLACES_H_
#define RESHARD_SRC_CONVERT_STATED_PLACES_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/options.h"
#include "reshard/status.h"
#include "src/convert/opened_source.h"
#include "src/io/source_files.h"
#include "src/source/table_cache.h"

namespace reshard {

// Returns the ranks that a file name states by its words rank_N or rankN. A word that another one
// qualifies, as in local_rank_3 or lora_rank_8, states another number.
std::vector<int64_t> RanksStatedBy(std::string_view name);

// Fails with kMismatch if a file that was found for a rank states only other ranks by its name.
// Files that `spec` gives one by one are taken as they are.
Status CheckRanksOfNames(const OpenedSource& source, const SourceSpec& spec);

// Fails with kMismatch if the set is incomplete: a name such as model-00001-of-00002.safetensors
// states that its file is one of several, and `paths` lacks one of these. So do names of
// MindFormers 2.0 such as model-0000000-0000002.safetensors. Folders do not count, as
// ranks may have one each. Also fails for PyTorch's names such as
// shard-00001-model-00001-of-00001.safetensors, if the folder has other shards that are not in
// `paths`, or if this is not the first one.
Status CheckAllParts(std::span<const std::string> paths);

// The same of all chosen files of a source.
Status CheckAllParts(const OpenedSource& source);

// How the arrays of a file are taken.
enum class TakenAs {
  kWhole,   // as full tensors
  kSlices,  // joined along dimension 0, in the order of the files
  kPlaced,  // as a strategy says
};

// Fails with kMismatch if DCP_SHARDING_INFO states another place for an array of `tables`, or if
// the stated places of a cut parameter do not cover the tensor. Fails with kCorrupt if it cannot be
// parsed. `files` has the paths.
Status CheckSavedOffsets(std::span<const TableHandle> tables, const SourceFiles& files, TakenAs as);

// As above, for the opened files of a source. Errors: also from reading a table.
Status CheckSavedOffsets(OpenedSource& source);

}  // namespace reshard

#endif  // RESHARD_SRC_CONVERT_STATED_PLACES_H_
