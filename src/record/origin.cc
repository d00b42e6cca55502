#include "src/record/origin.h"

#include <fmt/format.h>

#include <cstddef>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "reshard/tensor.h"
#include "reshard/version.h"
#include "src/digest/xxh3.h"
#include "src/record/strict_json.h"

namespace reshard {
namespace {

// A tree of nlohmann's would need memory to be destroyed, too: objects are written member by
// member.

// Any bytes, as SPEC.md has names and paths.
std::string Text(std::string_view bytes) { return BytesAsJson(bytes); }

std::string TextOrNull(const std::string& bytes) { return bytes.empty() ? "null" : Text(bytes); }

template <typename Items, typename ToJson>
std::string Array(const Items& items, ToJson to_json) {
  std::string json = "[";
  for (const auto& item : items) {
    if (json.size() > 1) json += ',';
    json += to_json(item);
  }
  return json + ']';
}

std::string Texts(const std::vector<std::string>& all) { return Array(all, Text); }

// Members have names that are known; names of parameters are values.
std::string Pairs(const std::map<std::string, std::string>& map) {
  return Array(map, [](const auto& pair) {
    return fmt::format("[{},{}]", Text(pair.first), Text(pair.second));
  });
}

// Null for none; "path" is null where the strategy was in memory.
std::string StrategyAsJson(bool has_strategy, const std::string& path, const std::string& digest) {
  if (!has_strategy) return "null";
  return fmt::format(R"({{"path":{},"digest":{}}})", TextOrNull(path), TextOrNull(digest));
}

std::string SourceAsJson(const SourceSpec& source) {
  if (source.files.empty()) return Text(source.path);
  return Array(source.files, [](const auto& file) {
    return fmt::format(R"({{"rank":{},"path":{}}})", file.first, Text(file.second));
  });
}

std::string_view FormatName(TargetFormat format) {
  switch (format) {
    case TargetFormat::kCkpt:
      return "ckpt";
    case TargetFormat::kSafetensors:
      return "safetensors";
    case TargetFormat::kUnified:
      return "unified";
    case TargetFormat::kHuggingFace:
      break;
  }
  return "huggingface";
}

std::string_view PolicyName(UnmatchedPolicy policy) {
  switch (policy) {
    case UnmatchedPolicy::kCopy:
      return "copy";
    case UnmatchedPolicy::kDrop:
      return "drop";
    case UnmatchedPolicy::kError:
      break;
  }
  return "error";
}

// Those that change what is written, where they are not the defaults.
std::string OptionsAsJson(const SourceSpec& source, const TargetSpec& target,
                          const Selection& selection) {
  std::string json = "{";
  const auto add = [&json](std::string_view name, const std::string& value) {
    fmt::format_to(std::back_inserter(json), "{}\"{}\":{}", json.size() > 1 ? "," : "", name,
                   value);
  };
  const auto quoted = [](std::string_view word) { return fmt::format("\"{}\"", word); };
  const TargetSpec usual;
  if (!source.suffix.empty()) add("suffix", Text(source.suffix));
  if (!source.group_info.empty()) add("group_info", Texts(source.group_info));
  if (!source.name_map.empty()) add("name_map", Pairs(source.name_map));
  if (target.format) add("format", quoted(FormatName(*target.format)));
  if (target.prefix != usual.prefix) add("prefix", Text(target.prefix));
  if (!target.names.empty()) add("names", Text(target.names));
  if (target.format == TargetFormat::kUnified) {
    add("part_size", fmt::format("{}", target.part_size));
  }
  if (target.format == TargetFormat::kHuggingFace) {
    add("shard_size", fmt::format("{}", target.shard_size));
  }
  if (target.states_crc) add("crc", "true");
  if (target.encryption) add("encryption", quoted(EncryptionModeName(*target.encryption)));
  if (!selection.ranks.empty()) {
    add("ranks", Array(selection.ranks, [](int64_t rank) { return fmt::format("{}", rank); }));
  }
  if (!selection.include.empty()) add("include", Texts(selection.include));
  if (!selection.exclude.empty()) add("exclude", Texts(selection.exclude));
  if (!selection.renames.names.empty()) add("renames", Pairs(selection.renames.names));
  if (!selection.renames.patterns.empty()) {
    add("rename_patterns", Pairs(selection.renames.patterns));
  }
  if (!selection.casts.empty()) {
    add("casts", Array(selection.casts, [&](const CastRule& rule) {
          return fmt::format("[{},{}]", TextOrNull(rule.pattern),
                             rule.dtype ? quoted(DTypeName(*rule.dtype)) : "null");
        }));
  }
  if (selection.unmatched) add("unmatched", quoted(PolicyName(*selection.unmatched)));
  return json + '}';
}

// Takes the pairs of "casts" in "options" of a line; stops where they are none.
class CastsReader {
 public:
  // After the last byte.
  std::vector<CastRule> Take() { return std::move(casts_); }

  // NOLINTBEGIN(readability-identifier-naming): the names that nlohmann's parser calls
  bool null() { return TakeValue(nullptr); }
  bool boolean(bool /*value*/) { return !is_in_casts_; }
  bool number_integer(int64_t /*value*/) { return !is_in_casts_; }
  bool number_unsigned(uint64_t /*value*/) { return !is_in_casts_; }
  bool number_float(double /*value*/, const std::string& /*text*/) { return !is_in_casts_; }
  bool string(const std::string& text) { return TakeValue(&text); }
  bool binary(const std::vector<uint8_t>& /*value*/) { return !is_in_casts_; }
  bool key(const std::string& name) {
    if (depth_ == 1) is_in_options_ = name == "options";
    if (depth_ == 2) is_in_casts_ = is_in_options_ && name == "casts";
    return true;
  }
  bool start_object(size_t /*members*/) {
    ++depth_;
    return !is_in_casts_;
  }
  bool end_object() {
    --depth_;
    is_in_casts_ = false;
    return true;
  }
  bool start_array(size_t /*elements*/) {
    ++depth_;
    if (!is_in_casts_ || depth_ < kRule) return true;
    casts_.emplace_back();
    values_ = 0;
    return depth_ == kRule;
  }
  bool end_array() {
    const bool ends_rule = is_in_casts_ && depth_ == kRule;
    --depth_;
    return !ends_rule || values_ == 2;
  }
  bool parse_error(size_t /*position*/, const std::string& /*token*/,
                   const nlohmann::json::exception& /*error*/) {
    return false;
  }
  // NOLINTEND(readability-identifier-naming)

 private:
  static constexpr int kRule = 4;  // the depth of a pair: in the line, "options", "casts"

  bool TakeValue(const std::string* text) {
    if (!is_in_casts_) return true;
    if (depth_ != kRule) return false;
    CastRule& rule = casts_.back();
    ++values_;
    if (text == nullptr) return values_ <= 2;
    if (values_ == 1) {
      rule.pattern = BytesOfText(*text).value_or("");
      return !rule.pattern.empty();
    }
    rule.dtype = ParseDType(*text);
    return values_ == 2 && rule.dtype.has_value();
  }

  int depth_ = 0;
  bool is_in_options_ = false;
  bool is_in_casts_ = false;
  int values_ = 0;  // of the last pair
  std::vector<CastRule> casts_;
};

std::string_view LastLine(std::string_view bytes) {
  while (bytes.ends_with('\n')) bytes.remove_suffix(1);
  return bytes.substr(bytes.rfind('\n') + 1);
}

std::string LeftFileAsJson(const ManifestFile& file) {
  return fmt::format(
      R"({{"path":{},"size":{},"digest":{}{}}})", Text(file.path), file.size,
      TextOrNull(file.digest),
      file.encryption ? fmt::format(R"(,"encryption":"{}")", EncryptionModeName(*file.encryption))
                      : "");
}

// Takes "names" in "options", and "left", of a line; of other members nothing.
class LastRunReader {
 public:
  LastRun Take() {
    std::erase_if(run_.left, [](const auto& file) { return !CheckTargetPath(file.path).ok(); });
    return std::move(run_);
  }

  // NOLINTBEGIN(readability-identifier-naming): the names that nlohmann's parser calls
  bool null() { return true; }
  bool boolean(bool /*value*/) { return true; }
  bool number_integer(int64_t /*value*/) { return true; }
  bool number_unsigned(uint64_t value) {
    if (InLeft() && key_ == "size") run_.left.back().size = value;
    return true;
  }
  bool number_float(double /*value*/, const std::string& /*text*/) { return true; }
  bool string(const std::string& text) {
    if (depth_ == 2 && member_ == "options" && key_ == "format") run_.format = text;
    if (depth_ == 2 && member_ == "options" && key_ == "names") {
      run_.names = BytesOfText(text).value_or("");
    }
    if (!InLeft()) return true;
    ManifestFile& file = run_.left.back();
    if (key_ == "path") file.path = BytesOfText(text).value_or("");
    if (key_ == "digest") file.digest = text;
    if (key_ == "encryption") file.encryption = ParseEncryptionMode(text);
    return true;
  }
  bool binary(const std::vector<uint8_t>& /*value*/) { return true; }
  bool key(const std::string& name) {
    (depth_ == 1 ? member_ : key_) = name;
    return true;
  }
  bool start_object(size_t /*members*/) {
    ++depth_;
    if (InLeft()) run_.left.emplace_back();
    return true;
  }
  bool end_object() { return --depth_ >= 0; }
  bool start_array(size_t /*elements*/) {
    ++depth_;
    return true;
  }
  bool end_array() { return --depth_ >= 0; }
  bool parse_error(size_t /*position*/, const std::string& /*token*/,
                   const nlohmann::json::exception& /*error*/) {
    run_ = {};
    return false;
  }
  // NOLINTEND(readability-identifier-naming)

 private:
  static constexpr int kFile = 3;  // the depth of a file: in the line and "left"

  bool InLeft() const { return depth_ == kFile && member_ == "left"; }

  int depth_ = 0;
  std::string member_;  // of the line
  std::string key_;     // of an object in it
  LastRun run_;
};

// XXH3-128 of a line for each source, or nothing where one has no digest.
std::string SourcesDigest(const Manifest& manifest) {
  Xxh3 lines;
  for (const ManifestSource& source : manifest.sources) {
    if (source.digest.empty()) return {};
    lines.Update(fmt::format("{}\t{}\t{}\n", BytesAsJson(source.path), source.size, source.digest));
  }
  return lines.HexDigest();
}

}  // namespace

std::string EncodeOrigin(const SourceSpec& source, const TargetSpec& target,
                         const Selection& selection, const OriginFacts& facts) {
  const std::string step =
      facts.step ? fmt::format(R"({{"epoch":{},"step":{}}})", facts.step->first, facts.step->second)
                 : "null";
  return fmt::format(
      R"({{"tool":"reshard","version":"{}","plan":"{}","source":{},"source_strategy":{},)"
      R"("target_strategy":{},"step":{},"options":{}}})",
      kVersion, facts.plan, SourceAsJson(source),
      StrategyAsJson(source.has_strategy(), source.strategy, facts.source_strategy),
      StrategyAsJson(target.has_strategy(), target.strategy, facts.target_strategy), step,
      OptionsAsJson(source, target, selection));
}

std::string OriginLine(std::string_view origin, const Manifest& manifest,
                       const std::vector<ManifestFile>& left) {
  const std::string digest = SourcesDigest(manifest);
  return fmt::format("{},\"source_digest\":{}{}}}\n", origin.substr(0, origin.rfind('}')),
                     digest.empty() ? "null" : '"' + digest + '"',
                     left.empty() ? "" : ",\"left\":" + Array(left, LeftFileAsJson));
}

std::optional<std::string> WithOriginLine(std::string before, std::string_view line) {
  if (!before.empty() && before.back() != '\n') before += '\n';
  const bool is_last = before.ends_with(line) && (before.size() == line.size() ||
                                                  before[before.size() - line.size() - 1] == '\n');
  if (is_last) return std::nullopt;
  return before.append(line);
}

std::vector<CastRule> CastsOfLastRun(std::string_view bytes) {
  CastsReader reader;
  const bool whole = nlohmann::json::sax_parse(LastLine(bytes), &reader);
  return whole ? reader.Take() : std::vector<CastRule>();
}

LastRun LastRunOf(std::string_view bytes) {
  LastRunReader reader;
  if (!nlohmann::json::sax_parse(LastLine(bytes), &reader)) return {};
  return reader.Take();
}

}  // namespace reshard
