#include "tools/gen/gen_program.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>

#include "reshard/parameters.h"
#include "reshard/status.h"
#include "reshard/tensor.h"
#include "tools/gen/sample_files.h"
#include "tools/gen/sample_model.h"

namespace reshard {
namespace {

int Main(int argc, char** argv) {
  SampleOptions options;
  SampleModel& model = options.model;
  CLI::App app(
      "Makes OUT/rank_N/llama-1_100.ckpt and OUT/strategy/strategy_S.ckpt: a "
      "Llama-like\ncheckpoint with Adam's states, cut over tp * dp * pp ranks. Values depend only "
      "on\nparameter names, indices and dtypes.",
      "reshard-gen");
  app.add_option("OUT", options.folder, "A folder that is empty or does not exist")->required();
  app.option_defaults()->always_capture_default();
  app.add_option("--layers", model.layers, "Transformer layers");
  app.add_option("--hidden", model.hidden, "Hidden size");
  app.add_option("--kv", model.kv, "Rows of wk and wv (grouped queries); 0: the hidden size");
  app.add_option("--ffn", model.ffn, "Inner size of the MLP");
  app.add_option("--experts", model.experts, "Experts of each layer, an MLP each; 0: one MLP");
  app.add_option("--vocab", model.vocab, "Vocabulary size");
  CLI::Option* matrices =
      app.add_option("--matrices", model.matrices,
                     "Not 0: as many matrices of --rows times --columns in place of the layers");
  app.add_option("--rows", model.rows, "Of each of --matrices")->needs(matrices);
  app.add_option("--columns", model.columns, "Of each of --matrices")->needs(matrices);
  std::string dtype = "BFloat16";
  app.add_option("--dtype", dtype, "Dtype of the weights; Adam's states are Float32")
      ->check(CLI::IsMember({"Float32", "Float16", "BFloat16"}));
  app.add_option("--tp", model.tp, "Tensor parallel: parts that each matrix is cut into");
  app.add_option("--dp", model.dp, "Data parallel: replicas");
  app.add_option("--pp", model.pp, "Pipeline stages that the layers are spread over");
  std::string cut = "mixed";
  app.add_option("--cut", cut,
                 "How tensor parallelism cuts matrices: all alike, or mixed as Llama does")
      ->check(CLI::IsMember({"rows", "columns", "mixed"}));
  app.add_flag("--optimizer-sharding", model.optimizer_sharding,
               "Cut matrices and their states over the replicas too");
  app.add_flag("!--no-optimizer", model.optimizer, "Weights only");
  app.add_flag("--sparse", options.sparse, "Content is a hole in the file: no space, no time");
  app.add_flag("--json", options.json, "Strategy files as JSON");
  app.add_flag("--strategy-only", options.strategy_only, "No checkpoints");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : ExitCode(StatusCode::kInvalidArgument);
  }

  model.dtype = *ParseDType(dtype);
  if (cut != "mixed") model.cut = cut == "rows" ? MatrixCut::kRows : MatrixCut::kColumns;
  const auto bytes = WriteSample(options);
  if (!bytes.ok()) {
    fmt::print(stderr, "reshard-gen: {}\n", bytes.status().message());
    return ExitCode(bytes.status().code());
  }
  fmt::print(stderr, "{}: {} ranks, {} of checkpoints\n", options.folder,
             model.devices_per_stage() * model.pp, FormatBytes(*bytes));
  return 0;
}

}  // namespace

int RunGenProgram(int argc, char** argv) {
  try {
    return Main(argc, argv);
  } catch (const std::exception& error) {  // out of memory, or a mistake in the options above
    std::fprintf(stderr, "reshard-gen: %s\n", error.what());
    return ExitCode(StatusCode::kInternal);
  }
}

}  // namespace reshard
