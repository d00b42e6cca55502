#include "src/record/manifest_codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "src/base/number_text.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/digest/xxh3.h"
#include "src/record/origin.h"
#include "src/record/record_fields.h"
#include "src/record/strict_json.h"

namespace reshard {
namespace {

constexpr std::string_view kManifest = "manifest";
constexpr std::string_view kManifestEnd = ".json";
constexpr std::string_view kChecksums = "checksums";
constexpr std::string_view kChecksumsEnd = ".xxh128";
constexpr std::string_view kRecordEnding = ".jsonl";

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
  return HasOnlyDigits(stage);
}

Status Refuse(const std::string& fault) {
  return InvalidArgumentError(fmt::format("a manifest cannot hold this: {}", fault));
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
  if (const auto fault = OptionalDigestFault(file.key_check)) return Refuse(*fault);
  std::string encryption;
  if (file.encryption) {
    encryption =
        fmt::format(",\n      \"encryption\": \"{}\"", EncryptionModeName(*file.encryption));
  }
  if (!file.key_check.empty()) {
    encryption += fmt::format(",\n      \"key_check\": \"{}\"", file.key_check);
  }
  return fmt::format(
      "{}{},\n      \"record\": {{\n        \"path\": {},\n        \"size\": {},\n        "
      "\"digest\": \"{}\"\n      }}",
      common, encryption, BytesAsJson(RecordPath(file.path)), file.record_size, file.record_digest);
}

Result<std::string> EncodeStamp(const SourceStamp& stamp) {
  return fmt::format(
      "      \"path\": {},\n      \"size\": {},\n      \"mtime_ns\": {},\n      \"inode\": {}",
      BytesAsJson(stamp.path), stamp.size, static_cast<uint64_t>(stamp.mtime_ns), stamp.inode);
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
  constexpr size_t kOfStamp = 150;
  size_t bytes = 1024;
  for (const ManifestFile& file : manifest.files) bytes += kOfFile + 2 * file.path.size();
  for (const ManifestSource& source : manifest.sources) bytes += kOfSource + source.path.size();
  for (const SourceStamp& stamp : manifest.stamps) bytes += kOfStamp + stamp.path.size();
  return bytes;
}

enum Field : int {
  kDocument,
  kSchemaVersion,
  kToolName,
  kToolVersion,
  kPlan,
  kSourceStrategy,
  kTargetStrategy,
  kSourcePath,
  kSourceSize,
  kSourceDigest,
  kSource,
  kStampPath,
  kStampSize,
  kStampTime,
  kStampInode,
  kStamp,
  kFilePath,
  kFileSize,
  kFileDigest,
  kFileEncryption,
  kFileKeyCheck,
  kRecordPath,
  kRecordSize,
  kRecordDigest,
  kFile,
  kSeal,
  kOther,
};

using enum JsonKind;

constexpr JsonShape kToolMembers[] = {{"name", kString, kToolName},
                                      {"version", kBytes, kToolVersion}};
constexpr JsonShape kStrategyMembers[] = {{"source", kStringOrNull, kSourceStrategy},
                                          {"target", kStringOrNull, kTargetStrategy}};
constexpr JsonShape kManifestSourceMembers[] = {{"path", kBytes, kSourcePath},
                                                {"size", kUnsigned, kSourceSize},
                                                {"digest", kStringOrNull, kSourceDigest}};
constexpr JsonShape kStampMembers[] = {{"path", kBytes, kStampPath},
                                       {"size", kUnsigned, kStampSize},
                                       {"mtime_ns", kUnsigned, kStampTime},
                                       {"inode", kUnsigned, kStampInode}};
constexpr JsonShape kRecordMembers[] = {{"path", kBytes, kRecordPath},
                                        {"size", kUnsigned, kRecordSize},
                                        {"digest", kString, kRecordDigest}};
constexpr JsonShape kFileMembers[] = {{"path", kBytes, kFilePath},
                                      {"size", kUnsigned, kFileSize},
                                      {"digest", kStringOrNull, kFileDigest},
                                      {"encryption", kString, kFileEncryption, {}, true},
                                      {"key_check", kString, kFileKeyCheck, {}, true},
                                      {"record", kObject, kOther, kRecordMembers}};
constexpr JsonShape kManifestSourceElement[] = {
    {nullptr, kObject, kSource, kManifestSourceMembers}};
constexpr JsonShape kStampElement[] = {{nullptr, kObject, kStamp, kStampMembers}};
constexpr JsonShape kFileElement[] = {{nullptr, kObject, kFile, kFileMembers}};
constexpr JsonShape kMembers[] = {
    {"schema_version", kUnsigned, kSchemaVersion},
    {"tool", kObject, kOther, kToolMembers},
    {"plan", kString, kPlan},
    {"strategies", kObject, kOther, kStrategyMembers},
    {"sources", kArray, kOther, kManifestSourceElement},
    {"stamps", kArray, kOther, kStampElement},
    {"files", kArray, kOther, kFileElement},
    {"digest", kString, kSeal},
};
constexpr JsonShape kManifestShape = {nullptr, kObject, kDocument, kMembers};

// Schema 2: without stamps.
constexpr uint64_t kOldSchema = 2;
constexpr std::string_view kOldBegin = "{\n  \"schema_version\": 2,\n";
constexpr JsonShape kOldMembers[] = {
    {"schema_version", kUnsigned, kSchemaVersion},
    {"tool", kObject, kOther, kToolMembers},
    {"plan", kString, kPlan},
    {"strategies", kObject, kOther, kStrategyMembers},
    {"sources", kArray, kOther, kManifestSourceElement},
    {"files", kArray, kOther, kFileElement},
    {"digest", kString, kSeal},
};
constexpr JsonShape kOldShape = {nullptr, kObject, kDocument, kOldMembers};

class ManifestReader {
 public:
  explicit ManifestReader(uint64_t schema) : schema_(schema) {}

  Status Take(int field, const JsonValue& value) {
    switch (static_cast<Field>(field)) {
      case kSchemaVersion:
        return CheckSchemaVersion(value, schema_);
      case kToolName:
        if (*value.text == kManifestTool) return {};
        return CorruptError(
            fmt::format("written by {}, not by {}", Quote(*value.text), kManifestTool));
      case kToolVersion:
        manifest_.tool_version = std::move(*value.text);
        return {};
      case kPlan:
        manifest_.plan = std::move(*value.text);
        return CorruptIf(FingerprintFault(manifest_.plan));
      case kSourceStrategy:
        return SetDigest(value, manifest_.source_strategy);
      case kTargetStrategy:
        return SetDigest(value, manifest_.target_strategy);
      case kSourcePath:
        source_.path = std::move(*value.text);
        return CorruptIf(SourceFault(source_, LastPath(manifest_.sources)));
      case kSourceSize:
        source_.size = value.number;
        return {};
      case kSourceDigest:
        return SetDigest(value, source_.digest);
      case kSource:
        manifest_.sources.push_back(std::exchange(source_, {}));
        return {};
      case kStampPath:
        stamp_.path = std::move(*value.text);
        return CorruptIf(StampFault(stamp_, LastPath(manifest_.stamps)));
      case kStampSize:
        stamp_.size = value.number;
        return {};
      case kStampTime:
        stamp_.mtime_ns = static_cast<int64_t>(value.number);
        return {};
      case kStampInode:
        stamp_.inode = value.number;
        return {};
      case kStamp:
        manifest_.stamps.push_back(std::exchange(stamp_, {}));
        return {};
      case kFilePath:
        file_.path = std::move(*value.text);
        return CorruptIf(FileFault(file_, LastPath(manifest_.files)));
      case kFileSize:
        file_.size = value.number;
        return {};
      case kFileDigest:
        return SetDigest(value, file_.digest);
      case kFileEncryption:
        file_.encryption = ParseEncryptionMode(*value.text);
        if (file_.encryption) return {};
        return CorruptError(fmt::format("{} is not an encryption mode", Quote(*value.text)));
      case kFileKeyCheck:
        return SetDigest(value, file_.key_check);
      case kRecordPath:
        if (*value.text == RecordPath(file_.path)) return {};
        return CorruptError(fmt::format("expected {}, found {}", Quote(RecordPath(file_.path)),
                                        Quote(*value.text)));
      case kRecordSize:
        file_.record_size = value.number;
        return {};
      case kRecordDigest:
        return SetDigest(value, file_.record_digest);
      case kFile:
        manifest_.files.push_back(std::exchange(file_, {}));
        return {};
      case kDocument:
      case kSeal:  // compared before
      case kOther:
        return {};
    }
    return {};
  }

  Manifest TakeManifest() { return std::move(manifest_); }

 private:
  uint64_t schema_;
  Manifest manifest_;
  ManifestSource source_;  // those being read
  SourceStamp stamp_;
  ManifestFile file_;
};

constexpr std::string_view kSealBegin = ",\n  \"digest\": \"";
constexpr std::string_view kSealEnd = "\"\n}\n";

// The bytes before the seal; all bytes if there is none.
std::string_view SealedBytes(std::string_view bytes) {
  const size_t seal = kSealBegin.size() + kDigestDigits + kSealEnd.size();
  if (bytes.size() < seal || !bytes.ends_with(kSealEnd) ||
      !bytes.substr(bytes.size() - seal).starts_with(kSealBegin)) {
    return bytes;
  }
  return bytes.substr(0, bytes.size() - seal);
}

}  // namespace

bool IsManifestName(std::string_view name) { return IsOfStage(name, kManifest, kManifestEnd); }

std::string ChecksumsName(std::string_view manifest_name) {
  const std::string_view stage = manifest_name.substr(
      kManifest.size(), manifest_name.size() - kManifest.size() - kManifestEnd.size());
  return fmt::format("{}{}{}", kChecksums, stage, kChecksumsEnd);
}

std::string RecordPath(std::string_view path) {
  return fmt::format("{}/{}{}", kRecordFolder, path, kRecordEnding);
}

std::optional<std::string_view> RecordedPath(std::string_view record_path) {
  if (!record_path.starts_with(kRecordFolder) || !record_path.ends_with(kRecordEnding)) return {};
  record_path.remove_prefix(kRecordFolder.size());
  record_path.remove_suffix(kRecordEnding.size());
  if (!record_path.starts_with('/')) return {};
  return record_path.substr(1);
}

std::optional<std::string> ReservedFor(std::string_view path) {
  const std::string_view first = path.substr(0, path.find('/'));
  if (first == ".reshard") return "it lies in the staging folder .reshard";
  if (first == kRecordFolder) {
    return fmt::format("it lies in {}, the folder of the part records", kRecordFolder);
  }
  if (IsManifestName(first)) return fmt::format("{} is a manifest's name", Quote(first));
  if (first == kOriginName) return fmt::format("{} tells the origin of a set", Quote(first));
  if (IsOfStage(first, kChecksums, kChecksumsEnd)) {
    return fmt::format("{} is the name of a list of checksums", Quote(first));
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

Status CheckFingerprint(std::string_view fingerprint) {
  if (const auto fault = FingerprintFault(fingerprint)) {
    return InvalidArgumentError(fmt::format("the plan's fingerprint: {}", *fault));
  }
  return {};
}

std::string ManifestSeal(std::string_view bytes) {
  Xxh3 digest;
  digest.Update(bytes);
  return std::string(kSealBegin) + digest.HexDigest() + std::string(kSealEnd);
}

Result<std::string> EncodeManifest(Manifest manifest) {
  RESHARD_RETURN_IF_ERROR(CheckFingerprint(manifest.plan));
  RESHARD_RETURN_IF_ERROR(SortAndCheck(manifest.sources, SourceFault));
  RESHARD_RETURN_IF_ERROR(SortAndCheck(manifest.stamps, StampFault));
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
  bytes += ",\n  \"stamps\": ";
  RESHARD_RETURN_IF_ERROR(AppendObjects(manifest.stamps, EncodeStamp, bytes));
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
    if (!file.digest.empty() && !file.encryption) files.push_back(&file);
  }
  std::sort(files.begin(), files.end(),
            [](const ManifestFile* a, const ManifestFile* b) { return a->path < b->path; });
  std::string lines;
  for (const ManifestFile* file : files) {
    fmt::format_to(std::back_inserter(lines), "{}  {}\n", file->digest, file->path);
  }
  return lines;
}

Result<Manifest> ParseManifest(std::string_view bytes, const std::string& path) {
  if (bytes.size() > kMaxManifestBytes) {
    return CorruptError(fmt::format("{}: {} bytes, but a manifest has at most {}", Escape(path),
                                    bytes.size(), kMaxManifestBytes));
  }
  // This check comes first: it tells damage from another version.
  const std::string_view sealed = SealedBytes(bytes);
  const bool has_seal = sealed.size() < bytes.size();
  if (has_seal) {
    const std::string expected = ManifestSeal(sealed);
    if (bytes.substr(sealed.size()) != expected) {
      return CorruptError(fmt::format(
          "{}: damaged: byte {}: \"digest\": expected {} for the bytes before it, found {}; {}",
          Escape(path), sealed.size() + kSealBegin.size(),
          expected.substr(kSealBegin.size(), kDigestDigits),
          Quote(bytes.substr(sealed.size() + kSealBegin.size(), kDigestDigits)), kManifestAdvice));
    }
  }
  const bool is_old = bytes.starts_with(kOldBegin);
  ManifestReader reader(is_old ? kOldSchema : kManifestSchema);
  RESHARD_RETURN_IF_ERROR(
      ReadWithAdvice(bytes, path, is_old ? kOldShape : kManifestShape,
                     [&](int field, const JsonValue& value) { return reader.Take(field, value); }));
  if (!has_seal) {
    return CorruptError(fmt::format(
        "{}: byte {}: the member \"digest\" is not formatted as at the end of a manifest; {}",
        Escape(path), bytes.size(), kManifestAdvice));
  }
  return reader.TakeManifest();
}

}  // namespace reshard
