// DigestRankFiles: the logical digests of the arrays of rank files, all read in a single pass.
//
// Any number of threads share the files in pieces. They pass on results at once, so that memory
// does not depend on the files' sizes.
#ifndef RESHARD_SRC_VERIFY_RANK_FILE_DIGESTS_H_
#define RESHARD_SRC_VERIFY_RANK_FILE_DIGESTS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "reshard/status.h"
#include "reshard/tensor.h"
#include "src/digest/digest128.h"
#include "src/io/shared_work.h"
#include "src/io/source_files.h"
#include "src/source/source.h"
#include "src/tensor/block_copy.h"
#include "src/verify/copied_bytes.h"

namespace reshard {

// The file of a local rank of a source stage.
struct RankFileOfStage {
  int64_t stage = 0;
  int64_t local = 0;
  FileId file = 0;
};

// Returns the files in these source stages, by stage and rank. A repeated stage counts once.
std::vector<RankFileOfStage> FilesOfStages(const Source& source, std::span<const int64_t> stages);

// The use of each parameter; called from several threads at a time.
struct DigestUse {
  // Appends to `copies` the copies that move the content of the parameter, or the Values of a
  // MapTensor, in file order, to their places in the full tensor. Returns the parameter's number
  // for `take`; no value if no digest is wanted.
  std::function<Result<std::optional<size_t>>(const RankFileOfStage&, const StoredArray&,
                                              std::vector<BlockCopy>& copies)>
      places;
  // Takes the digest of the bytes at those places. In any order, once for each.
  std::function<Status(const RankFileOfStage&, const StoredArray&, size_t number, const Digest128&)>
      take;
};

// Reads each wanted byte of `ranks` once, in pieces of files of `piece_bytes`. Work is counted in
// bytes of the files, whether or not they are read. Errors: as `use`, SourceFiles and TableCache;
// kCancelled.
Status DigestRankFiles(const Source& source, std::span<const RankFileOfStage> ranks,
                       const DigestUse& use, const SharedWork& work,
                       uint64_t piece_bytes = kPieceBytes);

}  // namespace reshard

#endif  // RESHARD_SRC_VERIFY_RANK_FILE_DIGESTS_H_
