// SIGBUS: caught where it is expected, passed on everywhere else.
#include "src/os/fault_guard.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <latch>
#include <thread>
#include <vector>

#include "src/os/file_pages.h"
#include "src/os/local_file.h"
#include "tests/support/mapped_source.h"
#include "tests/support/temporary_folder.h"

namespace reshard::fault_guard_test {
namespace {

using testing::ExitedWithCode;
using testing::KilledBySignal;

// A map of four pages of 'x', of which the file has lost the last two.
class ShrunkMap {
 public:
  ShrunkMap() {
    const TemporaryFolder folder;
    const std::string path = folder.Write("a", std::string(4 * PageSize(), 'x'));
    source_.emplace(MappedSource(path));
    std::filesystem::resize_file(path, 2 * PageSize());
  }
  const std::byte* data() const { return source_->map(); }
  size_t size() const { return source_->size(); }

 private:
  std::optional<LocalFile> source_;
};

char Touch(const std::byte* byte) {
  return static_cast<char>(*const_cast<const volatile std::byte*>(byte));
}

std::optional<size_t> TouchGuarded(const ShrunkMap& map, size_t offset) {
  return Guarded(map.data(), map.size(), [&map, offset] { Touch(map.data() + offset); });
}

TEST(FaultGuard, TellsWhichByte) {
  const ShrunkMap map;
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(TouchGuarded(map, 0), std::nullopt);
    EXPECT_EQ(TouchGuarded(map, 2 * PageSize() - 1), std::nullopt);
    EXPECT_EQ(TouchGuarded(map, 2 * PageSize()), 2 * PageSize());
    EXPECT_EQ(TouchGuarded(map, 4 * PageSize() - 1), 4 * PageSize() - 1);
  }
}

TEST(FaultGuard, CopiesOfAnyLength) {
  const ShrunkMap map;
  std::vector<std::byte> copy(map.size());
  const auto copy_first = [&](size_t length) {
    return Guarded(map.data(), map.size(), [&] { std::memcpy(copy.data(), map.data(), length); });
  };
  EXPECT_EQ(copy_first(2 * PageSize()), std::nullopt);
  EXPECT_EQ(copy[2 * PageSize() - 1], std::byte{'x'});
  const std::optional<size_t> fault = copy_first(map.size());
  ASSERT_TRUE(fault.has_value());
  EXPECT_GE(*fault, 2 * PageSize());
}

TEST(FaultGuard, NestsAndOuterRangesStayGuarded) {
  const ShrunkMap outer;
  const ShrunkMap inner;
  std::optional<size_t> inner_fault;
  const auto touch_both = [&](size_t inner_offset, size_t outer_offset) {
    return Guarded(outer.data(), outer.size(), [&] {
      inner_fault =
          Guarded(inner.data(), inner.size(), [&] { Touch(inner.data() + inner_offset); });
      Touch(outer.data() + outer_offset);
    });
  };
  EXPECT_EQ(touch_both(3 * PageSize(), 0), std::nullopt);
  EXPECT_EQ(inner_fault, 3 * PageSize());
  EXPECT_EQ(touch_both(0, 3 * PageSize()), 3 * PageSize());
  EXPECT_EQ(inner_fault, std::nullopt);
  // A fault of the outer range within the inner call leaves both.
  const auto fault = Guarded(outer.data(), outer.size(), [&] {
    static_cast<void>(
        Guarded(inner.data(), inner.size(), [&] { Touch(outer.data() + 2 * PageSize()); }));
  });
  EXPECT_EQ(fault, 2 * PageSize());
  EXPECT_EQ(TouchGuarded(inner, 3 * PageSize()), 3 * PageSize());
}

TEST(FaultGuard, ThreadsFaultAtTheSameTime) {
  constexpr size_t kThreads = 4;
  const ShrunkMap map;
  std::latch ready(kThreads);
  std::vector<size_t> faults(kThreads);
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        ready.arrive_and_wait();
        for (size_t round = 0; round < 500; ++round) {
          const bool expected = (round + i) % 2 == 0;
          if (TouchGuarded(map, expected ? 3 * PageSize() : 0).has_value() == expected) ++faults[i];
        }
      });
    }
  }
  for (const size_t count : faults) EXPECT_EQ(count, 500U);
}

// Each row runs in a process of its own, in which the guard is first used after `former` was
// installed.
class FormerHandler : public testing::Test {
 protected:
  FormerHandler() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  static void Install(void (*handler)(int), int flags = 0) {
    struct sigaction action {};
    action.sa_handler = handler;
    action.sa_flags = flags;
    ASSERT_EQ(sigaction(SIGBUS, &action, nullptr), 0);
  }

  // Uses the guard once, then faults outside of it, within another guarded call.
  static void FaultOutside() {
    const ShrunkMap guarded;
    const ShrunkMap other;
    if (!TouchGuarded(guarded, 3 * PageSize())) _exit(3);
    static_cast<void>(
        Guarded(guarded.data(), guarded.size(), [&] { Touch(other.data() + 2 * PageSize()); }));
    _exit(4);
  }
};

TEST_F(FormerHandler, GetsOtherFaults) {
  const auto run = [] {
    Install([](int) { _exit(42); });
    FaultOutside();
  };
  EXPECT_EXIT(run(), ExitedWithCode(42), "");
}

TEST_F(FormerHandler, GetsTheAddressAndItsMask) {
  const auto run = [] {
    struct sigaction action {};
    action.sa_flags = SA_SIGINFO;
    sigaddset(&action.sa_mask, SIGUSR1);
    action.sa_sigaction = [](int, siginfo_t* info, void*) {
      sigset_t blocked;
      pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
      const bool at_page = reinterpret_cast<uintptr_t>(info->si_addr) % PageSize() == 0;
      _exit(at_page && sigismember(&blocked, SIGUSR1) == 1 && sigismember(&blocked, SIGBUS) == 1
                ? 42
                : 5);
    };
    sigaction(SIGBUS, &action, nullptr);
    FaultOutside();
  };
  EXPECT_EXIT(run(), ExitedWithCode(42), "");
}

TEST_F(FormerHandler, OnceOnlyEndsTheProcessTheSecondTime) {
  const auto run = [] {
    Install([](int) { static_cast<void>(!write(STDERR_FILENO, "once\n", 5)); },
            static_cast<int>(SA_RESETHAND));
    FaultOutside();
  };
  EXPECT_EXIT(run(), KilledBySignal(SIGBUS), "^once\n$");
}

TEST_F(FormerHandler, DefaultAndIgnoredFaultsEndTheProcess) {
  const auto run = [](void (*action)(int)) {
    Install(action);
    FaultOutside();
  };
  EXPECT_EXIT(run(SIG_DFL), KilledBySignal(SIGBUS), "");
  EXPECT_EXIT(run(SIG_IGN), KilledBySignal(SIGBUS), "");
}

TEST_F(FormerHandler, DecidesAboutSignalsThatWereSent) {
  // They have no address: not even a guard of all addresses takes them.
  const auto run = [](void (*action)(int)) {
    Install(action);
    const auto fault = Guarded(nullptr, SIZE_MAX, [] { raise(SIGBUS); });
    _exit(fault ? 5 : 0);
  };
  EXPECT_EXIT(run(SIG_DFL), KilledBySignal(SIGBUS), "");
  EXPECT_EXIT(run(SIG_IGN), ExitedWithCode(0), "");
}

struct sigaction ours;

TEST_F(FormerHandler, AHandlerInstalledLaterMayPassFaultsOn) {
  const auto run = [] {
    const ShrunkMap map;
    static_cast<void>(TouchGuarded(map, 0));
    // Without SA_NODEFER: the signal is blocked when our handler jumps out of it.
    struct sigaction later {};
    later.sa_flags = SA_SIGINFO;
    later.sa_sigaction = [](int signal, siginfo_t* info, void* context) {
      ours.sa_sigaction(signal, info, context);
    };
    sigaction(SIGBUS, &later, &ours);
    for (int round = 0; round < 3; ++round) {
      if (TouchGuarded(map, 3 * PageSize()) != 3 * PageSize()) _exit(5);
    }
    _exit(0);
  };
  EXPECT_EXIT(run(), ExitedWithCode(0), "");
}

}  // namespace
}  // namespace reshard::fault_guard_test
