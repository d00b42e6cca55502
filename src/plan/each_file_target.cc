#include "src/plan/each_file_target.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "format/container/common_metadata.h"
#include "format/container/container.h"
#include "format/container/file_table.h"
#include "src/base/memory_check.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/source/indexed_file.h"
#include "src/source/table_cache.h"

namespace reshard {
namespace {

// Bytes that are held for an array's name while a file is planned.
constexpr uint64_t kOfArrayName = 64;

// Fails if two arrays would have one name in the target, which only renames can cause.
Status CheckNames(const ParameterChoice& choice, const std::vector<std::string>& names,
                  const std::string& path) {
  if (choice.renames().empty()) return {};
  std::map<std::string, std::string_view> taken;  // by the name in the target
  for (const std::string& name : names) {
    std::string made;
    RESHARD_ASSIGN_OR_RETURN(const std::string* target_name, choice.TargetName(name, made));
    const auto [other, is_new] = taken.emplace(*target_name, name);
    if (is_new) continue;
    return MismatchError(fmt::format(
        "{}: the parameters {} and {} would both be written as {}; rename one differently",
        Escape(path), Quote(other->second), Quote(name), Quote(other->first)));
  }
  return {};
}

}  // namespace

Result<TargetFile> EachFileTarget::MakeFile(int64_t file, PlanFindings& findings) const {
  RESHARD_ASSIGN_OR_RETURN(const TableHandle table, source().TableOf(0, file));
  const std::string& path = source().PathOf(table->file());
  const bool is_same = &table->table().container() == &container_;
  if (is_same && !takes_same_) {
    return MismatchError(
        fmt::format("{}: is already a {} file; name the other format, or leave it out",
                    Escape(path), container_.extension));
  }
  std::vector<std::string> names;
  std::set<std::string> texts;
  for (const StoredArray& array : table->arrays()) {
    if (names.size() % kMemoryCheckInterval == 0) {
      RESHARD_RETURN_IF_ERROR(CheckMemory(source().memory(), names.size() * kOfArrayName));
    }
    if (array.kind == ArrayKind::kText && !container_.can_hold(array.kind, array.dtype)) {
      texts.insert(Quote(array.name));
    } else {
      names.emplace_back(array.name);
    }
  }
  if (refuse_texts_ && !texts.empty()) {
    return MismatchError(fmt::format(
        "{}: {} text{}, which {} files cannot hold: {}; `unmatched=copy` leaves texts out",
        Escape(path), texts.size(), texts.size() == 1 ? "" : "s", container_.extension,
        FirstOf({texts.begin(), texts.end()})));
  }
  RESHARD_RETURN_IF_ERROR(CheckNames(choice(), names, path));
  if (!is_same) std::sort(names.begin(), names.end());
  TargetFile made;
  made.container = &container_;
  made.arrays = names.size();
  made.near = file;
  for (const std::string& name : names) made.making_bytes += kOfArrayName + name.size();
  if (!findings.silent) {
    findings.texts_left_out.merge(texts);
    // All metadata is left out: .ckpt files have none, and a safetensors target has .ckpt sources.
    CommonMetadata metadata;
    metadata.Add(table->table().metadata());
    for (const std::string& key : metadata.Keys()) findings.metadata_left_out.insert(Quote(key));
    if (names.empty()) findings.empty_files.insert(PathOf(file));
  }
  made.make = [this, file, names = std::move(names), &findings](size_t number, TargetArray& array) {
    return MakeArray(file, names[number], findings, array);
  };
  return made;
}

Status EachFileTarget::MakeArray(int64_t file, const std::string& name, PlanFindings& findings,
                                 TargetArray& array) const {
  constexpr std::array<int64_t, 1> kStages = {0};
  RESHARD_ASSIGN_OR_RETURN(SourceTensor tensor, source().FindWhole(name, kStages, file));
  std::string made;
  RESHARD_ASSIGN_OR_RETURN(const std::string* target_name, choice().TargetName(name, made));
  array.name = *target_name;
  array.dtype = tensor.dtype;
  if (!findings.silent) {
    PlanFindings::Parameter& noted = findings.parameters[array.name];
    noted = {tensor.name,    tensor.kind, tensor.dtype, tensor.full_shape,
             tensor.Bytes(), tensor.file, true,         tensor.dtype};
    findings.NoteForMindSpore(container_, array.name, tensor.kind, array.dtype, tensor.full_shape);
  }
  return TakeWhole(std::move(tensor), array);
}

}  // namespace reshard
