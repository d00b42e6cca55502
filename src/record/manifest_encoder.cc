#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/record/byte_text.h"
#include "src/record/manifest_check.h"
#include "src/record/manifest_codec.h"
#include "src/record/manifest_seal.h"
#include "src/record/record_fields.h"

namespace reshard {
namespace {

Status Refuse(const std::string& fault) {
  return InvalidArgumentError(fmt::format("no manifest may hold this: {}", fault));
}

Result<std::string> CheckedDigest(const std::string& digest) {
  if (const auto fault = OptionalDigestFault(digest)) return Refuse(*fault);
  return DigestOrNull(digest);
}

// Appends an array of the members that `encode(entry)` gives each object, brackets included.
template <typename Entry, typename Encode>
Status AppendObjects(const std::vector<Entry>& entries, Encode encode, std::string& out) {
  out += "[";
  for (const Entry& entry : entries) {
    RESHARD_ASSIGN_OR_RETURN(const std::string members, encode(entry));
    fmt::format_to(std::back_inserter(out), "{}\n    {{\n{}\n    }}",
                   &entry == entries.data() ? "" : ",", members);
  }
  out += entries.empty() ? "]" : "\n  ]";
  return {};
}

// The members that a file and a source have in common.
template <typename Entry>
Result<std::string> Common(const Entry& entry) {
  RESHARD_ASSIGN_OR_RETURN(const std::string digest, CheckedDigest(entry.digest));
  return fmt::format("      \"path\": {},\n      \"size\": {},\n      \"digest\": {}",
                     BytesAsJson(entry.path), entry.size, digest);
}

Result<std::string> EncodeFile(const ManifestFile& file) {
  RESHARD_ASSIGN_OR_RETURN(const std::string common, Common(file));
  if (const auto fault = DigestFault(file.record_digest)) return Refuse(*fault);
  return fmt::format(
      "{},\n      \"record\": {{\n        \"path\": {},\n        \"size\": {},\n        "
      "\"digest\": \"{}\"\n      }}",
      common, BytesAsJson(RecordPath(file.path)), file.record_size, file.record_digest);
}

// Sorts by path, and refuses the first entry that `fault(entry, path before it)` speaks against.
template <typename Entry, typename EntryFault>
Status SortAndCheck(std::vector<Entry>& entries, EntryFault fault) {
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.path < b.path; });
  std::string_view previous;
  for (const Entry& entry : entries) {
    if (const auto found = fault(entry, previous)) return Refuse(*found);
    previous = entry.path;
  }
  return {};
}

// About as many bytes as the text has, a few more. To append to a text that is too short copies it.
size_t TextBytes(const Manifest& manifest) {
  constexpr size_t kOfFile = 280;
  constexpr size_t kOfSource = 120;
  size_t bytes = 1024;
  for (const ManifestFile& file : manifest.files) bytes += kOfFile + 2 * file.path.size();
  for (const ManifestSource& source : manifest.sources) bytes += kOfSource + source.path.size();
  return bytes;
}

}  // namespace

Status CheckFingerprint(std::string_view fingerprint) {
  if (const auto fault = FingerprintFault(fingerprint)) {
    return InvalidArgumentError(fmt::format("the plan's fingerprint: {}", *fault));
  }
  return {};
}

Result<std::string> EncodeManifest(Manifest manifest) {
  RESHARD_RETURN_IF_ERROR(CheckFingerprint(manifest.plan));
  RESHARD_RETURN_IF_ERROR(SortAndCheck(manifest.sources, SourceFault));
  RESHARD_RETURN_IF_ERROR(SortAndCheck(manifest.files, FileFault));
  RESHARD_ASSIGN_OR_RETURN(const std::string source, CheckedDigest(manifest.source_strategy));
  RESHARD_ASSIGN_OR_RETURN(const std::string target, CheckedDigest(manifest.target_strategy));
  std::string bytes;
  bytes.reserve(TextBytes(manifest));
  fmt::format_to(std::back_inserter(bytes),
                 R"({{
  "schema_version": {},
  "tool": {{
    "name": "{}",
    "version": {}
  }},
  "plan": "{}",
  "strategies": {{
    "source": {},
    "target": {}
  }},
  "sources": )",
                 kManifestSchema, kManifestTool, BytesAsJson(manifest.tool_version), manifest.plan,
                 source, target);
  RESHARD_RETURN_IF_ERROR(AppendObjects(manifest.sources, Common<ManifestSource>, bytes));
  bytes += ",\n  \"files\": ";
  RESHARD_RETURN_IF_ERROR(AppendObjects(manifest.files, EncodeFile, bytes));
  bytes += ManifestSeal(bytes);
  if (bytes.size() > kMaxManifestBytes) {
    return Refuse(fmt::format("{} bytes; it has at most {}", bytes.size(), kMaxManifestBytes));
  }
  return bytes;
}

std::string EncodeChecksums(const Manifest& manifest) {
  std::vector<const ManifestFile*> files;
  for (const ManifestFile& file : manifest.files) {
    if (!file.digest.empty()) files.push_back(&file);
  }
  std::sort(files.begin(), files.end(),
            [](const ManifestFile* a, const ManifestFile* b) { return a->path < b->path; });
  std::string lines;
  for (const ManifestFile* file : files) {
    fmt::format_to(std::back_inserter(lines), "{}  {}\n", file->digest, file->path);
  }
  return lines;
}

}  // namespace reshard
