// Piece: which elements of a logical tensor an array of a file holds.
//
// A plain value.
#ifndef RESHARD_SRC_TENSOR_PIECE_H_
#define RESHARD_SRC_TENSOR_PIECE_H_

#include <cstdint>

#include "reshard/tensor.h"

namespace reshard {

// The number of a tensor in the list that belongs to the pieces.
using TensorId = uint32_t;

// The elements of `box` of a tensor are the elements of `place` in the array, both in row-major
// order. The boxes may have different numbers of dimensions; their volumes are equal.
struct Piece {
  TensorId tensor = 0;
  Box box;
  Box place;
};

}  // namespace reshard

#endif  // RESHARD_SRC_TENSOR_PIECE_H_
