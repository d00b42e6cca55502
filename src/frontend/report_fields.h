// The fields of results. A field of a report has one line in report_fields.cc, and from it come the
// document of --json and the class of the Python package.
//
// Pure functions; any thread.
#ifndef RESHARD_SRC_FRONTEND_REPORT_FIELDS_H_
#define RESHARD_SRC_FRONTEND_REPORT_FIELDS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/checkpoint.h"
#include "reshard/compare.h"
#include "reshard/convert.h"
#include "reshard/merge.h"
#include "reshard/options.h"
#include "reshard/status.h"
#include "reshard/strategy.h"
#include "reshard/verify.h"
#include "src/frontend/parameter_map.h"

namespace reshard {

// The class of an object, as Python has it.
struct ReportClass {
  std::string_view name;
  // A class with some of the same fields; empty for a part of a report.
  std::string_view base = {};
  std::string_view words = {};  // its docstring
};

// Takes the values of a report in their order.
class ReportSink {
 public:
  virtual ~ReportSink() = default;

  virtual void BeginObject(const ReportClass& of) = 0;
  // The next value belongs to this field.
  virtual void Name(std::string_view field) = 0;
  virtual void EndObject() = 0;
  virtual void BeginList() = 0;
  virtual void EndList() = 0;
  // Values by names, which are no fields.
  virtual void BeginMap() = 0;
  virtual void EndMap() = 0;

  virtual void None() = 0;
  virtual void Value(bool value) = 0;
  virtual void Value(int64_t value) = 0;
  virtual void Value(uint64_t value) = 0;
  virtual void Value(double value) = 0;
  virtual void Value(std::string_view text) = 0;
  // A text of the library that names options in backticks.
  virtual void Message(std::string_view text) = 0;
};

// Takes types in place of values: each field, also one that is mostly left out, has one value of
// its type, and each list and map one member.
class TypeSink : public ReportSink {
 public:
  // The field that comes next may be left out.
  virtual void MayLack() = 0;
  // The value that comes next may be none.
  virtual void OrNone() = 0;
  // The type of a value, in Python's words, if no other function tells it.
  virtual void Type(std::string_view type) = 0;
};

// A document's facts about the call itself.
struct ReportedCall {
  std::string_view place = {};         // the path that it calls "target", "output" or "path"
  double seconds = 0;                  // that the call took
  const SourceSpec* source = nullptr;  // of VerifyAgainst
};

// The report of Recode, which has fewer fields than that of Convert.
struct RecodedFiles {
  ConvertReport report;
};

// An HTML page that was written.
struct WrittenPage {
  uint64_t bytes = 0;
  std::vector<Warning> warnings = {};
};

// Passes the fields of a call's result to the sink: AgainstReport, CommitReport, ConvertReport,
// DamageReport, DiffReport, DigestReport, Inspection, MergeReport, PlanReport, RecodedFiles,
// StatusReport, StrategyReport, WrittenPage.
template <typename Report>
void Describe(const Report& report, const ReportedCall& call, ReportSink& to);

// A file as `inspect` shows it.
struct InspectedFile {
  std::string path = {};
  std::optional<int64_t> rank = {};
  uint64_t size = 0;
  std::optional<uint64_t> crc = {};
  std::vector<const StoredArray*> parameters = {};  // that are shown
  // For each parameter, if they were measured.
  std::vector<StatisticsReport::Parameter> statistics = {};
  std::vector<UnreadTensor> unread = {};  // of those that would be shown
};

// Returns the dtype in words; "map" for a MapTensor.
std::string_view StoredTypeName(const StoredArray& array);

// Returns the offset of the content in the file, if it has one.
std::optional<uint64_t> ContentOffset(const StoredArray& array);

// The parts of each Value of a MapTensor, in their order.
inline constexpr std::string_view kMapTensorParts[] = {"keys", "values", "status"};

// A layout of a strategy, which has to outlive it.
struct ShownLayout {
  int64_t stage = 0;
  std::string_view name = {};
  const ParameterLayout* layout = nullptr;
};

// A strategy as `inspect` shows it.
struct ShownStrategy {
  std::optional<Strategy> strategy = {};     // without a value only in descriptions of types
  std::string meaning = {};                  // of the whole layout, in words
  std::vector<ShownLayout> parameters = {};  // that are shown
};

// A full tensor and its shards. Boxes count elements.
struct CutTensor {
  ShardedCheckpoint::Tensor tensor = {};
  std::vector<ShardedCheckpoint::Shard> shards = {};
};

// The full tensors of a checkpoint: how they are cut, or their values.
struct FullTensors {
  std::string path = {};
  std::vector<CutTensor> cut = {};
  std::vector<StatisticsReport::Parameter> values = {};
};

struct ContentTotal {
  uint64_t parameters = 0;
  uint64_t bytes = 0;
};

// Of all files, replicas counted as often as they are stored.
struct ContentTotals {
  uint64_t files = 0;
  ContentTotal all = {};
  std::map<std::string_view, ContentTotal> by_dtype = {};  // keys are literals
  std::map<std::string_view, ContentTotal> by_group = {};  // likewise
};

// A file or part that could not be read.
struct InspectFailure {
  std::string path = {};
  Status status = {};
};

// The results of `inspect`.
struct Inspection {
  // Null if the files were shown one by one.
  std::shared_ptr<const std::vector<InspectedFile>> checkpoints = {};
  std::vector<ShownStrategy> strategies = {};
  ContentTotals totals = {};
  std::vector<Warning> warnings = {};
  std::vector<InspectFailure> errors = {};
  std::optional<std::vector<FullTensors>> sharded = {};  // with a strategy
};

void Describe(const Findings& findings, ReportSink& to);
void Describe(const PlanReport::TargetFile& file, ReportSink& to);
void Describe(const InspectedFile& file, ReportSink& to);
void Describe(const ShownStrategy& strategy, ReportSink& to);
void Describe(const ParameterMap& map, ReportSink& to);
void Describe(const StatisticsReport::Parameter& parameter, ReportSink& to);
void Describe(const Warning& warning, ReportSink& to);

// Shows the types of all results, and of their parts.
void DescribeTypes(TypeSink& to);

// Returns how two parameters compare in words, such as "only in A".
std::string_view RelationName(DiffReport::Relation relation);

// Returns how a conversion, or a worker of it, fares, such as "needs attention".
std::string_view StateName(StatusReport::State state);
std::string_view StateName(StatusReport::Worker::State state);

// The warnings of a folder's check.
std::vector<Warning> WarningsOf(const DamageReport& report);

}  // namespace reshard

#endif  // RESHARD_SRC_FRONTEND_REPORT_FIELDS_H_
