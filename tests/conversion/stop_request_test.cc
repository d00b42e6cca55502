// A stop that was requested before: no call looks into a file, where it would find it damaged.
#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <stop_token>
#include <string>

#include "reshard/compare.h"
#include "reshard/convert.h"
#include "reshard/merge.h"
#include "reshard/strategy.h"
#include "reshard/verify.h"
#include "src/frontend/layout_report.h"
#include "src/io/source_files.h"
#include "tests/support/strategy_bytes.h"
#include "tests/support/temporary_folder.h"

namespace reshard::stop_request_test {
namespace {

TEST(StopRequest, NothingIsReadAfterIt) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("src/rank_0/net-1_1.ckpt", "no checkpoint");
  const std::string other = folder.Write("src/rank_1/net-1_1.ckpt", "no checkpoint");
  const std::string source = (folder.path() / "src").string();
  const std::string target = (folder.path() / "dst").string();
  const std::string strategy =
      folder.Write("strategy", ProtobufStrategy(0, {{"w", MakeLayout({2}, {{0}})}}));
  ConvertOptions convert;
  convert.source.path = source;
  convert.target.folder = target;
  convert.source.strategy = strategy;
  ConversionSpec against;
  against.source.path = source;
  against.target.folder = source;
  against.source.strategy = strategy;
  DiffOptions diff;
  diff.source = diff.b = {source, strategy};
  ContentOptions digest;
  digest.source.path = source;
  digest.source.strategy = strategy;
  MergeOptions merge;
  merge.files = {path, other};
  merge.output = target;
  const struct {
    const char* name;
    std::function<Status(const std::stop_token& stop)> call;
  } rows[] = {
      {"Convert",
       [&](const std::stop_token& stop) {
         convert.run.stop = stop;
         return Convert(convert).status();
       }},
      {"Plan",
       [&](const std::stop_token& stop) {
         convert.run.stop = stop;
         return Plan(convert).status();
       }},
      {"MakeLayoutReport",
       [&](const std::stop_token& stop) {
         convert.run.stop = stop;
         return MakeLayoutReport({convert, {}}).status();
       }},
      {"VerifyAgainst",
       [&](const std::stop_token& stop) {
         return VerifyAgainst(against, {.stop = stop}).status();
       }},
      {"Diff",
       [&](const std::stop_token& stop) {
         diff.run.stop = stop;
         return Diff(diff).status();
       }},
      {"DigestCheckpoint",
       [&](const std::stop_token& stop) {
         digest.run.stop = stop;
         return DigestCheckpoint(digest).status();
       }},
      {"Merge",
       [&](const std::stop_token& stop) {
         merge.run.stop = stop;
         return Merge(merge).status();
       }},
      {"InferStrategy",
       [&](const std::stop_token& stop) {
         return InferStrategy(source, path, target, false, {.stop = stop}).status();
       }},
  };
  std::stop_source stop;
  stop.request_stop();
  for (const auto& row : rows) {
    EXPECT_EQ(row.call({}).code(), StatusCode::kCorrupt) << row.name << row.call({}).message();
    EXPECT_EQ(row.call(stop.get_token()).code(), StatusCode::kCancelled) << row.name;
  }
}

TEST(StopRequest, EndsTheUseOfSources) {
  const TemporaryFolder folder;
  std::stop_source stop;
  SourceFiles files({.stop = stop.get_token()});
  const FileId file = files.Add(folder.Write("file", "bytes"));
  std::byte byte{};
  ASSERT_TRUE(files.Read(file, 0, {&byte, 1}).ok());
  const auto window = files.Open(file, 0, 5);
  ASSERT_TRUE(window.ok());
  stop.request_stop();
  EXPECT_EQ(files.Read(file, 0, {&byte, 1}).code(), StatusCode::kCancelled);
  EXPECT_EQ(files.Prefetch(file, 0, 1).code(), StatusCode::kCancelled);
  EXPECT_EQ(files.Open(file, 0, 5).status().code(), StatusCode::kCancelled);
  EXPECT_EQ(files.Size(files.Add(folder.Write("other", ""))).status().code(),
            StatusCode::kCancelled);
  EXPECT_TRUE(files.VerifyUnchanged().ok());
}

}  // namespace
}  // namespace reshard::stop_request_test
