#include "src/mindspore/strategy_tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <charconv>
#include <filesystem>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <span>

#include "src/base/checked.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/mindspore/strategy_wire.h"

namespace reshard {
namespace {

Result<int64_t> DevicesOf(const std::string& path, const Strategy::Entry& named) {
  const std::vector<int64_t>& matrix = named.layout.device_matrix;
  const auto error = [&](std::string_view what) {
    return CorruptError(fmt::format("{}: parameter {}: {}", Escape(path), Quote(named.name), what));
  };
  if (matrix.size() > kMaxDims) {
    return error(fmt::format("expected a device matrix of at most {} axes, found {}", kMaxDims,
                             matrix.size()));
  }
  int64_t devices = 1;
  for (const int64_t axis : matrix) {
    if (axis < 1) {
      return error(
          fmt::format("expected device axes of at least 1, found the device matrix {}", matrix));
    }
    const auto product = CheckedMul(devices, axis);
    if (!product || *product > kMaxRanks) {
      return error(fmt::format("expected at most {} devices, found the device matrix {}", kMaxRanks,
                               matrix));
    }
    devices = *product;
  }
  return devices;
}

std::string Devices(const Strategy::Entry& named, int64_t devices) {
  return fmt::format("parameter {} has {} (device matrix {})", Quote(named.name), devices,
                     named.layout.device_matrix);
}

// Returns the devices of a stage, on which all its layouts have to agree.
Result<int64_t> DevicesOf(const LayoutTable& stage, std::string_view name_of_stage) {
  std::optional<int64_t> devices;
  for (const Strategy::Entry named : stage) {
    RESHARD_ASSIGN_OR_RETURN(const int64_t found, DevicesOf(stage.path(), named));
    if (!devices) devices = found;
    if (*devices == found) continue;
    return MismatchError(fmt::format(
        "{}: the layouts of {} are for different device counts: {}, {}; expected one "
        "count; is the file put together from several strategies?",
        Escape(stage.path()), name_of_stage, Devices(stage[0], *devices), Devices(named, found)));
  }
  return *devices;
}

// Fails unless `stages`, ascending and distinct, are 0, 1, 2 and so on.
Status CheckNoneMissing(const std::string& path, const std::vector<int64_t>& stages) {
  NumberRanges missing;
  NumberRanges found;
  int64_t before = -1;
  for (const int64_t stage : stages) {
    if (before + 1 < stage) missing.AddRange(before + 1, stage - 1);
    before = stage;
    found.Add(stage);
  }
  if (missing.count() == 0) return {};
  return MismatchError(
      fmt::format("{}: missing {}; found {}, expected 0, 1, 2 and so on; give a folder with the "
                  "strategy files of all stages (or, to convert one stage alone, its file itself)",
                  Escape(path), missing.ToWords("stage"), found.ToText()));
}

// Returns the first difference between two stages, or no value. The order of layouts does not
// matter.
std::optional<std::string> Difference(const LayoutTable& a, const LayoutTable& b) {
  for (const Strategy::Entry named : a) {
    const ParameterLayout* other = b.Find(named.name);
    if (other == nullptr) return fmt::format("only the first has {}", Quote(named.name));
    if (*other != named.layout) return fmt::format("in the layout of {}", Quote(named.name));
  }
  for (const Strategy::Entry named : b) {
    if (a.Find(named.name) == nullptr) {
      return fmt::format("only the second has {}", Quote(named.name));
    }
  }
  return std::nullopt;
}

std::string FileName(const std::string& path) {
  return Escape(std::filesystem::path(path).filename().string());
}

// `stages`, as a file that has them is read.
Result<Strategy> MakeOf(std::span<const std::vector<NamedLayout>> stages, bool is_pipeline,
                        int64_t own_stage) {
  std::vector<LayoutTable> tables(stages.size());
  for (size_t s = 0; s < stages.size(); ++s) {
    for (NamedLayout named : stages[s]) {
      auto& map = named.layout.tensor_map;
      if (map.empty() || named.name.size() > kMaxStrategyItemBytes) {
        return InvalidArgumentError(
            fmt::format("{}: parameter {}: expected a {}", kMadeStrategy, Quote(named.name),
                        map.empty() ? "tensor map, found none"
                                    : fmt::format("name of at most {} bytes, found {}",
                                                  kMaxStrategyItemBytes, named.name.size())));
      }
      // MindSpore puts an empty list behind the only one of a nested map.
      std::erase_if(map, [](const std::vector<int64_t>& axes) { return axes.empty(); });
      if (map.empty()) map.emplace_back();  // a scalar's
      tables[s].push_back(named);
    }
  }
  return StrategyTables::FromLayouts(std::move(tables), is_pipeline, own_stage);
}

}  // namespace

void LayoutTable::push_back(const Strategy::Entry& entry) {
  const uint32_t layout = Intern(entry.layout);
  const std::string_view name = names_.Keep(entry.name);
  entries_.push_back({name.data(), static_cast<uint32_t>(name.size()), layout});
}

uint32_t LayoutTable::Intern(const ParameterLayout& layout) {
  // Those side by side are often equal.
  if (!entries_.empty()) {
    const auto& last = layouts_[entries_.back().layout];
    if (last.get() == &layout || *last == layout) return entries_.back().layout;
  }
  const auto known = by_value_.find(&layout);
  if (known != by_value_.end()) return known->second;
  layouts_.push_back(std::make_shared<const ParameterLayout>(layout));
  const auto place = static_cast<uint32_t>(layouts_.size() - 1);
  by_value_.emplace(layouts_.back().get(), place);
  return place;
}

void LayoutTable::Finish(std::string path) {
  path_ = std::move(path);
  by_name_.assign(std::bit_ceil(2 * size() + 1), 0);
  bool repeated = false;
  for (size_t i = 0; i < size() && !repeated; ++i) {
    uint32_t& slot = by_name_[SlotOf((*this)[i].name)];
    repeated = slot != 0;
    slot = static_cast<uint32_t>(i + 1);
  }
  if (!repeated) return;
  const LayoutTable all = std::exchange(*this, {});
  path_ = all.path_;
  by_name_.assign(all.by_name_.size(), 0);
  for (const Strategy::Entry entry : all) {
    uint32_t& slot = by_name_[SlotOf(entry.name)];
    if (slot != 0) {
      entries_[slot - 1].layout = Intern(entry.layout);
    } else {
      push_back(entry);
      slot = static_cast<uint32_t>(size());
    }
  }
}

size_t LayoutTable::SlotOf(std::string_view name) const {
  const size_t mask = by_name_.size() - 1;
  size_t slot = std::hash<std::string_view>()(name) & mask;
  while (by_name_[slot] != 0 && (*this)[by_name_[slot] - 1].name != name) slot = (slot + 1) & mask;
  return slot;
}

const ParameterLayout* LayoutTable::Find(std::string_view name) const {
  const uint32_t place = by_name_[SlotOf(name)];
  return place == 0 ? nullptr : &(*this)[place - 1].layout;
}

Status StrategyTables::SetStages(std::vector<LayoutTable> stages) {
  for (size_t s = 0; s < stages.size(); ++s) {
    const std::string name = is_pipeline_ ? fmt::format("stage {}", s) : "this file";
    RESHARD_ASSIGN_OR_RETURN(const int64_t devices, DevicesOf(stages[s], name));
    if (s == 0) devices_per_stage_ = devices;
    if (devices != devices_per_stage_) {
      return MismatchError(
          fmt::format("{}: the stages are for different device counts: in stage 0 {}, in stage {} "
                      "{}; expected one count; do the stages belong to one run?",
                      Escape(path_), Devices(stages[0][0], devices_per_stage_), s,
                      Devices(stages[s][0], devices)));
    }
    layouts_ += stages[s].size();
  }
  const auto count = static_cast<int64_t>(stages.size());
  if (count > kMaxRanks / devices_per_stage_) {
    return CorruptError(fmt::format("{}: expected at most {} ranks, found {} stages of {} devices",
                                    Escape(path_), kMaxRanks, count, devices_per_stage_));
  }
  // Ranks count from the stage's first one, wherever only this stage is there.
  if (own_stage_ >= kMaxRanks / devices_per_stage_) {
    return CorruptError(fmt::format("{}: expected at most {} ranks, found stage {} of {} devices",
                                    Escape(path_), kMaxRanks, own_stage_, devices_per_stage_));
  }
  tables_ = std::move(stages);
  for (const LayoutTable& table : tables_) {
    const Strategy::Stage& stage = stages_.emplace_back(table, std::ssize(stages_));
    if (count == 1) break;
    for (const Strategy::Entry named : table) lowest_stages_.emplace(named.name, stage.number());
  }
  return {};
}

Result<Strategy> StrategyTables::FromFile(StrategyFile file) {
  assert(!file.layouts.empty());
  const auto made = std::make_shared<StrategyTables>(
      StrategyTables(file.path, IsMerged(file.layouts), file.first_item_stage.value_or(0)));
  std::vector<LayoutTable> stages;
  if (made->is_pipeline_) {
    std::map<int64_t, LayoutTable> by_stage;
    for (const Strategy::Entry named : file.layouts) {
      const auto [stage, name] = *SplitStagePrefix(named.name);
      by_stage[stage].push_back(Strategy::Entry{name, named.layout});
    }
    file.layouts.clear();
    std::vector<int64_t> numbers;
    for (auto& [number, layouts] : by_stage) {
      numbers.push_back(number);
      stages.push_back(std::move(layouts));
    }
    RESHARD_RETURN_IF_ERROR(CheckNoneMissing(file.path, numbers));
  } else {
    stages.push_back(std::move(file.layouts));
  }
  for (LayoutTable& stage : stages) stage.Finish(file.path);
  RESHARD_RETURN_IF_ERROR(made->SetStages(std::move(stages)));
  return Strategy(made);
}

Result<Strategy> StrategyTables::FromStageFiles(std::string folder,
                                                std::vector<StrategyFile> files) {
  FirstFew merged;
  uint64_t repeated = 0;
  std::map<int64_t, LayoutTable> by_stage;
  for (StrategyFile& file : files) {
    const bool is_merged = IsMerged(file.layouts);
    if (is_merged) {
      for (const std::string& copy : file.copies) merged.Add(FileName(copy));
      merged.Add(FileName(file.path));
      continue;
    }
    repeated += file.copies.size();
    if (!file.first_item_stage) {
      return MismatchError(fmt::format(
          "{}: found no strategy item, which would tell the file's stage; expected one in each "
          "stage file of a folder; if there is one stage only, give the file itself",
          Escape(file.path)));
    }
    LayoutTable stage = std::move(file.layouts);
    stage.Finish(std::move(file.path));
    const auto place = by_stage.find(*file.first_item_stage);
    if (place == by_stage.end()) {
      by_stage.emplace(*file.first_item_stage, std::move(stage));
      continue;
    }
    if (const auto difference = Difference(place->second, stage)) {
      return MismatchError(fmt::format(
          "{} and {} are both of stage {} but differ: {}; remove the one that is not from this run",
          Escape(place->second.path()), Escape(stage.path()), place->first, *difference));
    }
    ++repeated;
  }
  if (by_stage.empty()) {
    return MismatchError(
        fmt::format("{}: expected the strategy files of the stages, found only merged ones; give "
                    "the path of one merged file",
                    Escape(folder)));
  }

  std::vector<int64_t> numbers;
  std::vector<LayoutTable> stages;
  for (auto& [number, stage] : by_stage) {
    numbers.push_back(number);
    stages.push_back(std::move(stage));
  }
  RESHARD_RETURN_IF_ERROR(CheckNoneMissing(folder, numbers));
  const auto made = std::make_shared<StrategyTables>(StrategyTables(std::move(folder), true, 0));
  RESHARD_RETURN_IF_ERROR(made->SetStages(std::move(stages)));
  const std::string place = Escape(made->path_);
  if (merged.count() > 0) {
    made->notes_.push_back(fmt::format("{}: skipped {} merged strategy file{}: {}", place,
                                       merged.count(), merged.count() == 1 ? "" : "s",
                                       merged.Joined()));
  }
  if (repeated > 0) {
    made->notes_.push_back(
        fmt::format("{}: skipped {}, the same as another of {} stage", place,
                    repeated == 1 ? "1 strategy file" : fmt::format("{} strategy files", repeated),
                    repeated == 1 ? "its" : "their"));
  }
  return Strategy(made);
}

Result<Strategy> StrategyTables::FromLayouts(std::vector<LayoutTable> stages, bool is_pipeline,
                                             int64_t own_stage, const std::string& path) {
  if (stages.empty() ||
      std::any_of(stages.begin(), stages.end(), std::mem_fn(&LayoutTable::empty))) {
    return InvalidArgumentError(
        fmt::format("{}: {}", path,
                    stages.size() < 2 ? "has no parameters" : "has a stage without parameters"));
  }
  if (!is_pipeline && IsMerged(stages.front())) {
    return MismatchError(
        fmt::format("expected the name of a parameter without a stage, found only names such as "
                    "{}, which readers take for a pipeline's (0-NAME); write it as a pipeline with "
                    "one stage (\"stages\" in place of \"parameters\")",
                    Quote(stages.front()[0].name)));
  }
  for (LayoutTable& stage : stages) stage.Finish(path);
  const auto made = std::make_shared<StrategyTables>(StrategyTables(path, is_pipeline, own_stage));
  RESHARD_RETURN_IF_ERROR(made->SetStages(std::move(stages)));
  return Strategy(made);
}

Result<Strategy> StrategyTables::Renamed(const Strategy& strategy, const NewName& new_name) {
  std::vector<LayoutTable> stages(strategy.stages().size());
  for (size_t s = 0; s < stages.size(); ++s) {
    std::map<std::string, std::string_view> old_names;  // by new name
    for (const auto [name, layout] : strategy.stages()[s]) {
      RESHARD_ASSIGN_OR_RETURN(std::string renamed, new_name(std::string(name)));
      const auto [other, is_new] = old_names.emplace(std::move(renamed), name);
      if (!is_new) {
        return InvalidArgumentError(fmt::format(
            "{}: the parameters {} and {} would both be called {}; rename one differently",
            Escape(strategy.path()), Quote(other->second), Quote(name), Quote(other->first)));
      }
      stages[s].push_back(Strategy::Entry{other->first, layout});
    }
  }
  return FromLayouts(std::move(stages), strategy.is_pipeline(), strategy.own_stage(),
                     strategy.path());
}

const std::string& Strategy::Stage::path() const { return table_->path(); }
size_t Strategy::Stage::size() const { return table_->size(); }
Strategy::Entry Strategy::Stage::At(const LayoutTable& table, size_t place) { return table[place]; }
const ParameterLayout* Strategy::Stage::Find(std::string_view name) const {
  return table_->Find(name);
}

Result<Strategy> Strategy::Make(const std::vector<NamedLayout>& layouts, int64_t own_stage) {
  if (own_stage < 0 || own_stage >= kMaxRanks) {
    return InvalidArgumentError(
        fmt::format("{}: expected a stage of its own from 0 to {}, found {}", kMadeStrategy,
                    kMaxRanks - 1, own_stage));
  }
  return MakeOf({&layouts, 1}, false, own_stage);
}

Result<Strategy> Strategy::MakePipeline(const std::vector<std::vector<NamedLayout>>& stages) {
  return MakeOf(stages, true, 0);
}

const std::string& Strategy::path() const { return tables_->path_; }
bool Strategy::is_pipeline() const { return tables_->is_pipeline_; }
const std::vector<Strategy::Stage>& Strategy::stages() const { return tables_->stages_; }
int64_t Strategy::devices_per_stage() const { return tables_->devices_per_stage_; }
int64_t Strategy::ranks() const { return devices_per_stage() * std::ssize(stages()); }
int64_t Strategy::own_stage() const { return tables_->own_stage_; }
size_t Strategy::layouts() const { return tables_->layouts_; }
const std::vector<std::string>& Strategy::notes() const { return tables_->notes_; }

std::optional<int64_t> Strategy::LowestStage(std::string_view name) const {
  if (stages().size() == 1) {
    return stages()[0].Find(name) == nullptr ? std::nullopt : std::optional<int64_t>(0);
  }
  const auto found = tables_->lowest_stages_.find(name);
  return found == tables_->lowest_stages_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::pair<int64_t, std::string_view>> SplitStagePrefix(std::string_view name) {
  const size_t digits = name.find_first_not_of("0123456789");
  if (digits == 0 || digits == std::string_view::npos || name[digits] != '-') return std::nullopt;
  int64_t stage = 0;
  const auto parsed = std::from_chars(name.data(), name.data() + digits, stage);
  if (parsed.ec != std::errc()) stage = std::numeric_limits<int64_t>::max();
  return std::pair(stage, name.substr(digits + 1));
}

bool IsMerged(const LayoutTable& layouts) {
  return !layouts.empty() && std::all_of(layouts.begin(), layouts.end(), [](const auto& named) {
    return SplitStagePrefix(named.name).has_value();
  });
}

}  // namespace reshard
