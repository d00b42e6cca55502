// MeasureValues: the least, the greatest and the mean value of each parameter, and how many values
// are no finite numbers.
//
// Every byte is read once, in pieces; memory does not depend on the tensors' sizes. May run in
// several threads at once; each call uses its own threads and state. Prints nothing.
//
// Implemented in src/api.
#ifndef RESHARD_VALUE_STATISTICS_H_
#define RESHARD_VALUE_STATISTICS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "reshard/progress.h"
#include "reshard/status.h"
#include "reshard/tensor_info.h"

namespace reshard {

struct StatisticsOptions {
  std::string path;      // a folder with rank_N/*.ckpt; or one .ckpt file when there is no strategy
  std::string strategy;  // a strategy file or a folder of stage files; empty: full tensors
  std::string suffix;    // "-EPOCH_STEP": which checkpoint of each rank folder; empty: the latest
  std::function<bool(std::string_view name)> select;  // parameters to read; empty: all
  int jobs = 2;                                       // threads that read; 0: one for each core
  std::stop_token stop;                               // a request ends the call with kCancelled
  // Called from worker threads, one call at a time; may be empty.
  std::function<void(const Progress&)> progress;
};

// int64_t of signed integers, uint64_t of unsigned ones and Bool, double of floats: exact.
using Number = std::variant<int64_t, uint64_t, double>;

struct ValueStatistics {
  uint64_t values = 0;  // Complex: two for each element, its parts; Int4: two for each byte
  uint64_t nans = 0;
  uint64_t infinities = 0;
  // Of the values that are neither; nothing where there is none.
  std::optional<Number> least;
  std::optional<Number> greatest;
  std::optional<double> mean;  // summed up in double: the same for every layout and number of jobs
};

struct ParameterStatistics : TensorInfo {
  std::optional<ValueStatistics> statistics;  // of tensors, but for HiFloat8
};

struct StatisticsReport {
  std::vector<std::string> warnings;
  std::vector<ParameterStatistics> parameters;  // in the order of the files
  uint64_t bytes = 0;                           // read
};

// Reads. A parameter that no layout cuts is taken from the lowest rank that has it.
// Errors: kInvalidArgument, kNotFound, kCorrupt, kMismatch, kUnsupported; kChanged when a file
// changed meanwhile; kIo, kResourceExhausted, kCancelled.
Result<StatisticsReport> MeasureValues(const StatisticsOptions& options);

}  // namespace reshard

#endif  // RESHARD_VALUE_STATISTICS_H_
