// view_parameter FILE [NAME]: lists the parameters of a checkpoint, or sums up the bytes of one of
// them without copying.
#include <cstdint>
#include <cstdio>

#include "reshard/checkpoint.h"

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const auto checkpoint = reshard::Checkpoint::Open(argv[1]);
  if (!checkpoint.ok()) {
    std::fprintf(stderr, "%s\n", checkpoint.status().message().c_str());
    return reshard::ExitCode(checkpoint.status().code());
  }
  if (argc == 2) {
    for (const reshard::StoredArray& parameter : checkpoint->parameters()) {
      std::printf("%.*s %s\n", static_cast<int>(parameter.name.size()), parameter.name.data(),
                  reshard::ToString(parameter.shape).c_str());
    }
    return 0;
  }
  const auto spans = checkpoint->View(argv[2]);  // one span for each Value of the file
  if (!spans.ok()) {
    std::fprintf(stderr, "%s\n", spans.status().message().c_str());
    return reshard::ExitCode(spans.status().code());
  }
  uint64_t sum = 0;
  for (const auto& span : *spans) {
    for (const std::byte byte : span) sum += std::to_integer<uint64_t>(byte);
  }
  std::printf("%llu\n", static_cast<unsigned long long>(sum));
  return 0;
}
