// Runs the fuzz targets over their committed inputs: the corpora, and what the fuzzers have found.

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/fuzz_target.h"
#include "tests/support/temporary_folder.h"

namespace reshard {
namespace {

namespace fs = std::filesystem;

struct Target {
  const char* name;  // of its folder in corpus/ and, where there is one, in findings/
  std::string (*run)(std::string_view bytes);
};

constexpr Target kTargets[] = {
    {"dcp_metadata", FuzzDcpMetadata},
    {"encrypted_blocks", FuzzEncryptedBlocks},
    {"file_table", FuzzFileTable},
    {"group_info", FuzzGroupInfo},
    {"manifest", FuzzManifest},
    {"mind_formers_metadata", FuzzMindFormersMetadata},
    {"part_record", FuzzPartRecord},
    {"pickle", FuzzPickle},
    {"plan", FuzzPlan},
    {"rename_map", FuzzRenameMap},
    {"sharding_info", FuzzShardingInfo},
    {"torch_zip", FuzzTorchZip},
    {"weight_map", FuzzWeightMap},
    {"strategy_json", FuzzStrategyJson},
    {"strategy_protobuf", FuzzStrategyProtobuf},
    {"strategy_spec", FuzzStrategySpec},
};

struct Input {
  const Target* target;
  fs::path path;
};

std::vector<Input> AllInputs() {
  std::vector<Input> inputs;
  for (const Target& target : kTargets) {
    for (const char* kind : {"corpus", "findings"}) {
      const fs::path folder = fs::path(RESHARD_TESTS_DIR) / "fuzz" / kind / target.name;
      if (!fs::exists(folder)) continue;
      for (const auto& entry : fs::directory_iterator(folder)) {
        inputs.push_back({&target, entry.path()});
      }
    }
  }
  std::sort(inputs.begin(), inputs.end(),
            [](const Input& a, const Input& b) { return a.path < b.path; });
  return inputs;
}

std::string InputName(const testing::TestParamInfo<Input>& input) {
  std::string name = input.param.target->name + ("_" + input.param.path.filename().string());
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
}

class CorpusReplayTest : public testing::TestWithParam<Input> {};

TEST_P(CorpusReplayTest, NothingIsWrong) {
  EXPECT_EQ(GetParam().target->run(ReadFile(GetParam().path)), "");
}

INSTANTIATE_TEST_SUITE_P(Inputs, CorpusReplayTest, testing::ValuesIn(AllInputs()), InputName);

TEST(CorpusTest, EachTargetHasOne) {
  const std::vector<Input> inputs = AllInputs();
  for (const Target& target : kTargets) {
    EXPECT_GE(std::count_if(inputs.begin(), inputs.end(),
                            [&](const Input& input) { return input.target == &target; }),
              10)
        << target.name;
  }
}

}  // namespace
}  // namespace reshard
