// read_slice FOLDER STRATEGY NAME PART PARTS: reads one of PARTS equal slices of a tensor's first
// dimension straight from a sharded checkpoint, as a rank of a new cluster would, without
// converting it first. Writes the bytes to stdout.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "reshard/checkpoint.h"

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  const auto checkpoint = reshard::ShardedCheckpoint::Open(argv[1], argv[2]);
  if (!checkpoint.ok()) {
    std::fprintf(stderr, "%s\n", checkpoint.status().message().c_str());
    return reshard::ExitCode(checkpoint.status().code());
  }
  const reshard::LogicalTensor* tensor = checkpoint->Find(argv[3]);
  if (tensor == nullptr || tensor->shape.empty()) return 1;

  const int64_t part = std::atoll(argv[4]);
  const int64_t parts = std::atoll(argv[5]);
  reshard::Box box = reshard::Box::Whole(tensor->shape);
  box.extent[0] /= parts;
  box.begin[0] = part * box.extent[0];
  std::vector<std::byte> slice(reshard::Volume(box) * reshard::ItemBytes(tensor->dtype));

  const reshard::Status status = checkpoint->Read(tensor->name, box, slice);
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.message().c_str());
    return reshard::ExitCode(status.code());
  }
  return std::fwrite(slice.data(), 1, slice.size(), stdout) == slice.size() ? 0 : 1;
}
