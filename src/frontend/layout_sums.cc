#include "src/frontend/layout_sums.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <variant>

namespace reshard {
namespace {

// Equal bins for `count` numbers from `first` on.
std::vector<FileBin> MakeBins(int64_t first, int64_t count) {
  const int64_t width = (count + kMostRankBins - 1) / kMostRankBins;
  std::vector<FileBin> bins;
  for (int64_t i = 0; i < count; i += width) {
    bins.push_back({.first = first + i, .last = first + std::min(i + width, count) - 1});
  }
  return bins;
}

size_t BinAt(const std::vector<FileBin>& bins, int64_t number) {
  const int64_t width = bins[0].last - bins[0].first + 1;
  return static_cast<size_t>((number - bins[0].first) / width);
}

void AddTo(FileBin& bin, uint64_t size) {
  bin.least = bin.files == 0 ? size : std::min(bin.least, size);
  bin.most = std::max(bin.most, size);
  bin.file_bytes += size;
  ++bin.files;
}

// The dtype of a parameter; text entries and MapTensors, which have none, are planned as bytes.
std::string_view TypeOf(const PlanFindings::Parameter& parameter) {
  return parameter.kind == ArrayKind::kTensor ? DTypeName(parameter.target_dtype) : kAsTheyStand;
}

}  // namespace

SideSums::SideSums(int64_t first_rank, int64_t stages, int64_t devices) {
  side_.first_rank = first_rank;
  side_.stages = stages;
  side_.devices_per_stage = devices;
  side_.by_rank = MakeBins(first_rank, stages * devices);
  side_.by_stage = MakeBins(first_rank / devices, stages);
}

size_t SideSums::BinOf(int64_t rank) const { return BinAt(side_.by_rank, rank); }

size_t SideSums::StageBinOf(int64_t rank) const {
  const int64_t first_stage = side_.by_stage[0].first;
  return BinAt(side_.by_stage, first_stage + (rank - side_.first_rank) / side_.devices_per_stage);
}

void SideSums::AddFile(int64_t rank, uint64_t size) {
  AddTo(side_.by_rank[BinOf(rank)], size);
  AddTo(side_.by_stage[StageBinOf(rank)], size);
}

void SideSums::AddContent(int64_t rank, uint64_t bytes) {
  side_.by_rank[BinOf(rank)].content_bytes += bytes;
  side_.by_stage[StageBinOf(rank)].content_bytes += bytes;
}

ByteShare& ShareSums::Of(std::string_view name) {
  auto found = by_name_.find(name);
  if (found == by_name_.end()) {
    found = by_name_.emplace(name, ByteShare{}).first;
    found->second.name = name;
  }
  return found->second;
}

void ShareSums::AddFull(std::string_view name, uint64_t bytes) {
  ByteShare& share = Of(name);
  share.full_bytes += bytes;
  ++share.parameters;
}

void ShareSums::AddStored(std::string_view name, uint64_t bytes) { Of(name).stored_bytes += bytes; }

std::vector<ByteShare> ShareSums::Sorted() const {
  std::vector<ByteShare> shares;
  shares.reserve(by_name_.size());
  for (const auto& [name, share] : by_name_) shares.push_back(share);
  std::stable_sort(shares.begin(), shares.end(), [](const ByteShare& a, const ByteShare& b) {
    return a.stored_bytes > b.stored_bytes;
  });
  return shares;
}

std::string_view PrefixOf(std::string_view name) {
  const size_t dot = name.find('.');
  return dot == std::string_view::npos ? std::string_view() : name.substr(0, dot + 1);
}

LayoutSums::LayoutSums(SideSums source, SideSums target, std::map<FileId, int64_t> ranks)
    : source_(std::move(source)),
      target_(std::move(target)),
      ranks_(std::move(ranks)),
      flow_(source_.bins() * target_.bins()) {}

void LayoutSums::Add(const TargetPlan& plan, const PlanFindings& findings) {
  target_.AddFile(plan.rank, plan.size);
  const size_t column = target_.BinOf(plan.rank);
  for (const Segment& segment : plan.segments) {
    const auto* content = std::get_if<Content>(&segment);
    if (content == nullptr) continue;
    dtypes_.AddStored(TypeOf(findings.parameters.at(std::string(content->target_name))),
                      content->target.length);
    prefixes_.AddStored(PrefixOf(content->target_name), content->target.length);
    target_.AddContent(plan.rank, content->target.length);
    for (const BlockCopy& copy : content->copies) {
      const int64_t rank = ranks_.at(copy.source);
      source_.AddContent(rank, copy.bytes());
      flow_[source_.BinOf(rank) * target_.bins() + column] += copy.bytes();
      if (copy.run_length == 0) continue;
      RunBin& bin = runs_[static_cast<size_t>(std::bit_width(copy.run_length) - 1)];
      bin.runs += copy.runs();
      bin.bytes += copy.bytes();
    }
  }
}

void LayoutSums::Finish(const PlanFindings& findings, LayoutReport& report) {
  for (const auto& [name, parameter] : findings.parameters) {
    const bool tensor = parameter.kind == ArrayKind::kTensor;
    const uint64_t bytes = tensor ? parameter.bytes : 0;  // findings have no shape
    dtypes_.AddFull(TypeOf(parameter), bytes);
    prefixes_.AddFull(PrefixOf(name), bytes);
  }
  report.source = source_.side();
  report.target = target_.side();
  report.flow = std::move(flow_);
  report.dtypes = dtypes_.Sorted();
  report.prefixes = prefixes_.Sorted();
  for (size_t b = 0; b < kLengths; ++b) {
    if (runs_[b].runs == 0) continue;
    const uint64_t shortest = uint64_t{1} << b;
    report.runs.push_back({shortest, shortest - 1 + shortest, runs_[b].runs, runs_[b].bytes});
  }
}

}  // namespace reshard
