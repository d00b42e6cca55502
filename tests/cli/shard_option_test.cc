// What --shard means.
#include "tools/cli/shard_option.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace reshard {
namespace {

using testing::HasSubstr;

Result<WorkerShare> Parse(const std::string& text) {
  return ParseShard(text, [](const std::string& name) -> std::optional<std::string> {
    if (name == "OMPI_COMM_WORLD_RANK") return "1";
    if (name == "OMPI_COMM_WORLD_SIZE") return "2";
    return std::nullopt;
  });
}

TEST(ShardOption, TakesNumbersFromZero) {
  EXPECT_EQ(*Parse("0/1"), (WorkerShare{0, 1}));
  EXPECT_EQ(*Parse("3/4"), (WorkerShare{3, 4}));
  EXPECT_EQ(*Parse("65535/65536"), (WorkerShare{65535, 65536}));
}

TEST(ShardOption, AsksTheEnvironment) { EXPECT_EQ(*Parse("auto"), (WorkerShare{1, 2})); }

TEST(ShardOption, RefusesAnythingElse) {
  for (const char* text : {"", "1", "/", "1/", "/2", "-1/2", "0/-2", "1/2/3", "0x1/2", "1 /2",
                           "a/b", "AUTO", "18446744073709551616/2"}) {
    const auto shard = Parse(text);
    EXPECT_EQ(shard.status().code(), StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(shard.status().message(), HasSubstr("expected i/n, as in 0/4")) << text;
  }
  for (const char* text : {"4/4", "0/0", "0/65537"}) {
    EXPECT_THAT(Parse(text).status().message(), HasSubstr("count from 0 to n - 1")) << text;
  }
}

}  // namespace
}  // namespace reshard
