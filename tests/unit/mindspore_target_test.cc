// Plans of single target ranks, without a byte of content read or written.
#include "src/mindspore/mindspore_target.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "format/mindspore_checkpoint/checkpoint_encoder.h"
#include "src/convert/opened_source.h"
#include "src/write/gather.h"
#include "tests/support/checkpoint_bytes.h"
#include "tests/support/conversion_folder.h"
#include "tests/support/says.h"
#include "tests/support/strategy_bytes.h"

namespace reshard::mindspore_target_test {
namespace {

using testing::ElementsAre;

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kGiB = uint64_t{1} << 30;

TargetPlan PlanRank(const ConvertOptions& options, int64_t rank) {
  const auto source = OpenSource(options.source, {.target = options.target});
  EXPECT_TRUE(source.ok()) << source.status().message();
  PlanFindings findings;
  auto plan = MindSporeTarget((*source)->tensors(), (*source)->rule(), options.target.prefix,
                              Selection::Unmatched::kCopy)
                  .Plan(rank, findings);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return *std::move(plan);
}

// Expects that the segments follow one another without gaps, and that the copies of each content
// are as many bytes as it has, in order and inside of it.
void CheckPlan(const TargetPlan& plan) {
  uint64_t end = 0;
  for (const Segment& segment : plan.segments) {
    const ByteRange range = TargetRange(segment);
    EXPECT_EQ(range.offset, end);
    end = range.end();
    const auto* content = std::get_if<Content>(&segment);
    if (content == nullptr) continue;
    uint64_t bytes = 0;
    uint64_t last = 0;
    for (const BlockCopy& copy : content->copies) {
      EXPECT_GE(copy.target_offset, std::max(last, range.offset));
      EXPECT_LE(copy.TargetSpan().end(), range.end());
      last = copy.target_offset;
      bytes += copy.bytes();
    }
    EXPECT_EQ(bytes, range.length);
  }
  EXPECT_EQ(end, plan.size);
}

std::vector<std::string> Headers(const TargetPlan& plan) {
  std::vector<std::string> headers;
  for (const Segment& segment : plan.segments) {
    if (const auto* literal = std::get_if<Literal>(&segment)) headers.push_back(literal->bytes);
  }
  return headers;
}

std::vector<uint64_t> ContentLengths(const TargetPlan& plan) {
  std::vector<uint64_t> lengths;
  for (const Segment& segment : plan.segments) {
    if (const auto* content = std::get_if<Content>(&segment)) {
      lengths.push_back(content->target.length);
    }
  }
  return lengths;
}

// Writes a checkpoint with one tensor of `shape`, whose content is a hole, cut into Values of these
// lengths.
void WriteHole(const ConversionFolder& folder, int64_t rank, const std::string& name, DType dtype,
               const Shape& shape, const std::vector<uint64_t>& lengths) {
  std::vector<std::string> headers;
  uint64_t size = 0;
  for (const uint64_t length : lengths) {
    headers.push_back(EncodeValueHeader(name, dtype, shape, length));
    size += headers.back().size() + length;
  }
  uint64_t offset = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    folder.folder().WriteSparse("source/" + RankPath(rank), size, offset, headers[i]);
    offset += headers[i].size() + lengths[i];
  }
}

std::vector<uint64_t> CutAt512MiB(uint64_t bytes) {
  std::vector<uint64_t> lengths;
  for (; bytes > 512 * kMiB; bytes -= 512 * kMiB) lengths.push_back(512 * kMiB);
  lengths.push_back(bytes);
  return lengths;
}

TEST(MindSporeTargetTest, IsAHeaderAndItsContentForEachParameter) {
  const std::vector<NamedLayout> layouts = {{"w", MakeLayout({2}, {{0, -1}})}};
  ConversionFolder folder(layouts, {{"w", MakeLayout({2}, {{-1, 0}})}});
  folder.WriteStage({MakeTensor("w", DType::kInt16, {4, 6}), MakeTensor("e", DType::kInt8, {0}),
                     MakeTensor("step", DType::kInt64, {})},
                    layouts, 2);
  const TargetPlan plan = PlanRank(folder.options(), 1);
  CheckPlan(plan);
  EXPECT_EQ(plan.path, "rank_1/checkpoint_1.ckpt");
  EXPECT_EQ(plan.parameters, 3U);
  EXPECT_THAT(plan.sources, ElementsAre(0, 1));
  EXPECT_THAT(Headers(plan), ElementsAre(EncodeValueHeader("w", DType::kInt16, {4, 3}, 24),
                                         EncodeValueHeader("e", DType::kInt8, {0}, 0),
                                         EncodeValueHeader("step", DType::kInt64, {}, 8)));
  EXPECT_THAT(ContentLengths(plan), ElementsAre(24, 8));
  // Two rows of three elements each from either source.
  const auto& content = std::get<Content>(plan.segments[1]);
  EXPECT_THAT(content.geometry.full_shape(), ElementsAre(4, 6));
  EXPECT_THAT(content.geometry.target_begin(), ElementsAre(0, 3));
  EXPECT_THAT(content.geometry.target_extent(), ElementsAre(4, 3));
  const uint64_t source = EncodeValueHeader("w", DType::kInt16, {2, 6}, 24).size() + 6;
  const uint64_t target = content.target.offset;
  EXPECT_THAT(content.copies, ElementsAre(BlockCopy{0, source, target, 6, {{2, 12, 6}}},
                                          BlockCopy{1, source, target + 12, 6, {{2, 12, 6}}}));
}

// Returns the bytes of a file that MindSporeTarget plans.
std::string Planned(const ConvertOptions& options, int64_t rank) {
  const auto source = OpenSource(options.source, {.target = options.target});
  EXPECT_TRUE(source.ok()) << source.status().message();
  PlanFindings findings;
  const MindSporeTarget target((*source)->tensors(), (*source)->rule(), options.target.prefix,
                               Selection::Unmatched::kCopy);
  const auto plan = target.Plan(rank, findings);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  std::string bytes(plan->size, '?');
  const Status filled = FillTarget((*source)->files(), *plan, 0,
                                   std::as_writable_bytes(std::span(bytes)), nullptr, nullptr);
  EXPECT_TRUE(filled.ok()) << filled.message();
  return bytes;
}

// Tensors that are cut alike get the copies of the first one, moved to where each lies: in files of
// one table only. The longer names move headers, too.
TEST(MindSporeTargetTest, TensorsCutAlikeAreTakenFromWhereEachLies) {
  const std::vector<NamedLayout> rows = {{"a", MakeLayout({2}, {{0, -1}})},
                                         {"bb", MakeLayout({2}, {{0, -1}})},
                                         {"ccc", MakeLayout({2}, {{0, -1}})}};
  std::vector<NamedLayout> columns = rows;
  for (NamedLayout& named : columns) named.layout = MakeLayout({2}, {{-1, 0}});
  const auto value = [](std::string_view name, std::string_view bytes) {
    return TensorValue(name, "Int8", {1, 4}, bytes);
  };
  const std::string rank_0 = value("a", "abcd") + value("bb", "ABCD") + value("ccc", "0123");
  const std::string a = value("a", "efgh");
  const std::string b = value("bb", "EFGH");
  const std::string c = value("ccc", "4567");
  const std::string step = TensorValue("step", "Int8", {1}, "s");
  for (const std::string& rank_1 : {a + b + c, c + a + b, step + a + b + c, b + step + c + a}) {
    ConversionFolder folder(rows, columns);
    folder.WriteRank(0, rank_0);
    folder.WriteRank(1, rank_1);
    const auto column = [](std::string_view name, std::string_view bytes) {
      return TensorValue(name, "Int8", {2, 2}, bytes);
    };
    const std::string planned = Planned(folder.options(), 1);
    for (const std::string& expected :
         {column("a", "cdgh"), column("bb", "CDGH"), column("ccc", "2367")}) {
      EXPECT_NE(planned.find(expected), std::string::npos) << expected;
    }
  }
}

// A tensor above 512 MiB is cut at multiples of it, whatever the cuts of the source.
TEST(MindSporeTargetTest, LargeValuesAreCutAsMindSporeCutsThem) {
  struct Row {
    const char* name;
    Shape shape;  // of Float32
    std::vector<uint64_t> source;
    std::vector<uint64_t> target;
  };
  const std::vector<Row> rows = {
      {"512 MiB are one Value", {128, 1 << 20}, {512 * kMiB}, {512 * kMiB}},
      {"4 bytes more", {(128 << 20) + 1}, {512 * kMiB + 4}, {512 * kMiB, 4}},
      {"1200 MiB", {300, 1 << 20}, CutAt512MiB(1200 * kMiB), {512 * kMiB, 512 * kMiB, 176 * kMiB}},
      {"1200 MiB, saved asynchronously",
       {1, 300, 1 << 20},
       {1200 * kMiB, 0, 0},
       {512 * kMiB, 512 * kMiB, 176 * kMiB}},
      {"1 GiB, cut into rows",
       {256, 1 << 20},
       {344 * kMiB, 340 * kMiB, 340 * kMiB},
       {512 * kMiB, 512 * kMiB}},
      {"cut inside an element", {192, 1 << 20}, {1, 768 * kMiB - 1}, {512 * kMiB, 256 * kMiB}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const std::vector<int64_t> whole(row.shape.size(), -1);
    ConversionFolder folder({}, {{"w", MakeLayout({1}, {whole})}});
    WriteHole(folder, 0, "w", DType::kFloat32, row.shape, row.source);
    const TargetPlan plan = PlanRank(folder.options(), 0);
    CheckPlan(plan);
    EXPECT_EQ(ContentLengths(plan), row.target);
    std::vector<std::string> headers;
    for (const uint64_t length : row.target) {
      headers.push_back(EncodeValueHeader("w", DType::kFloat32, row.shape, length));
    }
    EXPECT_EQ(Headers(plan), headers);
    EXPECT_EQ(plan.parameters, 1U);
  }
}

TEST(MindSporeTargetTest, ShardsAreCutByTheirOwnSizeNotByTheFullOne) {
  ConversionFolder folder({}, {{"w", MakeLayout({2}, {{-1, 0}})}});
  WriteHole(folder, 0, "w", DType::kInt8, {1 << 20, 1200}, CutAt512MiB(1200 * kMiB));
  const TargetPlan plan = PlanRank(folder.options(), 1);
  CheckPlan(plan);
  EXPECT_THAT(ContentLengths(plan), ElementsAre(512 * kMiB, 88 * kMiB));
}

// A size of 0 hides no size that does not fit in bytes.
TEST(MindSporeTargetTest, AnEmptyTensorHasAFullShapeToo) {
  const Shape shard = {0, int64_t{1} << 59};
  const std::vector<NamedLayout> columns = {{"w", MakeLayout({8}, {{-1, 0}})}};
  const auto plan_of = [&](DType dtype) {
    ConversionFolder folder(columns, {});
    for (int64_t rank = 0; rank < 8; ++rank) folder.WriteRank(rank, {{"w", dtype, shard, ""}});
    return Plan(folder.options());
  };
  EXPECT_TRUE(plan_of(DType::kInt8).ok());
  const auto plan = plan_of(DType::kFloat64);
  EXPECT_EQ(plan.status().code(), StatusCode::kMismatch);
  EXPECT_THAT(plan.status().message(), Naming("[0, 4611686018427387904]"));
}

// Bytes of memory that a plan holds.
uint64_t MemoryOf(const TargetPlan& plan) {
  uint64_t bytes = plan.segments.capacity() * sizeof(Segment) + plan.sources.capacity() * 8;
  bytes += plan.names.memory();
  for (const Segment& segment : plan.segments) {
    if (const auto* literal = std::get_if<Literal>(&segment)) bytes += literal->bytes.capacity();
    const auto* content = std::get_if<Content>(&segment);
    if (content == nullptr) continue;
    bytes += 8 * content->geometry.capacity();
    for (const BlockCopy& copy : content->copies) bytes += copy.dims.capacity() * sizeof(CopyDim);
    bytes += content->copies.capacity() * sizeof(BlockCopy);
  }
  return bytes;
}

// 8 GiB in runs of 256 bytes: 33,554,432 of them.
TEST(MindSporeTargetTest, RunsAreNotStored) {
  const Shape full = {32 << 20, 128};  // of Float32: rows of 512 bytes
  ConversionFolder folder({}, {{"w", MakeLayout({2}, {{-1, 0}})}});
  WriteHole(folder, 0, "w", DType::kFloat32, full, CutAt512MiB(16 * kGiB));
  const TargetPlan plan = PlanRank(folder.options(), 1);
  CheckPlan(plan);
  uint64_t runs = 0;
  uint64_t bytes = 0;
  for (const Segment& segment : plan.segments) {
    const auto* content = std::get_if<Content>(&segment);
    if (content == nullptr) continue;
    for (const BlockCopy& copy : content->copies) {
      EXPECT_EQ(copy.run_length, 256U);
      runs += copy.runs();
      bytes += copy.bytes();
    }
  }
  EXPECT_EQ(bytes, 8 * kGiB);
  EXPECT_EQ(runs, uint64_t{32} << 20);
  EXPECT_LE(MemoryOf(plan), kMiB);
}

// And back: columns of 8 GiB each into one tensor.
TEST(MindSporeTargetTest, RunsAreNotStoredOfColumnsThatAreJoined) {
  const Shape shard = {32 << 20, 64};
  ConversionFolder folder({{"w", MakeLayout({2}, {{-1, 0}})}}, {});
  for (const int64_t rank : {0, 1}) {
    WriteHole(folder, rank, "w", DType::kFloat32, shard, CutAt512MiB(8 * kGiB));
  }
  const TargetPlan plan = PlanRank(folder.options(), 0);
  CheckPlan(plan);
  EXPECT_LE(MemoryOf(plan), kMiB);
}

}  // namespace
}  // namespace reshard::mindspore_target_test
