#include "src/plan/plan_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "src/base/quote.h"

namespace reshard {

const PlanFindings::Parameter* PlanFindings::Find(const std::string& target_name) const {
  const auto own = parameters.find(target_name);
  if (own != parameters.end()) return &own->second;
  return earlier == nullptr ? nullptr : earlier->Find(target_name);
}

bool PlanFindings::Append(const PlanFindings& next) {
  for (const auto& [target_name, parameter] : next.parameters) {
    Parameter& known = parameters.try_emplace(target_name, parameter).first->second;
    if (known.source_name != parameter.source_name) return false;
    if (parameter.copied) {
      NoteCopied(target_name, parameter);
    } else if (known.dtype != parameter.dtype || known.full_shape != parameter.full_shape) {
      return false;
    }
  }
  AddFindings(next);
  return true;
}

void PlanFindings::NoteCopied(const std::string& target_name, Parameter parameter) {
  Parameter& known = parameters[target_name];
  if (known.dtype != parameter.dtype || known.full_shape != parameter.full_shape) noted_list = 0;
  known = std::move(parameter);
  known.copied = true;
}

void PlanFindings::AddFindings(const PlanFindings& other) {
  using Set = std::set<std::string> PlanFindings::*;
  for (const Set set :
       {&PlanFindings::left_out, &PlanFindings::unmatched_copied, &PlanFindings::unmatched_dropped,
        &PlanFindings::not_in_source_strategy, &PlanFindings::not_in_target_strategy,
        &PlanFindings::other_shapes, &PlanFindings::empty_files, &PlanFindings::texts_left_out,
        &PlanFindings::not_in_first_rank, &PlanFindings::named_as_metadata,
        &PlanFindings::not_loadable, &PlanFindings::read_as_scalar,
        &PlanFindings::metadata_left_out}) {
    for (const std::string& item : other.*set) {
      if (earlier == nullptr || !(earlier->*set).contains(item)) (this->*set).insert(item);
    }
  }
  if (other.absent.empty()) return;
  const std::vector<std::string_view>& known = earlier == nullptr ? absent : earlier->absent;
  std::vector<std::string_view> names;
  if (known.empty()) {
    names = other.absent;
  } else {
    std::set_difference(other.absent.begin(), other.absent.end(), known.begin(), known.end(),
                        std::back_inserter(names));
  }
  if (!names.empty()) AddAbsent(std::move(names));
}

void PlanFindings::NoteForMindSpore(const Container& container, std::string_view name,
                                    ArrayKind kind, DType dtype, const Shape& shape) {
  if (container.has_metadata && name == kFormatKey) named_as_metadata.insert(Quote(name));
  if (kind != ArrayKind::kTensor) return;
  switch (container.loads(dtype, shape)) {
    case MindSporeLoads::kNot:
      not_loadable.insert(Quote(name));
      break;
    case MindSporeLoads::kAsScalar:
      read_as_scalar.insert(Quote(name));
      break;
    case MindSporeLoads::kAsWritten:
      break;
  }
}

void PlanFindings::Add(const SourceTensor& tensor) {
  parameters[tensor.name] = {tensor.name,
                             tensor.kind,
                             tensor.dtype,
                             tensor.full_shape,
                             tensor.Bytes(),
                             tensor.file,
                             tensor.rank.has_value(),
                             tensor.dtype};
}

void PlanFindings::AddAbsent(std::vector<std::string_view> names) {
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  if (absent.empty()) {
    absent = std::move(names);
    return;
  }
  if (std::includes(absent.begin(), absent.end(), names.begin(), names.end())) return;
  std::vector<std::string_view> all;
  all.reserve(absent.size() + names.size());
  std::set_union(absent.begin(), absent.end(), names.begin(), names.end(), std::back_inserter(all));
  absent = std::move(all);
}

std::vector<Warning> PlanFindings::Warnings() const {
  std::vector<Warning> warnings;
  const auto add = [&](WarningCode code, const std::set<std::string>& items,
                       std::string_view what) {
    if (!items.empty()) {
      warnings.push_back(
          {code, fmt::format("{} parameter{} {}: {}", items.size(), items.size() == 1 ? "" : "s",
                             what, FirstOf({items.begin(), items.end()}))});
    }
  };
  add(WarningCode::kUnmatchedParameters, unmatched_copied,
      "in only one of the two strategies, copied as they stand from one source rank "
      "(`unmatched=drop` leaves them out)");
  add(WarningCode::kUnmatchedParameters, unmatched_dropped,
      "in only one of the two strategies, left out");
  add(WarningCode::kLeftOut, texts_left_out,
      "that are texts, which safetensors files cannot hold, left out");
  add(WarningCode::kWithoutLayout, not_in_first_rank,
      "in no strategy and not in the file of rank 0, which MindSpore leaves out; each is taken "
      "from the lowest rank that has it");
  add(WarningCode::kLeftOut, named_as_metadata,
      "named like a key of the file's metadata, which MindSpore would take for a dtype; files with "
      "such a parameter leave this metadata out");
  add(WarningCode::kNotLoadable, not_loadable,
      "of dtypes with which MindSpore 2.10 loads no .ckpt file (`format=safetensors` avoids it)");
  add(WarningCode::kNotLoadable, read_as_scalar,
      "of shape [0], which MindSpore loads from .ckpt files as a scalar (`format=safetensors` "
      "avoids it)");
  add(WarningCode::kWithoutLayout, not_in_source_strategy,
      "without a layout in the source strategy, taken from one source rank as if it had the full "
      "tensor (if ranks hold shards, the strategy is incomplete)");
  add(WarningCode::kWithoutLayout, not_in_target_strategy,
      "without a layout in the target strategy, written in full for each rank");
  if (!absent.empty()) {
    FirstFew names;
    for (const std::string_view name : absent) {
      if (names.full()) break;
      names.Add(Quote(name));
    }
    names.AddUnnamed(absent.size() - names.count());
    warnings.push_back(
        {WarningCode::kAbsentParameters,
         fmt::format("{} parameter{} of the strategies that no source file holds, left out: {}",
                     absent.size(), absent.size() == 1 ? "" : "s", names.Joined())});
  }
  add(WarningCode::kOtherShapes, other_shapes,
      "with full shapes that differ from the tensor_shape of a strategy");
  if (!empty_files.empty()) {
    warnings.push_back(
        {WarningCode::kEmptyTargets,
         fmt::format(
             "{} empty target file{}, without a parameter, which MindSpore does not load: {}",
             empty_files.size(), empty_files.size() == 1 ? "" : "s",
             FirstOf({empty_files.begin(), empty_files.end()}))});
  }
  return warnings;
}

std::vector<std::string> PlanFindings::Notes() const {
  std::vector<std::string> notes;
  if (!metadata_left_out.empty()) {
    notes.push_back(
        fmt::format("metadata of the source files is left out, which .ckpt files cannot hold, the "
                    "files do not agree on, or only describes its own file: {}",
                    FirstOf({metadata_left_out.begin(), metadata_left_out.end()})));
  }
  return notes;
}

}  // namespace reshard
