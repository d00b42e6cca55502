#include "tests/support/conversion_folder.h"

#include <fmt/format.h>

#include <algorithm>

#include "tests/support/naive_reshard.h"
#include "tests/support/strategy_bytes.h"

namespace reshard {

std::string RankPath(int64_t rank) { return fmt::format("rank_{0}/checkpoint_{0}.ckpt", rank); }

ConversionFolder::ConversionFolder() : folder_(MemoryFolder()) {
  options_.source.path = folder_.path() / "source";
  options_.target.folder = folder_.path() / "target";
}

ConversionFolder::ConversionFolder(const std::vector<NamedLayout>& source,
                                   const std::vector<NamedLayout>& target)
    : ConversionFolder() {
  if (!source.empty()) {
    options_.source.strategy = folder_.Write("src.ckpt", ProtobufStrategy(0, source));
  }
  if (!target.empty()) {
    options_.target.strategy = folder_.Write("dst.ckpt", ProtobufStrategy(0, target));
  }
}

void ConversionFolder::WriteRank(int64_t rank, std::string_view bytes) const {
  folder_.Write("source/" + RankPath(rank), bytes);
}

void ConversionFolder::WriteRank(int64_t rank, const std::vector<TestTensor>& tensors) const {
  WriteRank(rank, EncodeCheckpoint(tensors));
}

void ConversionFolder::WriteStage(const std::vector<TestTensor>& tensors,
                                  const std::vector<NamedLayout>& layouts, int64_t devices,
                                  int64_t first_rank) const {
  for (int64_t local = 0; local < devices; ++local) {
    std::vector<TestTensor> shards;
    for (const TestTensor& full : tensors) {
      const auto named =
          std::find_if(layouts.begin(), layouts.end(),
                       [&](const NamedLayout& layout) { return layout.name == full.name; });
      shards.push_back(named == layouts.end() ? full : NaiveShard(full, named->layout, local));
    }
    WriteRank(first_rank + local, shards);
  }
}

void ConversionFolder::RemoveRank(int64_t rank) const {
  std::filesystem::remove_all(folder_.path() / "source" / fmt::format("rank_{}", rank));
}

std::vector<TestTensor> ConversionFolder::Target(int64_t rank) const {
  return ReadTensors(std::filesystem::path(options_.target.folder) / RankPath(rank));
}

}  // namespace reshard
