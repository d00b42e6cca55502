// reshard-gen: makes a sharded Llama-like checkpoint with its strategy files.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "reshard/dtype.h"
#include "reshard/status.h"
#include "src/base/status_macros.h"
#include "src/os/output_directory.h"
#include "tools/gen/sample_files.h"
#include "tools/gen/sample_model.h"
#include "tools/gen/sample_strategy.h"

namespace reshard {
namespace {

struct Options {
  std::string out;
  SampleModel model;
  bool sparse = false;
  bool json = false;
  bool strategy_only = false;
};

// Opens the folder for a new sample. One in the same folder as another would leave ranks and stages
// of the first behind.
Result<OutputDirectory> MakeEmptyFolder(const std::string& path) {
  std::vector<std::string> made;
  RESHARD_ASSIGN_OR_RETURN(OutputDirectory folder, OutputDirectory::Create(path, made));
  RESHARD_ASSIGN_OR_RETURN(const std::vector<std::string> names, folder.Names());
  if (names.empty()) return folder;
  return AlreadyExistsError(
      fmt::format("{}: the folder is not empty; remove it or name another one", path));
}

Status Generate(const Options& options) {
  RESHARD_ASSIGN_OR_RETURN(const auto stages, MakeStages(options.model));
  RESHARD_ASSIGN_OR_RETURN(const OutputDirectory out, MakeEmptyFolder(options.out));
  RESHARD_ASSIGN_OR_RETURN(const OutputDirectory strategies, out.MakeFolder("strategy"));
  const int64_t devices = options.model.devices_per_stage();
  int64_t stage = 0;
  uint64_t bytes = 0;
  for (const auto& parameters : stages) {
    RESHARD_RETURN_IF_ERROR(strategies.WriteFile(
        fmt::format("strategy_{}.{}", stage, options.json ? "json" : "ckpt"),
        options.json ? EncodeStrategyJson(parameters, stage) : EncodeStrategy(parameters, stage)));
    for (int64_t rank = 0; rank < devices && !options.strategy_only; ++rank) {
      RESHARD_ASSIGN_OR_RETURN(const OutputDirectory folder,
                               out.MakeFolder(fmt::format("rank_{}", stage * devices + rank)));
      RESHARD_ASSIGN_OR_RETURN(
          const uint64_t size,
          WriteCheckpoint(parameters, rank, options.sparse, folder, "llama-1_100.ckpt"));
      bytes += size;
    }
    ++stage;
  }
  fmt::print(stderr, "{}: {} ranks, {} bytes of checkpoints\n", options.out, devices * stage,
             bytes);
  return {};
}

int Main(int argc, char** argv) {
  Options options;
  SampleModel& model = options.model;
  CLI::App app(
      "Makes OUT/rank_N/llama-1_100.ckpt and OUT/strategy/strategy_S.ckpt: a Llama-like checkpoint "
      "with\nAdam's states, cut over tp * dp * pp ranks. The values depend on nothing but "
      "parameter "
      "names,\nindices and dtypes.",
      "reshard-gen");
  app.add_option("OUT", options.out, "A folder that is empty or does not exist")->required();
  app.option_defaults()->always_capture_default();
  app.add_option("--layers", model.layers, "Transformer layers");
  app.add_option("--hidden", model.hidden, "Hidden size");
  app.add_option("--ffn", model.ffn, "Inner size of the MLP");
  app.add_option("--vocab", model.vocab, "Vocabulary size");
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
  const Status status = Generate(options);
  if (!status.ok()) fmt::print(stderr, "reshard-gen: {}\n", status.message());
  return ExitCode(status.code());
}

}  // namespace
}  // namespace reshard

int main(int argc, char** argv) {
  try {
    return reshard::Main(argc, argv);
  } catch (const std::exception& error) {  // out of memory, or a mistake in the options above
    std::fprintf(stderr, "reshard-gen: %s\n", error.what());
    return reshard::ExitCode(reshard::StatusCode::kInternal);
  }
}
