#include "tools/cli/checkpoint_report.h"

#include <fmt/format.h>

#include <cstddef>
#include <iterator>

#include "reshard/box.h"
#include "reshard/glob.h"
#include "reshard/optimizer_names.h"
#include "tools/cli/printable.h"
#include "tools/cli/text_format.h"

namespace reshard {
namespace {

std::string_view TypeText(const StoredArray& parameter) {
  return parameter.kind == ArrayKind::kMapTensor ? "map" : DTypeName(parameter.dtype);
}

// Where the content begins in the file.
std::optional<uint64_t> ContentOffset(const StoredArray& parameter) {
  if (!parameter.content.empty()) return parameter.content.front().offset;
  if (!parameter.map_tensor.empty()) return parameter.map_tensor.front().content.offset;
  return std::nullopt;
}

std::string MapPartName(size_t index) {
  constexpr std::string_view kNames[] = {"keys", "values", "status"};
  return std::string(kNames[index % std::size(kNames)]);
}

void AddStretches(const StoredArray& parameter, Table& table) {
  if (parameter.content.size() > 1) {
    for (const ByteRange& range : parameter.content) {
      table.AddRow({"  value", "", "", fmt::format("{}", range.offset),
                    fmt::format("{}", range.length), ""});
    }
  }
  for (size_t i = 0; i < parameter.map_tensor.size(); ++i) {
    const MapTensorPart& part = parameter.map_tensor[i];
    table.AddRow({"  " + MapPartName(i), PrintableName(part.type), FormatList(part.shape),
                  fmt::format("{}", part.content.offset), fmt::format("{}", part.content.length),
                  ""});
  }
}

nlohmann::ordered_json StretchesAsJson(const StoredArray& parameter) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const ByteRange& range : parameter.content) {
    out.push_back({{"offset", range.offset}, {"length", range.length}});
  }
  for (size_t i = 0; i < parameter.map_tensor.size(); ++i) {
    const MapTensorPart& part = parameter.map_tensor[i];
    out.push_back({{"part", MapPartName(i)},
                   {"type", part.type},
                   {"shape", part.shape},
                   {"offset", part.content.offset},
                   {"length", part.content.length}});
  }
  return out;
}

}  // namespace

std::vector<const StoredArray*> SelectParameters(const Checkpoint& checkpoint,
                                                 const std::string& filter) {
  std::vector<const StoredArray*> selected;
  for (const StoredArray& parameter : checkpoint.parameters()) {
    if (filter.empty() || GlobMatch(filter, parameter.name)) selected.push_back(&parameter);
  }
  return selected;
}

std::string CheckpointLine(const Checkpoint& checkpoint, std::optional<int64_t> rank) {
  std::string out = rank ? fmt::format("rank {}: ", *rank) : std::string();
  out += fmt::format("{}: checkpoint, {}, {}", PrintableName(checkpoint.path()),
                     FormatCount(checkpoint.parameters().size(), "parameter"),
                     FormatBytes(checkpoint.file_size()));
  if (const std::optional<uint64_t> crc = checkpoint.crc()) {
    out += fmt::format(", CRC-32 {:#010x}", *crc);
  }
  return out + '\n';
}

std::string ParametersAsText(const std::vector<const StoredArray*>& parameters, bool verbose) {
  Table table({{"NAME"},
               {"DTYPE"},
               {"SHAPE"},
               {"OFFSET", Align::kRight},
               {"BYTES", Align::kRight},
               {"VALUES", Align::kRight}});
  for (const StoredArray* parameter : parameters) {
    const bool is_tensor = parameter->kind == ArrayKind::kTensor;
    const std::optional<uint64_t> offset = ContentOffset(*parameter);
    table.AddRow({PrintableName(parameter->name), std::string(TypeText(*parameter)),
                  is_tensor ? FormatList(parameter->shape) : "-",
                  offset ? fmt::format("{}", *offset) : "-", fmt::format("{}", parameter->bytes),
                  fmt::format("{}", parameter->framed.size())});
    if (verbose) AddStretches(*parameter, table);
  }
  return table.ToText();
}

nlohmann::ordered_json CheckpointAsJson(const Checkpoint& checkpoint, std::optional<int64_t> rank,
                                        const std::vector<const StoredArray*>& parameters) {
  nlohmann::ordered_json entries = nlohmann::ordered_json::array();
  for (const StoredArray* parameter : parameters) {
    nlohmann::ordered_json entry = {{"name", parameter->name},
                                    {"dtype", TypeText(*parameter)},
                                    {"shape", nullptr},
                                    {"offset", nullptr},
                                    {"bytes", parameter->bytes},
                                    {"values", parameter->framed.size()},
                                    {"content", StretchesAsJson(*parameter)}};
    if (parameter->kind == ArrayKind::kTensor) entry["shape"] = parameter->shape;
    if (const std::optional<uint64_t> offset = ContentOffset(*parameter)) entry["offset"] = *offset;
    entries.push_back(std::move(entry));
  }
  nlohmann::ordered_json document = {{"path", checkpoint.path()},
                                     {"rank", nullptr},
                                     {"size", checkpoint.file_size()},
                                     {"crc", nullptr},
                                     {"parameters", std::move(entries)}};
  if (rank) document["rank"] = *rank;
  if (const std::optional<uint64_t> crc = checkpoint.crc()) document["crc"] = *crc;
  return document;
}

std::string_view ParameterGroup(const StoredArray& parameter) {
  const std::string_view group = OptimizerGroup(parameter.name);
  if (!group.empty()) return group;
  const bool single =
      parameter.kind == ArrayKind::kTensor && ElementCount(parameter.shape) == uint64_t{1};
  return single || parameter.kind == ArrayKind::kText ? "others" : "weights";
}

void CheckpointTotals::Add(const std::vector<const StoredArray*>& parameters) {
  ++files_;
  for (const StoredArray* parameter : parameters) {
    for (Total* total :
         {&all_, &by_dtype_[TypeText(*parameter)], &by_group_[ParameterGroup(*parameter)]}) {
      ++total->parameters;
      total->bytes += parameter->bytes;
    }
  }
}

std::string CheckpointTotals::ToText() const {
  std::string out = fmt::format("total: {}, {}, {} of content\n", FormatCount(files_, "checkpoint"),
                                FormatCount(all_.parameters, "parameter"), FormatBytes(all_.bytes));
  if (all_.parameters == 0) return out;
  return out + ToText("DTYPE", by_dtype_) + '\n' + ToText("PREFIX", by_group_);
}

nlohmann::ordered_json CheckpointTotals::ToJson() const {
  return {{"files", files_},
          {"parameters", all_.parameters},
          {"bytes", all_.bytes},
          {"by_dtype", ToJson(by_dtype_)},
          {"by_prefix", ToJson(by_group_)}};
}

std::string CheckpointTotals::ToText(std::string_view header, const Totals& totals) {
  Table table({{header}, {"PARAMETERS", Align::kRight}, {"SIZE", Align::kRight}});
  for (const auto& [name, total] : totals) {
    table.AddRow(
        {std::string(name), fmt::format("{}", total.parameters), FormatBytes(total.bytes)});
  }
  return table.ToText();
}

nlohmann::ordered_json CheckpointTotals::ToJson(const Totals& totals) {
  nlohmann::ordered_json out = nlohmann::ordered_json::object();
  for (const auto& [name, total] : totals) {
    out[std::string(name)] = {{"parameters", total.parameters}, {"bytes", total.bytes}};
  }
  return out;
}

}  // namespace reshard
