// Manifests: as they are, and with the seal that the bytes would need, which no fuzzer guesses.

#include <algorithm>
#include <filesystem>
#include <string>

#include "src/record/manifest_codec.h"
#include "tests/fuzz/fuzz_target.h"

namespace reshard {
namespace {

// Whether a path leads out of the folder that it is relative to.
bool Leaves(const std::string& text) {
  const std::filesystem::path path(text);
  return text.empty() || path.is_absolute() ||
         std::find(path.begin(), path.end(), "..") != path.end() ||
         text.find('\0') != std::string::npos;
}

std::string ManifestFault(std::string_view bytes, std::string_view name) {
  const auto manifest = ParseManifest(bytes, std::string(name));
  if (!manifest.ok()) return RefusalFault(manifest.status());
  for (const ManifestFile& file : manifest->files) {
    if (Leaves(file.path) || Leaves(RecordPath(file.path))) return "a file outside of the folder";
    if (!CheckTargetPath(file.path).ok()) return "a path that no target file may have";
  }
  for (const ManifestSource& source : manifest->sources) {
    if (Leaves(source.path)) return "a source outside of the folder";
  }
  const auto again = EncodeManifest(*manifest);
  if (!again.ok()) return "read, but not to be written: " + again.status().message();
  const auto same = ParseManifest(*again, "again");
  if (!same.ok()) return "written, but not to be read: " + same.status().message();
  return *same == *manifest ? "" : "written and read, it says something else";
}

}  // namespace

std::string FuzzManifest(std::string_view bytes) {
  const std::string fault = ManifestFault(bytes, "manifest.json");
  if (!fault.empty()) return fault;
  return ManifestFault(std::string(bytes) + ManifestSeal(bytes), "sealed.json");
}

}  // namespace reshard
