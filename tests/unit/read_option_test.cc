// What texts become values of options.
#include "src/frontend/read_option.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/merge.h"
#include "reshard/tensor.h"
#include "src/frontend/option_parts.h"
#include "src/record/line_values.h"
#include "src/record/option_json.h"

namespace reshard::read_option_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Result<OptionValue> Read(std::string_view name, const std::vector<std::string>& texts) {
  return ReadOption(*FindOptionNamed(name), texts);
}

template <typename T>
T Value(std::string_view name, const std::vector<std::string>& texts) {
  const auto value = Read(name, texts);
  EXPECT_TRUE(value.ok()) << name << ": " << value.status().message();
  return value.ok() ? std::get<T>(*value) : T();
}

void ExpectRefused(std::string_view name, const std::vector<std::string>& texts,
                   const std::string& words) {
  const auto value = Read(name, texts);
  EXPECT_EQ(value.status().code(), StatusCode::kInvalidArgument) << name << ' ' << texts.front();
  EXPECT_THAT(value.status().message(), HasSubstr(words)) << name << ' ' << texts.front();
}

TEST(ReadOption, RanksAreNumbersAndRanges) {
  EXPECT_THAT(Value<std::vector<int64_t>>("ranks", {"3", "0-2,9"}), ElementsAre(3, 0, 1, 2, 9));
  for (const char* text :
       {"", "a", "1-", "-1", "2-1", "1,,2", "0-99999999", "9999999999999999999"}) {
    ExpectRefused("ranks", {text}, "has to be ranks such as 3 or 0-7,9");
  }
}

TEST(ReadOption, FilesOfRanksAreGivenOnceEach) {
  const auto files =
      Value<std::map<int64_t, std::string>>("source.files", {"3=a=b.ckpt", "0=c.ckpt"});
  EXPECT_EQ(files, (std::map<int64_t, std::string>{{0, "c.ckpt"}, {3, "a=b.ckpt"}}));
  ExpectRefused("source.files", {"3=a", "3=b"}, "rank 3 is given twice, as a and as b");
  for (const char* text : {"", "3", "3=", "=a", "x=a"}) {
    ExpectRefused("source.files", {text}, "has to be RANK=FILE");
  }
}

TEST(ReadOption, SizesHaveUnits) {
  constexpr uint64_t kKiB = 1024;
  EXPECT_EQ(Value<uint64_t>("memory_limit", {"200M"}), 200 * kKiB * kKiB);
  EXPECT_EQ(Value<uint64_t>("memory_limit", {"1.5GB"}), 3 * kKiB * kKiB * kKiB / 2);
  EXPECT_EQ(Value<uint64_t>("memory_limit", {"77"}), 77U);
  EXPECT_EQ(Value<uint64_t>("shard_size", {"5GB"}), 5'000'000'000U);
  for (const char* text : {"5GiB", "5Gi", "5G", "5gi"}) {
    EXPECT_EQ(Value<uint64_t>("shard_size", {text}), 5 * kKiB * kKiB * kKiB) << text;
  }
  EXPECT_EQ(Value<uint64_t>("part_size", {"3Ki"}), 3 * kKiB);
  EXPECT_EQ(Value<uint64_t>("part_size", {"3KiB"}), 3 * kKiB);
  EXPECT_EQ(Value<uint64_t>("part_size", {"3Mi"}), 3 * kKiB * kKiB);
  EXPECT_EQ(Value<uint64_t>("part_size", {"3KB"}), 3000U);
  ExpectRefused("memory_limit", {"0"}, "more than 0");
  for (const char* text : {"", "M", "1X", "1.5", "-1", "1.M", "10000000G", "1 M"}) {
    ExpectRefused("memory_limit", {text}, "has to be a size such as 200M or 1.5G");
  }
}

TEST(ReadOption, WordsAreThoseOfTheOption) {
  EXPECT_EQ(Value<std::string>("unmatched", {"drop"}), "drop");
  ExpectRefused("unmatched", {"dorp"}, "has to be one of copy, drop, error; found dorp");
}

TEST(ReadOption, SharesCountFromZero) {
  EXPECT_EQ(Value<WorkerShare>("shard", {"0/1"}), (WorkerShare{0, 1}));
  EXPECT_EQ(Value<WorkerShare>("shard", {"65535/65536"}), (WorkerShare{65535, 65536}));
  for (const char* text : {"", "1", "/", "1/", "/2", "-1/2", "0/-2", "1/2/3", "0x1/2", "1 /2",
                           "a/b", "AUTO", "18446744073709551616/2"}) {
    ExpectRefused("shard", {text}, "has to be i/n, as in 0/4");
  }
  for (const char* text : {"4/4", "0/0", "0/65537"}) {
    ExpectRefused("shard", {text}, "with i from 0 to n - 1");
  }
}

TEST(ReadOption, CastsHaveAPatternOrNone) {
  const auto casts = Value<std::vector<Selection::CastRule>>("casts", {"a=b.*=float16", "keep"});
  EXPECT_EQ(casts,
            (std::vector<Selection::CastRule>{{"a=b.*", DType::kFloat16}, {"", std::nullopt}}));
  for (const char* text : {"", "int8", "=float16", "a=", "a=int8"}) {
    ExpectRefused("casts", {text}, "has to be TYPE or GLOB=TYPE");
  }
}

TEST(ReadOption, ShortWordsStandForLongOnes) {
  EXPECT_EQ(Value<std::vector<Selection::CastRule>>("casts", {"w=bf16", "fp16", "fp32"}),
            (std::vector<Selection::CastRule>{
                {"w", DType::kBFloat16}, {"", DType::kFloat16}, {"", DType::kFloat32}}));
}

TEST(ReadOption, CommasSeparatePatterns) {
  EXPECT_EQ(Value<std::vector<std::string>>("include", {"a,b*", "[],x]c,d[!],],e\\,f", "[g,h", ""}),
            (std::vector<std::string>{"a", "b*", "[],x]c", "d[!],]", "e\\,f", "[g", "h", ""}));
  for (const char* text : {",", "a,", "a,,b"}) {
    EXPECT_FALSE(ReadOption(*FindOptionNamed("include"), std::vector<std::string>{text}).ok());
  }
}

TEST(ReadOption, CountsAreWholeNumbersFromOneOn) {
  EXPECT_EQ(Value<int64_t>("tensor_parallel", {"8"}), 8);
  EXPECT_EQ(Value<std::vector<int64_t>>("stage_layers", {"10,11,11"}),
            (std::vector<int64_t>{10, 11, 11}));
  EXPECT_EQ(Value<int64_t>("optimizer_sharding", {"true"}), -1);
  EXPECT_EQ(Value<int64_t>("optimizer_sharding", {"4"}), 4);
  for (const char* text : {"", "0", "-1", "1.5", "a", "9999999999", "1,,2"}) {
    for (const char* name : {"tensor_parallel", "stage_layers", "optimizer_sharding"}) {
      ExpectRefused(name, {text}, "whole number");
    }
  }
}

TEST(ReadOption, RetriesAreAWholeNumber) {
  EXPECT_EQ(Value<uint64_t>("retries", {"0"}), 0U);
  EXPECT_EQ(Value<uint64_t>("retries", {"12"}), 12U);
  for (const char* text : {"", "-1", "1.5", "a", "9999999999"}) {
    ExpectRefused("retries", {text}, "whole number");
  }
}

TEST(ReadOption, IoIsOneWayOrOneOfEach) {
  const auto io = Value<IoChoice>("io", {"buffered,map"});
  EXPECT_EQ(io.source, IoChoice::Source::kMap);
  EXPECT_EQ(io.target, IoChoice::Target::kBuffered);
  for (const char* text : {"", "map,pread", "auto,map", "x"}) {
    ExpectRefused("io", {text}, "has to be auto, or map or pread");
  }
}

// A value of the option's type that is not the default.
OptionValue Sample(const Option& option) {
  const auto words = WordsOf(option);
  if (!words.empty()) return std::string(words.back());
  switch (option.type) {
    case OptionType::kSwitch:
      return true;
    case OptionType::kPatterns:
    case OptionType::kFiles:
      return std::vector<std::string>{"a\xff", "b\n"};
    case OptionType::kCount:
    case OptionType::kSwitchOrCount:
      return int64_t{7};
    case OptionType::kRanks:
    case OptionType::kCounts:
      return std::vector<int64_t>{3, 1};
    case OptionType::kRankFiles:
      return std::map<int64_t, std::string>{{3, "a"}};
    case OptionType::kSize:
    case OptionType::kDecimalSize:
    case OptionType::kSeconds:
    case OptionType::kNumber:
      return uint64_t{77};
    case OptionType::kParameterCount:
      return std::string("6.74B");
    case OptionType::kShare:
      return WorkerShare{1, 2};
    case OptionType::kIo:
      return IoChoice{IoChoice::Source::kMap, IoChoice::Target::kDirect};
    case OptionType::kCasts:
      return std::vector<Selection::CastRule>{{"", DType::kBFloat16}, {"w*", {}}};
    case OptionType::kRenames:
      return Renames{{{"a", "b\\"}}, {{"l.*", "m.*"}}};
    case OptionType::kKeyFile:
    case OptionType::kKeyVariable:
      return std::shared_ptr<const EncryptionKey>();
    default:
      return std::string("a \"text\"\xff");
  }
}

TEST(OptionTable, EachOptionHasItsOwnWord) {
  std::vector<std::pair<uint32_t, std::string_view>> words;  // of each call
  for (const Option& option : AllOptions()) {
    for (uint32_t call = 1; call != 0; call <<= 1) {
      if ((option.calls & call) != 0) words.emplace_back(call, option.word);
    }
    EXPECT_NE(option.calls, 0U) << option.word;
    EXPECT_FALSE(option.help.empty()) << option.word;
    EXPECT_EQ(ValueInHelp(option).empty(), option.type == OptionType::kSwitch) << option.word;
    for (const std::string_view word : WordsOf(option)) {
      EXPECT_TRUE(ReadOption(option, std::vector{std::string(word)}).ok()) << option.word;
    }
  }
  std::sort(words.begin(), words.end());
  EXPECT_EQ(std::adjacent_find(words.begin(), words.end()), words.end());
}

// Sets each option that `calls` take. One whose place takes another type, or that these calls have
// no place for, ends the process.
template <typename Options>
void ExpectPlaces(uint32_t calls) {
  for (const Option& option : AllOptions()) {
    if ((option.calls & calls) == 0) continue;
    Options options;
    SetOption(option, PartsOf(options), Sample(option));
  }
}

TEST(OptionTable, EachCallHasAPlaceForItsOptions) {
  ExpectPlaces<ConvertOptions>(kConvertCall | kPlanCall | kCatCall | kViewCall | kMountCall);
  ExpectPlaces<Proof>(kAgainstCall);
  ExpectPlaces<RecodeOptions>(kRecodeCall);
  ExpectPlaces<MergeOptions>(kMergeCall);
  ExpectPlaces<Verification>(kVerifyCall);
  ExpectPlaces<ContentOptions>(kDigestCall);
  ExpectPlaces<DiffOptions>(kDiffCall);
  ExpectPlaces<Commit>(kCommitCall);
  ExpectPlaces<MakeStrategyOptions>(kMakeStrategyCall);
  ExpectPlaces<StrategyConversion>(kConvertStrategyCall);
  ExpectPlaces<StrategyInference>(kInferStrategyCall);
}

// A view has the files that convert would write with the same options. cat has --rank by itself.
TEST(OptionTable, ViewsTakeWhatChangesTheTarget) {
  int shared = 0;
  for (const Option& option : AllOptions()) {
    if ((option.calls & kConvertCall) == 0 || option.effect == Effect::kNone) continue;
    if (option.name == "encryption") continue;
    EXPECT_NE(option.calls & kViewCall, 0U) << option.name;
    EXPECT_NE(option.calls & kMountCall, 0U) << option.name;
    EXPECT_EQ((option.calls & kCatCall) == 0, option.name == "ranks") << option.name;
    ++shared;
  }
  EXPECT_GT(shared, 15);
}

// Whatever changes the bytes of a target is told in its origin, and comes back from there.
TEST(OptionTable, RecordsTellOfWhatChangesBytes) {
  for (const Option& option : AllOptions()) {
    if (!IsRecorded(option)) continue;
    ConversionSpec spec;
    EXPECT_TRUE(IsUsual(option, spec)) << option.name;
    SetOption(option, PartsOf(spec), Sample(option));
    EXPECT_FALSE(IsUsual(option, spec)) << option.name;
    auto line = LineValues::Read("{\"options\":" + OptionsAsJson(spec) + "}");
    ASSERT_TRUE(line.has_value()) << option.name;
    if ((option.calls & kAgainstCall) == 0) continue;
    ConversionSpec again;
    ReadOptions(*line, again);
    EXPECT_TRUE(line->ok()) << option.name;
    EXPECT_EQ(ValueIn(option, PartsOf(again)), ValueIn(option, PartsOf(spec))) << option.name;
  }
}

}  // namespace
}  // namespace reshard::read_option_test
