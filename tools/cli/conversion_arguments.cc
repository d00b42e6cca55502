#include "tools/cli/conversion_arguments.h"

#include "tools/cli/command.h"
#include "tools/cli/printable.h"
#include "tools/cli/text_format.h"

namespace reshard {

void ConversionArguments::AddTo(CLI::App& app) {
  AddPositional(app, "SRC", options_.source,
                "Folder with rank_N/*.ckpt; or one .ckpt file, when there is no source strategy");
  AddPositional(app, "DST", options_.target,
                "Folder for rank_N/PREFIXN.ckpt; made when it is missing");
  app.add_option("--src-strategy", options_.source_strategy,
                 "Strategy file of the source, or folder of stage files; without it the source "
                 "holds full tensors")
      ->type_name("S");
  app.add_option("--dst-strategy", options_.target_strategy,
                 "Strategy file of the target, or folder of stage files; without it full tensors "
                 "are written, for one rank")
      ->type_name("D");
  app.add_option("--prefix", options_.prefix, "Begin output names with P (checkpoint_)")
      ->type_name("P");
  app.add_option("--suffix", options_.suffix,
                 "Take the checkpoints that end in -EPOCH_STEP, as in --suffix=-1_100; without it "
                 "the latest")
      ->type_name("-E_S");
  app.add_option("--rank", options_.ranks, "Write only target rank N; may be given several times")
      ->type_name("N")
      ->allow_extra_args(false)
      ->transform(WholeNumber());
  AddJobsOption(app, options_.jobs, "Lanes that gather and write; 0 is one for each core (2)");
  app.add_flag("--force", options_.force, "Replace existing outputs");
  app.add_flag("--no-checksum", no_checksum_,
               "Neither check nor write checksums; see reshard verify");
  app.add_flag("--resume", resume_,
               "Keep what an interrupted run of the same command finished; =verify compares its "
               "checksums first")
      ->type_name("[=verify]")
      ->check(CLI::IsMember({"true", "verify"}).description(""));
  app.add_option("--unmatched", unmatched_,
                 "What becomes of parameters in only one of two given strategies (copy)")
      ->type_name("copy|drop|error")
      ->check(CLI::IsMember({"copy", "drop", "error"}).description(""));
}

ConvertOptions ConversionArguments::Options() const {
  ConvertOptions options = options_;
  options.unmatched = unmatched_ == "drop"    ? UnmatchedPolicy::kDrop
                      : unmatched_ == "error" ? UnmatchedPolicy::kError
                                              : UnmatchedPolicy::kCopy;
  options.checksum = !no_checksum_;
  options.resume = resume_ == "true"     ? Resume::kTrust
                   : resume_ == "verify" ? Resume::kVerify
                                         : Resume::kNo;
  return options;
}

std::string LargestAsText(const std::vector<ParameterSummary>& largest) {
  Table table({{""}, {""}, {""}, {"", Align::kRight}});
  for (const ParameterSummary& parameter : largest) {
    table.AddRow({PrintableName(parameter.name), std::string(DTypeName(parameter.dtype)),
                  FormatList(parameter.full_shape), FormatBytes(parameter.bytes)});
  }
  return table.ToText();
}

nlohmann::ordered_json LargestAsJson(const std::vector<ParameterSummary>& largest) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const ParameterSummary& parameter : largest) {
    out.push_back({{"name", parameter.name},
                   {"dtype", DTypeName(parameter.dtype)},
                   {"full_shape", parameter.full_shape},
                   {"bytes", parameter.bytes}});
  }
  return out;
}

}  // namespace reshard
