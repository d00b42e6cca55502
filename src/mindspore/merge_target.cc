#include "src/mindspore/merge_target.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>

#include "format/container/common_metadata.h"
#include "format/container_table/container_table.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/mindspore/conversion_rule.h"
#include "src/mindspore/joined_slices.h"
#include "src/mindspore/optimizer_copy.h"
#include "src/mindspore/unmatched_names.h"
#include "src/plan/plan_findings.h"
#include "src/plan/target_file.h"
#include "src/source/listed_placement.h"
#include "src/source/part_list.h"
#include "src/source/source.h"
#include "src/tensor/byte_box.h"

namespace reshard {
namespace {

// One parameter as one of the files has it.
struct Slice {
  const StoredArray* parameter = nullptr;
  FileId file = 0;
  int64_t number = 0;  // of the file
};

std::string DescribeType(const StoredArray& parameter) {
  if (parameter.kind == ArrayKind::kMapTensor)
    return fmt::format("a MapTensor of {} bytes", parameter.bytes);
  if (parameter.kind == ArrayKind::kText) {
    return fmt::format("a text of {} bytes", parameter.bytes);
  }
  return fmt::format("{} {}", DTypeName(parameter.dtype), ToString(parameter.shape));
}

// The bytes that tell all of the parameter: of a MapTensor, types and shapes are in its headers.
StoredContent ContentOf(const Slice& slice) {
  const StoredArray& parameter = *slice.parameter;
  const auto ranges =
      parameter.kind == ArrayKind::kMapTensor ? parameter.framed : parameter.content;
  return {slice.file, {ranges.begin(), ranges.end()}};
}

uint64_t BytesOf(const StoredContent& content) {
  uint64_t bytes = 0;
  for (const ByteRange& range : content.ranges) bytes += range.length;
  return bytes;
}

std::vector<FileId> IdsOf(const MergeFiles& files) {
  std::vector<FileId> ids;
  ids.reserve(files.tables.size());
  for (const TableHandle& index : files.tables) ids.push_back(index->file());
  return ids;
}

// Whether the choice takes the parameter of one of the files.
bool IsTaken(const MergeFiles& files, const StoredArray& parameter) {
  const auto has = [&files](std::string_view name) {
    return std::any_of(files.tables.begin(), files.tables.end(),
                       [name](const TableHandle& index) { return index->Find(name) != nullptr; });
  };
  return files.choice.Takes({parameter.name, parameter.kind, parameter.dtype, parameter.shape},
                            has);
}

}  // namespace

// Finds the parts of the file, and their places.
class MergeBuilder {
 public:
  explicit MergeBuilder(const MergeFiles& files) : files_(files) {}

  Status AddSlices(const StoredArray& parameter, const Strategy* strategy);
  // Takes a parameter once that is the same in all these files.
  Status AddEqual(const std::vector<Slice>& slices);
  // Whether the parameter is merged.
  bool Takes(const StoredArray& parameter);
  // Returns the number of a file.
  int64_t NumberOf(const TableHandle& index) const { return &index - files_.tables.data(); }
  std::unique_ptr<MergeTarget> Finish() &&;

 private:
  std::string Where(FileId file, std::string_view name) const {
    return fmt::format("{}: parameter {}", Escape(files_.files.path(file)), Quote(name));
  }
  // Returns the parameter of this name in every file.
  Result<std::vector<Slice>> SlicesOf(std::string_view name) const;
  Status AddJoined(const std::vector<Slice>& slices, const JoinedSlices& joined);
  Status OtherType(const Slice& first, const Slice& slice) const;

  const MergeFiles& files_;
  std::vector<MergeTarget::Parameter> parameters_;
  PartListBuilder slices_;
  std::vector<EqualContents> equal_;
  std::set<std::string> left_out_;
};

bool MergeBuilder::Takes(const StoredArray& parameter) {
  if (IsTaken(files_, parameter)) return true;
  left_out_.emplace(parameter.name);
  return false;
}

Result<std::vector<Slice>> MergeBuilder::SlicesOf(std::string_view name) const {
  std::vector<Slice> slices;
  std::vector<std::string> without;
  for (const TableHandle& index : files_.tables) {
    if (const StoredArray* parameter = index->Find(name)) {
      slices.push_back({parameter, index->file(), NumberOf(index)});
    } else {
      without.push_back(Escape(files_.files.path(index->file())));
    }
  }
  if (without.empty()) return slices;
  return MismatchError(fmt::format(
      "parameter {}: is in {} of the {} files, not in {}; every file has to hold a slice of every "
      "parameter (files with parameters of their own are merged with `segments=true`)",
      Quote(name), slices.size(), files_.tables.size(), FirstOf(without)));
}

Status MergeBuilder::OtherType(const Slice& first, const Slice& slice) const {
  return MismatchError(
      fmt::format("{}: expected {} as in {}, found {}; do the files belong to one checkpoint?",
                  Where(slice.file, slice.parameter->name), DescribeType(*first.parameter),
                  Escape(files_.files.path(first.file)), DescribeType(*slice.parameter)));
}

Status MergeBuilder::AddEqual(const std::vector<Slice>& slices) {
  const Slice& first = slices.front();
  const StoredArray& parameter = *first.parameter;
  EqualContents equal{std::string(parameter.name), {ContentOf(first)}};
  for (size_t i = 1; i < slices.size(); ++i) {
    const StoredArray& other = *slices[i].parameter;
    StoredContent content = ContentOf(slices[i]);
    if (other.kind != parameter.kind || other.dtype != parameter.dtype ||
        other.shape != parameter.shape || BytesOf(content) != BytesOf(equal.contents.front())) {
      return OtherType(first, slices[i]);
    }
    equal.contents.push_back(std::move(content));
  }
  if (equal.contents.size() > 1) equal_.push_back(std::move(equal));
  parameters_.push_back({std::string(parameter.name), std::nullopt, first.number});
  return {};
}

Status MergeBuilder::AddSlices(const StoredArray& parameter, const Strategy* strategy) {
  RESHARD_ASSIGN_OR_RETURN(const std::vector<Slice> slices, SlicesOf(parameter.name));
  const ParameterLayout* layout = nullptr;
  if (strategy != nullptr) {
    const Strategy::Stage& layouts = strategy->stages().front();
    layout = layouts.Find(parameter.name);
    const auto copied =
        ParameterOfCopy(parameter.name, parameter.shape, [&](std::string_view name) {
          const StoredArray* const found = files_.tables.front()->Find(name);
          return found == nullptr ? nullptr : &found->shape;
        });
    if (layout == nullptr && copied) layout = layouts.Find(*copied);
  }
  const bool is_cut = strategy == nullptr || layout != nullptr;
  if (parameter.kind != ArrayKind::kTensor || parameter.shape.empty() || !is_cut) {
    return AddEqual(slices);
  }
  std::vector<Shape> shapes;
  for (const Slice& slice : slices) {
    const StoredArray& other = *slice.parameter;
    if (other.kind != parameter.kind || other.dtype != parameter.dtype ||
        other.shape.size() != parameter.shape.size()) {
      return OtherType(slices.front(), slice);
    }
    shapes.push_back(other.shape);
  }
  if (layout == nullptr) {
    RESHARD_ASSIGN_OR_RETURN(const JoinedSlices joined,
                             JoinRows(shapes, fmt::format("parameter {}", Quote(parameter.name))));
    return AddJoined(slices, joined);
  }
  RESHARD_ASSIGN_OR_RETURN(const JoinedSlices joined,
                           JoinByLayout(shapes, *layout,
                                        fmt::format("{}: parameter {}", Escape(strategy->path()),
                                                    Quote(parameter.name))));
  return AddJoined(slices, joined);
}

Status MergeBuilder::AddJoined(const std::vector<Slice>& slices, const JoinedSlices& joined) {
  const StoredArray& parameter = *slices.front().parameter;
  if (!TensorBytes(joined.full, parameter.dtype)) {
    return MismatchError(fmt::format("parameter {}: the full shape {} has too many bytes",
                                     Quote(parameter.name), ToString(joined.dims)));
  }
  const size_t tensor = slices_.AddTensor(parameter.name, joined.full);
  // By begin and size of the box, because an empty slice begins at the same place as another one.
  std::map<std::pair<std::vector<int64_t>, std::vector<int64_t>>, std::vector<size_t>> replicas;
  for (size_t i = 0; i < slices.size(); ++i) {
    const Box& box = joined.boxes[i];
    std::vector<size_t>& same = replicas[{box.begin, box.extent}];
    same.push_back(i);
    slices_.AddPart(tensor, box, slices[i].parameter->shape, static_cast<int64_t>(i));
  }
  for (const auto& [box, same] : replicas) {
    if (same.size() == 1) continue;
    EqualContents equal{std::string(parameter.name), {}};
    for (const size_t i : same) equal.contents.push_back(ContentOf(slices[i]));
    equal_.push_back(std::move(equal));
  }
  parameters_.push_back({std::string(parameter.name), joined.dims});
  return {};
}

std::unique_ptr<MergeTarget> MergeBuilder::Finish() && {
  auto placement =
      std::make_unique<const ListedPlacement>(IdsOf(files_), std::move(slices_).Finish());
  auto source = std::make_unique<const Source>(files_.files, files_.cache, *placement);
  std::unique_ptr<MergeTarget> made(
      new MergeTarget(files_, std::move(placement), std::move(source)));
  CommonMetadata common;
  for (const TableHandle& index : files_.tables) common.Add(index->table().metadata());
  common.SetOn(made->metadata_);
  made->metadata_left_out_ = common.LeftOut();
  std::erase_if(made->metadata_.others, [&](const auto& other) {
    return !files_.choice.Takes(other.first) && files_.tables.front()->Find(other.first) != nullptr;
  });
  made->parameters_ = std::move(parameters_);
  made->equal_ = std::move(equal_);
  made->left_out_ = std::move(left_out_);
  return made;
}

MergeTarget::MergeTarget(const MergeFiles& files, std::unique_ptr<const ListedPlacement> placement,
                         std::unique_ptr<const Source> source)
    : Target(*source, files.choice),
      placement_(std::move(placement)),
      source_(std::move(source)),
      path_(files.target),
      container_(WrittenAs(files.tables.front()->table().container())) {}

Result<TargetFile> MergeTarget::MakeFile(int64_t /*file*/, PlanFindings& findings) const {
  findings.left_out = left_out_;
  for (const std::string& key : metadata_left_out_) findings.metadata_left_out.insert(Quote(key));
  return TargetFile{.container = &container_,
                    .metadata = metadata_,
                    .arrays = parameters_.size(),
                    .make = [this, &findings](size_t number, TargetArray& array) {
                      return MakeArray(number, findings, array);
                    }};
}

Status MergeTarget::MakeArray(size_t number, PlanFindings& findings, TargetArray& array) const {
  const auto& [name, joined, file] = parameters_[number];
  constexpr std::array<int64_t, 1> kStages = {0};
  RESHARD_ASSIGN_OR_RETURN(SourceTensor tensor, joined ? source_->Describe(name, 0)
                                                       : source_->FindWhole(name, kStages, file));
  findings.Add(tensor);
  array.name = name;
  array.dtype = tensor.dtype;
  if (joined) findings.parameters[name].full_shape = *joined;
  return TakeWhole(std::move(tensor), array, joined ? &*joined : nullptr);
}

namespace {

Status CheckNamesOf(const MergeFiles& files, const Strategy& strategy) {
  PlanFindings findings;
  for (const TableHandle& index : files.tables) {
    for (const StoredArray& array : index->arrays()) {
      const std::string name(array.name);
      if (!IsTaken(files, array)) {
        findings.left_out.insert(name);
        continue;
      }
      PlanFindings::Parameter& noted = findings.parameters[name];
      noted.source_name = name;
      noted.kind = array.kind;
      noted.dtype = array.dtype;
      noted.full_shape = array.shape;
    }
  }
  constexpr std::array<int64_t, 1> kRanks = {0};
  return CheckNames(ConversionRule(&strategy, nullptr), kRanks, findings,
                    "`unmatched=copy` merges anyway, `exclude` leaves parameters out");
}

}  // namespace

Result<std::unique_ptr<MergeTarget>> MergeSlices(const MergeFiles& files,
                                                 const Strategy* strategy) {
  if (strategy != nullptr) {
    const auto stages = strategy->stages().size();
    if (stages > 1) {
      return MismatchError(fmt::format(
          "{}: has {} stages, but only slices from one stage can be merged; give the strategy for "
          "this stage alone, or convert the whole checkpoint without a target strategy",
          Escape(strategy->path()), stages));
    }
    if (strategy->devices_per_stage() != static_cast<int64_t>(files.tables.size())) {
      return MismatchError(fmt::format(
          "{}: is for {} devices, but there are {} files; name the "
          "files of all ranks, in their order",
          Escape(strategy->path()), strategy->devices_per_stage(), files.tables.size()));
    }
    if (!files.copies_unmatched) RESHARD_RETURN_IF_ERROR(CheckNamesOf(files, *strategy));
  }
  MergeBuilder merged(files);
  const IndexedFile& first = *files.tables.front();
  for (const TableHandle& index : files.tables) {
    for (const StoredArray& parameter : index->arrays()) {
      if (&*index != &first && first.Find(parameter.name) != nullptr) continue;
      if (!merged.Takes(parameter)) continue;
      RESHARD_RETURN_IF_ERROR(merged.AddSlices(parameter, strategy));
    }
  }
  return std::move(merged).Finish();
}

Result<std::unique_ptr<MergeTarget>> MergeSegments(const MergeFiles& files) {
  MergeBuilder merged(files);
  std::unordered_set<std::string_view> seen;
  for (const TableHandle& index : files.tables) {
    for (const StoredArray& parameter : index->arrays()) {
      if (!seen.insert(parameter.name).second || !merged.Takes(parameter)) continue;
      std::vector<Slice> holders;
      for (const TableHandle& other : files.tables) {
        if (const StoredArray* found = other->Find(parameter.name)) {
          holders.push_back({found, other->file(), merged.NumberOf(other)});
        }
      }
      RESHARD_RETURN_IF_ERROR(merged.AddEqual(holders));
    }
  }
  return std::move(merged).Finish();
}

}  // namespace reshard
