// Conversions that cast, against those that do not with what they wrote cast afterwards; alone and
// shared among several, whose records are the same.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "reshard/convert.h"
#include "reshard/verify.h"
#include "src/cast/cast.h"
#include "tests/property/any_model.h"
#include "tests/support/conversion_folder.h"
#include "tests/support/folder_contents.h"
#include "tests/support/pick.h"
#include "tests/support/view_check.h"

namespace reshard::cast_property_test {
namespace {

constexpr std::array kTargets = {DType::kFloat16, DType::kBFloat16,     DType::kFloat32,
                                 DType::kFloat64, DType::kFloat8E4M3FN, DType::kFloat8E5M2};

// A dtype for some tensors, by name, and rules that say so, others among them that come too late.
struct Casts {
  std::map<std::string, DType> dtypes;
  std::vector<Selection::CastRule> rules;
};

Casts AnyCasts(const Model& model) {
  Casts casts;
  for (const TestTensor& tensor : model.cut) {
    if (tensor.dtype == DType::kFloat8E5M2 || Pick(0, 3) == 0) {
      casts.rules.push_back({tensor.name, {}});
      continue;
    }
    const DType dtype = kTargets[Pick<size_t>(0, kTargets.size())];
    casts.rules.push_back({tensor.name, dtype});
    if (IsCastSource(tensor.dtype)) casts.dtypes[tensor.name] = dtype;
  }
  casts.rules.push_back({"*", DType::kFloat16});  // of scalars of integers
  return casts;
}

TestTensor CastTensor(TestTensor tensor, const Casts& casts) {
  const auto found = casts.dtypes.find(tensor.name);
  if (found == casts.dtypes.end() || found->second == tensor.dtype) return tensor;
  std::string content(tensor.content.size() / ItemBytes(tensor.dtype) * ItemBytes(found->second),
                      '\0');
  Cast(tensor.dtype, found->second, std::as_bytes(std::span(tensor.content)),
       std::as_writable_bytes(std::span(content)));
  return {tensor.name, found->second, tensor.shape, content};
}

RC_GTEST_PROP(CastProperty, IsWhatWasWrittenCastAfterwards, ()) {
  const Model model = AnyModel({.share_between_stages = PickBool()});
  ConversionFolder folder;
  ConvertOptions& options = folder.options();
  options.source.strategy = WriteStrategy(model.source, folder.folder(), "source_strategy");
  options.target.strategy = WriteStrategy(model.target, folder.folder(), "target_strategy");
  options.run.jobs = Pick(0, 4);
  for (int64_t rank = 0; rank < model.source.ranks(); ++rank) {
    folder.WriteRank(rank, EncodeCut(SourceTensors(model, rank, rank)));
  }
  ConvertOptions all = options;
  all.target.folder = folder.folder().path() / "all";
  const auto everything = Convert(all);
  if (!everything.ok()) RC_FAIL(everything.status().message());

  const Casts casts = AnyCasts(model);
  options.selection.casts = casts.rules;
  const auto report = Convert(options);
  if (!report.ok()) RC_FAIL(report.status().message());
  FolderContents expected;
  for (int64_t rank = 0; rank < model.target.ranks(); ++rank) {
    auto tensors = ReadTensors(std::filesystem::path(all.target.folder) / RankPath(rank));
    for (TestTensor& tensor : tensors) tensor = CastTensor(std::move(tensor), casts);
    expected[RankPath(rank)] = EncodeCheckpoint(tensors);
  }
  RC_ASSERT(ReadOutputs(options.target.folder) == expected);
  ExpectViewHasFiles(options);

  const auto damage = Verify(options.target.folder);
  if (!damage.ok()) RC_FAIL(damage.status().message());
  RC_ASSERT(damage->damages.empty());
  ConversionSpec against;
  against.target.folder = options.target.folder;
  against.source.path = options.source.path;
  against.source.strategy = options.source.strategy;
  against.target.strategy = options.target.strategy;
  against.selection.casts = casts.rules;
  const auto proof = VerifyAgainst(against);
  if (!proof.ok()) RC_FAIL(proof.status().message());
  RC_ASSERT(proof->differences.empty());

  ConvertOptions shared = options;
  shared.target.folder = folder.folder().path() / "shared";
  for (uint64_t worker = 0; worker < 2; ++worker) {
    shared.shard = WorkerShare{worker, 2};
    const auto share = Convert(shared);
    if (!share.ok()) RC_FAIL(share.status().message());
  }
  RC_ASSERT(ReadFolder(shared.target.folder) == ReadFolder(options.target.folder));
}

}  // namespace
}  // namespace reshard::cast_property_test
