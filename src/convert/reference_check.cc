#include "src/convert/reference_check.h"

#include <fmt/format.h>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/io/source_files.h"
#include "src/source/indexed_file.h"
#include "src/source/read_file_table.h"

namespace reshard {
namespace {

// "Float32 [2, 3]", "a text" or "a MapTensor": all that has to be equal.
std::string TypeText(ArrayKind kind, DType dtype, const Shape& full_shape) {
  switch (kind) {
    case ArrayKind::kText:
      return "a text";
    case ArrayKind::kMapTensor:
      return "a MapTensor";
    case ArrayKind::kTensor:
      break;
  }
  return fmt::format("{} {}", DTypeName(dtype), ToString(full_shape));
}

}  // namespace

Status CheckReference(const std::string& file, const PlanNotes& notes,
                      std::vector<std::string>& warnings) {
  SourceFiles files(1);
  RESHARD_ASSIGN_OR_RETURN(const IndexedFile reference, ReadFileTable(files, files.Add(file)));
  std::vector<std::string> unknown;
  FirstFew differing;
  for (const auto& [target_name, parameter] : notes.parameters) {
    const std::string& name = parameter.source_name;
    const StoredArray* known = reference.Find(name);
    if (known == nullptr) {
      unknown.push_back(Quote(name));
      continue;
    }
    const std::string expected = TypeText(known->kind, known->dtype, known->shape);
    const std::string found = TypeText(parameter.kind, parameter.dtype, parameter.full_shape);
    if (expected == found) continue;
    differing.Add(fmt::format("{}: expected {}, found {}", Quote(name), expected, found));
  }
  if (differing.count() > 0) {
    return MismatchError(fmt::format(
        "{} of {} parameters are in full not what they are in the reference {}: the strategies do "
        "not belong to this source, or the reference is of another model:{}",
        differing.count(), notes.parameters.size(), Escape(file),
        differing.Lines(fmt::format("and {} more", differing.more()))));
  }
  if (!unknown.empty()) {
    warnings.push_back(
        fmt::format("{} of {} parameters are not in the reference {}, which cannot tell their full "
                    "shapes: {}",
                    unknown.size(), notes.parameters.size(), Escape(file), FirstOf(unknown)));
  }
  return {};
}

}  // namespace reshard
