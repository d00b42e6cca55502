// ShardGrid: the box of a tensor that each rank of a stage holds.
//
// The full tensor is cut into a grid of equal boxes, cuts()[d] parts along dimension d. A rank
// holds one box; ranks with the same box are replicas. Ranks here are local to the stage.
// Immutable, so any number of threads may read it.
#ifndef RESHARD_SRC_SOURCE_SHARD_GRID_H_
#define RESHARD_SRC_SOURCE_SHARD_GRID_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "reshard/status.h"
#include "reshard/tensor.h"

namespace reshard {

class ShardGrid {
 public:
  static constexpr int kFree = -1;

  // A digit of a rank: (rank / stride) % size. The digits of a dimension, slowest first, give the
  // rank's part.
  struct Digit {
    int64_t size = 1;
    int64_t stride = 1;
    int dim = kFree;
    int64_t weight = 1;  // of the digit in the part, (part / weight) % size; the grid works it out
  };

  // The grid of `devices` ranks, cuts[d] parts along dimension d. `digits` together count the ranks
  // and, slowest first, the parts of each dimension. Where `modulus` is not 0, all digits are free,
  // and the part of dimension 0 is rank % modulus.
  ShardGrid(int64_t devices, std::vector<int64_t> cuts, std::vector<Digit> digits, int64_t modulus);

  // The grid of a single rank that holds the full tensor.
  static ShardGrid Whole(size_t dims);

  int64_t devices() const { return devices_; }
  const std::vector<int64_t>& cuts() const { return cuts_; }
  // How many parts there are in all.
  int64_t parts() const;
  // The least number of ranks that hold a part.
  int64_t replicas() const;

  // Returns the full shape of a tensor whose shards have this shape. Errors: kMismatch if a size
  // does not fit 63 bits.
  Result<Shape> FullShape(const Shape& shard, std::string_view where) const;

  // Returns the shape of each shard of a tensor of this full shape.
  // Errors: kMismatch when a dimension does not divide (dimension, size, parts).
  Result<Shape> ShardShape(const Shape& full, std::string_view where) const;

  // Returns which part along each dimension `rank` holds.
  std::vector<int64_t> PartsOf(int64_t rank) const;
  // As above, into `parts`, of as many numbers as cuts() has.
  void PartsOf(int64_t rank, std::span<int64_t> parts) const;
  // Returns the part's PartNumber. Does not allocate.
  int64_t PartNumberOf(int64_t rank) const;

  // Returns the box of the part `parts`, or of a rank's part. The shards of the tensor have the
  // shape `shard`.
  static Box BoxOfParts(const std::vector<int64_t>& parts, const Shape& shard);
  Box BoxOf(int64_t rank, const Shape& shard) const { return BoxOfParts(PartsOf(rank), shard); }

  // Returns the rank that holds `parts` and shares the most coordinates in the device matrix with
  // `preferred`; the lowest of several.
  int64_t RankOf(const std::vector<int64_t>& parts, int64_t preferred) const;

  // Returns all ranks that hold `parts`, ascending.
  std::vector<int64_t> Replicas(const std::vector<int64_t>& parts) const;

  // Calls visit(parts) for each part of the grid that shares elements with `box`, in row-major
  // order, until a call returns false. The cost depends on the calls alone, not on the number of
  // ranks. `shard` is the shape of a shard; empty parts have no overlap.
  void ForEachOverlap(const Box& box, const Shape& shard,
                      const std::function<bool(const std::vector<int64_t>& parts)>& visit) const;

 private:
  int64_t devices_ = 1;
  std::vector<int64_t> cuts_;
  std::vector<Digit> digits_;
  int64_t modulus_ = 0;
};

using SharedGrid = std::shared_ptr<const ShardGrid>;

// Returns the grid of a single rank that holds the full tensor.
SharedGrid WholeGrid(size_t dims);

// The number of a part in row-major order of a grid with these cuts, and back.
int64_t PartNumber(std::span<const int64_t> parts, const std::vector<int64_t>& cuts);
std::vector<int64_t> PartAt(int64_t number, const std::vector<int64_t>& cuts);

}  // namespace reshard

#endif  // RESHARD_SRC_SOURCE_SHARD_GRID_H_
