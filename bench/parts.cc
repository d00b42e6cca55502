// What a million parts cost that are stated one by one: build/bench/bin/parts [shards | grid].
//
// `shards`: 1,000 tensors, each in 1,000 parts in as many files, to 50 files by rows. `grid`: one
// tensor in 1,000 by 1,000 parts, a row of them in each of 1,000 files, to 64 files by rows and
// columns. Names, dtypes and shapes are stated, each array has a name of its own, and tables are
// made of the model: nothing is read. Seconds are CPU seconds of this process, on one thread.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/container/file_table.h"
#include "format/safetensors/safetensors_container.h"
#include "src/base/status_macros.h"
#include "src/io/source_files.h"
#include "src/plan/make_plan.h"
#include "src/plan/target_file.h"
#include "src/source/listed_placement.h"
#include "src/source/part_list.h"
#include "src/source/source.h"
#include "src/source/table_cache.h"
#include "src/tensor/byte_box.h"

namespace reshard {
namespace {

constexpr int64_t kFiles = 1000;
constexpr int64_t kArraysOfFile = 1000;
constexpr size_t kTableBytes = size_t{64} << 20;
const Shape kPart = {4, 64};

double CpuSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// Returns a line of /proc/self/status in MiB.
uint64_t MiB(std::string_view key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key)) return std::stoull(line.substr(key.size())) >> 10;
  }
  return 0;
}

struct Case {
  std::string_view what;
  int64_t tensors = 0;
  Shape full;
  std::array<int64_t, 2> targets;  // rows and columns of target files
  // The name of the tensor that array `array` of a file is a part of, and where the part begins.
  std::function<std::string(int64_t array)> tensor_of;
  std::function<std::vector<int64_t>(int64_t file, int64_t array)> begin_of;
};

std::string TensorName(int64_t number) {
  return fmt::format("decoder.layers.{}.mlp.w{}.weight", number / 10, number % 10);
}

std::string ArrayName(const Case& what, int64_t file, int64_t array) {
  return fmt::format("{}[{}]", what.tensor_of(array), fmt::join(what.begin_of(file, array), ","));
}

Result<IndexedFile> MakeTable(const Case& what, FileId file) {
  TableBuilder builder(kSafetensorsContainer);
  const uint64_t bytes = TensorBytes(kPart, DType::kFloat32).value_or(0);
  for (int64_t array = 0; array < kArraysOfFile; ++array) {
    const std::string name = ArrayName(what, static_cast<int64_t>(file), array);
    const ByteRange content = {static_cast<uint64_t>(array) * bytes, bytes};
    const StoredArray stored = {.name = name,
                                .kind = ArrayKind::kTensor,
                                .dtype = DType::kFloat32,
                                .shape = kPart,
                                .bytes = bytes,
                                .framed = {&content, 1},
                                .content = {&content, 1},
                                .map_tensor = {}};
    builder.Add(stored);
  }
  return IndexedFile(file, kArraysOfFile * bytes, {std::move(builder).Finish(), std::nullopt});
}

PartList StateParts(const Case& what) {
  PartListBuilder builder;
  for (int64_t tensor = 0; tensor < what.tensors; ++tensor) {
    builder.AddTensor(TensorName(tensor), what.full, DType::kFloat32);
  }
  for (int64_t file = 0; file < kFiles; ++file) {
    for (int64_t array = 0; array < kArraysOfFile; ++array) {
      const auto tensor = static_cast<size_t>(what.tensors == 1 ? 0 : array);
      builder.AddPart(tensor, {what.begin_of(file, array), kPart}, kPart,
                      {file, ArrayName(what, file, array)});
    }
  }
  return std::move(builder).Finish();
}

Status Measure(const Case& what) {
  double begin = CpuSeconds();
  PartList parts = StateParts(what);
  fmt::print("{}: {} parts listed in {:.2f} s\n", what.what, kFiles * kArraysOfFile,
             CpuSeconds() - begin);

  SourceFiles files(1);
  std::vector<FileId> ids;
  for (int64_t file = 0; file < kFiles; ++file) ids.push_back(files.Add(fmt::format("{}", file)));
  size_t tables_made = 0;
  TableCache tables(
      [&](FileId file, const auto& /*like*/) {
        ++tables_made;
        return MakeTable(what, file);
      },
      kTableBytes);
  const ListedPlacement placement(ids, std::move(parts));
  const Source source(files, tables, placement);

  begin = CpuSeconds();
  uint64_t copies = 0;
  const auto [rows, columns] = what.targets;
  const Shape shape = {what.full[0] / rows, what.full[1] / columns};
  for (int64_t target = 0; target < rows * columns; ++target) {
    const Box box = {{target / columns * shape[0], target % columns * shape[1]}, shape};
    const auto make = [&](size_t number, TargetArray& array) -> Status {
      array.name = TensorName(static_cast<int64_t>(number));
      array.dtype = DType::kFloat32;
      array.shape = shape;
      Pieces& pieces = OnePiece(array);
      RESHARD_ASSIGN_OR_RETURN(pieces.tensors.front(), source.Describe(array.name, 0));
      pieces.pieces.front() = {0, box, Box::Whole(shape)};
      return {};
    };
    TargetFile file;
    file.path = fmt::format("{}.safetensors", target);
    file.container = &kSafetensorsContainer;
    file.arrays = static_cast<size_t>(what.tensors);
    file.make = make;
    RESHARD_ASSIGN_OR_RETURN(const TargetPlan plan, MakePlan(source, file));
    for (const Segment& segment : plan.segments) {
      if (const auto* content = std::get_if<Content>(&segment)) copies += content->copies.size();
    }
  }
  fmt::print("{}: {} plans, {} copies in {:.2f} s; {} tables made\n", what.what, rows * columns,
             copies, CpuSeconds() - begin, tables_made);
  fmt::print("{}: RssAnon {} MiB, VmHWM {} MiB\n", what.what, MiB("RssAnon:"), MiB("VmHWM:"));
  return {};
}

Status MeasureNamed(std::string_view name) {
  if (name == "shards") {
    return Measure({.what = name,
                    .tensors = kArraysOfFile,
                    .full = {kFiles * kPart[0], kPart[1]},
                    .targets = {50, 1},
                    .tensor_of = TensorName,
                    .begin_of = [](int64_t file, int64_t /*array*/) -> std::vector<int64_t> {
                      return {file * kPart[0], 0};
                    }});
  }
  if (name == "grid") {
    return Measure({.what = name,
                    .tensors = 1,
                    .full = {kFiles * kPart[0], kArraysOfFile * kPart[1]},
                    .targets = {8, 8},
                    .tensor_of = [](int64_t /*array*/) { return TensorName(0); },
                    .begin_of = [](int64_t file, int64_t array) -> std::vector<int64_t> {
                      return {file * kPart[0], array * kPart[1]};
                    }});
  }
  return InvalidArgumentError(fmt::format("no case {}; expected shards or grid", name));
}

}  // namespace
}  // namespace reshard

int main(int argc, char** argv) {
  const reshard::Status status = reshard::MeasureNamed(argc > 1 ? argv[1] : "shards");
  if (status.ok()) return 0;
  fmt::print(stderr, "parts: {}\n", status.message());
  return 1;
}
