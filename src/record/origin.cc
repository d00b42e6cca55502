#include "src/record/origin.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "reshard/tensor.h"
#include "reshard/version.h"
#include "src/base/json_reader.h"
#include "src/base/number_text.h"
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

// Gathers the values of a line by the path of their member, such as "options.casts".
class LineReader final : public JsonReader {
 public:
  struct Value {
    std::optional<std::string> text;  // of a number or a truth as JSON has them; nothing for null
    int lists = 0;                    // that it lies in
  };
  using Values = std::map<std::string, std::vector<Value>>;

  LineReader() : JsonReader("a line") {}

  Values Take() { return std::move(values_); }

 private:
  Status OnOpen(bool is_list) override {
    return is_list && depth() == 0 ? Error("expected an object") : Status();
  }
  Status OnValue(JsonValue& value) override {
    if (depth() == 0) return Error("expected an object");
    std::vector<std::string_view> path;
    Value found;
    for (size_t i = 1; i <= depth(); ++i) {
      if (LevelAt(i).is_list) {
        ++found.lists;
      } else {
        path.emplace_back(Key(i));
      }
    }
    if (value.kind != JsonValue::Kind::kNull) {
      found.text = value.kind == JsonValue::Kind::kString ? *value.text : value.Shown();
    }
    values_[fmt::format("{}", fmt::join(path, "."))].push_back(std::move(found));
    return {};
  }

  Values values_;
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
class LastRunReader final : public JsonReader {
 public:
  LastRunReader() : JsonReader("a line") {}

  LastRun Take() {
    std::erase_if(run_.left, [](const auto& file) { return !CheckTargetPath(file.path).ok(); });
    return std::move(run_);
  }

 private:
  Status OnOpen(bool is_list) override {
    if (!is_list && depth() == 2 && Key(1) == "left") run_.left.emplace_back();
    return {};
  }
  Status OnValue(JsonValue& value) override {
    const bool is_text = value.kind == JsonValue::Kind::kString;
    if (depth() == 2 && Key(1) == "options" && is_text) {
      if (Key(2) == "format") run_.format = *value.text;
      if (Key(2) == "names") run_.names = BytesOfText(*value.text).value_or("");
    }
    if (depth() != 3 || InList() || Key(1) != "left") return {};
    ManifestFile& file = run_.left.back();
    const std::string& key = Key(3);
    if (key == "size" && value.kind == JsonValue::Kind::kUnsigned) file.size = value.number;
    if (!is_text) return {};
    if (key == "path") file.path = BytesOfText(*value.text).value_or("");
    if (key == "digest") file.digest = *value.text;
    if (key == "encryption") file.encryption = ParseEncryptionMode(*value.text);
    return {};
  }

  LastRun run_;
};

// Takes members of a line; once one is not as it is written, nothing counts.
class RunReader {
 public:
  explicit RunReader(const LineReader::Values& values) : values_(values) {}

  bool ok() const { return ok_; }

  // Names and paths come as bytes, words as they are.
  std::vector<std::string> List(const std::string& name, int lists = 1) {
    std::vector<std::string> texts;
    for (const LineReader::Value& value : Of(name, lists)) {
      const auto bytes = value.text ? BytesOfText(*value.text) : std::nullopt;
      if (!bytes) ok_ = false;
      texts.push_back(bytes.value_or(""));
    }
    return texts;
  }
  std::optional<std::string> Text(const std::string& name) {
    const std::vector<LineReader::Value>& values = Of(name, 0);
    if (values.empty() || !values.front().text) return std::nullopt;
    const std::vector<std::string> texts = List(name, 0);
    if (texts.size() != 1) ok_ = false;
    return texts.front();
  }
  std::map<std::string, std::string> Pairs(const std::string& name) {
    const std::vector<std::string> texts = List(name, 2);
    std::map<std::string, std::string> pairs;
    if (texts.size() % 2 != 0) ok_ = false;
    for (size_t i = 0; i + 1 < texts.size(); i += 2) pairs.emplace(texts[i], texts[i + 1]);
    return pairs;
  }
  std::vector<CastRule> Casts(const std::string& name) {
    const std::vector<LineReader::Value>& values = Of(name, 2);
    std::vector<CastRule> casts;
    if (values.size() % 2 != 0) ok_ = false;
    for (size_t i = 0; i + 1 < values.size(); i += 2) {
      CastRule& rule = casts.emplace_back();
      if (values[i].text) {
        rule.pattern = BytesOfText(*values[i].text).value_or("");
        if (rule.pattern.empty()) ok_ = false;
      }
      if (!values[i + 1].text) continue;
      rule.dtype = ParseDType(*values[i + 1].text);
      if (!rule.dtype) ok_ = false;
    }
    return casts;
  }
  std::vector<int64_t> Numbers(const std::string& name) {
    std::vector<int64_t> numbers;
    for (const std::string& text : List(name)) {
      const auto number = ParseNumber<int64_t>(text);
      if (!number) ok_ = false;
      numbers.push_back(number.value_or(0));
    }
    return numbers;
  }
  void Size(const std::string& name, uint64_t& size) {
    const auto text = Text(name);
    if (!text) return;
    const auto number = ParseNumber<uint64_t>(*text);
    if (!number) ok_ = false;
    size = number.value_or(size);
  }
  template <typename Word, typename NameOf>
  std::optional<Word> OneOf(const std::string& name, std::initializer_list<Word> words,
                            NameOf name_of) {
    const auto text = Text(name);
    if (!text) return std::nullopt;
    for (const Word word : words) {
      if (name_of(word) == *text) return word;
    }
    ok_ = false;
    return std::nullopt;
  }

 private:
  const std::vector<LineReader::Value>& Of(const std::string& name, int lists) {
    static const std::vector<LineReader::Value> kNone;
    const auto found = values_.find(name);
    if (found == values_.end()) return kNone;
    for (const LineReader::Value& value : found->second) {
      if (value.lists != lists) ok_ = false;
    }
    return found->second;
  }

  const LineReader::Values& values_;
  bool ok_ = true;
};

std::optional<OriginRun> RunOf(std::string_view line) {
  LineReader values;
  if (!values.Read(line).ok()) return std::nullopt;
  const LineReader::Values all = values.Take();
  RunReader reader(all);
  OriginRun run;
  run.plan = reader.Text("plan").value_or("");
  run.source.strategy = reader.Text("source_strategy.path").value_or("");
  run.source_strategy = reader.Text("source_strategy.digest").value_or("");
  run.source.suffix = reader.Text("options.suffix").value_or("");
  run.source.group_info = reader.List("options.group_info");
  run.source.name_map = reader.Pairs("options.name_map");
  run.target.strategy = reader.Text("target_strategy.path").value_or("");
  run.target_strategy = reader.Text("target_strategy.digest").value_or("");
  run.target.format = reader.OneOf("options.format",
                                   {TargetFormat::kCkpt, TargetFormat::kSafetensors,
                                    TargetFormat::kUnified, TargetFormat::kHuggingFace},
                                   FormatName);
  run.target.prefix = reader.Text("options.prefix").value_or(run.target.prefix);
  run.target.names = reader.Text("options.names").value_or("");
  reader.Size("options.part_size", run.target.part_size);
  reader.Size("options.shard_size", run.target.shard_size);
  run.selection.ranks = reader.Numbers("options.ranks");
  run.selection.include = reader.List("options.include");
  run.selection.exclude = reader.List("options.exclude");
  run.selection.renames.names = reader.Pairs("options.renames");
  run.selection.renames.patterns = reader.Pairs("options.rename_patterns");
  run.selection.casts = reader.Casts("options.casts");
  run.selection.unmatched = reader.OneOf(
      "options.unmatched",
      {UnmatchedPolicy::kCopy, UnmatchedPolicy::kDrop, UnmatchedPolicy::kError}, PolicyName);
  if (!reader.ok() || run.plan.empty()) return std::nullopt;
  return run;
}

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

std::optional<OriginRun> OptionsOfLastRun(std::string_view bytes) {
  std::optional<OriginRun> last;
  std::set<int64_t> ranks;
  while (true) {
    while (bytes.ends_with('\n')) bytes.remove_suffix(1);
    if (bytes.empty()) break;
    const size_t before = bytes.rfind('\n');
    const size_t begin = before == std::string_view::npos ? 0 : before + 1;
    const auto run = RunOf(bytes.substr(begin));
    bytes = bytes.substr(0, begin);
    if (!last) {
      if (!run) return std::nullopt;
      last = run;
    }
    // An earlier set that this one replaced ends those that joined.
    if (!run || run->plan != last->plan) break;
    if (run->selection.ranks.empty()) {
      ranks.clear();
      break;
    }
    ranks.insert(run->selection.ranks.begin(), run->selection.ranks.end());
  }
  if (last) last->selection.ranks.assign(ranks.begin(), ranks.end());
  return last;
}

LastRun LastRunOf(std::string_view bytes) {
  LastRunReader reader;
  if (!reader.Read(LastLine(bytes)).ok()) return {};
  return reader.Take();
}

}  // namespace reshard
