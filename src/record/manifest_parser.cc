#include <fmt/format.h>

#include <utility>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/record/manifest_check.h"
#include "src/record/manifest_codec.h"
#include "src/record/manifest_seal.h"
#include "src/record/record_fields.h"
#include "src/record/strict_json.h"

namespace reshard {
namespace {

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
  kFilePath,
  kFileSize,
  kFileDigest,
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
constexpr JsonShape kRecordMembers[] = {{"path", kBytes, kRecordPath},
                                        {"size", kUnsigned, kRecordSize},
                                        {"digest", kString, kRecordDigest}};
constexpr JsonShape kFileMembers[] = {{"path", kBytes, kFilePath},
                                      {"size", kUnsigned, kFileSize},
                                      {"digest", kStringOrNull, kFileDigest},
                                      {"record", kObject, kOther, kRecordMembers}};
constexpr JsonShape kManifestSourceElement[] = {
    {nullptr, kObject, kSource, kManifestSourceMembers}};
constexpr JsonShape kFileElement[] = {{nullptr, kObject, kFile, kFileMembers}};
constexpr JsonShape kMembers[] = {
    {"schema_version", kUnsigned, kSchemaVersion},
    {"tool", kObject, kOther, kToolMembers},
    {"plan", kString, kPlan},
    {"strategies", kObject, kOther, kStrategyMembers},
    {"sources", kArray, kOther, kManifestSourceElement},
    {"files", kArray, kOther, kFileElement},
    {"digest", kString, kSeal},
};
constexpr JsonShape kManifestShape = {nullptr, kObject, kDocument, kMembers};

class ManifestReader {
 public:
  Status Take(int field, const JsonValue& value) {
    switch (static_cast<Field>(field)) {
      case kSchemaVersion:
        return CheckSchemaVersion(value);
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
      case kFilePath:
        file_.path = std::move(*value.text);
        return CorruptIf(FileFault(file_, LastPath(manifest_.files)));
      case kFileSize:
        file_.size = value.number;
        return {};
      case kFileDigest:
        return SetDigest(value, file_.digest);
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
  Manifest manifest_;
  ManifestSource source_;  // those being read
  ManifestFile file_;
};

// The bytes before the seal; all of them when there is none.
std::string_view SealedBytes(std::string_view bytes) {
  const size_t seal = kSealBegin.size() + kDigestDigits + kSealEnd.size();
  if (bytes.size() < seal || !bytes.ends_with(kSealEnd) ||
      !bytes.substr(bytes.size() - seal).starts_with(kSealBegin)) {
    return bytes;
  }
  return bytes.substr(0, bytes.size() - seal);
}

}  // namespace

Result<Manifest> ParseManifest(std::string_view bytes, const std::string& path) {
  if (bytes.size() > kMaxManifestBytes) {
    return CorruptError(fmt::format("{}: {} bytes, but a manifest has at most {}", Escape(path),
                                    bytes.size(), kMaxManifestBytes));
  }
  // Before anything else: damage is told from what another version wrote.
  const std::string_view sealed = SealedBytes(bytes);
  const bool has_seal = sealed.size() < bytes.size();
  if (has_seal) {
    const std::string expected = ManifestSeal(sealed);
    if (bytes.substr(sealed.size()) != expected) {
      return CorruptError(fmt::format(
          "{}: damaged: byte {}: \"digest\": expected {}, that of the bytes before it, found {}; "
          "{}",
          Escape(path), sealed.size() + kSealBegin.size(),
          expected.substr(kSealBegin.size(), kDigestDigits),
          Quote(bytes.substr(sealed.size() + kSealBegin.size(), kDigestDigits)), kManifestAdvice));
    }
  }
  ManifestReader reader;
  RESHARD_RETURN_IF_ERROR(
      ReadWithAdvice(bytes, path, kManifestShape,
                     [&](int field, const JsonValue& value) { return reader.Take(field, value); }));
  if (!has_seal) {
    return CorruptError(fmt::format(
        "{}: byte {}: the member \"digest\" is not set out as the end of a manifest is; {}",
        Escape(path), bytes.size(), kManifestAdvice));
  }
  return reader.TakeManifest();
}

}  // namespace reshard
