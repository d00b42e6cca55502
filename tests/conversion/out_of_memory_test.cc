// Memory that runs out at any allocation: no thread dies of it, and none waits for ever.
#include "src/base/out_of_memory.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "reshard/compare.h"
#include "src/io/source_files.h"
#include "src/write/part_writer.h"
#include "tests/support/conversion_folder.h"
#include "tests/support/strategy_bytes.h"
#include "tests/support/temporary_folder.h"

namespace {

std::atomic<int64_t> allocations_left{-1};  // before one fails; negative: none does

bool Fails() { return allocations_left >= 0 && allocations_left.fetch_sub(1) == 0; }

void* Allocate(size_t size, size_t alignment) {
  if (Fails()) throw std::bad_alloc();
  void* bytes = std::aligned_alloc(alignment, (size + alignment) / alignment * alignment);
  if (bytes == nullptr) throw std::bad_alloc();
  return bytes;
}

}  // namespace

void* operator new(size_t size) { return Allocate(size, __STDCPP_DEFAULT_NEW_ALIGNMENT__); }
void* operator new(size_t size, std::align_val_t alignment) {
  return Allocate(size, static_cast<size_t>(alignment));
}
// Of std::stable_sort; AddressSanitizer's own would not go with the delete below.
void* operator new(size_t size, const std::nothrow_t& /*tag*/) noexcept {
  try {
    return Allocate(size, __STDCPP_DEFAULT_NEW_ALIGNMENT__);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
// Not inlined: the compiler would see memory of new go to free.
[[gnu::noinline]] void operator delete(void* bytes) noexcept { std::free(bytes); }
[[gnu::noinline]] void operator delete(void* bytes, size_t) noexcept { std::free(bytes); }
[[gnu::noinline]] void operator delete(void* bytes, std::align_val_t) noexcept { std::free(bytes); }
[[gnu::noinline]] void operator delete(void* bytes, size_t, std::align_val_t) noexcept {
  std::free(bytes);
}

// protobuf loses the message that it could not add to a repeated field.
// NOLINTNEXTLINE(bugprone-reserved-identifier, readability-identifier-naming): LeakSanitizer's name
extern "C" const char* __lsan_default_suppressions() {
  return "leak:google::protobuf::RepeatedPtrField";
}

namespace reshard::out_of_memory_test {
namespace {

// Calls body() with the first allocation failing, then with the second, and so on, until one call
// needs no more. Returns how many calls ran out of memory, whether or not they could do without.
template <typename Body>
int FailEach(Body body) {
  for (int number = 0;; ++number) {
    allocations_left = number;
    const Status status = CatchOutOfMemory(body);
    const bool failed = allocations_left.exchange(-1) < 0;
    if (!failed) {
      EXPECT_TRUE(status.ok()) << status.message();
      return number;
    }
    if (!status.ok()) {
      EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << status.message();
    }
  }
}

TEST(OutOfMemory, AFileThatCouldNotBeOpenedCanBeLater) {
  const TemporaryFolder folder;
  SourceFiles files(1);
  const FileId other = files.Add(folder.Write("other", std::string(100, 'b')));
  const FileId file = files.Add(folder.Write("file", std::string(100, 'a')));
  const int failures = FailEach([&]() -> Status {
    const auto window = files.Open(file, 0, 100);
    return window.ok() ? files.Size(other).status() : window.status();
  });
  EXPECT_GT(failures, 1);
  EXPECT_TRUE(files.Open(other, 0, 100).ok());
  EXPECT_TRUE(files.Open(file, 0, 100).ok());
}

// One file, "target", in a folder.
class OneFileSink final : public PartSink {
 public:
  explicit OneFileSink(const OutputDirectory& folder) : folder_(folder) {}

  Result<bool> IsKept(const FilePart& /*part*/, const std::stop_token& /*stop*/) const override {
    return false;
  }
  Result<StagedFile> Create(const FilePart& part, const WriteOptions& options) const override {
    return StagedFile::Create(folder_, "target", part.range.length, options);
  }
  Status Finish(const FilePart& /*part*/, StagedFile file, const FinishedPart& /*finished*/,
                const std::stop_token& /*stop*/) const override {
    return file.Finish();
  }

 private:
  const OutputDirectory& folder_;
};

TEST(OutOfMemory, LanesOfTwoThreadsEnd) {
  const TemporaryFolder folder;
  SourceFiles files(1);
  const uint64_t bytes = 2 * kChunkBytes + 1;
  TargetPlan plan;
  plan.path = "target";
  plan.size = bytes;
  const FileId file = files.Add(folder.Write("source", std::string(bytes, 'a')));
  Content content;
  content.target = {0, bytes};
  content.copies = {{file, 0, 0, bytes, {}}};
  plan.segments = {content};
  auto out = OutputDirectory::Open(folder.path().string());
  ASSERT_TRUE(out.ok());
  const int failures = FailEach([&]() -> Status {
    const int64_t left = allocations_left.exchange(-1);
    EXPECT_TRUE(out->RemoveFile("target").ok());
    allocations_left = left;
    PartWork work;
    work.parts = {{0, {0, bytes}}};
    work.groups = {{0}};
    work.plan = [&](size_t) {
      return Result<PlanHandle>(std::make_shared<const TargetPlan>(plan));
    };
    work.digests = false;
    WriteCounts counts;
    return WriteParts(files, work, OneFileSink(*out), {.lanes = 2}, counts, {});
  });
  EXPECT_GT(failures, 1);
}

// Threads that index wait for each other's turn.
TEST(OutOfMemory, FilesAreReadAsTheyAreIndexedOrNot) {
  const std::vector<NamedLayout> layouts = {{"w", MakeLayout({8}, {{0}})}};
  const ConversionFolder folder(layouts, {});
  const std::vector<TestTensor> tensors = {MakeTensor("w", DType::kFloat32, {1024})};
  folder.WriteStage(tensors, layouts, 8);
  ContentOptions options;
  options.source = folder.options().source;
  options.run.jobs = 1;  // one indexes at a time
  std::string digest;
  const int failures = FailEach([&]() -> Status {
    const Result<DigestReport> report = DigestCheckpoint(options);
    if (!report.ok()) return report.status();
    if (digest.empty()) digest = report->digest;
    EXPECT_EQ(report->digest, digest);
    return {};
  });
  EXPECT_GT(failures, 1);
}

}  // namespace
}  // namespace reshard::out_of_memory_test
