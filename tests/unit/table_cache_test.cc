#include "src/source/table_cache.h"
#include "src/source/indexed_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/bytes_read.h"
#include "tests/support/checkpoint_bytes.h"
#include "tests/support/temporary_folder.h"

namespace reshard::table_cache_test {
namespace {

// A checkpoint of many parameters, each of them with a page of its own.
std::string ManyParameters(int count) {
  std::string bytes;
  for (int i = 0; i < count; ++i) {
    bytes += TensorValue("p" + std::to_string(i), "Int8", {5000}, std::string(5000, 'x'));
  }
  return bytes;
}

class TableCacheTest : public testing::Test {
 protected:
  // The parameter is called as the file, unless told.
  FileId AddFile(const std::string& name, const std::string& parameter = "") {
    return files_.Add(
        folder_.Write(name, TensorValue(parameter.empty() ? name : parameter, "Int8", {1}, "x")));
  }
  void RemoveFiles() {
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      std::filesystem::remove(entry.path());
    }
  }
  static size_t MemoryOf(TableCache& cache, FileId file) {
    const auto handle = cache.Get(file);
    return (*handle)->memory();
  }

  const TemporaryFolder folder_;
  SourceFiles files_{1};
};

TEST_F(TableCacheTest, GivesTheSameIndexAgain) {
  TableCache cache(files_, size_t{1} << 20);
  const FileId file = AddFile("a");
  const auto first = cache.Get(file);
  ASSERT_TRUE(first.ok()) << first.status().message();
  const auto second = cache.Get(file);
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(&**first, &**second);
  EXPECT_EQ((*first)->file(), file);
  EXPECT_NE((*first)->Find("a"), nullptr);
}

TEST_F(TableCacheTest, DropsTheLeastRecentlyUsedBeyondTheBudget) {
  const FileId a = AddFile("a");
  const FileId b = AddFile("b");
  const FileId c = AddFile("c");
  TableCache probe(files_, 0);
  const size_t one = MemoryOf(probe, a);

  TableCache cache(files_, 2 * one);
  MemoryOf(cache, a);
  MemoryOf(cache, b);
  MemoryOf(cache, a);
  MemoryOf(cache, c);
  // What is still there needs no file.
  RemoveFiles();
  EXPECT_FALSE(probe.Get(a).ok());
  EXPECT_TRUE(cache.Get(a).ok());
  EXPECT_TRUE(cache.Get(c).ok());
  EXPECT_FALSE(cache.Get(b).ok());
}

TEST_F(TableCacheTest, KeepsAFewBeyondTheBudget) {
  const FileId a = AddFile("a");
  const FileId b = AddFile("b");
  const FileId c = AddFile("c");
  TableCache cache(files_, 0, 2);
  for (const FileId file : {a, b, c}) ASSERT_TRUE(cache.Get(file).ok());
  RemoveFiles();
  EXPECT_TRUE(cache.Get(b).ok());
  EXPECT_TRUE(cache.Get(c).ok());
  EXPECT_FALSE(cache.Get(a).ok());
}

TEST_F(TableCacheTest, IndexesInUseStay) {
  TableCache cache(files_, 0);
  const FileId file_a = AddFile("a");
  const FileId file_b = AddFile("b");
  TableHandle a = *cache.Get(file_a);
  TableHandle b = *cache.Get(file_b);
  RemoveFiles();
  EXPECT_NE(a->Find("a"), nullptr);
  EXPECT_TRUE(cache.Get(file_a).ok());
  a = std::move(b);
  EXPECT_FALSE(cache.Get(file_a).ok());
  EXPECT_NE(a->Find("b"), nullptr);
  EXPECT_TRUE(cache.Get(file_b).ok());
  a = TableHandle();
  EXPECT_FALSE(cache.Get(file_b).ok());
}

// The files of one stage ordinarily hold the same parameters at the same places.
TEST_F(TableCacheTest, EqualTablesAreHeldOnce) {
  std::vector<FileId> ids;
  for (int i = 0; i < 100; ++i) ids.push_back(AddFile("equal" + std::to_string(i), "w"));
  ids.push_back(AddFile("other"));
  TableCache cache(files_, size_t{1} << 30);
  std::vector<TableHandle> handles;
  for (const FileId file : ids) handles.push_back(*cache.Get(file));
  for (size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(&handles[i]->table(), &handles.front()->table());
  }
  EXPECT_NE(handles.back()->table().id(), handles.front()->table().id());

  const size_t all = ids.size() * sizeof(IndexedFile) + handles.front()->table().memory() +
                     handles.back()->table().memory();
  TableCache holds_all(files_, all);
  TableCache lacks_a_byte(files_, all - 1);
  for (const FileId file : ids) {
    ASSERT_TRUE(holds_all.Get(file).ok());
    ASSERT_TRUE(lacks_a_byte.Get(file).ok());
  }
  RemoveFiles();
  for (const FileId file : ids) EXPECT_TRUE(holds_all.Get(file).ok());
  EXPECT_FALSE(lacks_a_byte.Get(ids.front()).ok());
}

// What a file holds beside its table counts as well.
TEST_F(TableCacheTest, DropsIndexesWithMuchBesideTheirTables) {
  constexpr size_t kObjects = 1000;
  const auto make = [this](FileId file,
                           const std::shared_ptr<const FileTable>& like) -> Result<IndexedFile> {
    Result<IndexedFile> index = ReadFileTable(files_, file, {}, like);
    if (index.ok()) index->set_beside({.objects = std::vector<BesideObject>(kObjects)});
    return index;
  };
  const FileId a = AddFile("a", "w");
  const FileId b = AddFile("b", "w");
  TableCache probe(make, 0);
  const size_t one = MemoryOf(probe, a);
  EXPECT_GT(one, kObjects * sizeof(BesideObject));

  TableCache cache(make, one + kObjects * sizeof(BesideObject));
  ASSERT_TRUE(cache.Get(a).ok());
  EXPECT_EQ(cache.memory(), one);
  ASSERT_TRUE(cache.Get(b).ok());
  EXPECT_EQ(cache.memory(), one);
  EXPECT_TRUE(cache.has_dropped());
}

// As long as any of the indexes that have it.
TEST_F(TableCacheTest, SharedTablesStayWhileTheyAreUsed) {
  TableCache cache(files_, 0);
  const FileId first_file = AddFile("first", "w");
  TableHandle first = *cache.Get(first_file);
  const TableHandle second = *cache.Get(AddFile("second", "w"));
  EXPECT_EQ(&first->table(), &second->table());
  first = TableHandle();
  RemoveFiles();
  EXPECT_FALSE(cache.Get(first_file).ok());
  EXPECT_NE(second->Find("w"), nullptr);
}

TEST_F(TableCacheTest, FailuresAreTriedAgain) {
  TableCache cache(files_, size_t{1} << 20);
  const FileId file = files_.Add(folder_.path() / "late");
  EXPECT_EQ(cache.Get(file).status().code(), StatusCode::kNotFound);
  AddFile("late");
  EXPECT_TRUE(cache.Get(file).ok());
}

TEST_F(TableCacheTest, ThreadsShareOneIndexing) {
  const FileId file = files_.Add(folder_.Write("many", ManyParameters(2000)));
  const uint64_t start = BytesRead();
  ASSERT_TRUE(ReadFileTable(files_, file).ok());
  const uint64_t one = BytesRead() - start;
  ASSERT_GT(one, 2000U * 10);

  constexpr int kThreads = 8;
  TableCache cache(files_, size_t{1} << 30);
  std::latch together(kThreads);
  std::vector<const IndexedFile*> seen(kThreads);
  const uint64_t before = BytesRead();
  {
    std::vector<std::jthread> threads;
    for (size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        together.arrive_and_wait();
        const auto handle = cache.Get(file);
        if (handle.ok()) seen[t] = &**handle;
      });
    }
  }
  EXPECT_LT(BytesRead() - before, one + one / 2);
  EXPECT_NE(seen[0], nullptr);
  EXPECT_EQ(seen, std::vector<const IndexedFile*>(kThreads, seen[0]));
}

// Many threads, more files than the budget holds, one of them broken.
TEST_F(TableCacheTest, ThreadsMayUseItAtWill) {
  std::vector<FileId> ids;
  for (int i = 0; i < 6; ++i) {
    ids.push_back(files_.Add(folder_.Write(std::to_string(i), ManyParameters(20 + i))));
  }
  ids.push_back(files_.Add(folder_.Write("broken", "\x0a\x7f")));
  TableCache probe(files_, 0);
  TableCache cache(files_, 3 * MemoryOf(probe, ids[0]));
  std::vector<std::jthread> threads;
  for (size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      TableHandle kept;
      for (size_t i = 0; i < 300; ++i) {
        const size_t which = (i * (t + 1) + t) % ids.size();
        auto handle = cache.Get(ids[which]);
        ASSERT_EQ(handle.ok(), which < 6);
        if (!handle.ok()) continue;
        ASSERT_EQ((*handle)->arrays().size(), 20 + which);
        if (i % 3 == 0) kept = *std::move(handle);
        ASSERT_TRUE(!kept || kept->Find("p19") != nullptr);
      }
    });
  }
  threads.clear();
  EXPECT_LE(cache.memory(), 3 * MemoryOf(probe, ids[0]));
}

}  // namespace
}  // namespace reshard::table_cache_test
