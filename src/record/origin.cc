#include "src/record/origin.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "reshard/tensor.h"
#include "reshard/version.h"
#include "src/digest/xxh3.h"
#include "src/record/strict_json.h"

namespace reshard {
namespace {

using nlohmann::ordered_json;

// Any bytes, as SPEC.md has names and paths.
ordered_json Text(std::string_view bytes) { return ordered_json::parse(BytesAsJson(bytes)); }

ordered_json TextOrNull(const std::string& bytes) {
  return bytes.empty() ? ordered_json() : Text(bytes);
}

ordered_json Texts(const std::vector<std::string>& all) {
  ordered_json out = ordered_json::array();
  for (const std::string& bytes : all) out.push_back(Text(bytes));
  return out;
}

// Members are names, which JSON's own are not: they are values, too.
ordered_json Pairs(const std::map<std::string, std::string>& map) {
  ordered_json out = ordered_json::array();
  for (const auto& [from, to] : map) out.push_back({Text(from), Text(to)});
  return out;
}

// Null for none; "path" is null where the strategy was in memory.
ordered_json StrategyAsJson(bool has_strategy, const std::string& path, const std::string& digest) {
  if (!has_strategy) return nullptr;
  return {{"path", TextOrNull(path)}, {"digest", TextOrNull(digest)}};
}

ordered_json SourceAsJson(const SourceSpec& source) {
  if (source.files.empty()) return Text(source.path);
  ordered_json files = ordered_json::array();
  for (const auto& [rank, path] : source.files) {
    files.push_back({{"rank", rank}, {"path", Text(path)}});
  }
  return files;
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
ordered_json OptionsAsJson(const SourceSpec& source, const TargetSpec& target,
                           const Selection& selection) {
  ordered_json options = ordered_json::object();
  const TargetSpec usual;
  if (!source.suffix.empty()) options["suffix"] = Text(source.suffix);
  if (!source.group_info.empty()) options["group_info"] = Texts(source.group_info);
  if (!source.name_map.empty()) options["name_map"] = Pairs(source.name_map);
  if (target.format) options["format"] = FormatName(*target.format);
  if (target.prefix != usual.prefix) options["prefix"] = Text(target.prefix);
  if (!target.names.empty()) options["names"] = Text(target.names);
  if (target.format == TargetFormat::kUnified) options["part_size"] = target.part_size;
  if (target.format == TargetFormat::kHuggingFace) options["shard_size"] = target.shard_size;
  if (!selection.ranks.empty()) options["ranks"] = selection.ranks;
  if (!selection.include.empty()) options["include"] = Texts(selection.include);
  if (!selection.exclude.empty()) options["exclude"] = Texts(selection.exclude);
  if (!selection.renames.names.empty()) options["renames"] = Pairs(selection.renames.names);
  if (!selection.renames.patterns.empty()) {
    options["rename_patterns"] = Pairs(selection.renames.patterns);
  }
  for (const CastRule& rule : selection.casts) {
    options["casts"].push_back(
        {TextOrNull(rule.pattern), rule.dtype ? ordered_json(DTypeName(*rule.dtype)) : nullptr});
  }
  if (selection.unmatched) options["unmatched"] = PolicyName(*selection.unmatched);
  return options;
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
  ordered_json line;
  line["tool"] = "reshard";
  line["version"] = kVersion;
  line["plan"] = facts.plan;
  line["source"] = SourceAsJson(source);
  line["source_strategy"] =
      StrategyAsJson(source.has_strategy(), source.strategy, facts.source_strategy);
  line["target_strategy"] =
      StrategyAsJson(target.has_strategy(), target.strategy, facts.target_strategy);
  line["step"] = nullptr;
  if (facts.step) line["step"] = {{"epoch", facts.step->first}, {"step", facts.step->second}};
  line["options"] = OptionsAsJson(source, target, selection);
  return line.dump();
}

std::string OriginLine(std::string_view origin, const Manifest& manifest) {
  const std::string digest = SourcesDigest(manifest);
  return fmt::format("{},\"source_digest\":{}}}\n", origin.substr(0, origin.rfind('}')),
                     digest.empty() ? "null" : '"' + digest + '"');
}

std::optional<std::string> WithOriginLine(std::string before, std::string_view line) {
  if (!before.empty() && before.back() != '\n') before += '\n';
  const bool is_last = before.ends_with(line) && (before.size() == line.size() ||
                                                  before[before.size() - line.size() - 1] == '\n');
  if (is_last) return std::nullopt;
  return before.append(line);
}

std::vector<CastRule> CastsOfLastRun(std::string_view bytes) {
  while (bytes.ends_with('\n')) bytes.remove_suffix(1);
  const size_t before = bytes.rfind('\n');
  if (before != std::string_view::npos) bytes.remove_prefix(before + 1);
  const ordered_json line = ordered_json::parse(bytes, nullptr, false);
  if (!line.is_object() || !line.contains("options") || !line["options"].is_object() ||
      !line["options"].contains("casts") || !line["options"]["casts"].is_array()) {
    return {};
  }
  std::vector<CastRule> casts;
  for (const ordered_json& rule : line["options"]["casts"]) {
    if (!rule.is_array() || rule.size() != 2) return {};
    CastRule cast;
    if (rule[0].is_string()) {
      cast.pattern = BytesOfText(rule[0].get<std::string>()).value_or("");
      if (cast.pattern.empty()) return {};
    }
    if (rule[1].is_string()) cast.dtype = ParseDType(rule[1].get<std::string>());
    casts.push_back(std::move(cast));
  }
  return casts;
}

}  // namespace reshard
