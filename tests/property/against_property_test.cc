// Proofs of conversions of random models, and the replicas of their sources.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "reshard/convert.h"
#include "reshard/verify.h"
#include "tests/property/any_model.h"
#include "tests/support/conversion_folder.h"
#include "tests/support/naive_reshard.h"
#include "tests/support/pick.h"
#include "tests/support/temporary_folder.h"

namespace reshard::against_property_test {
namespace {

namespace fs = std::filesystem;

// A model's source, converted.
class Conversion {
 public:
  explicit Conversion(const Model& model) {
    ConvertOptions& convert = folder_.options();
    convert.source.strategy = WriteStrategy(model.source, folder_.folder(), "source_strategy");
    convert.target.strategy = WriteStrategy(model.target, folder_.folder(), "target_strategy");
    for (int64_t rank = 0; rank < model.source.ranks(); ++rank) {
      const auto tensors = SourceTensors(model, rank, rank);
      WriteSource(rank, PickBool() ? EncodeCut(tensors) : EncodeCheckpoint(tensors));
    }
    const auto converted = Convert(convert);
    if (!converted.ok()) RC_FAIL(converted.status().message());
  }

  void WriteSource(int64_t rank, const std::string& bytes) const { folder_.WriteRank(rank, bytes); }

  std::string ReadTarget(int64_t rank) const {
    return ReadFile(fs::path(folder_.options().target.folder) / RankPath(rank));
  }
  void WriteTarget(int64_t rank, const std::string& bytes) const {
    fs::permissions(fs::path(folder_.options().target.folder) / RankPath(rank),
                    fs::perms::owner_all);
    folder_.folder().Write("target/" + RankPath(rank), bytes);
  }

  AgainstReport Verify() const {
    ConversionSpec options;
    options.source.path = folder_.options().source.path;
    options.target.folder = folder_.options().target.folder;
    options.source.strategy = folder_.options().source.strategy;
    options.target.strategy = folder_.options().target.strategy;
    auto report = VerifyAgainst(options, {.jobs = Pick(0, 4)});
    if (!report.ok()) RC_FAIL(report.status().message());
    return *std::move(report);
  }

 private:
  ConversionFolder folder_;
};

RC_GTEST_PROP(VerifyAgainstProperty, OutputsAreProvedAndAChangedByteIsFound, ()) {
  const Model model = AnyModel({.share_between_stages = PickBool()});
  const Conversion conversion(model);
  const AgainstReport good = conversion.Verify();
  RC_ASSERT(good.differences.empty());
  RC_ASSERT(good.files == static_cast<uint64_t>(model.target.ranks()));

  const auto rank = Pick<int64_t>(0, model.target.ranks());
  std::string bytes = conversion.ReadTarget(rank);
  RC_PRE(!bytes.empty());
  const auto offset = Pick<size_t>(0, bytes.size());
  bytes[offset] = static_cast<char>(bytes[offset] ^ (1 << Pick(0, 8)));
  conversion.WriteTarget(rank, bytes);
  const AgainstReport bad = conversion.Verify();
  RC_ASSERT(bad.differences.size() == 1U);
  RC_ASSERT(bad.differences[0].path == RankPath(rank));
  RC_ASSERT(bad.differences[0].differing_bytes == 1U);
  RC_ASSERT(bad.differences[0].first->offset == offset);
}

// What replicas there are, by the definition of layouts.
RC_GTEST_PROP(ReplicaProperty, ChangedShardsAreFoundWhereTheyHaveReplicas, ()) {
  const Model model = AnyModel({});
  const Conversion conversion(model);
  const auto rank = Pick<int64_t>(0, model.source.ranks());
  const int64_t local = rank % model.source.devices;
  std::vector<TestTensor> tensors = SourceTensors(model, rank, rank);
  std::set<std::string> expected;
  for (TestTensor& tensor : tensors) {
    if (tensor.content.empty() || PickBool()) continue;
    char& byte = tensor.content[Pick<size_t>(0, tensor.content.size())];
    byte = static_cast<char>(byte ^ 1);
    const auto stage = static_cast<size_t>(rank / model.source.devices);
    for (const auto& [name, layout] : model.source.layouts[stage]) {
      if (name != tensor.name) continue;
      const size_t dims = tensor.shape.size();
      int64_t holders = 0;
      for (int64_t other = 0; other < model.source.devices; ++other) {
        holders += PartsByDefinition(layout, dims, other) == PartsByDefinition(layout, dims, local);
      }
      if (holders > 1) expected.insert(name);
    }
  }
  conversion.WriteSource(rank, PickBool() ? EncodeCut(tensors) : EncodeCheckpoint(tensors));
  const ReplicaReport report = conversion.Verify().replicas;
  std::set<std::string> found;
  for (const ReplicaReport::Difference& difference : report.differences) {
    found.insert(difference.parameter);
    for (const ReplicaReport::Pair& pair : difference.pairs) {
      RC_ASSERT(pair.rank == rank || pair.reference == rank);
    }
  }
  RC_ASSERT(found == expected);
  RC_ASSERT(report.differing == expected.size());
}

}  // namespace
}  // namespace reshard::against_property_test
