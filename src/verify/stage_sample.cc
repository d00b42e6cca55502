#include "src/verify/stage_sample.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "reshard/parameters.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/io/window_cache.h"
#include "src/mindspore/layout_grid.h"
#include "src/mindspore/optimizer_copy.h"
#include "src/plan/training_counter.h"
#include "src/source/indexed_file.h"

namespace reshard {
namespace {

constexpr uint64_t kPlaceBytes = 4096;
constexpr uint64_t kHeadBytes = 1024;
constexpr size_t kParametersOfLayout = 3;
// So many parameters of a layout are looked at before constant ones are taken.
constexpr size_t kTries = 8;
// A rank is worth so many reads at least.
constexpr int64_t kLeastReads = 8;
// Limits for arrays that are not placed. An unmatched tensor may be one too many, and few
// checkpoints have any.
constexpr size_t kMostUnmatched = 256;
constexpr size_t kMostCounters = 8;
constexpr size_t kRanksOfUnmatched = 4;
// The most reads for an index of such a rank.
constexpr size_t kMostHeadersOfUnmatched = 4096;

bool IsSampled(const StoredArray& parameter) {
  return parameter.kind == ArrayKind::kTensor && parameter.bytes > 0 &&
         !IsAccumulatedGradient(parameter.name);
}

// Whether a layout cuts the parameter, so that ranks hold different parts.
bool IsCutBy(const StoredArray& parameter, const ParameterLayout* layout) {
  if (layout == nullptr) return false;
  const auto grid = MakeGrid(*layout, parameter.shape.size(), "");
  return grid.ok() && grid->parts() > 1;
}

SampledParameter::Place PlaceAt(const StoredArray& info, size_t value, uint64_t in_value,
                                uint64_t offset) {
  const ByteRange& content = info.content[value];
  SampledParameter::Place place;
  place.offset = offset;
  place.content = {content.offset + in_value, std::min(kPlaceBytes, content.length - in_value)};
  if (in_value == 0) {
    const uint64_t before = std::min(content.offset - info.framed[value].offset, kHeadBytes);
    place.head = {content.offset - before, before};
  }
  return place;
}

// The beginning, the middle and the end. If a parameter has several Values: the beginnings of the
// first, the middle and the last one, which have headers before them.
std::vector<SampledParameter::Place> PlacesOf(const StoredArray& info, bool all) {
  std::vector<SampledParameter::Place> places;
  if (info.content.size() > 1) {
    std::set<size_t> values = {0};
    if (all) values = {0, info.content.size() / 2, info.content.size() - 1};
    uint64_t offset = 0;
    for (size_t i = 0; i < info.content.size(); ++i) {
      if (values.contains(i) && info.content[i].length > 0) {
        places.push_back(PlaceAt(info, i, 0, offset));
      }
      offset += info.content[i].length;
    }
    return places;
  }
  places.push_back(PlaceAt(info, 0, 0, 0));
  const uint64_t bytes = info.content[0].length;
  if (!all || bytes <= kPlaceBytes) return places;
  const uint64_t last = bytes - std::min(kPlaceBytes, bytes - kPlaceBytes);
  // From the middle on: one that crosses it may take two requests of a server, as sizes are mostly
  // powers of two.
  const uint64_t middle = bytes / 2 - bytes / 2 % ItemBytes(info.dtype);
  if (middle + kPlaceBytes <= last) places.push_back(PlaceAt(info, 0, middle, middle));
  places.push_back(PlaceAt(info, 0, last, last));
  return places;
}

// Whether all of `bytes` are one value of the parameter.
bool IsConstant(const StoredArray& info, const std::vector<std::string>& bytes) {
  const size_t element = ItemBytes(info.dtype);
  const std::string first = bytes.empty() ? "" : bytes[0].substr(0, element);
  return std::all_of(bytes.begin(), bytes.end(), [&](const std::string& part) {
    return part.size() < element ||
           (part.compare(0, element, first) == 0 &&
            std::memcmp(part.data(), part.data() + element, part.size() - element) == 0);
  });
}

// Makes a server send the bytes of a parameter. The later read reports an error.
void AskForPlaces(SourceFiles& files, FileId file,
                  const std::vector<SampledParameter::Place>& places) {
  for (const SampledParameter::Place& place : places) {
    const ByteRange range{place.content.offset - place.head.length,
                          place.head.length + place.content.length};
    static_cast<void>(files.PrefetchPages(file, range));
  }
}

}  // namespace

Status StageSample::Choose(int64_t reads, int64_t files) {
  present_ = source_.ranks().LocalRanks(stage_);
  if (present_.empty()) return {};
  // In a single rank, only counters of training are compared, with other stages.
  if (IsAlone() && source_.HasNewFile(stage_, present_.front())) return {};
  int64_t at_first = budget_.reads;
  RESHARD_RETURN_IF_ERROR(ChooseReference());
  reference_size_ = reference_->file_size();
  RESHARD_ASSIGN_OR_RETURN(const SourceReader reader,
                           source_.files().OpenReader(reference_->file()));
  is_remote_ = reader.IsRemote();
  RESHARD_RETURN_IF_ERROR(ListGroups());
  const bool none = groups_.empty() && unmatched_.empty() && counters_.empty();
  if (none || reads < kLeastReads) return {};

  const size_t most = static_cast<size_t>(std::max<int64_t>(2, reads / kLeastReads));
  groups_.resize(std::min(groups_.size(), static_cast<size_t>(reads) / 2));
  std::vector<int64_t> locals = ChooseRanks(std::min(most, present_.size()));
  std::erase_if(locals, [&](int64_t local) {
    return local != reference_local_ && source_.HasNewFile(stage_, local) && files-- <= 0;
  });
  int64_t of_others = ReadsOfOthers(locals.size());
  if (unmatched_.empty()) {
    of_others = std::min(of_others, reads / 2);
  } else {
    reads_of_unmatched_ =
        static_cast<int64_t>(std::min(reference_->arrays().size() + 2, kMostHeadersOfUnmatched));
    const int64_t more = of_others + reads_of_unmatched_ * static_cast<int64_t>(kRanksOfUnmatched);
    budget_.granted += more;
    budget_.reads += more;
    at_first += more;
    reads += of_others;
  }
  // An equal number of reads for each rank, and every layout before a second parameter of the same.
  const auto of_rank = static_cast<size_t>(reads - of_others) * 3 / 4 / locals.size();
  const bool all_places = of_rank >= 3 * groups_.size();
  const size_t of_group =
      std::clamp<size_t>(of_rank / std::max<size_t>(3 * groups_.size(), 1), 1, kParametersOfLayout);
  const auto groups = std::min(groups_.size(), std::max<size_t>(of_rank, 1));
  const int64_t least = budget_.reads - reads / 4;
  AskAhead(locals, groups, of_group, all_places);
  for (size_t i = 0; i < groups; ++i) {
    RESHARD_RETURN_IF_ERROR(ChooseParameters(groups_[i], of_group, all_places, least));
  }
  RESHARD_RETURN_IF_ERROR(AddOthers());
  ranks_.resize(locals.size());
  for (size_t i = 0; i < locals.size(); ++i) {
    ranks_[i].local = locals[i];
    ranks_[i].known = locals[i] == reference_local_ || !source_.HasNewFile(stage_, locals[i]);
    if (!ranks_[i].known) --budget_.files;
  }
  const auto unopened = std::count_if(ranks_.begin(), ranks_.end(),
                                      [](const SampledRank& rank) { return !rank.known; });
  reads_of_index_ = budget_.reads - (at_first - reads) -
                    static_cast<int64_t>(of_rank * ranks_.size()) - of_others;
  if (unopened > 0) reads_of_index_ /= unopened;
  return {};
}

Status StageSample::ChooseReference() {
  std::vector<int64_t> order = present_;
  std::stable_partition(order.begin(), order.end(),
                        [this](int64_t local) { return !source_.HasNewFile(stage_, local); });
  std::set<uint64_t> seen;  // tables
  for (const int64_t local : order) {
    const bool is_new = source_.HasNewFile(stage_, local);
    if (is_new && reference_ && !reference_->arrays().empty()) break;
    if (!is_new && seen.contains(source_.KnownTableId(stage_, local))) continue;
    RESHARD_ASSIGN_OR_RETURN(TableHandle table, source_.TableOf(stage_, local));
    seen.insert(table->table().id());
    if (!reference_ || table->arrays().size() > reference_->arrays().size()) {
      reference_ = std::move(table);
      reference_local_ = local;
    }
    if (seen.size() == kTries) break;
  }
  return {};
}

Status StageSample::ListGroups() {
  const Strategy::Stage& layouts = strategy_.stages()[static_cast<size_t>(stage_)];
  const auto less = [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second < b.second : *a.first < *b.first;
  };
  std::map<std::pair<const ParameterLayout*, size_t>, size_t, decltype(less)> by_layout(less);
  for (const StoredArray& parameter : reference_->arrays()) {
    if (!names_.choice.Takes(parameter.name)) continue;
    const ParameterLayout* layout = layouts.Find(parameter.name);
    if (IsTrainingCounter(parameter) && !IsCutBy(parameter, layout)) {
      counters_.push_back(&parameter);
      continue;
    }
    if (IsAlone() || !IsSampled(parameter)) continue;
    if (std::binary_search(names_.unmatched.begin(), names_.unmatched.end(), parameter.name)) {
      unmatched_.push_back(&parameter);
    }
    if (layout == nullptr) continue;
    const auto [place, is_new] =
        by_layout.try_emplace({layout, parameter.shape.size()}, groups_.size());
    if (is_new) {
      Group group;
      RESHARD_ASSIGN_OR_RETURN(
          group.grid,
          MakeGrid(*layout, parameter.shape.size(),
                   fmt::format("{}, {}", source_.Where(reference_->file(), parameter.name),
                               Escape(strategy_.path()))));
      group.cut = group.grid.parts() > 1;
      group.replicas = group.grid.parts() < group.grid.devices();
      any_cut_ = any_cut_ || group.cut;
      any_matrix_has_replicas_ =
          any_matrix_has_replicas_ || (group.replicas && parameter.shape.size() >= 2);
      groups_.push_back(std::move(group));
    }
    groups_[place->second].parameters.push_back(&parameter);
  }
  const auto is_own = [](const StoredArray* a) { return OptimizerGroup(a->name).empty(); };
  const auto is_larger = [](const StoredArray* a, const StoredArray* b) {
    return a->bytes > b->bytes;
  };
  for (Group& group : groups_) {
    const auto begin = group.parameters.begin();
    const auto end = group.parameters.end();
    const auto others = std::stable_partition(begin, end, is_own);
    std::stable_sort(begin, others, is_larger);
    std::stable_sort(others, end, is_larger);
  }
  const auto weight = [](const Group& group) {
    return (group.cut ? 2 : 0) + (group.replicas ? 1 : 0);
  };
  std::stable_sort(groups_.begin(), groups_.end(), [&](const Group& a, const Group& b) {
    if (weight(a) != weight(b)) return weight(a) > weight(b);
    return a.parameters.front()->bytes > b.parameters.front()->bytes;
  });
  return {};
}

void StageSample::AddRelatives(int64_t base, std::vector<int64_t>& order) const {
  order.push_back(base);
  for (size_t g = 0; g < std::min<size_t>(groups_.size(), kTries); ++g) {
    const ShardGrid& grid = groups_[g].grid;
    const std::vector<int64_t> parts = grid.PartsOf(base);
    std::vector<int64_t> same;
    if (static_cast<int64_t>(present_.size()) < grid.replicas()) {
      std::copy_if(present_.begin(), present_.end(), std::back_inserter(same),
                   [&](int64_t local) { return grid.PartsOf(local) == parts; });
    } else {
      same = grid.Replicas(parts);
      std::erase_if(same, [&](int64_t local) {
        return !std::binary_search(present_.begin(), present_.end(), local);
      });
    }
    for (size_t i = 1; i < same.size(); i *= 2) order.push_back(same[i]);
    if (!same.empty()) order.push_back(same.back());
  }
}

std::vector<int64_t> StageSample::ChooseRanks(size_t most) const {
  std::vector<int64_t> order = {reference_local_};
  if (most < present_.size()) {
    const size_t count = present_.size();
    AddRelatives(present_.front(), order);
    for (size_t i = 1; i < count; i *= 2) order.push_back(present_[i]);
    for (const size_t base : {count - 1, count / 2, count / 3}) {
      AddRelatives(present_[base], order);
    }
  } else {
    order.insert(order.end(), present_.begin(), present_.end());
  }
  std::set<int64_t> seen;
  std::erase_if(order,
                [&](int64_t local) { return seen.size() == most || !seen.insert(local).second; });
  std::sort(order.begin(), order.end());
  return order;
}

// Large parameters first, and then some of the rest, spread evenly.
const StoredArray* StageSample::InTurn(const Group& group, size_t i) {
  const auto& all = group.parameters;
  const bool in_turn = i < 2 || all.size() <= kTries;
  return in_turn ? all[i] : all[i * (all.size() - 1) / (kTries - 1)];
}

void StageSample::AskAhead(const std::vector<int64_t>& locals, size_t groups, size_t count,
                           bool all_places) {
  if (!is_remote_) return;
  for (size_t g = 0; g < groups; ++g) {
    for (size_t i = 0; i < std::min(count, groups_[g].parameters.size()); ++i) {
      const auto places = PlacesOf(*InTurn(groups_[g], i), all_places);
      for (const int64_t local : locals) {
        if (source_.KnownTableId(stage_, local) != reference_->table().id()) continue;
        const int64_t rank = source_.RankOf(stage_, local);
        AskForPlaces(source_.files(), source_.ranks().files.at(rank), places);
      }
    }
  }
}

void StageSample::AskAhead(SourceFiles& files, FileId file) const {
  if (!is_remote_) return;
  for (const SampledParameter& parameter : parameters_) {
    AskForPlaces(files, file, parameter.places);
  }
}

Status StageSample::ChooseParameters(const Group& group, size_t count, bool all_places,
                                     int64_t least) {
  std::vector<std::pair<SampledParameter, SampledShard>> constant;
  size_t chosen = 0;
  const auto take = [&](SampledParameter parameter, SampledShard shard) {
    parameters_.push_back(std::move(parameter));
    reference_shards_.push_back(std::move(shard));
    ++chosen;
  };
  const auto& all = group.parameters;
  for (size_t i = 0; i < std::min(all.size(), kTries) && chosen < count; ++i) {
    if (chosen + constant.size() >= count && budget_.reads <= least) break;
    const StoredArray* info = InTurn(group, i);
    const auto is_it = [&](const SampledParameter& other) { return other.info == info; };
    if (std::any_of(parameters_.begin(), parameters_.end(), is_it)) continue;
    SampledParameter parameter{info, &group.grid, group.cut, PlacesOf(*info, all_places)};
    if (parameter.places.empty()) continue;
    RESHARD_ASSIGN_OR_RETURN(SampledShard shard, ReadReference(parameter));
    if (shard.constant) {
      constant.emplace_back(std::move(parameter), std::move(shard));
    } else {
      take(std::move(parameter), std::move(shard));
    }
  }
  // Of constants one is enough: they may still differ from rank to rank.
  if (chosen < count && !constant.empty()) {
    take(std::move(constant[0].first), std::move(constant[0].second));
  }
  return {};
}

Result<SampledShard> StageSample::ReadReference(SampledParameter& parameter) {
  SampledShard shard;
  shard.held = true;
  for (SampledParameter::Place& place : parameter.places) {
    RESHARD_RETURN_IF_ERROR(ReadPlace(source_.files(), reference_->file(), place, place.header,
                                      shard.bytes.emplace_back()));
  }
  shard.constant = IsConstant(*parameter.info, shard.bytes);
  return shard;
}

int64_t StageSample::ReadsOfOthers(size_t ranks) const {
  const size_t places = is_remote_ ? 1 : 3;
  return static_cast<int64_t>(std::min(unmatched_.size(), kMostUnmatched) * places *
                                  std::min(ranks, kRanksOfUnmatched) +
                              std::min(counters_.size(), kMostCounters) * ranks);
}

Status StageSample::AddOthers() {
  const auto add = [&](const StoredArray* info, SampledAs as, bool all_places) -> Status {
    SampledParameter parameter{info, nullptr, false, PlacesOf(*info, all_places), as};
    if (parameter.places.empty()) return {};
    RESHARD_ASSIGN_OR_RETURN(SampledShard shard, ReadReference(parameter));
    if (as == SampledAs::kUnmatched && shard.constant) return {};  // it has no evidence
    parameters_.push_back(std::move(parameter));
    reference_shards_.push_back(std::move(shard));
    return {};
  };
  const size_t tries = std::min(unmatched_.size(), 2 * kMostUnmatched);
  const size_t most = parameters_.size() + kMostUnmatched;
  for (size_t i = 0; i < tries && parameters_.size() < most; ++i) {  // here and there
    RESHARD_RETURN_IF_ERROR(
        add(unmatched_[i * unmatched_.size() / tries], SampledAs::kUnmatched, !is_remote_));
  }
  for (size_t i = 0; i < std::min(counters_.size(), kMostCounters); ++i) {
    RESHARD_RETURN_IF_ERROR(add(counters_[i], SampledAs::kCounter, false));
  }
  return {};
}

bool StageSample::IsReadIn(const SampledParameter& parameter, int64_t local) const {
  return parameter.as != SampledAs::kUnmatched || IsForUnmatched(local);
}

bool StageSample::IsForUnmatched(int64_t local) const {
  if (ranks_.size() <= kRanksOfUnmatched) return true;
  // The first and the last differ in each device axis.
  const size_t middle = ranks_.size() / 2;
  return local == reference_local_ || local == ranks_.front().local ||
         local == ranks_[middle].local || local == ranks_.back().local;
}

Status StageSample::Read(size_t index) {
  SampledRank& rank = ranks_[index];
  if (rank.local == reference_local_) {
    rank.shards = reference_shards_;
    rank.read = true;
    return {};
  }
  rank.shards.resize(parameters_.size());
  const FileId file = source_.ranks().files.at(RankOf(rank));
  if (rank.known) return ReadOpened(rank, file);
  const Status status = ReadUnopened(rank, source_.PathOf(file));
  if (status.ok()) return {};
  rank.read = false;
  rank.unread = fmt::format("rank {}: {}", RankOf(rank), status.message());
  return {};
}

Status StageSample::ReadOpened(SampledRank& rank, FileId file) {
  TableHandle index;
  if (source_.KnownTableId(stage_, rank.local) != reference_->table().id()) {
    RESHARD_ASSIGN_OR_RETURN(index, source_.TableOf(stage_, rank.local));
  } else {
    AskAhead(source_.files(), file);
  }
  for (size_t p = 0; p < parameters_.size(); ++p) {
    const SampledParameter& parameter = parameters_[p];
    if (!IsReadIn(parameter, rank.local)) continue;
    if (index) {
      RESHARD_RETURN_IF_ERROR(ReadElsewhere(
          source_.files(), file, index->Find(parameter.info->name), parameter, rank.shards[p]));
    } else {
      RESHARD_RETURN_IF_ERROR(ReadAlike(source_.files(), file, parameter, rank.shards[p]).status());
    }
  }
  rank.read = true;
  return {};
}

Status StageSample::ReadUnopened(SampledRank& rank, const std::string& path) {
  const FileId file = others_.Add(path);
  RESHARD_ASSIGN_OR_RETURN(const uint64_t size, others_.Size(file));
  // One header is read at once, and its order of tensors may be another one.
  const bool has_one_header = reference_->table().container().has_one_header;
  bool alike = size == reference_size_ && !has_one_header;
  if (alike) AskAhead(others_, file);
  for (size_t p = 0; alike && p < parameters_.size(); ++p) {
    if (!IsReadIn(parameters_[p], rank.local)) continue;
    RESHARD_ASSIGN_OR_RETURN(alike, ReadAlike(others_, file, parameters_[p], rank.shards[p]));
  }
  if (!alike) {
    // An empty file needs no requests, and a small file comes whole with few requests.
    const uint64_t headers = has_one_header ? 0 : reference_->arrays().size();
    const auto values = static_cast<int64_t>(2 + std::min(headers, size / kGranuleBytes));
    const bool is_compared = reads_of_unmatched_ > 0 && IsForUnmatched(rank.local);
    if (values > std::max(reads_of_index_, is_compared ? reads_of_unmatched_ : 0)) {
      return {};  // unknown, so it is not reported
    }
    budget_.reads -= values;
    RESHARD_ASSIGN_OR_RETURN(const IndexedFile index,
                             ReadTableInSet(others_, file, source_.memory()));
    for (size_t p = 0; p < parameters_.size(); ++p) {
      const SampledParameter& parameter = parameters_[p];
      if (!IsReadIn(parameter, rank.local)) continue;
      RESHARD_RETURN_IF_ERROR(ReadElsewhere(others_, file, index.Find(parameter.info->name),
                                            parameter, rank.shards[p]));
    }
  }
  rank.read = true;
  return {};
}

Result<bool> StageSample::ReadAlike(SourceFiles& files, FileId file,
                                    const SampledParameter& parameter, SampledShard& shard) {
  shard = {};
  for (const SampledParameter::Place& place : parameter.places) {
    std::string header;
    std::string bytes;
    RESHARD_RETURN_IF_ERROR(ReadPlace(files, file, place, header, bytes));
    if (header != place.header) return false;
    shard.bytes.push_back(std::move(bytes));
  }
  shard.held = true;
  shard.constant = IsConstant(*parameter.info, shard.bytes);
  return true;
}

Status StageSample::ReadElsewhere(SourceFiles& files, FileId file, const StoredArray* info,
                                  const SampledParameter& parameter, SampledShard& shard) {
  shard = {};
  if (info == nullptr || info->kind != ArrayKind::kTensor) return {};
  shard.held = true;
  shard.other_type = info->dtype != parameter.info->dtype || info->shape != parameter.info->shape;
  if (shard.other_type) return {};
  const auto places = PlacesOf(*info, parameter.places.size() > 1);
  for (const SampledParameter::Place& place : places) {
    std::string header;
    RESHARD_RETURN_IF_ERROR(ReadPlace(files, file, place, header, shard.bytes.emplace_back()));
  }
  // Values may be cut elsewhere; then a comparison is impossible.
  shard.held = std::equal(places.begin(), places.end(), parameter.places.begin(),
                          parameter.places.end(), [](const auto& a, const auto& b) {
                            return a.offset == b.offset && a.content.length == b.content.length;
                          });
  shard.constant = IsConstant(*parameter.info, shard.bytes);
  return {};
}

Status StageSample::ReadPlace(SourceFiles& files, FileId file, const SampledParameter::Place& place,
                              std::string& header, std::string& bytes) {
  const uint64_t head = place.head.length;
  bytes.resize(head + place.content.length);
  --budget_.reads;
  budget_.bytes += bytes.size();
  RESHARD_RETURN_IF_ERROR(
      files.Read(file, place.content.offset - head, std::as_writable_bytes(std::span(bytes))));
  header = bytes.substr(0, head);
  bytes.erase(0, head);
  return {};
}

}  // namespace reshard
