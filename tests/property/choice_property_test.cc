// Conversions that choose and rename parameters, against those of everything with the rest dropped
// and renamed afterwards.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "reshard/convert.h"
#include "reshard/verify.h"
#include "tests/property/any_model.h"
#include "tests/support/conversion_folder.h"
#include "tests/support/folder_contents.h"
#include "tests/support/pick.h"
#include "tests/support/view_check.h"

namespace reshard::choice_property_test {
namespace {

// Names to take and leave, with patterns that say so.
struct Choice {
  std::vector<std::string> include;
  std::vector<std::string> exclude;
  Renames renames;
  std::set<std::string> taken;
};

std::vector<std::string> NamesOf(const Model& model) {
  std::vector<std::string> names = model.uncut;
  for (const TestTensor& tensor : model.cut) names.push_back(tensor.name);
  return names;
}

Choice AnyChoice(const Model& model) {
  Choice choice;
  const std::vector<std::string> names = NamesOf(model);
  const bool includes = PickBool();
  for (const std::string& name : names) {
    const bool included = !includes || PickBool();
    const bool excluded = Pick(0, 3) == 0;
    if (includes && included) choice.include.push_back(name);
    if (excluded) choice.exclude.push_back(name);
    if (included && !excluded) choice.taken.insert(name);
  }
  if (includes && choice.include.empty()) choice.include.emplace_back("no such parameter");
  // Some take the name of the next one, so that names are swapped and handed on.
  for (size_t i = 0; i < names.size(); ++i) {
    if (PickBool()) choice.renames.names.emplace(names[i], fmt::format("model.{}.{}", i, names[i]));
  }
  if (names.size() > 1 && PickBool()) {
    choice.renames.names[names[0]] = names[1];
    choice.renames.names[names[1]] = names[0];
  }
  return choice;
}

std::vector<TestTensor> Chosen(const std::vector<TestTensor>& tensors, const Choice& choice) {
  std::vector<TestTensor> chosen;
  for (const TestTensor& tensor : tensors) {
    if (!choice.taken.contains(tensor.name)) continue;
    chosen.push_back(tensor);
    const auto renamed = choice.renames.names.find(tensor.name);
    if (renamed != choice.renames.names.end()) chosen.back().name = renamed->second;
  }
  return chosen;
}

RC_GTEST_PROP(ChoiceProperty, IsWhatIsLeftOfAConversionOfEverything, ()) {
  const Model model = AnyModel({.share_between_stages = PickBool()});
  ConversionFolder folder;
  ConvertOptions& options = folder.options();
  options.source.strategy = WriteStrategy(model.source, folder.folder(), "source_strategy");
  options.target.strategy = WriteStrategy(model.target, folder.folder(), "target_strategy");
  options.run.jobs = Pick(0, 4);
  for (int64_t rank = 0; rank < model.source.ranks(); ++rank) {
    folder.WriteRank(rank, EncodeCheckpoint(SourceTensors(model, rank, rank)));
  }
  ConvertOptions all = options;
  all.target.folder = folder.folder().path() / "all";
  const auto everything = Convert(all);
  if (!everything.ok()) RC_FAIL(everything.status().message());

  const Choice choice = AnyChoice(model);
  options.selection.include = choice.include;
  options.selection.exclude = choice.exclude;
  options.selection.renames = choice.renames;
  const auto report = Convert(options);
  if (choice.taken.empty()) {
    RC_ASSERT(report.status().code() == StatusCode::kInvalidArgument);
    return;
  }
  if (!report.ok()) RC_FAIL(report.status().message());
  RC_ASSERT(report->parameters == choice.taken.size());
  RC_ASSERT(report->left_out == everything->parameters - choice.taken.size());
  FolderContents expected;
  for (int64_t rank = 0; rank < model.target.ranks(); ++rank) {
    const auto tensors = ReadTensors(std::filesystem::path(all.target.folder) / RankPath(rank));
    expected[RankPath(rank)] = EncodeCheckpoint(Chosen(tensors, choice));
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
  against.selection.include = choice.include;
  against.selection.exclude = choice.exclude;
  against.selection.renames = choice.renames;
  const auto proof = VerifyAgainst(against);
  if (!proof.ok()) RC_FAIL(proof.status().message());
  RC_ASSERT(proof->differences.empty());
}

}  // namespace
}  // namespace reshard::choice_property_test
