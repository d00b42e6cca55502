// ConversionSpec: the options of a conversion, taken apart once. A function below Convert and Plan
// is given what it reads.
//
// Plain values.
#ifndef RESHARD_SRC_CONVERT_CONVERSION_SPEC_H_
#define RESHARD_SRC_CONVERT_CONVERSION_SPEC_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "reshard/conversion_options.h"
#include "reshard/convert.h"
#include "reshard/parameter_count.h"
#include "reshard/progress.h"
#include "reshard/status.h"
#include "src/convert/opened_source.h"
#include "src/os/staged_file.h"

namespace reshard {

// Where the target files go, and what becomes of files that are there.
struct TargetSpec {
  std::string folder;
  std::string prefix;
  std::optional<TargetFormat> format;  // without a value, the source's
  WriteMode write_mode = WriteMode::kAuto;
  bool checksum = true;
  bool force = false;
  Resume resume = Resume::kNo;
};

// What of a checkpoint is written.
struct Selection {
  std::vector<int64_t> ranks;  // ascending; empty: all
  std::vector<std::string> include;
  std::vector<std::string> exclude;
  std::map<std::string, std::string> renames;
  UnmatchedPolicy unmatched = UnmatchedPolicy::kCopy;
  bool unmatched_asked_for = false;  // else names are checked
};

// What is checked before anything is written.
struct CheckChoice {
  bool crc = true;
  CheckReplicas replicas = CheckReplicas::kSample;
  std::optional<RoundedCount> parameters;  // that the source has to have
  std::string reference;                   // a file of full tensors; empty: none
};

struct RunOptions {
  int jobs = 2;
  std::stop_token stop;
  std::function<void(const Progress&)> progress;
  std::optional<WorkerShare> worker;  // does a share, together with others
  LockWaiting waiting;                // of a worker
};

struct ConversionSpec {
  SourceSpec source;
  SourceAccess access = SourceAccess::kAuto;
  TargetSpec target;
  Selection selection;
  CheckChoice checks;
  RunOptions run;
};

ConversionSpec SpecOf(const ConvertOptions& options);

// Errors: kInvalidArgument, with what to give instead; kIo.
Status CheckConvertOptions(const ConvertOptions& options);

// The folder `target` must not be, or lie in, the folder or file `source`.
// Errors: kInvalidArgument; kIo.
Status CheckOutside(const std::string& target, const std::string& source);

}  // namespace reshard

#endif  // RESHARD_SRC_CONVERT_CONVERSION_SPEC_H_
