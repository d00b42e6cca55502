#include "format/manifest/manifest_codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "src/base/quote.h"
#include "src/base/status_macros.h"

namespace reshard {
namespace {

using nlohmann::json;

constexpr uint64_t kSchemaVersion = 1;
constexpr std::string_view kToolName = "reshard";
constexpr size_t kMaxFingerprint = 64;
constexpr size_t kMaxPath = 4095;
constexpr int kMaxDepth = 3;  // object, array of files, file, member

bool IsControl(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f;
}

// Why a manifest may not hold `path`, or nothing.
std::optional<std::string> PathFault(std::string_view path) {
  if (path.empty()) return "it is empty";
  if (path.size() > kMaxPath) return fmt::format("it is longer than {} bytes", kMaxPath);
  if (path.front() == '/') return "it is absolute";
  if (std::any_of(path.begin(), path.end(), IsControl)) return "it has control characters";
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view component = path.substr(begin, end - begin);
    if (component.empty()) return "it has an empty component";
    if (component == "." || component == "..") {
      return fmt::format("it has the component {}", Quote(component));
    }
    if (begin == 0 && component == ".reshard") return "it lies in the staging folder .reshard";
    begin = end + 1;
  }
  return std::nullopt;
}

// Why a manifest may not hold `fingerprint`, or nothing.
std::optional<std::string> FingerprintFault(std::string_view fingerprint) {
  if (!fingerprint.empty() && fingerprint.size() <= kMaxFingerprint &&
      fingerprint.find_first_not_of("0123456789abcdef") == std::string_view::npos) {
    return std::nullopt;
  }
  return fmt::format("expected 1 to {} lower-case hexadecimal digits", kMaxFingerprint);
}

// Reads the members of one JSON object; the first failure wins.
class Reader {
 public:
  Reader(const json& object, std::string where) : object_(object), where_(std::move(where)) {}

  // Checks that it is an object with exactly these members.
  Status CheckMembers(std::initializer_list<const char*> names) const {
    if (!object_.is_object()) {
      return CorruptError(fmt::format("{}: expected an object, found {}", where_, Type(object_)));
    }
    for (const char* name : names) {
      if (!object_.contains(name)) {
        return CorruptError(fmt::format("{}: the member \"{}\" is missing", where_, name));
      }
    }
    for (const auto& [name, value] : object_.items()) {
      if (std::none_of(names.begin(), names.end(),
                       [&found = name](const char* known) { return found == known; })) {
        return CorruptError(
            fmt::format("{}: unknown member {}; a manifest of schema_version {} has no such member",
                        where_, Quote(name), kSchemaVersion));
      }
    }
    return {};
  }

  Result<uint64_t> Unsigned(const char* name) const {
    const json& value = object_[name];
    if (!value.is_number_unsigned()) {
      return CorruptError(
          fmt::format("{}: \"{}\": expected an unsigned integer below 2^64, found {}", where_, name,
                      Shown(value)));
    }
    return value.get<uint64_t>();
  }

  Result<std::string> String(const char* name) const {
    const json& value = object_[name];
    if (!value.is_string()) {
      return CorruptError(
          fmt::format("{}: \"{}\": expected a string, found {}", where_, name, Shown(value)));
    }
    return value.get<std::string>();
  }

 private:
  static std::string Type(const json& value) { return value.type_name(); }
  static std::string Shown(const json& value) {
    return value.is_number() ? value.dump() : Type(value);
  }

  const json& object_;
  std::string where_;
};

// Parses JSON. A member that occurs twice, which nlohmann's parser alone would not see, is an
// error, and so is nesting beyond what a manifest has: the tree of deeply nested input would be
// many times its size.
Result<json> ParseJson(std::string_view bytes, const std::string& path) {
  std::vector<std::set<std::string>> seen;  // the keys of each object that is open
  std::optional<std::string> twice;
  bool deep = false;
  const json::parser_callback_t watch = [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth > kMaxDepth) {
      deep = true;
      return false;
    }
    if (event == json::parse_event_t::object_start) seen.emplace_back();
    if (event == json::parse_event_t::object_end) seen.pop_back();
    if (event == json::parse_event_t::key && !twice) {
      if (!seen.back().insert(parsed.get<std::string>()).second) twice = parsed.get<std::string>();
    }
    return true;
  };
  json document;
  try {
    document = json::parse(bytes, watch);
  } catch (const json::parse_error& error) {
    return CorruptError(fmt::format("{}: no JSON: {}", Escape(path), Escape(error.what())));
  }
  if (deep) {
    return CorruptError(
        fmt::format("{}: nested deeper than a manifest, {} levels", Escape(path), kMaxDepth));
  }
  if (twice) {
    return CorruptError(fmt::format("{}: the member {} occurs twice", Escape(path), Quote(*twice)));
  }
  return document;
}

Result<ManifestFile> ReadFile(const json& entry, const std::string& where) {
  const Reader reader(entry, where);
  RESHARD_RETURN_IF_ERROR(reader.CheckMembers({"path", "size"}));
  ManifestFile file;
  RESHARD_ASSIGN_OR_RETURN(file.path, reader.String("path"));
  RESHARD_ASSIGN_OR_RETURN(file.size, reader.Unsigned("size"));
  if (const auto fault = PathFault(file.path)) {
    return CorruptError(fmt::format("{}: path {}: {}", where, Quote(file.path), *fault));
  }
  return file;
}

}  // namespace

Status CheckFingerprint(std::string_view fingerprint) {
  if (const auto fault = FingerprintFault(fingerprint)) {
    return InvalidArgumentError(
        fmt::format("the plan's fingerprint {}: {}", Quote(fingerprint), *fault));
  }
  return {};
}

Status CheckTargetPath(std::string_view path) {
  if (const auto fault = PathFault(path)) {
    return InvalidArgumentError(fmt::format("the target path {}: {}", Quote(path), *fault));
  }
  return {};
}

Result<std::string> EncodeManifest(Manifest manifest) {
  RESHARD_RETURN_IF_ERROR(CheckFingerprint(manifest.plan));
  std::sort(manifest.files.begin(), manifest.files.end(),
            [](const ManifestFile& a, const ManifestFile& b) { return a.path < b.path; });
  auto files = nlohmann::ordered_json::array();
  for (const ManifestFile& file : manifest.files) {
    RESHARD_RETURN_IF_ERROR(CheckTargetPath(file.path));
    if (!files.empty() && files.back()["path"] == file.path) {
      return InvalidArgumentError(
          fmt::format("the target path {} is listed twice", Quote(file.path)));
    }
    files.push_back({{"path", file.path}, {"size", file.size}});
  }
  const nlohmann::ordered_json document = {
      {"schema_version", kSchemaVersion},
      {"tool", {{"name", kToolName}, {"version", manifest.tool_version}}},
      {"plan", manifest.plan},
      {"files", std::move(files)},
  };
  try {
    return document.dump(2) + "\n";
  } catch (const json::type_error&) {  // the only cause left
    return InvalidArgumentError("a target path is not valid UTF-8, which a manifest has to be");
  }
}

Result<Manifest> ParseManifest(std::string_view bytes, const std::string& path) {
  if (bytes.size() > kMaxManifestBytes) {
    return CorruptError(fmt::format("{}: {} bytes, but a manifest has at most {}", Escape(path),
                                    bytes.size(), kMaxManifestBytes));
  }
  RESHARD_ASSIGN_OR_RETURN(const json document, ParseJson(bytes, path));
  const std::string where = Escape(path);
  const Reader reader(document, where);
  // Before the members: another version may have others.
  if (document.is_object() && document.contains("schema_version")) {
    RESHARD_ASSIGN_OR_RETURN(const uint64_t version, reader.Unsigned("schema_version"));
    if (version != kSchemaVersion) {
      return UnsupportedError(fmt::format(
          "{}: schema_version {}, but this reshard knows {}; use the version that wrote it", where,
          version, kSchemaVersion));
    }
  }
  RESHARD_RETURN_IF_ERROR(reader.CheckMembers({"schema_version", "tool", "plan", "files"}));

  Manifest manifest;
  const Reader tool(document["tool"], where + ": \"tool\"");
  RESHARD_RETURN_IF_ERROR(tool.CheckMembers({"name", "version"}));
  RESHARD_ASSIGN_OR_RETURN(const std::string name, tool.String("name"));
  if (name != kToolName) {
    return CorruptError(fmt::format("{}: written by {}, not by {}", where, Quote(name), kToolName));
  }
  RESHARD_ASSIGN_OR_RETURN(manifest.tool_version, tool.String("version"));
  RESHARD_ASSIGN_OR_RETURN(manifest.plan, reader.String("plan"));
  if (const auto fault = FingerprintFault(manifest.plan)) {
    return CorruptError(
        fmt::format("{}: \"plan\": {}, found {}", where, *fault, Quote(manifest.plan)));
  }

  const json& files = document["files"];
  if (!files.is_array()) {
    return CorruptError(
        fmt::format("{}: \"files\": expected an array, found {}", where, files.type_name()));
  }
  for (size_t i = 0; i < files.size(); ++i) {
    RESHARD_ASSIGN_OR_RETURN(ManifestFile file,
                             ReadFile(files[i], fmt::format("{}: \"files\"[{}]", where, i)));
    if (!manifest.files.empty() && manifest.files.back().path >= file.path) {
      return CorruptError(
          fmt::format("{}: \"files\"[{}]: path {} after {}, but paths are sorted and occur once",
                      where, i, Quote(file.path), Quote(manifest.files.back().path)));
    }
    manifest.files.push_back(std::move(file));
  }
  return manifest;
}

}  // namespace reshard
