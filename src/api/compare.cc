#include "reshard/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "src/api/source_tensors.h"
#include "src/base/out_of_memory.h"
#include "src/base/status_macros.h"
#include "src/digest/xxh3.h"
#include "src/io/shared_work.h"
#include "src/os/retries.h"
#include "src/verify/checkpoint_contents.h"
#include "src/verify/parameter_comparison.h"
#include "src/verify/value_sums.h"

namespace reshard {
namespace {

RanksRead RanksOf(const ContentOptions& options) {
  return options.one_replica ? RanksRead::kOneReplica : RanksRead::kAll;
}

uint64_t BytesRead(const SourceTensors& opened, const Reading& reading,
                   const CheckpointContents& contents) {
  return opened.choice.TakesAll() ? reading.bytes : reading.crc.bytes + contents.bytes;
}

// XXH3-128 of a line for each value, sorted: name, dtype, shape, bytes and digest, tabs between
// them.
std::string DigestOfAll(const std::vector<DigestReport::Parameter>& parameters) {
  std::vector<std::string> lines;
  lines.reserve(parameters.size());
  for (const DigestReport::Parameter& parameter : parameters) {
    const bool map = parameter.kind == ArrayKind::kMapTensor;
    const bool has_shape =
        parameter.kind == ArrayKind::kTensor || parameter.kind == ArrayKind::kPacked;
    lines.push_back(fmt::format(
        "{}\t{}\t{}\t{}\t{}\n", parameter.name, map ? "map" : DTypeName(parameter.dtype),
        has_shape ? ToString(LogicalShape(parameter.kind, parameter.dtype, parameter.shape)) : "-",
        parameter.bytes, parameter.digest));
  }
  std::sort(lines.begin(), lines.end());
  Xxh3 hash;
  for (const std::string& line : lines) hash.Update(line);
  return ToHex(hash.Digest());
}

bool SameType(const TensorInfo& a, const TensorInfo& b) {
  if (a.kind != b.kind) return false;
  return a.kind == ArrayKind::kMapTensor || (a.dtype == b.dtype && a.shape == b.shape);
}

// One of the two.
struct Side {
  SourceTensors opened;
  Reading reading;

  const OpenedSource& source() const { return *opened.source; }
  const std::vector<SourceTensor>& tensors() const { return opened.tensors; }
};

// A parameter that both sides have.
struct CommonParameter {
  size_t place = 0;  // in the report
  size_t a = 0;      // in the parameters of A
  size_t b = 0;
  bool has_values = false;  // with comparable elements
};

// Lists all parameters with their types. `common` gets those of both sides. Finds the differences
// in types and lengths, and marks the others as equal.
std::vector<DiffReport::Parameter> CompareTypes(const Side& a, const Side& b,
                                                std::vector<CommonParameter>& common) {
  std::unordered_map<std::string_view, size_t> in_b;
  for (size_t i = 0; i < b.tensors().size(); ++i) in_b.emplace(b.tensors()[i].name, i);
  std::vector<DiffReport::Parameter> all;
  for (size_t i = 0; i < a.tensors().size(); ++i) {
    const SourceTensor& parameter = a.tensors()[i];
    DiffReport::Parameter diff;
    diff.name = parameter.name;
    diff.a = parameter.Info();
    if (const auto other = in_b.extract(diff.name)) {
      const SourceTensor& same = b.tensors()[other.mapped()];
      diff.b = same.Info();
      common.push_back({all.size(), i, other.mapped(),
                        diff.a->kind == ArrayKind::kTensor && HasComparableValues(diff.a->dtype)});
      if (!SameType(*diff.a, *diff.b)) {
        diff.relation = DiffReport::Relation::kOtherType;
      } else if (parameter.Bytes() != same.Bytes()) {  // text entries or MapTensors
        diff.relation = DiffReport::Relation::kDifferent;
      }
    } else {
      diff.relation = DiffReport::Relation::kOnlyInA;
    }
    all.push_back(std::move(diff));
  }
  for (const SourceTensor& parameter : b.tensors()) {
    if (!in_b.contains(parameter.name)) continue;
    DiffReport::Parameter diff;
    diff.name = parameter.name;
    diff.relation = DiffReport::Relation::kOnlyInB;
    diff.b = parameter.Info();
    all.push_back(std::move(diff));
  }
  return all;
}

// The values of one side that the other side lacks.
std::vector<HeldValue> OnlyIn(const std::vector<HeldValue>& side,
                              const std::vector<HeldValue>& other) {
  const std::set<HeldValue, HeldValue::Less> held(other.begin(), other.end());
  std::vector<HeldValue> only;
  std::copy_if(side.begin(), side.end(), std::back_inserter(only),
               [&](const HeldValue& value) { return !held.contains(value); });
  return only;
}

// The ranks that hold them, ascending.
std::vector<int64_t> RanksHolding(const std::vector<HeldValue>& values) {
  std::vector<int64_t> ranks;
  for (const HeldValue& value : values) {
    ranks.insert(ranks.end(), value.ranks.begin(), value.ranks.end());
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

// One comparison of two checkpoints.
class Comparison {
 public:
  Comparison(const DiffOptions& options, const Side& a, const Side& b)
      : options_(options), a_(a), b_(b) {
    report_.parameters = CompareTypes(a, b, common_);
    for (const CommonParameter& parameter : common_) {
      if (DiffOf(parameter).relation != DiffReport::Relation::kEqual) continue;
      report_.bytes += BytesOf(parameter);
      if (parameter.has_values) value_bytes_ += BytesOf(parameter);
    }
  }

  // Bytes that it reads, at most.
  uint64_t bytes() const {
    if (!options_.one_replica) {
      return a_.reading.bytes + b_.reading.bytes + (options_.values ? value_bytes_ : 0);
    }
    return a_.reading.crc.bytes + b_.reading.crc.bytes + report_.bytes;
  }

  Result<DiffReport> Run(const SharedWork& work) {
    for (const Side* side : {&a_, &b_}) {
      RESHARD_RETURN_IF_ERROR(CheckCrcFiles(*side->opened.source, side->reading.crc, work));
    }
    RESHARD_RETURN_IF_ERROR(options_.one_replica ? CompareOneReplica(work) : CompareAllRanks(work));
    for (const Side* side : {&a_, &b_}) {
      RESHARD_RETURN_IF_ERROR(side->opened.source->files().VerifyUnchanged());
      report_.warnings.insert(report_.warnings.end(), side->opened.warnings.begin(),
                              side->opened.warnings.end());
      report_.notes.insert(report_.notes.end(), side->opened.notes.begin(),
                           side->opened.notes.end());
    }
    return std::move(report_);
  }

 private:
  DiffReport::Parameter& DiffOf(const CommonParameter& parameter) {
    return report_.parameters[parameter.place];
  }
  uint64_t BytesOf(const CommonParameter& parameter) const {
    return a_.tensors()[parameter.a].Bytes();
  }

  Status CompareOneReplica(const SharedWork& work) {
    std::vector<CommonParameter> equal;
    for (const CommonParameter& parameter : common_) {
      if (DiffOf(parameter).relation == DiffReport::Relation::kEqual) equal.push_back(parameter);
    }
    report_.bytes_read = a_.reading.crc.bytes + b_.reading.crc.bytes + 2 * report_.bytes;
    return CompareBytes(equal, work);
  }

  // Compares one replica of each of `parameters` byte by byte. Their types are equal.
  Status CompareBytes(const std::vector<CommonParameter>& parameters, const SharedWork& work) {
    std::vector<ParameterPair> pairs;
    pairs.reserve(parameters.size());
    for (const CommonParameter& parameter : parameters) {
      pairs.push_back({&a_.tensors()[parameter.a], &b_.tensors()[parameter.b]});
    }
    RESHARD_ASSIGN_OR_RETURN(const std::vector<PairDifference> found,
                             CompareParameters(a_.source().tensors(), b_.source().tensors(), pairs,
                                               options_.values, work));
    for (size_t i = 0; i < found.size(); ++i) {
      if (!found[i].differs) continue;
      DiffReport::Parameter& diff = DiffOf(parameters[i]);
      diff.relation = DiffReport::Relation::kDifferent;
      if (options_.values && parameters[i].has_values) diff.values = found[i].values;
    }
    return {};
  }

  Status CompareAllRanks(const SharedWork& work) {
    RESHARD_ASSIGN_OR_RETURN(const CheckpointContents a, ReadContents(a_.opened, work));
    RESHARD_ASSIGN_OR_RETURN(const CheckpointContents b, ReadContents(b_.opened, work));
    report_.a = a.replicas;
    report_.b = b.replicas;
    report_.bytes_read = BytesRead(a_.opened, a_.reading, a) + BytesRead(b_.opened, b_.reading, b);
    std::vector<CommonParameter> different;
    uint64_t bytes = 0;
    for (const CommonParameter& parameter : common_) {
      const bool same_type = DiffOf(parameter).relation == DiffReport::Relation::kEqual;
      CompareHeld(parameter, a.values[parameter.a], b.values[parameter.b]);
      if (same_type && parameter.has_values &&
          DiffOf(parameter).relation == DiffReport::Relation::kDifferent) {
        different.push_back(parameter);
        bytes += BytesOf(parameter);
      }
    }
    if (!options_.values) return {};
    report_.bytes_read += 2 * bytes;
    if (work.progress) work.progress(value_bytes_ - bytes);
    return CompareBytes(different, work);
  }

  // Compares a parameter by the values that the ranks of both sides hold.
  void CompareHeld(const CommonParameter& parameter, const std::vector<HeldValue>& a,
                   const std::vector<HeldValue>& b) {
    DiffReport::Parameter& diff = DiffOf(parameter);
    const std::vector<HeldValue> only_a = OnlyIn(a, b);
    const std::vector<HeldValue> only_b = OnlyIn(b, a);
    if (only_a.empty() && only_b.empty()) {
      diff.relation = DiffReport::Relation::kEqual;
      return;
    }
    if (diff.relation == DiffReport::Relation::kEqual)
      diff.relation = DiffReport::Relation::kDifferent;
    // If all values of a side differ, there is no need to list ranks.
    if (only_a.size() < a.size()) diff.a_ranks = RanksHolding(only_a);
    if (only_b.size() < b.size()) diff.b_ranks = RanksHolding(only_b);
  }

  const DiffOptions& options_;
  const Side& a_;
  const Side& b_;
  std::vector<CommonParameter> common_;
  uint64_t value_bytes_ = 0;  // of parameters whose values may have to be compared
  DiffReport report_;
};

StatisticsReport::Values StatisticsOf(const ValueSums& sums) {
  StatisticsReport::Values statistics{.values = sums.values,
                                      .nans = sums.nans,
                                      .infinities = sums.infinities,
                                      .least = std::nullopt,
                                      .greatest = std::nullopt,
                                      .mean = std::nullopt};
  if (sums.finite() == 0) return statistics;
  statistics.least = sums.least;
  statistics.greatest = sums.greatest;
  statistics.mean = sums.sum / static_cast<double>(sums.finite());
  return statistics;
}

}  // namespace

inline namespace v0_1 {

Result<DigestReport> DigestCheckpoint(const ContentOptions& options) {
  return CatchOutOfMemory([&]() -> Result<DigestReport> {
    RESHARD_RETURN_IF_ERROR(CheckJobs(options.run.jobs));
    const RetryScope retries(options.run);
    RESHARD_ASSIGN_OR_RETURN(
        SourceTensors opened,
        OpenTensors(options.source, {options.include, options.exclude, {}}, RanksOf(options),
                    Workers(options.run.jobs), options.run.stop));
    if (opened.tensors.empty() && opened.left_out > 0) {
      return ParameterChoice::NothingTaken(opened.left_out, opened.first_left_out, "read");
    }
    RESHARD_ASSIGN_OR_RETURN(const Reading reading, FindReading(opened));
    const CountedWork work(options.run, {.total_bytes = reading.bytes});
    OpenedSource& source = *opened.source;
    RESHARD_RETURN_IF_ERROR(CheckCrcFiles(source, reading.crc, work.work()));
    RESHARD_ASSIGN_OR_RETURN(CheckpointContents contents, ReadContents(opened, work.work()));
    RESHARD_RETURN_IF_ERROR(source.files().VerifyUnchanged());
    DigestReport report;
    report.bytes_read = BytesRead(opened, reading, contents);
    report.parameters.reserve(contents.values.size());  // mostly one value each
    for (const std::vector<HeldValue>& values : contents.values) {
      for (const HeldValue& value : values) {
        const TensorInfo& info = value;
        report.bytes += info.bytes;
        report.parameters.push_back({info, ToHex(value.digest), value.ranks});
      }
    }
    if (!options.one_replica) report.replicas = std::move(contents.replicas);
    report.warnings = std::move(opened.warnings);
    report.notes = std::move(opened.notes);
    report.digest = DigestOfAll(report.parameters);
    return report;
  });
}

std::string_view DamageKindName(DamageReport::Damage::Kind kind) {
  switch (kind) {
    case DamageReport::Damage::Kind::kManifest:
      return "damaged manifest";
    case DamageReport::Damage::Kind::kRecord:
      return "damaged record";
    case DamageReport::Damage::Kind::kMissing:
      return "missing";
    case DamageReport::Damage::Kind::kNoFile:
      return "no file";
    case DamageReport::Damage::Kind::kSize:
      return "other size";
    case DamageReport::Damage::Kind::kNotListed:
      return "not listed";
    case DamageReport::Damage::Kind::kContent:
      return "other content";
  }
  return "";
}

}  // namespace v0_1

uint64_t DiffReport::Count(DiffReport::Relation relation) const {
  return static_cast<uint64_t>(
      std::count_if(parameters.begin(), parameters.end(),
                    [&](const DiffReport::Parameter& diff) { return diff.relation == relation; }));
}

bool DiffReport::equal() const {
  return Count(DiffReport::Relation::kEqual) == parameters.size() && (!a || a->differing == 0) &&
         (!b || b->differing == 0);
}

inline namespace v0_1 {

Result<DiffReport> Diff(const DiffOptions& options) {
  return CatchOutOfMemory([&]() -> Result<DiffReport> {
    RESHARD_RETURN_IF_ERROR(CheckJobs(options.run.jobs));
    const RetryScope retries(options.run);
    Side a;
    Side b;
    for (const auto& [named, side] : {std::pair(&options.source, &a), std::pair(&options.b, &b)}) {
      RESHARD_ASSIGN_OR_RETURN(
          side->opened, OpenTensors(*named, {options.include, options.exclude, {}},
                                    RanksOf(options), Workers(options.run.jobs), options.run.stop));
    }
    if (a.tensors().empty() && b.tensors().empty() && a.opened.left_out > 0) {
      return ParameterChoice::NothingTaken(a.opened.left_out, a.opened.first_left_out, "compared");
    }
    RESHARD_ASSIGN_OR_RETURN(a.reading, FindReading(a.opened));
    RESHARD_ASSIGN_OR_RETURN(b.reading, FindReading(b.opened));
    Comparison comparison(options, a, b);
    const CountedWork work(options.run, {.total_bytes = comparison.bytes()});
    return comparison.Run(work.work());
  });
}

Result<StatisticsReport> MeasureValues(const ContentOptions& options) {
  return CatchOutOfMemory([&]() -> Result<StatisticsReport> {
    RESHARD_RETURN_IF_ERROR(CheckJobs(options.run.jobs));
    const RetryScope retries(options.run);
    RESHARD_ASSIGN_OR_RETURN(
        SourceTensors opened,
        OpenTensors(options.source, {options.include, options.exclude, {}}, RanksRead::kOneReplica,
                    Workers(options.run.jobs), options.run.stop, LoneParts::kListed));
    StatisticsReport report;
    for (const SourceTensor& parameter : opened.tensors) {
      if (HasValues(parameter)) report.bytes += parameter.Bytes();
    }
    const CountedWork work(options.run, {.total_bytes = report.bytes});
    OpenedSource& source = *opened.source;
    RESHARD_ASSIGN_OR_RETURN(const std::vector<std::optional<ValueSums>> sums,
                             SumParameters(source.tensors(), opened.tensors, work.work()));
    RESHARD_RETURN_IF_ERROR(source.files().VerifyUnchanged());
    for (size_t i = 0; i < sums.size(); ++i) {
      const SourceTensor& tensor = opened.tensors[i];
      StatisticsReport::Parameter parameter{tensor.Info(), std::nullopt};
      if (sums[i]) parameter.statistics = StatisticsOf(*sums[i]);
      report.parameters.push_back(std::move(parameter));
    }
    report.warnings = std::move(opened.warnings);
    return report;
  });
}

}  // namespace v0_1

}  // namespace reshard
