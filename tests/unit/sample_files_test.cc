#include "tools/gen/sample_files.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "format/mindspore_checkpoint/checkpoint.pb.h"
#include "reshard/checkpoint.h"
#include "reshard/tensor.h"
#include "src/mindspore/strategy_codec.h"
#include "tests/support/temporary_folder.h"
#include "tools/gen/sample_model.h"

namespace reshard::sample_files_test {
namespace {

namespace fs = std::filesystem;

using CheckpointProto = ::Checkpoint;  // the generated class

SampleModel SmallModel() {
  SampleModel model;
  model.layers = 2;
  model.hidden = 8;
  model.ffn = 16;
  model.vocab = 16;
  model.dtype = DType::kFloat32;
  return model;
}

class SampleFilesTest : public testing::Test {
 protected:
  std::string Make(const std::string& name, const SampleModel& model, bool sparse = false) {
    SampleOptions options;
    options.folder = folder_.path() / name;
    options.model = model;
    options.sparse = sparse;
    const auto bytes = WriteSample(options);
    EXPECT_TRUE(bytes.ok()) << bytes.status().message();
    uint64_t on_disk = 0;
    for (const auto& entry : fs::recursive_directory_iterator(options.folder)) {
      if (entry.path().filename() == "llama-1_100.ckpt") on_disk += entry.file_size();
    }
    EXPECT_EQ(*bytes, on_disk);
    return options.folder;
  }

  static CheckpointProto Load(const std::string& sample, int64_t rank) {
    CheckpointProto checkpoint;
    EXPECT_TRUE(checkpoint.ParseFromString(
        ReadFile(fs::path(sample) / ("rank_" + std::to_string(rank)) / "llama-1_100.ckpt")));
    return checkpoint;
  }

  // The tensor of a name; it has to be in one Value.
  static TensorProto Tensor(const CheckpointProto& checkpoint, const std::string& name) {
    std::vector<TensorProto> found;
    for (const auto& value : checkpoint.value()) {
      if (value.tag() == name) found.push_back(value.tensor());
    }
    EXPECT_EQ(found.size(), 1) << name;
    return found.empty() ? TensorProto() : found[0];
  }

  // The bytes of a box of a matrix of floats, element by element.
  static std::string Slice(const TensorProto& matrix, int64_t row, int64_t rows, int64_t column,
                           int64_t columns) {
    std::string bytes;
    for (int64_t r = row; r < row + rows; ++r) {
      for (int64_t c = column; c < column + columns; ++c) {
        bytes += matrix.tensor_content().substr(
            static_cast<size_t>(r * matrix.dims(1) + c) * sizeof(float), sizeof(float));
      }
    }
    return bytes;
  }

  TemporaryFolder folder_;
};

TEST_F(SampleFilesTest, ShardsAreSlicesOfTheFullTensor) {
  const CheckpointProto full = Load(Make("full", SmallModel()), 0);
  SampleModel model = SmallModel();
  model.tp = 2;
  model.dp = 2;
  model.optimizer_sharding = true;
  const std::string sharded = Make("sharded", model);
  for (int64_t rank = 0; rank < 4; ++rank) {
    const int64_t tp = rank % 2;
    const int64_t dp = rank / 2;
    const CheckpointProto shard = Load(sharded, rank);
    ASSERT_EQ(shard.value_size(), full.value_size());
    for (const std::string prefix : {"", "adam_m.", "adam_v."}) {
      // Of 8 rows, tp cuts two halves and dp each of them again.
      const std::string wq = prefix + "model.layers.1.attention.wq.weight";
      EXPECT_EQ(Tensor(shard, wq).tensor_content(),
                Slice(Tensor(full, wq), tp * 4 + dp * 2, 2, 0, 8));
      // tp cuts columns, dp rows.
      const std::string wo = prefix + "model.layers.1.attention.wo.weight";
      EXPECT_EQ(Tensor(shard, wo).tensor_content(), Slice(Tensor(full, wo), dp * 4, 4, tp * 4, 4));
      const std::string norm = prefix + "model.norm_out.weight";
      EXPECT_EQ(Tensor(shard, norm).tensor_content(), Tensor(full, norm).tensor_content());
    }
    EXPECT_EQ(Tensor(shard, "global_step").tensor_content(), std::string("\x64\0\0\0", 4));
    EXPECT_EQ(Tensor(shard, "learning_rate").dims_size(), 0);
  }
}

TEST_F(SampleFilesTest, StagesTogetherHaveEveryParameterOnce) {
  const CheckpointProto full = Load(Make("full", SmallModel()), 0);
  SampleModel model = SmallModel();
  model.pp = 2;
  const std::string staged = Make("staged", model);
  std::map<std::string, std::string> found;
  for (int rank = 0; rank < 2; ++rank) {
    const CheckpointProto stage = Load(staged, rank);
    for (const auto& value : stage.value()) {
      const bool is_new = found.emplace(value.tag(), value.tensor().tensor_content()).second;
      EXPECT_TRUE(is_new || value.tag() == "global_step" || value.tag() == "learning_rate");
    }
  }
  std::map<std::string, std::string> expected;
  for (const auto& value : full.value()) expected[value.tag()] = value.tensor().tensor_content();
  EXPECT_EQ(found, expected);
}

TEST_F(SampleFilesTest, MatricesStandInPlaceOfLayers) {
  SampleModel model;
  model.matrices = 3;
  model.rows = 4;
  model.columns = 8;
  model.dtype = DType::kFloat32;
  model.optimizer = false;
  model.pp = 2;
  model.tp = 2;
  model.cut = MatrixCut::kColumns;
  const std::string sample = Make("sample", model);
  std::vector<std::string> names;
  for (const int rank : {0, 2}) {
    const CheckpointProto checkpoint = Load(sample, rank);
    for (const auto& value : checkpoint.value()) {
      names.push_back(value.tag());
      EXPECT_EQ(value.tensor().dims(0), 4);
      EXPECT_EQ(value.tensor().dims(1), 4);
    }
  }
  EXPECT_EQ(names, (std::vector<std::string>{"matrices.0.weight", "matrices.2.weight",
                                             "matrices.1.weight"}));
}

TEST_F(SampleFilesTest, StrategyFilesSayHowItIsCut) {
  SampleModel model = SmallModel();
  model.tp = 4;
  model.dp = 2;
  model.pp = 2;
  model.optimizer_sharding = true;
  for (const bool json : {false, true}) {
    SampleOptions options;
    options.folder = folder_.path() / (json ? "json" : "protobuf");
    options.model = model;
    options.json = json;
    options.strategy_only = true;
    const auto bytes = WriteSample(options);
    ASSERT_TRUE(bytes.ok()) << bytes.status().message();
    EXPECT_EQ(*bytes, 0);
    EXPECT_FALSE(fs::exists(fs::path(options.folder) / "rank_0"));
    const std::string path =
        fs::path(options.folder) / "strategy" / (json ? "strategy_1.json" : "strategy_1.ckpt");
    const auto strategy = ParseStrategy(path, ReadFile(path));
    ASSERT_TRUE(strategy.ok()) << strategy.status().message();
    EXPECT_EQ(strategy->first_item_stage, 1);
    const auto stages = MakeStages(model);
    ASSERT_TRUE(stages.ok());
    std::map<std::string, ParameterLayout> expected;
    for (const SampleParameter& parameter : (*stages)[1]) {
      if (parameter.layout) expected[parameter.name] = *parameter.layout;
    }
    std::map<std::string, ParameterLayout> found;
    for (const auto& [name, layout] : strategy->layouts) {
      ParameterLayout& copy = found[std::string(name)] = layout;
      copy.param_split_shape.clear();  // empty messages, which say nothing
      copy.indices_offset.clear();
    }
    EXPECT_EQ(found, expected);
  }
}

TEST_F(SampleFilesTest, EachExpertHasAnMlp) {
  SampleModel model = SmallModel();
  const auto dense = MakeStages(model);
  ASSERT_TRUE(dense.ok());
  model.experts = 5;
  const auto experts = MakeStages(model);
  ASSERT_TRUE(experts.ok());
  const auto matrices = [](const auto& stages, std::string_view of) {
    size_t count = 0;
    for (const auto& stage : stages) {
      for (const SampleParameter& parameter : stage) {
        count += static_cast<size_t>(parameter.name.find(of) != std::string::npos);
      }
    }
    return count;
  };
  EXPECT_EQ(matrices(*dense, ".feed_forward.experts."), 0U);
  EXPECT_EQ(matrices(*experts, ".feed_forward.experts."), 5 * matrices(*dense, ".feed_forward."));
  EXPECT_EQ(matrices(*experts, ".feed_forward.w"), 0U);
  model.experts = -1;
  EXPECT_EQ(MakeStages(model).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(SampleFilesTest, SparseFilesHaveTheSameHeaders) {
  const std::string dense = Make("dense", SmallModel());
  const std::string sparse = Make("sparse", SmallModel(), true);
  CheckpointProto expected = Load(dense, 0);
  for (auto& value : *expected.mutable_value()) {
    if (value.tag() == "global_step" || value.tag() == "learning_rate") continue;
    std::string& content = *value.mutable_tensor()->mutable_tensor_content();
    content.assign(content.size(), '\0');
  }
  EXPECT_EQ(Load(sparse, 0).SerializeAsString(), expected.SerializeAsString());
}

TEST_F(SampleFilesTest, LargeTensorsAreCutAt512MiB) {
  SampleModel model = SmallModel();
  model.layers = 1;
  model.hidden = 1 << 10;
  model.vocab = (1 << 17) + (1 << 16);  // 768 MiB of Float32
  model.optimizer = false;
  const std::string sample = Make("sparse", model, true);
  const auto checkpoint = Checkpoint::Open(fs::path(sample) / "rank_0" / "llama-1_100.ckpt");
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  const StoredArray* head = checkpoint->Find("lm_head.weight");
  ASSERT_NE(head, nullptr);
  ASSERT_EQ(head->content.size(), 2);
  EXPECT_EQ(head->content[0].length, uint64_t{512} << 20);
  EXPECT_EQ(head->content[1].length, uint64_t{256} << 20);
}

TEST_F(SampleFilesTest, RefusesModelsThatCannotBeCut) {
  SampleOptions options;
  options.folder = folder_.path() / "never";
  struct Row {
    SampleModel model;
    std::string message;
  };
  std::vector<Row> rows(5, {SmallModel(), ""});
  rows[0].model.tp = 3;
  rows[0].message =
      "parameter \"lm_head.weight\": dimension 0 of the full shape [16, 8] has 16 elements, which "
      "cannot be cut into 3 equal parts";
  rows[1].model.pp = 3;
  rows[1].message = "2 layers cannot be spread over 3 pipeline stages";
  rows[2].model.hidden = 0;
  rows[2].message = "--hidden has to be from 1 to 268435456, but is 0";
  rows[3].model.matrices = 2;
  rows[3].message = "--rows has to be from 1 to 268435456, but is 0";
  rows[4].model.matrices = rows[4].model.rows = rows[4].model.columns = 2;
  rows[4].model.pp = 4;
  rows[4].message = "2 matrices cannot be spread over 4 pipeline stages";
  for (const Row& row : rows) {
    options.model = row.model;
    const auto result = WriteSample(options);
    EXPECT_EQ(result.status().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(result.status().message(), row.message);
  }
  EXPECT_FALSE(fs::exists(options.folder));
}

TEST_F(SampleFilesTest, LeavesAFolderAloneThatIsNotEmpty) {
  SampleOptions options;
  options.folder = Make("sample", SmallModel());
  options.model = SmallModel();
  EXPECT_EQ(WriteSample(options).status().code(), StatusCode::kAlreadyExists);
}

}  // namespace
}  // namespace reshard::sample_files_test
