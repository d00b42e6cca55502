#include "src/record/origin.h"

#include <fmt/format.h>

#include <cstddef>
#include <set>
#include <utility>
#include <vector>

#include "reshard/version.h"
#include "src/base/json_reader.h"
#include "src/digest/xxh3.h"
#include "src/record/line_values.h"
#include "src/record/option_json.h"
#include "src/record/strict_json.h"

namespace reshard {
namespace {

// A tree of nlohmann's would need memory to be destroyed, too: objects are written member by
// member.

// Null for none; "path" is null if the strategy was in memory.
std::string StrategyAsJson(const StrategyRef& strategy, const std::string& digest) {
  if (strategy.empty()) return "null";
  return fmt::format(R"({{"path":{},"digest":{}}})", BytesAsJsonOrNull(strategy.path()),
                     BytesAsJsonOrNull(digest));
}

std::string SourceAsJson(const SourceSpec& source) {
  if (source.files.empty()) return BytesAsJson(source.path);
  return JsonList(source.files, [](const auto& file) {
    return fmt::format(R"({{"rank":{},"path":{}}})", file.first, BytesAsJson(file.second));
  });
}

std::string_view LastLine(std::string_view bytes) {
  while (bytes.ends_with('\n')) bytes.remove_suffix(1);
  return bytes.substr(bytes.rfind('\n') + 1);
}

std::string LeftFileAsJson(const ManifestFile& file) {
  return fmt::format(
      R"({{"path":{},"size":{},"digest":{}{}}})", BytesAsJson(file.path), file.size,
      BytesAsJsonOrNull(file.digest),
      file.encryption ? fmt::format(R"(,"encryption":"{}")", EncryptionModeName(*file.encryption))
                      : "");
}

// Takes "names" in "options", and "left"; ignores other members.
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

std::optional<OriginRun> RunOf(std::string_view text) {
  auto line = LineValues::Read(text);
  if (!line) return std::nullopt;
  OriginRun run;
  run.plan = line->Text("plan").value_or("");
  run.source_strategy = line->Text("source_strategy.digest").value_or("");
  run.target_strategy = line->Text("target_strategy.digest").value_or("");
  run.spec.source.strategy = line->Text("source_strategy.path").value_or("");
  run.spec.target.strategy = line->Text("target_strategy.path").value_or("");
  ReadOptions(*line, run.spec);
  if (!line->ok() || run.plan.empty()) return std::nullopt;
  return run;
}

// XXH3-128 of a line for each source; no value if a source has no digest.
std::string SourcesDigest(const Manifest& manifest) {
  Xxh3 lines;
  for (const ManifestSource& source : manifest.sources) {
    if (source.digest.empty()) return {};
    lines.Update(fmt::format("{}\t{}\t{}\n", BytesAsJson(source.path), source.size, source.digest));
  }
  return lines.HexDigest();
}

}  // namespace

std::string EncodeOrigin(const ConversionSpec& spec, const OriginFacts& facts) {
  const SourceSpec& source = spec.source;
  const TargetSpec& target = spec.target;
  const std::string step =
      facts.step ? fmt::format(R"({{"epoch":{},"step":{}}})", facts.step->first, facts.step->second)
                 : "null";
  return fmt::format(
      R"({{"tool":"reshard","version":"{}","plan":"{}","source":{},"source_strategy":{},)"
      R"("target_strategy":{},"step":{},"options":{}}})",
      kVersion, facts.plan, SourceAsJson(source),
      StrategyAsJson(source.strategy, facts.source_strategy),
      StrategyAsJson(target.strategy, facts.target_strategy), step, OptionsAsJson(spec));
}

std::string OriginLine(std::string_view origin, const Manifest& manifest,
                       const std::vector<ManifestFile>& left) {
  const std::string digest = SourcesDigest(manifest);
  return fmt::format("{},\"source_digest\":{}{}}}\n", origin.substr(0, origin.rfind('}')),
                     digest.empty() ? "null" : '"' + digest + '"',
                     left.empty() ? "" : ",\"left\":" + JsonList(left, LeftFileAsJson));
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
    // A run that replaced an earlier set ends the sequence of runs that joined.
    if (!run || run->plan != last->plan) break;
    if (run->spec.selection.ranks.empty()) {
      ranks.clear();
      break;
    }
    ranks.insert(run->spec.selection.ranks.begin(), run->spec.selection.ranks.end());
  }
  if (last) last->spec.selection.ranks.assign(ranks.begin(), ranks.end());
  return last;
}

LastRun LastRunOf(std::string_view bytes) {
  LastRunReader reader;
  if (!reader.Read(LastLine(bytes)).ok()) return {};
  return reader.Take();
}

}  // namespace reshard
