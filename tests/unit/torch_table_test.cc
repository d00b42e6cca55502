#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/container_table/container_table.h"
#include "format/torch_zip/torch_zip_container.h"
#include "tests/support/says.h"
#include "tests/support/torch_bytes.h"
#include "tests/support/zip_bytes.h"

namespace reshard::torch_table_test {
namespace {

using testing::ElementsAre;

// Reads the file as any checkpoint is read.
Result<TableOfFile> ReadFile(const std::string& bytes) {
  const FileBytes file = {"a.pt", bytes.size(),
                          [&bytes](uint64_t offset, std::span<std::byte> out) -> Status {
                            std::memcpy(out.data(), bytes.data() + offset, out.size());
                            return {};
                          },
                          [](ByteRange) { return Status(); }};
  return ReadTable(file);
}

std::pair<std::string, std::string> Entry(std::string_view key, const std::string& value) {
  return {PickledText(key), value};
}

std::vector<std::string> NamesOf(const TableOfFile& read) {
  std::vector<std::string> names;
  for (const StoredArray& array : read.table->arrays()) names.emplace_back(array.name);
  return names;
}

TEST(TorchTableTest, NamesAreThePathsInTheDict) {
  const std::string inner =
      PickledDict({Entry("w", PickledWhole("0", {2})),
                   {PickledInteger(7), PickledDict({Entry("m", PickledWhole("1", {3}))})}});
  const std::string file = TorchFile(
      PickleOf(PickledDict({Entry("model", inner),
                            Entry("list", PickledList({PickledWhole("2", {}), inner})),
                            Entry("step", PickledInteger(3)), Entry("none", PickledNone())})),
      {"01234567", "ABCDEFGHIJKL", "abcd"});
  const auto read = ReadFile(file);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(&read->table->container(), &kTorchZipContainer);
  EXPECT_THAT(NamesOf(*read),
              ElementsAre("model.w", "list.1.w", "model.7.m", "list.1.7.m", "list.0"));
  EXPECT_EQ(read->beside.values, 2U);
  const StoredArray* const array = read->table->Find("model.7.m");
  ASSERT_NE(array, nullptr);
  EXPECT_EQ(array->shape, Shape{3});
  EXPECT_EQ(file.substr(array->content.front().offset, array->bytes), "ABCDEFGHIJKL");
}

TEST(TorchTableTest, ArraysMayShareTheirStorage) {
  const auto part = [](int64_t offset, int64_t size) {
    return Pickled({.elements = 4, .offset = offset, .shape = {size}, .strides = {1}});
  };
  const std::string storage = "0123456789ABCDEF";
  const auto read = ReadFile(
      TorchFile(PickleOf(PickledDict({Entry("tied", part(0, 4)), Entry("all", part(0, 4)),
                                      Entry("last", part(2, 2)), Entry("none", part(1, 0))})),
                {storage}));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_THAT(NamesOf(*read), ElementsAre("none", "tied", "all", "last"));
  EXPECT_EQ(read->table->arrays()[1].content.front(), read->table->arrays()[2].content.front());
  ASSERT_EQ(read->content_crcs.size(), 1U);
  EXPECT_EQ(read->content_crcs[0].covered, read->table->arrays()[1].content.front());
  EXPECT_EQ(read->content_crcs[0].value, NaiveCrc32(storage));
}

TEST(TorchTableTest, EachStorageStatesItsCrc) {
  const auto read = ReadFile(TorchFile(PickleOf(PickledDict({Entry("b", PickledWhole("1", {2})),
                                                             Entry("a", PickledWhole("0", {1}))})),
                                       {"0123", "ABCDEFGH", "of no tensor"}));
  ASSERT_TRUE(read.ok()) << read.status().message();
  ASSERT_EQ(read->content_crcs.size(), 2U);
  EXPECT_EQ(read->content_crcs[0].value, NaiveCrc32("0123"));
  EXPECT_EQ(read->content_crcs[1].value, NaiveCrc32("ABCDEFGH"));
}

TEST(TorchTableTest, OrderedDictsAreDictsAndOtherObjectsAreNot) {
  const auto read = ReadFile(
      TorchFile(PickleOf(PickledCall("collections", "OrderedDict", {}) + "(" + PickledText("w") +
                         PickledWhole("0", {1}) + PickledText("args") +
                         PickledCall("argparse", "Namespace", {PickledWhole("0", {1})}) + "u"),
                {"0123"}));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_THAT(NamesOf(*read), ElementsAre("w"));
  EXPECT_EQ(read->beside.values, 1U);
}

TEST(TorchTableTest, RefusesTablesThatAreNone) {
  const std::string tensor = PickledWhole("0", {1});
  const struct {
    std::string pickled;
    StatusCode code;
    std::string_view named;
  } rows[] = {
      {tensor, StatusCode::kUnsupported, "a tensor without a name"},
      {PickledCall("posix", "system", {PickledText("true")}), StatusCode::kUnsupported,
       "posix.system"},
      {PickledInteger(1), StatusCode::kUnsupported, "1"},
      {PickledDict({Entry("w", tensor), Entry("w", tensor)}), StatusCode::kCorrupt, "\"w\""},
      {PickledDict({Entry("a", PickledDict({Entry("b", tensor)})), Entry("a.b", tensor)}),
       StatusCode::kCorrupt, "\"a.b\""},
      {PickledDict(
           {Entry("w", Pickled({.key = "5", .elements = 1, .shape = {1}, .strides = {1}}))}),
       StatusCode::kCorrupt, "archive/data/5"},
  };
  for (const auto& row : rows) {
    const Status status = ReadFile(TorchFile(PickleOf(row.pickled), {"0123"})).status();
    EXPECT_EQ(status.code(), row.code) << status.message();
    EXPECT_THAT(status.message(), Naming("a.pt: member \"archive/data.pkl\"", row.named));
  }
  EXPECT_EQ(ReadFile(ZipOf({{.name = "a.npy", .content = "x"}})).status().code(),
            StatusCode::kCorrupt);
  const Status program = ReadFile(ZipOf({{.name = "m/data.pkl", .content = "x"},
                                         {.name = "m/constants.pkl", .content = "x"}}))
                             .status();
  EXPECT_EQ(program.code(), StatusCode::kUnsupported);
  EXPECT_THAT(program.message(), Naming("TorchScript"));
}

// So that the other tensors of a file are not lost with it.
TEST(TorchTableTest, TensorsThatCannotBeReadAreNamed) {
  const std::string tensor = PickledWhole("0", {1});
  const auto read = ReadFile(TorchFile(
      PickleOf(PickledDict(
          {Entry("q", PickledCall("torch._utils", "_rebuild_qtensor", {tensor})),
           Entry("w", tensor),
           Entry("t", Pickled({.key = "1", .elements = 6, .shape = {3, 2}, .strides = {1, 3}}))})),
      {"0123", "0123456789ABCDEFGHIJKLMN"}));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_THAT(NamesOf(*read), ElementsAre("w"));
  ASSERT_EQ(read->beside.unread.size(), 2U);
  EXPECT_EQ(read->beside.unread[0].name, "q");
  EXPECT_THAT(read->beside.unread[0].why, Naming("quantized"));
  EXPECT_EQ(read->beside.unread[1].name, "t");
  EXPECT_THAT(read->beside.unread[1].why, Naming("[3, 2]", "[1, 3]"));
  EXPECT_EQ(read->content_crcs.size(), 1U);
}

// Lists in lists in lists, each twice in the next one.
TEST(TorchTableTest, RepeatedValuesDoNotExplode) {
  // Memo entry n is a tuple of two times entry n - 1.
  std::string pickled = PickledList({PickledInteger(1)}) + std::string("q\0", 2);
  for (char level = 0; level < 40; ++level) {
    pickled += std::string("h") + level + '\x86' + 'q' + static_cast<char>(level + 1);
  }
  const Status status = ReadFile(TorchFile(PickleOf(pickled), {})).status();
  EXPECT_EQ(status.code(), StatusCode::kCorrupt) << status.message();
  EXPECT_THAT(status.message(), Naming("countless"));
}

std::string Placement(std::string_view kind, const std::string& state) {
  return PickledGlobal("torch.distributed.tensor.placement_types", kind) + ")\x81" + state + "b";
}

std::string Shard(int64_t dim) {
  return Placement("Shard", PickledDict({Entry("dim", PickledInteger(dim))}));
}

// A mesh as older releases have it, with its ranks as a tensor of Int32 in the storage 1.
std::string Mesh(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides,
                 int64_t ranks) {
  return PickledGlobal("torch.distributed.device_mesh", "DeviceMesh") + ")\x81" +
         PickledDict({Entry("mesh", Pickled({.type = "IntStorage",
                                             .key = "1",
                                             .elements = ranks,
                                             .shape = shape,
                                             .strides = strides}))}) +
         "b";
}

std::string DTensor(const std::string& local, const std::vector<int64_t>& full,
                    const std::string& mesh, const std::vector<std::string>& placements,
                    const std::string& order = PickledNone()) {
  const std::string spec =
      PickledGlobal("torch.distributed.tensor._dtensor_spec", "DTensorSpec") + ")\x81" +
      PickledDict({Entry("mesh", mesh), Entry("placements", PickledTuple(placements)),
                   Entry("shard_order", order)}) +
      "b";
  return PickledCall("torch._tensor", "_rebuild_from_type_v2",
                     {PickledGlobal("torch._utils", "_rebuild_wrapper_subclass"),
                      PickledGlobal("torch.distributed.tensor", "DTensor"),
                      PickledTuple({PickledGlobal("torch.distributed.tensor", "DTensor"),
                                    PickledGlobal("torch", "float32"), PickledIntegers(full)}),
                      PickledTuple({PickledNone(), PickledDict({Entry("_local_tensor", local),
                                                                Entry("_spec", spec)})})});
}

TEST(TorchTableTest, DTensorsSayTheirPlacements) {
  const std::string ranks("\3\0\0\0\2\0\0\0\1\0\0\0\0\0\0\0", 16);
  const std::string mesh = Mesh({2, 2}, {2, 1}, 4);
  const std::string file = TorchFile(
      PickleOf(PickledDict(
          {Entry("w", DTensor(PickledWhole("0", {1, 2}), {2, 4}, mesh, {Shard(0), Shard(-1)})),
           Entry("whole", DTensor(PickledWhole("0", {1, 2}), {1, 2}, mesh,
                                  {Placement("Replicate", PickledDict({})),
                                   Placement("Replicate", PickledDict({}))}))})),
      {"01234567", ranks});
  const auto read = ReadFile(file);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_THAT(NamesOf(*read), ElementsAre("w", "whole"));
  ASSERT_EQ(read->shards.mesh.size(), 1U);
  const MeshTensor& tensor = read->shards.mesh.front();
  EXPECT_EQ(tensor.name, "w");
  EXPECT_EQ(tensor.full_shape, (Shape{2, 4}));
  EXPECT_EQ(tensor.mesh->extents, (Shape{2, 2}));
  EXPECT_THAT(tensor.mesh->ranks.all(), ElementsAre(3, 2, 1, 0));
  const auto box = BoxOfRank(tensor, 2);
  ASSERT_TRUE(box.ok()) << box.status().message();
  EXPECT_EQ(*box, (Box{{0, 2}, {1, 2}}));
}

// One dimension and the axes that cut it, as PyTorch 2.15 writes them.
std::string Order(int64_t dim, const std::vector<int64_t>& axes) {
  return PickledGlobal("torch.distributed.tensor._dtensor_spec", "ShardOrderEntry") +
         PickledTuple({PickledInteger(dim), PickledIntegers(axes)}) + "\x81";
}

TEST(TorchTableTest, AxesCutInTheirOrder) {
  const std::string mesh = Mesh({2, 2}, {2, 1}, 4);
  const std::string ranks("\0\0\0\0\1\0\0\0\2\0\0\0\3\0\0\0", 16);
  const struct {
    std::string order;
    std::string_view why;  // it is not read; "": it is
  } rows[] = {
      {PickledTuple({Order(0, {0, 1})}), ""},
      {PickledTuple({PickledTuple({PickledInteger(0), PickledIntegers({0, 1})})}), ""},
      {PickledTuple({Order(0, {1, 0})}), "[1, 0]"},
      {PickledTuple({Order(0, {0})}), "[0]"},
      {PickledTuple({Order(1, {0, 1})}), "dimension 1"},
      {PickledTuple({PickledInteger(0)}), "a form that is not known"},
      {PickledTuple({PickledTuple({PickledInteger(0)})}), "a form that is not known"},
      {PickledText("default"), "a form that is not known"},
  };
  for (const auto& row : rows) {
    const auto read = ReadFile(TorchFile(
        PickleOf(PickledDict({Entry(
            "w", DTensor(PickledWhole("0", {2}), {8}, mesh, {Shard(0), Shard(0)}, row.order))})),
        {"01234567", ranks}));
    ASSERT_TRUE(read.ok()) << read.status().message();
    if (row.why.empty()) {
      EXPECT_THAT(NamesOf(*read), ElementsAre("w"));
      continue;
    }
    ASSERT_EQ(read->beside.unread.size(), 1U) << row.why;
    EXPECT_THAT(read->beside.unread[0].why, Naming("shard_order", row.why));
  }
}

// Some releases state the order of strided placements once more.
TEST(TorchTableTest, StridedPlacementsSayTheOrderThemselves) {
  const std::string strided = Placement(
      "_StridedShard",
      PickledDict({Entry("dim", PickledInteger(0)), Entry("split_factor", PickledInteger(2))}));
  const auto read = ReadFile(
      TorchFile(PickleOf(PickledDict(
                    {Entry("w", DTensor(PickledWhole("0", {2}), {8}, Mesh({2, 2}, {2, 1}, 4),
                                        {strided, Shard(0)}, PickledTuple({Order(0, {1, 0})})))})),
                {"01234567", std::string("\0\0\0\0\1\0\0\0\2\0\0\0\3\0\0\0", 16)}));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_THAT(NamesOf(*read), ElementsAre("w"));
}

// An object with more counts as one without a dimension.
TEST(TorchTableTest, PlacementsHaveAtMost64Attributes) {
  for (const size_t attributes : {64U, 65U}) {
    std::vector<std::pair<std::string, std::string>> state = {Entry("dim", PickledInteger(0))};
    while (state.size() < attributes) {
      state.push_back(Entry("k" + std::to_string(state.size()), PickledNone()));
    }
    const auto read = ReadFile(TorchFile(
        PickleOf(PickledDict({Entry("w", DTensor(PickledWhole("0", {2}), {4}, Mesh({2}, {1}, 2),
                                                 {Placement("Shard", PickledDict(state))}))})),
        {"01234567", std::string("\0\0\0\0\1\0\0\0", 8)}));
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(read->beside.unread.size(), attributes - 64);
  }
}

// Objects have no paths to their tensors. What only they hold is named.
TEST(TorchTableTest, ObjectsThatHoldStoragesAreNamed) {
  const auto object = [](const std::string& value) {
    return PickledCall("my.models", "Net", {PickledText("net"), PickledList({value})});
  };
  const std::string with_state =
      PickledGlobal("my.models", "Block") + ")\x81" +
      PickledDict({Entry("w", PickledWhole("2", {1})), Entry("v", PickledWhole("0", {1}))}) + "b";
  const auto read = ReadFile(TorchFile(
      PickleOf(PickledDict(
          {Entry("w", PickledWhole("0", {1})),
           Entry("net", object(PickledWhole("1", {2}))),
           Entry("tied", object(PickledWhole("0", {1}))),
           Entry("list", PickledList({PickledInteger(1), with_state})),
           Entry("args", PickledCall("argparse", "Namespace", {PickledText("x")})),
           {PickledTuple({PickledInteger(1)}), PickledDict({Entry("u", PickledWhole("3", {3}))})},
           Entry("q", PickledCall("torch._utils", "_rebuild_qtensor", {PickledWhole("4", {1})})),
           Entry("same", object(PickledWhole("4", {1})))})),
      {"0123", "01234567", "0123", "0123456789AB", "0123"}));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_THAT(NamesOf(*read), ElementsAre("w"));
  EXPECT_EQ(read->beside.values, 7U);
  std::vector<std::string> found;
  for (const BesideObject& named : read->beside.objects) {
    found.push_back(named.name + ' ' + named.kind + ' ' + std::to_string(named.bytes));
  }
  EXPECT_THAT(found, ElementsAre("net my.models.Net(..) 8", "list.1 my.models.Block(..) 4",
                                 "a tuple of 1 a dict of 1 12"));
}

TEST(TorchTableTest, RefusesOtherDTensors) {
  const std::string local = PickledWhole("0", {2});
  const std::string mesh = Mesh({2}, {1}, 2);
  const std::string ranks("\0\0\0\0\1\0\0\0", 8);
  const struct {
    std::string pickled;
    StatusCode code;
  } rows[] = {
      {DTensor(local, {4}, mesh, {Placement("Partial", PickledDict({}))}),
       StatusCode::kUnsupported},
      {DTensor(local, {4}, mesh, {Placement("Shard", PickledDict({}))}), StatusCode::kUnsupported},
      {DTensor(local, {4}, mesh, {Shard(1)}), StatusCode::kCorrupt},
      {DTensor(local, {4}, mesh, {Shard(-2)}), StatusCode::kCorrupt},
      {DTensor(local, {4}, mesh, {Shard(0), Shard(0)}), StatusCode::kCorrupt},
      {DTensor(local, {4}, mesh, {PickledNone()}), StatusCode::kCorrupt},
      {DTensor(local, {-4}, mesh, {Shard(0)}), StatusCode::kCorrupt},
      {DTensor(local, {4}, PickledNone(), {Shard(0)}), StatusCode::kCorrupt},
      {DTensor(local, {4}, Mesh({3}, {1}, 3), {Shard(0)}), StatusCode::kCorrupt},
      {DTensor(local, {4}, Mesh({0}, {1}, 2), {Shard(0)}), StatusCode::kCorrupt},
      {DTensor(PickledNone(), {4}, mesh, {Shard(0)}), StatusCode::kCorrupt},
  };
  size_t number = 0;
  for (const auto& row : rows) {
    const auto read =
        ReadFile(TorchFile(PickleOf(PickledDict({Entry("w", row.pickled)})), {"01234567", ranks}));
    if (row.code == StatusCode::kUnsupported) {
      ASSERT_TRUE(read.ok()) << number << ": " << read.status().message();
      ASSERT_EQ(read->beside.unread.size(), 1U) << number;
      ++number;
      continue;
    }
    const Status status = read.status();
    EXPECT_EQ(status.code(), row.code) << number << ": " << status.message();
    EXPECT_THAT(status.message(), Naming("a.pt: ", "\"w\"")) << number;
    ++number;
  }
}

MeshTensor TensorOver(Shape full, Shape extents, std::vector<MeshPlacement> placements) {
  auto mesh = std::make_shared<DeviceMesh>();
  mesh->extents = std::move(extents);
  int64_t ranks = 1;
  for (const int64_t extent : mesh->extents) ranks *= extent;
  std::vector<int64_t> all(static_cast<size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  mesh->ranks = MeshRanks(std::move(all));
  return {"w", std::move(full), std::move(mesh), std::move(placements)};
}

std::vector<std::string> BoxesOf(const MeshTensor& tensor) {
  std::vector<std::string> boxes;
  for (const int64_t rank : tensor.mesh->ranks.all()) {
    const auto box = BoxOfRank(tensor, rank);
    boxes.push_back(box.ok() ? ToString(*box) : box.status().message());
  }
  return boxes;
}

TEST(BoxOfRankTest, CutsAsTorchChunkDoes) {
  EXPECT_THAT(BoxesOf(TensorOver({10}, {4}, {{.dim = 0}})),
              ElementsAre("[0:3]", "[3:6]", "[6:9]", "[9:10]"));
  EXPECT_THAT(BoxesOf(TensorOver({3}, {4}, {{.dim = 0}})),
              ElementsAre("[0:1]", "[1:2]", "[2:3]", "[3:3]"));
  EXPECT_THAT(BoxesOf(TensorOver({4}, {3}, {{.dim = 0}})), ElementsAre("[0:2]", "[2:4]", "[4:4]"));
  EXPECT_THAT(BoxesOf(TensorOver({0}, {2}, {{.dim = 0}})), ElementsAre("[0:0]", "[0:0]"));
  EXPECT_THAT(BoxesOf(TensorOver({4, 6}, {2, 2}, {{}, {.dim = 1}})),
              ElementsAre("[0:4, 0:3]", "[0:4, 3:6]", "[0:4, 0:3]", "[0:4, 3:6]"));
}

// FSDP2 over tensor parallelism: 10 rows begin at 0, 5, 3 and 8.
TEST(BoxOfRankTest, AStridedCutComesAfterThoseOfLaterAxes) {
  EXPECT_THAT(BoxesOf(TensorOver({10}, {2, 2}, {{.dim = 0, .split = 2}, {.dim = 0}})),
              ElementsAre("[0:3]", "[5:8]", "[3:5]", "[8:10]"));
  const MeshTensor other = TensorOver({12}, {2, 2}, {{.dim = 0, .split = 3}, {.dim = 0}});
  EXPECT_EQ(BoxOfRank(other, 0).status().code(), StatusCode::kUnsupported);
  EXPECT_EQ(BoxOfRank(TensorOver({4}, {2}, {{.dim = 0}}), 2).status().code(),
            StatusCode::kMismatch);
}

}  // namespace
}  // namespace reshard::torch_table_test
