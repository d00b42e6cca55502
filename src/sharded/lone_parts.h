// Files of torch.save that hold parts of DTensors. Without the files of the other ranks they hold
// no tensor, whatever their names.
//
// Functions without state; any thread.
#ifndef RESHARD_SRC_SHARDED_LONE_PARTS_H_
#define RESHARD_SRC_SHARDED_LONE_PARTS_H_

#include <functional>
#include <string>
#include <string_view>

#include "format/container/device_mesh.h"
#include "reshard/status.h"
#include "src/source/indexed_file.h"

namespace reshard {

// Whether a caller takes such a file by itself.
enum class LoneParts {
  kRefused,
  kRefusedUnlessPartial,  // by its option `partial`
  kTaken,
  kListed,  // likewise, and OpenedSource::warnings says so
};

// Takes the name of an array in its file. Null: all are wanted.
using WantsArray = std::function<Result<bool>(const std::string& name)>;

// Says in which files of ranks the file at `path` has to stand to be read, by its name.
std::string AdviceForRanks(const std::string& path, const MeshTensor& part);

// Fails with kMismatch if the file at `path` has a wanted part, and `use` does not take it. Errors:
// also as `wants`.
Status CheckHoldsNoPart(const std::string& path, const IndexedFile& file, const WantsArray& wants,
                        LoneParts use);

}  // namespace reshard

#endif  // RESHARD_SRC_SHARDED_LONE_PARTS_H_
