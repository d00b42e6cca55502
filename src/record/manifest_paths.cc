#include "src/record/manifest_paths.h"

#include <fmt/format.h>

#include "src/base/quote.h"
#include "src/record/manifest_check.h"

namespace reshard {
namespace {

// Whether `name` is BASE + END, or BASE + "_part" + digits + END.
bool IsOfStage(std::string_view name, std::string_view base, std::string_view end) {
  constexpr std::string_view kPart = "_part";
  if (name.size() < base.size() + end.size() || !name.starts_with(base) || !name.ends_with(end)) {
    return false;
  }
  std::string_view stage = name.substr(base.size(), name.size() - base.size() - end.size());
  if (stage.empty()) return true;
  if (!stage.starts_with(kPart)) return false;
  stage.remove_prefix(kPart.size());
  return !stage.empty() && stage.find_first_not_of("0123456789") == std::string_view::npos;
}

constexpr std::string_view kManifest = "manifest";
constexpr std::string_view kManifestEnd = ".json";
constexpr std::string_view kChecksums = "checksums";
constexpr std::string_view kChecksumsEnd = ".xxh128";

}  // namespace

bool IsManifestName(std::string_view name) { return IsOfStage(name, kManifest, kManifestEnd); }

std::string ChecksumsName(std::string_view manifest_name) {
  const std::string_view stage = manifest_name.substr(
      kManifest.size(), manifest_name.size() - kManifest.size() - kManifestEnd.size());
  return fmt::format("{}{}{}", kChecksums, stage, kChecksumsEnd);
}

std::string RecordPath(std::string_view path) {
  return fmt::format("{}/{}.jsonl", kRecordFolder, path);
}

std::optional<std::string> ReservedFor(std::string_view path) {
  const std::string_view first = path.substr(0, path.find('/'));
  if (first == ".reshard") return "it lies in the staging folder .reshard";
  if (first == kRecordFolder) {
    return fmt::format("it lies in {}, the folder of the part records", kRecordFolder);
  }
  if (IsManifestName(first)) return fmt::format("{} is that of a manifest", Quote(first));
  if (IsOfStage(first, kChecksums, kChecksumsEnd)) {
    return fmt::format("{} is that of a list of checksums", Quote(first));
  }
  return std::nullopt;
}

std::optional<std::string> TargetPathFault(std::string_view path) {
  if (auto fault = RelativePathFault(path)) return fault;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) return "it has control characters";
  }
  return ReservedFor(path);
}

Status CheckTargetPath(std::string_view path) {
  if (const auto fault = TargetPathFault(path)) {
    return InvalidArgumentError(fmt::format("the target path {}: {}", Quote(path), *fault));
  }
  return {};
}

}  // namespace reshard
