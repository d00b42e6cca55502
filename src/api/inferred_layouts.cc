#include "src/api/inferred_layouts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "src/base/quote.h"
#include "src/mindspore/layout_inference.h"
#include "src/mindspore/optimizer_copy.h"

namespace reshard {
namespace {

// Messages list at most this many things.
constexpr size_t kListedCandidates = 4;

// What became of one parameter.
struct Finding {
  std::optional<LayoutCandidate> chosen;
  bool by_values = false;  // the reference's, which ranks hold
  bool open = false;       // other layouts fit as well, and give the same results
  bool left_out = false;   // each rank's own
  std::string problem;     // why there is none
};

std::string Text(const ParameterLayout& layout) {
  std::string text = fmt::format("device matrix {}, tensor map {}", layout.device_matrix,
                                 fmt::join(layout.tensor_map, " "));
  if (layout.opt_weight_shard_size != 0) {
    text += fmt::format(", {} optimizer shards", layout.opt_weight_shard_size);
  }
  return text;
}

bool IsWhole(const ShardEvidence& evidence) {
  return std::all_of(evidence.cuts.begin(), evidence.cuts.end(), [](int64_t c) { return c == 1; });
}

ShardEvidence WithoutReference(const ShardEvidence& evidence) {
  return {evidence.cuts, evidence.ranks, {}};
}

Finding Choose(const ShardEvidence& evidence) {
  Finding finding;
  LayoutCandidates candidates = FindLayouts(evidence);
  finding.by_values = !evidence.parts.empty() && !candidates.found.empty();
  if (candidates.found.empty()) candidates = FindLayouts(WithoutReference(evidence));
  if (candidates.found.empty()) {
    finding.left_out = IsWhole(evidence);
    finding.problem = candidates.more ? "too many layouts might fit"
                                      : "no layout fits: ranks that would be replicas differ";
    return finding;
  }
  const std::vector<ContentClass> contents = candidates.found[0].Contents(evidence);
  const bool same = std::all_of(contents.begin(), contents.end(),
                                [&contents](ContentClass c) { return c == contents[0]; });
  std::vector<std::string> texts;
  for (const LayoutCandidate& candidate : candidates.found) {
    if (candidate.Contents(evidence) == contents) continue;
    if (texts.empty()) texts.push_back(Text(candidates.found[0].layout));
    if (texts.size() < kListedCandidates) texts.push_back(Text(candidate.layout));
  }
  // Layouts that the reference's values admit all give these values.
  if (texts.empty() && (finding.by_values || same || !candidates.more)) {
    finding.open = candidates.found.size() > 1;
    finding.chosen = std::move(candidates.found[0]);
    return finding;
  }
  finding.problem =
      fmt::format("{}several layouts fit: {}{}",
                  evidence.parts.empty() ? "" : "the reference holds other values, and ",
                  fmt::join(texts, "; "),
                  candidates.found.size() > texts.size() || candidates.more ? "; and more" : "");
  return finding;
}

// As Choose, for a copy of a parameter of which `parameter` was found.
Finding FollowParameter(const Finding& parameter, const ShardEvidence& evidence) {
  if (!parameter.chosen || !parameter.chosen->Explains(evidence)) return Choose(evidence);
  Finding followed;
  followed.chosen = parameter.chosen;
  followed.open = parameter.open;
  const bool disagrees = !evidence.parts.empty() && !parameter.chosen->HasParts(evidence);
  if (!parameter.open && !disagrees) return followed;
  Finding own = Choose(evidence);
  // Values outrank the parameter.
  if (!parameter.open) return own.by_values ? own : followed;
  // Where the parameter's bytes leave its layout open, those of the copy need not.
  const bool same = own.chosen && own.open &&
                    own.chosen->Contents(evidence) == followed.chosen->Contents(evidence);
  return same ? followed : own;
}

}  // namespace

Result<std::vector<NamedLayout>> InferLayouts(const std::vector<StageParameter>& parameters,
                                              std::vector<std::string>& warnings) {
  std::unordered_map<std::string_view, size_t> places;
  for (size_t i = 0; i < parameters.size(); ++i) places.emplace(parameters[i].name, i);
  std::vector<Finding> findings(parameters.size());
  std::vector<size_t> copies;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto parameter = ParameterOfCopy(parameters[i].name);
    if (parameter && places.contains(*parameter)) {
      copies.push_back(i);
    } else {
      findings[i] = Choose(parameters[i].evidence);
    }
  }
  for (const size_t i : copies) {
    const ShardEvidence& evidence = parameters[i].evidence;
    const size_t place = places.at(*ParameterOfCopy(parameters[i].name));
    const Finding& parameter = findings[place];
    findings[i] = parameters[place].evidence.cuts == evidence.cuts
                      ? FollowParameter(parameter, evidence)
                      : Choose(evidence);
  }

  std::vector<NamedLayout> layouts;
  FirstFew problems;
  std::vector<std::string> open;
  std::vector<std::string> left_out;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const std::string& name = parameters[i].name;
    if (findings[i].chosen) {
      layouts.push_back({name, findings[i].chosen->layout});
      if (findings[i].open) open.push_back(Quote(name));
    } else if (findings[i].left_out) {
      left_out.push_back(Quote(name));
    } else {
      problems.Add(fmt::format("{}: full shape {}, shards {}: {}", Quote(name),
                               ToString(parameters[i].full_shape),
                               ToString(parameters[i].shard_shape), findings[i].problem));
    }
  }
  if (problems.count() > 0) {
    return MismatchError(fmt::format(
        "the layouts of {} of {} parameters are not to be told from their shards; give a reference "
        "that holds the same values, or write them into a specification (strategy make):{}",
        problems.count(), parameters.size(), problems.Lines()));
  }
  if (!open.empty()) {
    warnings.push_back(fmt::format(
        "{} parameters have shards of equal bytes, so that other layouts would fit as well; the "
        "plainest is taken, which is right for this checkpoint and perhaps not for others of its "
        "run: {}",
        open.size(), FirstOf(open)));
  }
  if (!left_out.empty()) {
    warnings.push_back(
        fmt::format("{} parameters are whole on each rank, but not the same; left out, so that "
                    "conversions copy each rank's own: {}",
                    left_out.size(), FirstOf(left_out)));
  }
  return layouts;
}

}  // namespace reshard
