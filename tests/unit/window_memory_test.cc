// How often windows of files that are read, not mapped, want new memory. Not under sanitizers,
// whose own memory has page faults, too.
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <string>

#include "src/io/source_files.h"
#include "tests/support/memory_pages.h"
#include "tests/support/source_content.h"
#include "tests/support/temporary_folder.h"

namespace reshard::window_memory_test {
namespace {

// Otherwise the kernel would clear the pages of each window before it is read. What is read begins
// at `shift` in a window: of the next one, too, first those few bytes, and later the rest.
void ReadWindows(uint64_t shift) {
  SCOPED_TRACE(shift);
  // Where fewer windows fit, those begun by a few bytes are not made whole.
  constexpr uint64_t kBudget = 12;
  constexpr uint64_t kWindows = 60;
  constexpr uint64_t kSecret = 5 * kWindowBytes + 7;
  const TemporaryFolder folder;
  SourceFiles files({.window_budget = kBudget * kWindowBytes, .access = IoChoice::Source::kPread});
  const FileId id =
      files.Add(folder.WriteSparse("a", kWindows * kWindowBytes + 100, kSecret, "abcdef"));
  const auto faults = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<uint64_t>(usage.ru_minflt);
  };
  // With huge pages there would be few of them anyway.
  ASSERT_EQ(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0), 0);
  const uint64_t before = faults();
  for (uint64_t i = 0; i < kWindows; ++i) {
    const auto window = files.Open(id, i * kWindowBytes + shift, kWindowBytes - shift);
    ASSERT_TRUE(window.ok()) << window.status().message();
    ASSERT_TRUE(files.Open(id, (i + 1) * kWindowBytes, shift).ok());
    // A whole window goes for a few bytes, which leave room for more of them.
    if (i == kWindows / 2) {
      ASSERT_TRUE(files.Open(id, (kWindows - 1) * kWindowBytes, 1).ok());
    }
  }
  const uint64_t after = faults();
  ASSERT_EQ(prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0), 0);
  EXPECT_LE(after - before, (kBudget + 3) * kWindowBytes / PageSize());
  EXPECT_LE(files.HeldPeak(), (kBudget + 1) * kWindowBytes);
  EXPECT_EQ(Content(files.Open(id, kSecret, 6)), "abcdef");
  EXPECT_EQ(Content(files.Open(id, 9 * kWindowBytes + 7, 6)), std::string(6, '\0'));
  EXPECT_EQ(Content(files.Open(id, kWindows * kWindowBytes, 3)), std::string(3, '\0'));
}

TEST(WindowMemory, AWindowThatGoesLeavesItsMemoryToTheNextOne) {
  ReadWindows(0);
  ReadWindows(99);
}

}  // namespace
}  // namespace reshard::window_memory_test
