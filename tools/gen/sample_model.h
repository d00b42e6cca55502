// A Llama-like model, or matrices of one shape, cut over ranks: names, shapes and layouts, without
// content, and its strategy files (src/mindspore/SPEC.md).
//
// Plain values; pure functions.
#ifndef RESHARD_TOOLS_GEN_SAMPLE_MODEL_H_
#define RESHARD_TOOLS_GEN_SAMPLE_MODEL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reshard/status.h"
#include "reshard/strategy.h"
#include "reshard/tensor.h"
#include "src/mindspore/strategy_codec.h"

namespace reshard {

// Along which dimension tensor parallelism cuts the weight matrices.
enum class MatrixCut {
  kMixed,    // as Llama does: q, k, v, gate, up, embedding and head by rows, o and down by columns
  kRows,     // all by rows
  kColumns,  // all by columns
};

struct SampleModel {
  int64_t layers = 4;
  int64_t hidden = 512;
  int64_t kv = 0;  // rows of wk and wv; 0: as many as `hidden`
  int64_t ffn = 1408;
  int64_t experts = 0;  // of each layer, with an MLP each; 0: one MLP a layer
  int64_t vocab = 4096;
  int64_t matrices = 0;  // not 0: the model is that many matrices [rows, columns], no layers
  int64_t rows = 0;
  int64_t columns = 0;
  DType dtype = DType::kBFloat16;  // of the weights; the optimizer's states are Float32
  bool optimizer = true;           // adam_m., adam_v., learning_rate, global_step
  int64_t tp = 1;                  // tensor parallel: parts of each matrix
  int64_t dp = 1;                  // data parallel: replicas
  int64_t pp = 1;                  // pipeline stages
  bool optimizer_sharding =
      false;  // the dp replicas of a matrix and of its states hold 1 / dp each
  MatrixCut cut = MatrixCut::kMixed;

  int64_t devices_per_stage() const { return tp * dp; }
};

struct SampleParameter {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape full_shape;
  std::optional<ParameterLayout> layout;  // none: in no strategy, the same on every rank
  std::string constant;                   // the content of a parameter without a layout
};

// Returns the parameters of each stage in file order.
//
// The order is that of the model from its end to its beginning. A conversion reads the highest
// stage first, so it writes the same order that is made here directly, for any pipelines on both
// sides. Parameters without a layout come last, as in the outputs of a conversion.
//
// Errors: kInvalidArgument if a size is not positive, a dimension does not divide, or there are
// fewer layers, or matrices, than stages.
Result<std::vector<std::vector<SampleParameter>>> MakeStages(const SampleModel& model);

// Returns the strategy file of a stage, names without stage prefix. Errors: as Strategy::Make and
// EncodeStrategy.
Result<std::string> EncodeStage(const std::vector<SampleParameter>& parameters, int64_t stage,
                                StrategyEncoding encoding);

}  // namespace reshard

#endif  // RESHARD_TOOLS_GEN_SAMPLE_MODEL_H_
