// convert_checkpoint SOURCE TARGET SOURCE_STRATEGY TARGET_STRATEGY: converts and says what was
// written.
#include <cstdio>

#include "reshard/convert.h"

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  reshard::ConvertOptions options;
  options.source = argv[1];
  options.target = argv[2];
  options.source_strategy = argv[3];
  options.target_strategy = argv[4];
  const auto report = reshard::Convert(options);
  if (!report.ok()) {
    std::fprintf(stderr, "%s\n", report.status().message().c_str());
    return reshard::ExitCode(report.status().code());
  }
  for (const std::string& warning : report->warnings) {
    std::fprintf(stderr, "warning: %s\n", warning.c_str());
  }
  for (const reshard::WrittenFile& file : report->files) std::printf("%s\n", file.path.c_str());
  return 0;
}
