// Conversions and reads of random models against a naive reshard, element by element.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "reshard/checkpoint.h"
#include "reshard/convert.h"
#include "reshard/strategy.h"
#include "tests/property/any_model.h"
#include "tests/support/conversion_folder.h"
#include "tests/support/folder_contents.h"
#include "tests/support/naive_reshard.h"
#include "tests/support/pick.h"

namespace reshard::convert_property_test {
namespace {

// Parameters that source ranks do not save: each shard stays in one rank's file at least.
using Omissions = std::set<std::pair<std::string, int64_t>>;

Omissions AnyOmissions(const Model& model) {
  Omissions omitted;
  const int64_t devices = model.source.devices;
  for (size_t s = 0; s < model.source.layouts.size(); ++s) {
    for (const auto& [name, layout] : model.source.layouts[s]) {
      std::map<std::vector<int64_t>, std::vector<int64_t>> holders;
      for (int64_t local = 0; local < devices; ++local) {
        holders[PartsByDefinition(layout, model.Find(name).shape.size(), local).part].push_back(
            local + static_cast<int64_t>(s) * devices);
      }
      for (const auto& [part, ranks] : holders) {
        const auto keeper = ranks[Pick<size_t>(0, ranks.size())];
        for (const int64_t rank : ranks) {
          if (rank != keeper && PickBool()) omitted.emplace(name, rank);
        }
      }
    }
  }
  return omitted;
}

// The model's strategies in a new folder.
class ModelFolder : public ConversionFolder {
 public:
  explicit ModelFolder(const Model& model) {
    options().source.strategy = WriteStrategy(model.source, folder(), "source_strategy");
    options().target.strategy = WriteStrategy(model.target, folder(), "target_strategy");
    options().run.jobs = Pick(0, 4);
  }
};

void RunConvert(const ConvertOptions& options) {
  const auto report = Convert(options);
  if (!report.ok()) RC_FAIL(report.status().message());
}

std::vector<TestTensor> ByName(std::vector<TestTensor> tensors) {
  std::sort(tensors.begin(), tensors.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return tensors;
}

RC_GTEST_PROP(ConvertProperty, EachRankGetsItsPartOfEachTensor, ()) {
  const Model model = AnyModel({.share_between_stages = PickBool()});
  ModelFolder folder(model);
  const Omissions omitted = PickBool() ? AnyOmissions(model) : Omissions();
  for (int64_t rank = 0; rank < model.source.ranks(); ++rank) {
    std::vector<TestTensor> tensors = SourceTensors(model, rank, rank);
    std::erase_if(tensors, [&](const auto& tensor) {
      return omitted.contains({tensor.name, rank});
    });
    // A rank without parameters has no file, or an empty one.
    if (tensors.empty() && PickBool()) continue;
    folder.WriteRank(rank, PickBool() ? EncodeCut(tensors) : EncodeCheckpoint(tensors));
  }
  RunConvert(folder.options());
  for (int64_t rank = 0; rank < model.target.ranks(); ++rank) {
    const auto expected = TargetTensors(model, rank, UncutSourceRank(model, rank));
    const auto found = folder.Target(rank);
    RC_ASSERT(ByName(found) == ByName(expected));
    // The order is that of the files where they agree on one.
    if (omitted.empty() && !model.in_several_stages) RC_ASSERT(found == expected);
  }
  RC_ASSERT(ReadOutputs(folder.options().target.folder).size() ==
            static_cast<size_t>(model.target.ranks()));
}

// Ranks whose files may be missing: each shard stays in one file at least.
std::set<int64_t> AnyMissingRanks(const Model& model) {
  std::map<std::pair<std::string, std::vector<int64_t>>, std::set<int64_t>> holders;
  for (size_t s = 0; s < model.source.layouts.size(); ++s) {
    for (const auto& [name, layout] : model.source.layouts[s]) {
      for (int64_t local = 0; local < model.source.devices; ++local) {
        holders[{std::to_string(s) + name,
                 PartsByDefinition(layout, model.Find(name).shape.size(), local).part}]
            .insert(local + static_cast<int64_t>(s) * model.source.devices);
      }
    }
  }
  std::set<int64_t> missing;
  for (int64_t rank = 0; model.source.has_strategy && rank < model.source.ranks(); ++rank) {
    const bool is_spare = std::all_of(holders.begin(), holders.end(), [&](const auto& shard) {
      return shard.second != std::set<int64_t>({rank});
    });
    if (!is_spare || PickBool()) continue;
    missing.insert(rank);
    for (auto& shard : holders) shard.second.erase(rank);
  }
  return missing;
}

RC_GTEST_PROP(ConvertProperty, AnyFilesThatHoldEachShardAreEnough, ()) {
  const Model model = AnyModel({.share_between_stages = PickBool()});
  ModelFolder folder(model);
  const std::set<int64_t> missing = AnyMissingRanks(model);
  for (int64_t rank = 0; rank < model.source.ranks(); ++rank) {
    const bool is_missing = missing.contains(rank);
    if (is_missing && PickBool()) continue;
    // An empty file holds as much as none.
    folder.WriteRank(rank, is_missing ? "" : EncodeCheckpoint(SourceTensors(model, rank, 0)));
  }
  RunConvert(folder.options());
  for (int64_t rank = 0; rank < model.target.ranks(); ++rank) {
    RC_ASSERT(ByName(folder.Target(rank)) == ByName(TargetTensors(model, rank, 0)));
  }
}

RC_GTEST_PROP(ConvertProperty, ThereAndBackIsTheIdentity, ()) {
  const Model model = AnyModel({});
  ModelFolder folder(model);
  for (int64_t rank = 0; rank < model.source.ranks(); ++rank) {
    folder.WriteRank(rank, EncodeCheckpoint(SourceTensors(model, rank, 0)));
  }
  RunConvert(folder.options());
  FolderContents expected;
  for (int64_t rank = 0; rank < model.target.ranks(); ++rank) {
    expected[RankPath(rank)] = EncodeCheckpoint(TargetTensors(model, rank, 0));
  }
  RC_ASSERT(ReadOutputs(folder.options().target.folder) == expected);

  ConvertOptions back = folder.options();
  std::swap(back.source.strategy, back.target.strategy);
  back.source.path = back.target.folder;
  back.target.folder = folder.folder().path() / "back";
  RunConvert(back);
  RC_ASSERT(ReadOutputs(back.target.folder) == ReadOutputs(folder.options().source.path));
}

RC_GTEST_PROP(ConvertProperty, TheLeastRankListIsEnough, ()) {
  const Model model = AnyModel({.one_dimensional_nested_maps = false});
  ModelFolder folder(model);
  ConvertOptions& options = folder.options();
  const auto rank = Pick<int64_t>(0, model.target.ranks());
  options.selection.ranks = {rank};
  const auto least = SourceRanks(rank, options.source.strategy, options.target.strategy);
  if (!least.ok()) RC_FAIL(least.status().message());
  const int64_t uncut_rank = UncutSourceRank(model, rank);
  RC_ASSERT(std::count(least->begin(), least->end(), uncut_rank) == 1);
  for (const int64_t source : *least) {
    folder.WriteRank(source, EncodeCheckpoint(SourceTensors(model, source, source)));
  }
  RunConvert(folder.options());
  RC_ASSERT(folder.Target(rank) == TargetTensors(model, rank, uncut_rank));
}

// The bytes of `box` of a tensor, element by element.
std::string NaiveBox(const TestTensor& tensor, const Box& box) {
  std::string bytes;
  int64_t elements = 1;
  for (const int64_t size : tensor.shape) elements *= size;
  for (int64_t element = 0; element < elements; ++element) {
    bool inside = true;
    int64_t rest = element;
    for (size_t d = tensor.shape.size(); d-- > 0; rest /= tensor.shape[d]) {
      const int64_t index = rest % tensor.shape[d] - box.begin[d];
      inside = inside && index >= 0 && index < box.extent[d];
    }
    const size_t item = tensor.content.size() / static_cast<size_t>(elements);
    if (inside) bytes += tensor.content.substr(static_cast<size_t>(element) * item, item);
  }
  return bytes;
}

Box AnyBox(const Shape& shape) {
  Box box;
  for (const int64_t size : shape) {
    box.begin.push_back(Pick<int64_t>(0, size + 1));
    box.extent.push_back(Pick<int64_t>(0, size - box.begin.back() + 1));
  }
  return box;
}

void CheckShards(const ShardedCheckpoint& checkpoint, const TestTensor& tensor,
                 const ParameterLayout& layout, int64_t first_rank, int64_t devices) {
  const auto shards = checkpoint.Shards(tensor.name);
  if (!shards.ok()) RC_FAIL(shards.status().message());
  std::map<int64_t, Box> boxes;
  for (const ShardedCheckpoint::Shard& shard : *shards) {
    for (const int64_t rank : shard.ranks) RC_ASSERT(boxes.emplace(rank, shard.box).second);
  }
  if (tensor.content.empty()) return;  // no box has elements
  RC_ASSERT(boxes.size() == static_cast<size_t>(devices));
  for (int64_t local = 0; local < devices; ++local) {
    const NaiveParts parts = PartsByDefinition(layout, tensor.shape.size(), local);
    Box expected;
    for (size_t d = 0; d < tensor.shape.size(); ++d) {
      expected.extent.push_back(tensor.shape[d] / parts.cuts[d]);
      expected.begin.push_back(parts.part[d] * expected.extent[d]);
    }
    RC_ASSERT(boxes.at(first_rank + local) == expected);
  }
}

RC_GTEST_PROP(ShardedCheckpointProperty, BoxesAreReadFromWhicheverFilesHoldThem, ()) {
  const Model model = AnyModel({.share_between_stages = PickBool()});
  ModelFolder folder(model);
  for (int64_t rank = 0; rank < model.source.ranks(); ++rank) {
    const auto tensors = SourceTensors(model, rank, rank);
    folder.WriteRank(rank, PickBool() ? EncodeCut(tensors) : EncodeCheckpoint(tensors));
  }
  const ConvertOptions& options = folder.options();
  const auto checkpoint = ShardedCheckpoint::Open(options.source.path, options.source.strategy);
  if (!checkpoint.ok()) RC_FAIL(checkpoint.status().message());
  RC_ASSERT(checkpoint->tensors().size() == model.cut.size() + model.uncut.size());

  std::vector<TestTensor> tensors = model.cut;
  for (const std::string& name : model.uncut) tensors.push_back(UncutTensor(name, 0));
  for (const TestTensor& tensor : tensors) {
    const ShardedCheckpoint::Tensor* found = checkpoint->Find(tensor.name);
    RC_ASSERT(found != nullptr);
    RC_ASSERT(found->dtype == tensor.dtype);
    RC_ASSERT(found->shape == tensor.shape);
    for (int i = 0; i < 4; ++i) {
      const Box box = AnyBox(tensor.shape);
      const std::string expected = NaiveBox(tensor, box);
      std::string bytes(expected.size(), '\0');
      const Status status =
          checkpoint->Read(tensor.name, box, std::as_writable_bytes(std::span(bytes)));
      if (!status.ok()) RC_FAIL(status.message());
      RC_ASSERT(bytes == expected);
    }
  }
  std::set<std::string> seen;  // those of a lower stage
  for (size_t s = 0; s < model.source.layouts.size(); ++s) {
    const int64_t first_rank = static_cast<int64_t>(s) * model.source.devices;
    for (const auto& [name, layout] : model.source.layouts[s]) {
      RC_ASSERT(checkpoint->Find(name)->in_strategy);
      if (!seen.insert(name).second) continue;
      RC_ASSERT(checkpoint->Find(name)->stage == static_cast<int64_t>(s));
      CheckShards(*checkpoint, model.Find(name), layout, first_rank, model.source.devices);
    }
  }
}

}  // namespace
}  // namespace reshard::convert_property_test
