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

template <typename Entry>
void SortByPath(std::vector<Entry>& entries) {
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.path < b.path; });
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

struct ToolName {
  static constexpr JsonKind kKind = JsonKind::kString;
  static Status Take(JsonValue& value, Manifest& /*manifest*/) {
    if (*value.text == kManifestTool) return {};
    return CorruptError(fmt::format("written by {}, not by {}", Quote(*value.text), kManifestTool));
  }
  static void Put(const Manifest& /*manifest*/, JsonText& text) { text.Word(kManifestTool); }
};

struct AsEncryption {
  using Mode = std::optional<TargetSpec::EncryptionMode>;

  static constexpr JsonKind kKind = JsonKind::kString;
  static Status Take(JsonValue& value, Mode& mode) {
    mode = ParseEncryptionMode(*value.text);
    if (mode) return {};
    return CorruptError(fmt::format("{} is not an encryption mode", Quote(*value.text)));
  }
  static void Put(const Mode& mode, JsonText& text) { text.Word(EncryptionModeName(*mode)); }
};

struct PathOfRecord {
  static constexpr JsonKind kKind = JsonKind::kBytes;
  static Status Take(JsonValue& value, ManifestFile& file) {
    const std::string expected = RecordPath(file.path);
    if (*value.text == expected) return {};
    return CorruptError(fmt::format("expected {}, found {}", Quote(expected), Quote(*value.text)));
  }
  static void Put(const ManifestFile& file, JsonText& text) { text.Bytes(RecordPath(file.path)); }
};

// The digest of the text before it.
struct Seal {
  static constexpr JsonKind kKind = JsonKind::kString;
  // ParseManifest has compared it.
  static Status Take(JsonValue& /*value*/, Manifest& /*manifest*/) { return {}; }
  static void Put(const Manifest& /*manifest*/, JsonText& text) {
    constexpr size_t kName = kSealBegin.size() - 1;  // without a quote
    Xxh3 digest;
    digest.Update(text.text().substr(0, text.text().size() - kName));
    text.Word(digest.HexDigest());
  }
};

constexpr JsonTable kToolTable{
    JsonFact<Manifest, ToolName>("name"),
    JsonField<&Manifest::tool_version, AsBytes>("version"),
};
constexpr JsonTable kStrategyTable{
    JsonField<&Manifest::source_strategy, AsDigestOrNull>("source"),
    JsonField<&Manifest::target_strategy, AsDigestOrNull>("target"),
};
constexpr JsonTable kStampTable{
    JsonField<&SourceStamp::path, AsBytes>("path").CheckedBy<StampFault>(),
    JsonField<&SourceStamp::size, AsUnsigned>("size"),
    JsonField<&SourceStamp::mtime_ns, AsUnsigned>("mtime_ns"),
    JsonField<&SourceStamp::inode, AsUnsigned>("inode"),
};
constexpr JsonTable kRecordTable{
    JsonFact<ManifestFile, PathOfRecord>("path"),
    JsonField<&ManifestFile::record_size, AsUnsigned>("size"),
    JsonField<&ManifestFile::record_digest, AsDigest>("digest"),
};
constexpr JsonTable kFileTable{
    JsonField<&ManifestFile::path, AsBytes>("path").CheckedBy<FileFault>(),
    JsonField<&ManifestFile::size, AsUnsigned>("size"),
    JsonField<&ManifestFile::digest, AsDigestOrNull>("digest"),
    JsonField<&ManifestFile::encryption, AsEncryption>("encryption").OrNone(),
    JsonField<&ManifestFile::key_check, AsDigest>("key_check").OrNone(),
    JsonFact<ManifestFile, AsObject<kRecordTable>>("record"),
};

template <uint64_t kSchema, typename... Stamps>
constexpr auto ManifestTable(Stamps... stamps) {
  return JsonTable{
      JsonFact<Manifest, SchemaVersion<kSchema>>("schema_version"),
      JsonFact<Manifest, AsObject<kToolTable>>("tool"),
      JsonField<&Manifest::plan, AsFingerprint>("plan"),
      JsonFact<Manifest, AsObject<kStrategyTable>>("strategies"),
      JsonField<&Manifest::sources, AsList<AsObject<kSourceTable>>>("sources"),
      stamps...,
      JsonField<&Manifest::files, AsList<AsObject<kFileTable>>>("files"),
      JsonFact<Manifest, Seal>("digest"),
  };
}

constexpr JsonTable kManifestTable = ManifestTable<kManifestSchema>(
    JsonField<&Manifest::stamps, AsList<AsObject<kStampTable>>>("stamps"));

// Schema 2: without stamps.
constexpr std::string_view kOldBegin = "{\n  \"schema_version\": 2,\n";
constexpr JsonTable kOldTable = ManifestTable<2>();

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
  SortByPath(manifest.sources);
  SortByPath(manifest.stamps);
  SortByPath(manifest.files);
  std::string bytes;
  bytes.reserve(TextBytes(manifest));
  if (const auto fault = AppendJson(kManifestTable, manifest, JsonText::Style::kIndented, bytes)) {
    return Refuse(*fault);
  }
  bytes += '\n';
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
  Manifest manifest;
  RESHARD_RETURN_IF_ERROR(bytes.starts_with(kOldBegin)
                              ? ReadWithAdvice(bytes, path, kOldTable, manifest)
                              : ReadWithAdvice(bytes, path, kManifestTable, manifest));
  if (!has_seal) {
    return CorruptError(fmt::format(
        "{}: byte {}: the member \"digest\" is not formatted as at the end of a manifest; {}",
        Escape(path), bytes.size(), kManifestAdvice));
  }
  return manifest;
}

}  // namespace reshard
