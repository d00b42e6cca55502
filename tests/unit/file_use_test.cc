// FileUse: which files may not be written beside what a call reads and writes. A file counts from
// the moment when it is opened or chosen, whoever does that.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "reshard/encryption.h"
#include "src/frontend/layout_report.h"
#include "src/full/full_folder.h"
#include "src/io/source_files.h"
#include "src/io/storage.h"
#include "src/mindspore/each_file.h"
#include "src/mindspore/output_check.h"
#include "src/mindspore/rank_folder.h"
#include "src/os/file_use.h"
#include "src/os/threads.h"
#include "src/os/used_files.h"
#include "src/os/write_file.h"
#include "tests/support/temporary_folder.h"

namespace reshard::file_use_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr std::string_view kCkpts[] = {".ckpt"};

class FileUseTest : public testing::Test {
 protected:
  FileUseTest() {
    for (const char* name :
         {"src/rank_0/net-1_1.ckpt", "src/rank_1/net-1_1.ckpt", "src/notes.txt", "node0/net.ckpt",
          "node0/log", "s.json", "full.ckpt", "log", "hf/m.safetensors",
          "hf/model.safetensors.index.json", "plain/x.ckpt", "old/rank_0/a.ckpt",
          "old/part_records/rank_0/a.ckpt.jsonl", "old/manifest.json", "old/checksums.xxh128",
          "old/.reshard/lock", "old/log", "old/m0.ckpt", "other.reshard"}) {
      folder_.Write(name, "x");
    }
    folder_.Write("key", "0123456789abcdef");
    fs::create_directory_symlink("src", At("to_src"));
    fs::create_directory_symlink("new", At("to_new"));
    fs::create_hard_link(At("src/rank_1/net-1_1.ckpt"), At("hard_source"));
    fs::create_hard_link(At("s.json"), At("hard_strategy"));
    fs::create_hard_link(At("old/part_records/rank_0/a.ckpt.jsonl"), At("hard_record"));
    fs::create_hard_link(At("old/m0.ckpt"), At("hard_target"));
    fs::create_symlink("src/rank_0/net-1_1.ckpt", At("to_source"));
    fs::create_symlink("new/manifest.json", At("to_manifest"));
  }

  std::string At(const std::string& path) const { return (folder_.path() / path).string(); }

  Status Open(const std::string& path) const { return Storage::Of(path).Open(At(path)).status(); }

  // What becomes of `output` where `read` is done beside it; then nothing may be written.
  Status Beside(const std::string& output, const std::function<void()>& read) const {
    FileUse use;
    const Status added = use.AddOutput(At(output));
    if (!added.ok()) return added;
    read();
    const Status checked = use.Check();
    EXPECT_EQ(WriteFile(At("made"), "x", true).code(), checked.code()) << output;
    return checked;
  }

  const TemporaryFolder folder_;
};

TEST_F(FileUseTest, WhateverOpensOrChoosesAFileNotesIt) {
  const struct {
    const char* output;
    const char* input;
    std::function<void()> read;
  } rows[] = {
      {"s.json", "s.json", [&] { (void)Open("s.json"); }},
      {"hard_strategy", "s.json", [&] { (void)Open("s.json"); }},
      {"other", "other.reshard", [&] { (void)Open("other.reshard"); }},
      {"full.ckpt", "full.ckpt", [&] { (void)Open("full.ckpt"); }},
      {"full.ckpt", "full.ckpt",
       [&] {
         const Task open = [&](size_t, const std::stop_token&) { return Open("full.ckpt"); };
         EXPECT_FALSE(RunWorkers(2, 2, open, {}).ok());
       }},
      {"full.ckpt", "full.ckpt", [&] { (void)Storage::Of("").Pin(At("full.ckpt")); }},
      {"key", "key",
       [&] {
         const auto key = EncryptionKey::FromFile(At("key"));
         ASSERT_TRUE(key.ok());
         const SourceFiles files(SourceFiles::Options{.key = *key});
       }},
      {"node0/net.ckpt", "node0/net.ckpt",
       [&] { (void)FindRankFiles(At("node{rank}/net.ckpt"), {}); }},
      {"node0/net.ckpt", "node0/net.ckpt", [&] { (void)FindRankFiles(At("node{rank}"), {}); }},
      {"hf/m.safetensors", "hf/m.safetensors", [&] { (void)FindFullFolder(At("hf")); }},
      {"hf/model.safetensors.index.json", "hf/model.safetensors.index.json",
       [&] { (void)FindFullFolder(At("hf")); }},
      {"plain/x.ckpt", "plain/x.ckpt", [&] { (void)FindEachFile(At("plain"), kCkpts, ""); }},
      {"plain/x.ckpt", "plain/x.ckpt", [&] { (void)FindEachFile(At("plain"), kCkpts, "no such"); }},
  };
  for (const auto& row : rows) {
    const Status status = Beside(row.output, row.read);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << row.output;
    EXPECT_THAT(status.message(), HasSubstr(At(row.input) + ", which is read")) << row.output;
  }
}

// In whichever order they come to be known.
TEST_F(FileUseTest, AnOutputThatWasReadBeforeIsRefused) {
  FileUse use;
  ASSERT_TRUE(Open("s.json").ok());
  EXPECT_THAT(use.AddOutput(At("hard_strategy"), "--log-file").message(),
              HasSubstr("--log-file " + At("hard_strategy")));
  EXPECT_EQ(use.Check().code(), StatusCode::kInvalidArgument);
}

TEST_F(FileUseTest, AFileThatIsAnOutputIsNotOpened) {
  FileUse use;
  ASSERT_TRUE(use.AddOutput(At("s.json")).ok());
  EXPECT_EQ(Open("s.json").code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(Open("log").ok());
}

TEST_F(FileUseTest, TwoOutputsAreNotOneFile) {
  for (const char* second : {"out.ckpt", "./x/../out.ckpt", "out.ckpt.reshard"}) {
    FileUse use;
    ASSERT_TRUE(use.AddOutput(At("out.ckpt")).ok());
    const Status same = use.AddOutput(At(second), "--log-file");
    EXPECT_EQ(same.code(), StatusCode::kInvalidArgument) << second;
    EXPECT_THAT(same.message(), HasSubstr("out.ckpt is written there")) << second;
  }
  FileUse use;
  ASSERT_TRUE(use.AddOutput(At("out.ckpt")).ok());
  EXPECT_TRUE(use.AddOutput(At("out.ckpt")).ok());  // the same one, added by a call in a call
}

TEST_F(FileUseTest, CallsHaveListsOfTheirOwn) {
  {
    FileUse use;
    ASSERT_TRUE(use.AddOutput(At("s.json")).ok());
    const FileUse inner;
    EXPECT_FALSE(Open("s.json").ok());
    EXPECT_FALSE(inner.Check().ok());
  }
  EXPECT_TRUE(Open("s.json").ok());
  const FileUse other;
  EXPECT_TRUE(Open("s.json").ok());
}

TEST_F(FileUseTest, RefusesWhatBelongsToACheckpoint) {
  const struct {
    const char* folder;
    const char* output;
    const char* message;
  } rows[] = {
      {"src", "src/rank_0/net-1_1.ckpt", "it lies in rank_0, the folder of a rank"},
      {"src", "src/rank_0/new", "it lies in rank_0, the folder of a rank"},
      {"src", "to_src/rank_0/../rank_1/net-1_1.ckpt", "as rank_1/net-1_1.ckpt: "},
      {"src", "hard_source", "as rank_1/net-1_1.ckpt: "},
      {"src", "to_source", "as rank_0/net-1_1.ckpt: "},
      {"old", "old/rank_0/a.ckpt", "the folder of a rank"},
      {"old", "old/manifest.json", "is a manifest's name"},
      {"old", "old/manifest_part1.json", "is a manifest's name"},
      {"old", "old/checksums.xxh128", "is the name of a list of checksums"},
      {"old", "old/part_records/rank_0/a.ckpt.jsonl", "the folder of the part records"},
      {"old", "old/.reshard/lock", "the staging folder .reshard"},
      {"old", "hard_record", "as part_records/rank_0/a.ckpt.jsonl: "},
      {"old", "old/m0.ckpt", "it is one of its files"},
      {"old", "hard_target", "as m0.ckpt: "},
      {"new", "new/m0.ckpt", "it is one of its files"},
      {"new", "new/rank_3/a.ckpt", "the folder of a rank"},
      {"new", "new/manifest.json", "is a manifest's name"},
      {"new", "new/../new/./checksums.xxh128", "is the name of a list of checksums"},
      {"new", "to_new/part_records/x", "the folder of the part records"},
      {"new", "to_manifest", "as manifest.json: "},
      {"new", "new/.reshard/x", "the staging folder .reshard"},
  };
  for (const auto& row : rows) {
    const Status status =
        Beside(row.output, [&] { (void)CheckOutputsOutside(At(row.folder), {"m0.ckpt"}); });
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << row.output;
    EXPECT_THAT(status.message(), HasSubstr(row.message)) << row.output;
  }
}

TEST_F(FileUseTest, AllowsAllElse) {
  const auto all = [&] {
    for (const char* folder : {"src", "old", "new"}) {
      EXPECT_TRUE(CheckOutputsOutside(At(folder), {"m0.ckpt"}).ok());
    }
    EXPECT_TRUE(FindRankFiles(At("src"), {}).ok());
    EXPECT_TRUE(FindRankFiles(At("node{rank}/net.ckpt"), {}).ok());
    EXPECT_TRUE(FindFullFolder(At("hf")).ok());
    EXPECT_TRUE(Open("s.json").ok());
  };
  for (const char* output :
       {"log", "src/notes.txt", "src/report.html", "hf/s1.json", "node0/log", "old/log",
        "old/report.html", "new/report.html", "nowhere/log", "manifest.json", "m0.ckpt"}) {
    const Status status = Beside(output, all);
    EXPECT_TRUE(status.ok()) << output << ": " << status.message();
  }
  FileUse use;
  EXPECT_TRUE(use.AddOutput("").ok());
  EXPECT_TRUE(use.AddOutput("/dev/null").ok());
  EXPECT_TRUE(use.AddOutput(At(std::string(250, 'n'))).ok());
}

TEST_F(FileUseTest, TakesRelativePaths) {
  const fs::path before = fs::current_path();
  fs::current_path(folder_.path());
  FileUse use;
  EXPECT_TRUE(use.AddOutput("./src/../s.json").ok());
  EXPECT_TRUE(use.AddOutput(At("new/rank_0/a.ckpt")).ok());
  const Status same = Storage::Of("s.json").Open("s.json").status();
  const Status made = CheckOutputsOutside("new");
  fs::current_path(before);
  EXPECT_EQ(same.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(made.code(), StatusCode::kInvalidArgument);
}

TEST_F(FileUseTest, AReportNeedsAFolderAndANameThatIsFree) {
  EXPECT_EQ(CheckReport(At("log"), false, At("new")).code(), StatusCode::kAlreadyExists);
  EXPECT_TRUE(CheckReport(At("log"), true, At("new")).ok());
  EXPECT_EQ(CheckReport(At("node0"), true, At("new")).code(), StatusCode::kAlreadyExists);
  EXPECT_TRUE(CheckReport(At("new/report.html"), false, At("new")).ok());  // made before it
  for (const char* output : {"nowhere/report.html", "new/nowhere/report.html"}) {
    const Status status = CheckReport(At(output), true, At("new"));
    EXPECT_EQ(status.code(), StatusCode::kIo) << output;
    EXPECT_EQ(WriteReport(At(output), "page", true).code(), StatusCode::kIo);
  }
  EXPECT_FALSE(fs::exists(At("nowhere")));
}

}  // namespace
}  // namespace reshard::file_use_test
