// inspect_checkpoint FOLDER STRATEGY: the full tensors of a sharded checkpoint, how many parts each
// is cut into, and which ranks hold the first part. Only headers are read.
#include <cstdio>
#include <string>

#include "reshard/checkpoint.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const auto checkpoint = reshard::ShardedCheckpoint::Open(argv[1], argv[2]);
  if (!checkpoint.ok()) {
    std::fprintf(stderr, "%s\n", checkpoint.status().message().c_str());
    return reshard::ExitCode(checkpoint.status().code());
  }
  for (const reshard::ShardedCheckpoint::Tensor& tensor : checkpoint->tensors()) {
    const auto shards = checkpoint->Shards(tensor.name);
    if (!shards.ok()) {
      std::fprintf(stderr, "%s\n", shards.status().message().c_str());
      return reshard::ExitCode(shards.status().code());
    }
    std::printf("%s %s %s: %zu part%s, the first in ranks", tensor.name.c_str(),
                std::string(reshard::DTypeName(tensor.dtype)).c_str(),
                reshard::ToString(tensor.shape).c_str(), shards->size(),
                shards->size() == 1 ? "" : "s");
    for (const int64_t rank : shards->front().ranks) {
      std::printf(" %lld", static_cast<long long>(rank));
    }
    std::printf("\n");
  }
  return 0;
}
