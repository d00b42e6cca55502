#include "tools/cli/against_report.h"

#include <fmt/format.h>

#include <utility>

#include "tools/cli/printable.h"
#include "tools/cli/rank_findings.h"
#include "tools/cli/text_format.h"

namespace reshard {
namespace {

std::string FirstText(const FirstDifference& first) {
  if (first.in_header) {
    return fmt::format("  the first is in {}: expected {:#04x}, found {:#04x}\n",
                       first.parameter.empty() ? "the header of an empty tensor"
                                               : "the header of " + PrintableName(first.parameter),
                       first.expected, first.found);
  }
  return fmt::format(
      "  the first is byte {} of this rank's {}: expected {:#04x} from {} offset {}, found "
      "{:#04x}\n",
      first.shard_offset, PrintableName(first.parameter), first.expected,
      PrintableName(first.source_path), first.source_offset, first.found);
}

std::string FileText(const FileDifference& difference) {
  std::string text = PrintableName(difference.path) + ": ";
  if (!difference.found_size) return text + "missing\n";
  if (*difference.found_size != difference.expected_size) {
    text += fmt::format("{} bytes, planned {}{}", *difference.found_size, difference.expected_size,
                        difference.first ? "; " : "");
  }
  if (!difference.first) return text + '\n';
  text +=
      fmt::format("{} {}, from offset {} on\n", FormatCount(difference.differing_bytes, "byte"),
                  difference.differing_bytes == 1 ? "differs" : "differ", difference.first->offset);
  text += FirstText(*difference.first);
  return text + fmt::format("  {} touched: {}\n",
                            FormatCount(difference.parameter_count, "parameter"),
                            PrintableNames(difference.parameters, difference.parameter_count));
}

std::string ReplicaText(const ReplicaDifference& difference) {
  std::string text = fmt::format("replicas of {} in source stage {} differ:\n",
                                 PrintableName(difference.parameter), difference.stage);
  for (const ReplicaPair& pair : difference.pairs) {
    text += pair.other_type ? fmt::format("  rank {} has another dtype or shape than rank {}\n",
                                          pair.rank, pair.reference)
                            : fmt::format("  rank {} from rank {}, from byte {} of the shard on\n",
                                          pair.rank, pair.reference, pair.offset);
  }
  const uint64_t more = difference.pair_count - difference.pairs.size();
  return more == 0 ? text : text + fmt::format("  and {} more\n", more);
}

nlohmann::ordered_json FirstAsJson(const std::optional<FirstDifference>& first) {
  if (!first) return nullptr;
  nlohmann::ordered_json parameter = nullptr;  // unknown
  if (!first->parameter.empty()) parameter = first->parameter;
  nlohmann::ordered_json json = {{"offset", first->offset},
                                 {"parameter", std::move(parameter)},
                                 {"in_header", first->in_header},
                                 {"expected", first->expected},
                                 {"found", first->found}};
  if (first->in_header) return json;
  json["shard_offset"] = first->shard_offset;
  json["source"] = first->source_path;
  json["source_offset"] = first->source_offset;
  return json;
}

nlohmann::ordered_json FileAsJson(const FileDifference& difference) {
  nlohmann::ordered_json found = nullptr;
  if (difference.found_size) found = *difference.found_size;
  return {{"path", difference.path},
          {"expected_size", difference.expected_size},
          {"found_size", std::move(found)},
          {"differing_bytes", difference.differing_bytes},
          {"first", FirstAsJson(difference.first)},
          {"parameters", difference.parameters},
          {"parameter_count", difference.parameter_count}};
}

}  // namespace

std::string AgainstAsText(const AgainstReport& report) {
  std::string text;
  for (const FileDifference& difference : report.differences) text += FileText(difference);
  for (const ReplicaDifference& difference : report.replicas.differences) {
    text += ReplicaText(difference);
  }
  const uint64_t more = report.replicas.differing - report.replicas.differences.size();
  if (more > 0) text += fmt::format("and replicas of {} more\n", FormatCount(more, "parameter"));
  return text;
}

nlohmann::ordered_json AgainstAsJson(const AgainstReport& report) {
  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  for (const FileDifference& difference : report.differences) {
    files.push_back(FileAsJson(difference));
  }
  return {{"equal", report.equal()},
          {"files", report.files},
          {"bytes", report.bytes},
          {"left_out", report.left_out},
          {"renamed", report.renamed},
          {"differences", std::move(files)},
          {"replicas", ReplicasAsJson(report.replicas)}};
}

}  // namespace reshard
