// load_slice FOLDER STRATEGY NAME RANK RANKS: what one of RANKS ranks holds of a parameter whose
// last dimension they cut, read straight from a sharded checkpoint. The layout is made in memory;
// nothing is converted first. Writes the bytes to stdout.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "reshard/checkpoint.h"
#include "reshard/strategy.h"

namespace {

int Fail(const reshard::Status& status) {
  std::fprintf(stderr, "%s\n", status.message().c_str());
  return reshard::ExitCode(status.code());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  const std::string name = argv[3];
  const int64_t rank = std::atoll(argv[4]);
  const int64_t ranks = std::atoll(argv[5]);

  const auto strategy = reshard::ReadStrategy(argv[2]);  // of the source; it may be made, too
  if (!strategy.ok()) return Fail(strategy.status());
  const auto checkpoint = reshard::ShardedCheckpoint::Open(argv[1], *strategy);
  if (!checkpoint.ok()) return Fail(checkpoint.status());
  const reshard::ShardedCheckpoint::Tensor* tensor = checkpoint->Find(name);
  if (tensor == nullptr || tensor->shape.empty()) return 1;

  reshard::ParameterLayout layout;
  layout.device_matrix = {ranks};
  layout.tensor_map = {std::vector<int64_t>(tensor->shape.size(), -1)};
  layout.tensor_map.front().front() = 0;  // the one device axis cuts the first dimension
  const auto box = reshard::ShardBox({name, layout}, tensor->shape, rank);
  if (!box.ok()) return Fail(box.status());

  std::vector<std::byte> slice(reshard::Volume(*box) * reshard::ItemBytes(tensor->dtype));
  const reshard::Status status = checkpoint->Read(name, *box, slice);
  if (!status.ok()) return Fail(status);
  return std::fwrite(slice.data(), 1, slice.size(), stdout) == slice.size() ? 0 : 1;
}
