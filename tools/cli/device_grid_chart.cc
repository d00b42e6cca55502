#include "tools/cli/device_grid_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "tools/cli/svg.h"
#include "tools/cli/text_format.h"

namespace reshard {
namespace {

// Widths and heights of squares, and how many stand in a row.
struct Squares {
  double width = 0;
  double height = 0;
  int64_t columns = 1;
};

Squares SquaresFor(int64_t cells) {
  if (cells <= 64) return {54, 40, 16};
  if (cells <= 256) return {27, 22, 32};
  return {13.5, 13.5, 64};
}

// A hue for the shard, from red over green to violet, and a lightness for the replica; dark text is
// legible on all of them.
std::string Paint(const DeviceGrid& grid, const GridCell& cell) {
  if (cell.shard < 0) return "class=\"hollow\"";
  const double shards = static_cast<double>(std::max<int64_t>(grid.shards, 2));
  const double replicas = static_cast<double>(std::max<int64_t>(grid.replicas - 1, 1));
  const double hue = 300 * static_cast<double>(cell.shard) / (shards - (shards > 6 ? 1 : 0));
  const double light =
      62 + std::min(26.0, 12 * replicas) * static_cast<double>(cell.replica) / replicas;
  return fmt::format("fill=\"hsl({:.0f} 62% {:.0f}%)\" class=\"cell\"", hue, light);
}

class GridDrawing {
 public:
  GridDrawing(const LayoutSide& side, const DeviceGrid& grid, std::string_view title)
      : side_(side),
        grid_(grid),
        squares_(SquaresFor(static_cast<int64_t>(grid.cells.size()))),
        by_stage_(side.stages > 1 && side.stages <= kMostBands && grid.ranks_per_cell == 1),
        band_(by_stage_ ? side.devices_per_stage : static_cast<int64_t>(grid.cells.size())),
        columns_(std::min(squares_.columns, band_)),
        rows_((band_ + columns_ - 1) / columns_),
        svg_(kLeft + static_cast<double>(squares_.columns) * squares_.width + 4, Height(), title,
             fmt::format("{} shards, up to {} replicas of each in a stage", grid.shards,
                         grid.replicas)) {}

  std::string Draw() {
    DrawKey();
    for (size_t i = 0; i < grid_.cells.size(); ++i) DrawCell(static_cast<int64_t>(i));
    return svg_.Finish();
  }

 private:
  static constexpr double kLeft = 92;
  static constexpr double kTop = 28;
  static constexpr double kBandGap = 8;
  static constexpr int64_t kMostBands = 16;

  double Height() const {
    const double bands = by_stage_ ? static_cast<double>(side_.stages) : 1;
    return kTop + bands * (static_cast<double>(rows_) * squares_.height + kBandGap);
  }

  int64_t RankOf(int64_t cell) const { return side_.first_rank + cell * grid_.ranks_per_cell; }

  // What the colours mean.
  void DrawKey() {
    double x = kLeft;
    const auto strip = [&](int64_t count, const std::string& text, auto cell_of) {
      constexpr int64_t kMost = 24;
      const int64_t shown = std::min(count, kMost);
      for (int64_t i = 0; i < shown; ++i) {
        const int64_t at = shown == 1 ? 0 : i * (count - 1) / (shown - 1);
        svg_.Rect({x, 4, 8, 12}, Paint(grid_, cell_of(at)));
        x += 8;
      }
      svg_.Text(x + 6, 14, text, "label");
      x += 6 + kLabelCharacter * static_cast<double>(text.size()) + 18;
    };
    if (grid_.shards == 0) return;
    strip(grid_.shards,
          grid_.shards == 1 ? "the whole tensor" : fmt::format("shard 0 to {}", grid_.shards - 1),
          [](int64_t at) {
            return GridCell{at, 0};
          });
    if (grid_.replicas > 1) {
      strip(grid_.replicas, fmt::format("replica 0 to {}", grid_.replicas - 1), [](int64_t at) {
        return GridCell{0, at};
      });
    }
    if (static_cast<int64_t>(grid_.stages.size()) < side_.stages) {
      DrawLegend(svg_, x, 4, {{"class=\"hollow\"", "not on this rank"}});
    }
  }

  void DrawCell(int64_t number) {
    const GridCell& cell = grid_.cells[static_cast<size_t>(number)];
    const int64_t band = number / band_;
    const int64_t row = number % band_ / columns_;
    const int64_t column = number % band_ % columns_;
    const double x = kLeft + static_cast<double>(column) * squares_.width;
    const double y = kTop + static_cast<double>(band * rows_ + row) * squares_.height +
                     static_cast<double>(band) * kBandGap;
    const int64_t rank = RankOf(number);
    if (column == 0) {
      svg_.Text(kLeft - 8, y + squares_.height / 2 + 4, RowLabel(band, row, rank), "label end");
    }
    svg_.Rect({x + 0.5, y + 0.5, squares_.width - 1.5, squares_.height - 1.5}, Paint(grid_, cell),
              cell.shard < 0
                  ? fmt::format("rank {}: does not have it", rank)
                  : fmt::format("rank {}: shard {}, replica {}", rank, cell.shard, cell.replica));
    DrawWords(cell, rank, x + squares_.width / 2, y);
  }

  std::string RowLabel(int64_t band, int64_t row, int64_t rank) const {
    if (!by_stage_ || row > 0) return fmt::format("rank {}", rank);
    const int64_t stage = side_.first_rank / side_.devices_per_stage + band;
    return rows_ == 1 ? fmt::format("stage {}", stage) : fmt::format("stage {}: {}", stage, rank);
  }

  void DrawWords(const GridCell& cell, int64_t rank, double x, double y) {
    constexpr double kRoomForNumber = 27;
    constexpr double kRoomForShard = 54;
    const std::string_view on = cell.shard < 0 ? "small middle" : "small middle on";
    if (squares_.width >= kRoomForShard) {
      svg_.Text(x, y + 17, fmt::format("{}", rank), cell.shard < 0 ? "middle" : "middle on");
      if (cell.shard >= 0) {
        svg_.Text(x, y + 31,
                  grid_.replicas > 1 ? fmt::format("s{} r{}", cell.shard, cell.replica)
                                     : fmt::format("s{}", cell.shard),
                  on);
      }
    } else if (squares_.width >= kRoomForNumber && rank < 10000) {
      svg_.Text(x, y + 15, fmt::format("{}", rank), on);
    }
  }

  const LayoutSide& side_;
  const DeviceGrid& grid_;
  const Squares squares_;
  const bool by_stage_;
  const int64_t band_;  // squares of a stage, or all of them
  const int64_t columns_;
  const int64_t rows_;  // of a band
  Svg svg_;
};

}  // namespace

std::string DeviceGridChart(const LayoutSide& side, const DeviceGrid& grid,
                            std::string_view title) {
  return GridDrawing(side, grid, title).Draw();
}

}  // namespace reshard
