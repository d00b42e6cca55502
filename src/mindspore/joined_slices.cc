#include "src/mindspore/joined_slices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "src/base/checked.h"
#include "src/base/status_macros.h"
#include "src/mindspore/layout_grid.h"
#include "src/source/shard_grid.h"

namespace reshard {
namespace {

// Ok when slices differ in `from` dimensions at the most, the first ones.
Status CheckShapes(std::span<const Shape> shapes, std::ptrdiff_t from, std::string_view where) {
  const Shape& first = shapes.front();
  for (size_t i = 1; i < shapes.size(); ++i) {
    if (std::equal(first.begin() + from, first.end(), shapes[i].begin() + from)) continue;
    return MismatchError(
        fmt::format("{}: slice {} has the shape {}, slice 0 {}; slices joined in this way have the "
                    "same size in every dimension{}",
                    where, i, ToString(shapes[i]), ToString(first), from == 0 ? "" : " but 0"));
  }
  return {};
}

// Adds the rows of a slice.
Status AddRows(int64_t rows, int64_t& sum, std::string_view where) {
  const auto more = CheckedAdd(sum, rows);
  if (!more) return MismatchError(fmt::format("{}: the slices have too many rows in all", where));
  sum = *more;
  return {};
}

Result<JoinedSlices> JoinGrid(std::span<const Shape> shapes, const ShardGrid& grid,
                              std::string_view where) {
  RESHARD_RETURN_IF_ERROR(CheckShapes(shapes, 0, where));
  JoinedSlices joined;
  RESHARD_ASSIGN_OR_RETURN(joined.full, grid.FullShape(shapes.front(), where));
  for (size_t rank = 0; rank < shapes.size(); ++rank) {
    joined.boxes.push_back(grid.BoxOf(static_cast<int64_t>(rank), shapes.front()));
  }
  joined.dims = joined.full;
  return joined;
}

// `rows` has the number for each part of the grid.
Result<JoinedSlices> JoinUnevenRows(std::span<const Shape> shapes, const ShardGrid& grid,
                                    const std::vector<int64_t>& rows, std::string_view where) {
  RESHARD_RETURN_IF_ERROR(CheckShapes(shapes, 1, where));
  const std::vector<int64_t>& cuts = grid.cuts();
  size_t parts = 1;
  for (const int64_t cut : cuts) parts *= static_cast<size_t>(cut);
  if (rows.size() != parts) {
    return MismatchError(
        fmt::format("{}: the layout's param_split_shape has {} sizes, but the tensor is cut into "
                    "{} parts ({})",
                    where, rows.size(), parts, ToString(cuts)));
  }
  // Parts that differ only in other dimensions lie beside one another.
  const size_t beside = parts / static_cast<size_t>(cuts[0]);
  std::vector<int64_t> begins(static_cast<size_t>(cuts[0]));
  int64_t sum = 0;
  for (size_t part = 0; part < parts; ++part) {
    const int64_t expected = rows[part / beside * beside];
    if (rows[part] != expected || expected < 0) {
      return MismatchError(
          fmt::format("{}: the layout's param_split_shape gives {} rows to part {}, but {} to one "
                      "that lies beside it",
                      where, rows[part], part, expected));
    }
    if (part % beside != 0) continue;
    begins[part / beside] = sum;
    RESHARD_RETURN_IF_ERROR(AddRows(expected, sum, where));
  }
  JoinedSlices joined;
  RESHARD_ASSIGN_OR_RETURN(joined.full, grid.FullShape(shapes.front(), where));
  joined.full[0] = sum;
  joined.dims = joined.full;
  for (size_t rank = 0; rank < shapes.size(); ++rank) {
    const std::vector<int64_t> place = grid.PartsOf(static_cast<int64_t>(rank));
    const auto row = static_cast<size_t>(place[0]);
    if (shapes[rank][0] != rows[row * beside]) {
      return MismatchError(
          fmt::format("{}: slice {} has the shape {}, but {} rows by the layout's "
                      "param_split_shape; are the files in the order of the ranks?",
                      where, rank, ToString(shapes[rank]), rows[row * beside]));
    }
    Box box = ShardGrid::BoxOfParts(place, shapes[rank]);
    box.begin[0] = begins[row];
    joined.boxes.push_back(std::move(box));
  }
  return joined;
}

Result<JoinedSlices> JoinFields(std::span<const Shape> shapes, int64_t field,
                                std::string_view where) {
  RESHARD_RETURN_IF_ERROR(CheckShapes(shapes, 0, where));
  const Shape& slice = shapes.front();
  if (slice.size() != 2 || slice[0] % field != 0) {
    return MismatchError(
        fmt::format("{}: slices have the shape {}, but by the layout's field they have two "
                    "dimensions, and {} divides the rows",
                    where, ToString(slice), field));
  }
  RESHARD_ASSIGN_OR_RETURN(JoinedSlices joined, JoinRows(shapes, where));
  const int64_t rows = slice[0] / field;
  joined.full = {field, joined.full[0] / field, slice[1]};
  for (size_t i = 0; i < shapes.size(); ++i) {
    joined.boxes[i] = {{0, static_cast<int64_t>(i) * rows, 0}, {field, rows, slice[1]}};
  }
  return joined;
}

}  // namespace

Result<JoinedSlices> JoinRows(std::span<const Shape> shapes, std::string_view where) {
  RESHARD_RETURN_IF_ERROR(CheckShapes(shapes, 1, where));
  JoinedSlices joined;
  int64_t rows = 0;
  for (const Shape& shape : shapes) {
    Box box = Box::Whole(shape);
    box.begin[0] = rows;
    joined.boxes.push_back(std::move(box));
    RESHARD_RETURN_IF_ERROR(AddRows(shape[0], rows, where));
  }
  joined.full = shapes.front();
  joined.full[0] = rows;
  joined.dims = joined.full;
  return joined;
}

Result<JoinedSlices> JoinByLayout(std::span<const Shape> shapes, const ParameterLayout& layout,
                                  std::string_view where) {
  const bool uneven =
      !layout.param_split_shape.empty() && !layout.param_split_shape.front().empty();
  if (!uneven && layout.field > 0) return JoinFields(shapes, layout.field, where);
  RESHARD_ASSIGN_OR_RETURN(const ShardGrid grid, MakeGrid(layout, shapes.front().size(), where));
  if (!uneven) return JoinGrid(shapes, grid, where);
  // Some training code puts the full shape there.
  const auto full = grid.FullShape(shapes.front(), where);
  if (full.ok() && *full == layout.param_split_shape.front()) return JoinGrid(shapes, grid, where);
  return JoinUnevenRows(shapes, grid, layout.param_split_shape.front(), where);
}

}  // namespace reshard
