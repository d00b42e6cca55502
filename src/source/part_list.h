// PartList: lists the stored arrays with their boxes and tensors. PartListBuilder sorts them.
//
// There may be millions of parts. A part takes about 70 bytes, plus the name of its array if it
// differs from the tensor's. Immutable, so any number of threads may read it. Boxes and shapes
// count elements.
#ifndef RESHARD_SRC_SOURCE_PART_LIST_H_
#define RESHARD_SRC_SOURCE_PART_LIST_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "format/container/file_table.h"
#include "reshard/tensor.h"
#include "src/base/name_arena.h"
#include "src/tensor/byte_box.h"

namespace reshard {

// An array of a file, whether the file is there or not.
struct ArrayPlace {
  int64_t rank = 0;        // of the file
  std::string_view array;  // its name in the file
};

class PartList {
 public:
  // A stored array that is a box of a tensor.
  class Part {
   public:
    Box box() const { return {{begin_, begin_ + extent_->size()}, *extent_}; }
    const Shape& shape() const { return *shape_; }  // of the array
    ArrayPlace place() const { return {rank_, {array_, array_bytes_}}; }
    int64_t rank() const { return rank_; }

   private:
    friend class PartList;
    friend class PartListBuilder;

    const int64_t* begin_ = nullptr;
    const Shape* extent_ = nullptr;
    const Shape* shape_ = nullptr;
    const char* array_ = nullptr;
    uint32_t array_bytes_ = 0;
    uint32_t tensor_ = 0;
    int64_t rank_ = 0;
  };

  struct Tensor {
    std::string_view name;
    std::optional<DType> dtype;  // if it is known without a file
    const Shape* full = nullptr;
    std::span<const Part> parts;  // by the begins and extents of their boxes, then by rank
    size_t bounds = 0;            // a place in bounds_
  };

  PartList() = default;
  PartList(PartList&&) = default;
  PartList& operator=(PartList&&) = default;
  PartList(const PartList&) = delete;
  PartList& operator=(const PartList&) = delete;

  // By name.
  std::span<const Tensor> tensors() const { return tensors_; }
  // Returns the tensor of this name, or null.
  const Tensor* Find(std::string_view name) const;

  // Calls visit(replicas) for each box of a tensor's parts that shares elements with `box`, with
  // the parts of the box, until a call returns false. If neighbouring boxes begin near each other,
  // as in a grid, the cost is little more than that of the calls. Returns the cost: how many boxes
  // were looked at.
  using Visitor = std::function<bool(std::span<const Part> replicas)>;
  uint64_t ForEachOverlap(const Tensor& tensor, const Box& box, const Visitor& visit) const;
  // Returns the part and those behind it that have its box.
  static std::span<const Part> ReplicasAt(const Tensor& tensor, size_t part);

 private:
  friend class PartListBuilder;

  void AddBounds(Tensor& tensor);

  NameArena names_;
  std::set<Shape> shapes_;
  KeptInBlocks<int64_t> begins_;
  std::vector<Part> parts_;  // sorted by tensor
  std::vector<Tensor> tensors_;
  // For each tensor with many parts: boxes around a fixed number of consecutive parts, boxes around
  // as many boxes of the last kind, and so on. A level has first all begins, then all ends.
  std::vector<int64_t> bounds_;
};

// Not thread-safe.
class PartListBuilder {
 public:
  // Adds a tensor and returns its number; each name once.
  size_t AddTensor(std::string_view name, const Shape& full, std::optional<DType> dtype = {});
  // Gives a tensor another full shape, for callers that learn it from the parts.
  void SetFull(size_t tensor, const Shape& full) { list_.tensors_[tensor].full = Keep(full); }
  // States that `box` of tensor `tensor`, within its full shape, is the array at `place`: of
  // `shape`, with as many elements in the same order. Parts of equal boxes are replicas.
  void AddPart(size_t tensor, const Box& box, const Shape& shape, const ArrayPlace& place);
  // As above, of the array that has the tensor's name, in the file of `rank`.
  void AddPart(size_t tensor, const Box& box, const Shape& shape, int64_t rank) {
    AddPart(tensor, box, shape, {rank, list_.tensors_[tensor].name});
  }
  PartList Finish() &&;

 private:
  const Shape* Keep(const Shape& shape) { return &*list_.shapes_.insert(shape).first; }

  PartList list_;
};

}  // namespace reshard

#endif  // RESHARD_SRC_SOURCE_PART_LIST_H_
