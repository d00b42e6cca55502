// Prints what a conversion copies, for bench/bare_pipeline.cc, which knows of nothing else.
//
//   copy_list SRC SRC_STRATEGY DST_STRATEGY [FORMAT]     a strategy may be "": full tensors; FORMAT
//                                                        is ckpt, safetensors, unified, huggingface
//
// One line each, numbers in decimal; what follows a target belongs to it, in the order of its
// bytes:
//
//   source PATH                       sources are numbered from 0
//   target SIZE PATH                  PATH is relative to the target folder
//   bytes OFFSET HEX                  these bytes themselves, at OFFSET of the target
//   copy SOURCE FROM TO RUN COUNT FROM_STRIDE TO_STRIDE
//                                     COUNT runs of RUN bytes, so far apart in source and target
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <map>
#include <string>
#include <variant>

#include "reshard/status.h"
#include "src/base/status_macros.h"
#include "src/convert/conversion_plan.h"
#include "src/convert/opened_source.h"
#include "src/plan/target_plan.h"

namespace reshard {
namespace {

void PrintLiteral(const Literal& literal) {
  fmt::print("bytes {} ", literal.offset);
  for (const char byte : literal.bytes) fmt::print("{:02x}", static_cast<unsigned char>(byte));
  fmt::print("\n");
}

Status PrintCopy(const BlockCopy& copy, uint32_t source) {
  if (copy.dims.size() > 1) {
    return UnsupportedError("copy_list: runs in more than one dimension; the cases are matrices");
  }
  const CopyDim dim = copy.dims.empty() ? CopyDim() : copy.dims[0];
  fmt::print("copy {} {} {} {} {} {} {}\n", source, copy.source_offset, copy.target_offset,
             copy.run_length, dim.count, dim.source_stride, dim.target_stride);
  return {};
}

Status PrintCopies(const SourceSpec& spec, const TargetSpec& target_spec) {
  RESHARD_ASSIGN_OR_RETURN(const auto source, OpenSource(spec, {.target = target_spec}));
  std::map<FileId, uint32_t> numbers;
  for (const ChosenFile& file : source->chosen()) {
    numbers.emplace(file.id, static_cast<uint32_t>(numbers.size()));
    fmt::print("source {}\n", source->path(file));
  }
  RESHARD_ASSIGN_OR_RETURN(const ConversionTarget target, MakeTarget(*source, target_spec, {}));
  PlanFindings findings;
  for (int64_t file = 0; file < target.files().files(); ++file) {
    RESHARD_ASSIGN_OR_RETURN(const TargetPlan plan, target.files().Plan(file, findings));
    fmt::print("target {} {}\n", plan.size, plan.path);
    for (const Segment& segment : plan.segments) {
      if (const auto* literal = std::get_if<Literal>(&segment)) {
        PrintLiteral(*literal);
        continue;
      }
      for (const BlockCopy& copy : std::get<Content>(segment).copies) {
        RESHARD_RETURN_IF_ERROR(PrintCopy(copy, numbers.at(copy.source)));
      }
    }
  }
  return {};
}

int Main(int argc, char** argv) {
  if (argc != 4 && argc != 5) {
    std::fputs("usage: copy_list SRC SRC_STRATEGY DST_STRATEGY [FORMAT]\n", stderr);
    return 2;
  }
  TargetSpec target;
  target.strategy = argv[3];
  if (argc == 5) {
    const std::map<std::string, TargetFormat> formats = {
        {"ckpt", TargetFormat::kCkpt},
        {"safetensors", TargetFormat::kSafetensors},
        {"unified", TargetFormat::kUnified},
        {"huggingface", TargetFormat::kHuggingFace}};
    target.format = formats.at(argv[4]);
  }
  const Status status = PrintCopies({.path = argv[1], .strategy = argv[2]}, target);
  if (status.ok()) return 0;
  std::fprintf(stderr, "copy_list: %s\n", status.message().c_str());
  return 1;
}

}  // namespace
}  // namespace reshard

int main(int argc, char** argv) {
  try {
    return reshard::Main(argc, argv);
  } catch (const std::exception& error) {  // no memory, or nowhere to print to
    std::fprintf(stderr, "copy_list: %s\n", error.what());
    return 1;
  }
}
