// A file that is made to be expensive, and the test that runs the program on it.
#ifndef RESHARD_TESTS_MALFORMED_HOSTILE_FILE_H_
#define RESHARD_TESTS_MALFORMED_HOSTILE_FILE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include "tests/support/checkpoint_bytes.h"
#include "tests/support/measured_program.h"
#include "tests/support/strategy_bytes.h"
#include "tests/support/temporary_folder.h"

namespace reshard {

// What a run takes for nothing, what it takes for a byte of its input, and how long it may go on.
// The longest take eight seconds of CPU time in a debug build; time that grew with the square of
// 250,000 would be far beyond the limit.
inline constexpr uint64_t kBaseBytes = uint64_t{24} << 20;
inline constexpr uint64_t kBytesForEach = 48;  // a parameter of a .ckpt file may be 23 bytes
inline constexpr uint64_t kCpuSeconds = 20;

struct HostileFile {
  std::string name;
  std::string content;
  std::vector<std::vector<std::string>> commands;  // FILE and FOLDER stand for paths
  friend std::ostream& operator<<(std::ostream& out, const HostileFile& file) {
    return out << file.name;
  }
};

inline std::string Repeat(const std::string& text, size_t count) {
  std::string all;
  all.reserve(text.size() * count);
  for (size_t i = 0; i < count; ++i) all += text;
  return all;
}

class HostileCostTest : public testing::TestWithParam<HostileFile> {
 protected:
  void SetUp() override {
    folder_.Write("good/rank_0/net-1_1.ckpt", TensorValue("w", "Float32", {2}, "12345678"));
    folder_.Write("good/rank_1/net-1_1.ckpt", TensorValue("w", "Float32", {2}, "12345678"));
    folder_.Write("strategy", ProtobufStrategy(0, {{"w", MakeLayout({2}, {{0}})}}));
  }

  void Run(const std::string& file_name) {
    const HostileFile& file = GetParam();
    const std::string path = folder_.Write(file_name, file.content);
    const uint64_t most = kBaseBytes + kBytesForEach * file.content.size();
    for (std::vector<std::string> command : file.commands) {
      for (std::string& word : command) {
        if (word == "FILE") word = path;
        if (word.starts_with("FOLDER")) word = folder_.path().string() + word.substr(6);
      }
      const Outcome outcome = RunReshard(command, {.cpu_seconds = kCpuSeconds});
      EXPECT_THAT(outcome.exit, testing::AnyOf(0, 1, 3, 5)) << command[0] << ": " << outcome.error;
      EXPECT_LE(outcome.peak, most) << command[0] << ": " << outcome.error;
      EXPECT_LE(outcome.error.size(), 4096U) << command[0];
      std::filesystem::remove_all(folder_.path() / "out");
    }
  }

  TemporaryFolder folder_{MemoryFolder()};
};

}  // namespace reshard

#endif  // RESHARD_TESTS_MALFORMED_HOSTILE_FILE_H_
