// The destinations of table options in the calls of the library. They are pointers into the
// options, which must outlive them.
#ifndef RESHARD_SRC_FRONTEND_OPTION_PARTS_H_
#define RESHARD_SRC_FRONTEND_OPTION_PARTS_H_

#include <memory>
#include <string>

#include "reshard/compare.h"
#include "reshard/convert.h"
#include "reshard/encryption.h"
#include "reshard/merge.h"
#include "reshard/options.h"
#include "reshard/strategy.h"
#include "reshard/verify.h"
#include "src/convert/option_checks.h"
#include "src/options/option_table.h"

namespace reshard {

// The arguments of Verify.
struct Verification {
  std::string target;
  std::shared_ptr<const EncryptionKey> key;
  RunOptions run;
};

inline OptionParts PartsOf(Verification& options) {
  return {.key = &options.key, .run = &options.run};
}

inline OptionParts PartsOf(ContentOptions& options) {
  return {.source = &options.source,
          .key = &options.source.key,
          .include = &options.include,
          .exclude = &options.exclude,
          .run = &options.run,
          .one_replica = &options.one_replica};
}

// The key serves both sides: copy it to `b`.
inline OptionParts PartsOf(DiffOptions& options) {
  OptionParts parts = PartsOf(static_cast<ContentOptions&>(options));
  parts.second_source = &options.b;
  parts.values = &options.values;
  return parts;
}

// The arguments of VerifyAgainst.
struct Proof : ConversionSpec {
  RunOptions run;
};

inline OptionParts PartsOf(Proof& options) {
  OptionParts parts = PartsOf(static_cast<ConversionSpec&>(options));
  parts.run = &options.run;
  return parts;
}

inline OptionParts PartsOf(RecodeOptions& options) {
  OptionParts parts = PartsOf(static_cast<ConvertOptions&>(options));
  parts.file_names = &options.files;
  parts.decrypt = &options.decrypt;
  return parts;
}

inline OptionParts PartsOf(MergeOptions& options) {
  OptionParts parts = PartsOf(static_cast<ConvertOptions&>(options));
  parts.segments = &options.segments;
  return parts;
}

inline OptionParts PartsOf(MakeStrategyOptions& options) {
  return {.source = &options.like,
          .force = &options.force,
          .cluster = &options.cluster,
          .full_tensors = &options.checkpoint};
}

// The arguments of InferStrategy.
struct StrategyInference {
  std::string source;
  std::string reference;
  std::string output;
  bool force = false;
  RunOptions run;
};

inline OptionParts PartsOf(StrategyInference& options) {
  return {.force = &options.force, .run = &options.run, .full_tensors = &options.reference};
}

// The arguments of ConvertStrategyFile.
struct StrategyConversion {
  std::string input;
  std::string output;
  Renames renames;
  bool force = false;
};

inline OptionParts PartsOf(StrategyConversion& options) {
  return {.renames = &options.renames, .force = &options.force};
}

// The arguments of MergeStrategies.
struct StrategyMerge {
  std::string folder;
  std::string output;
  bool force = false;
};

inline OptionParts PartsOf(StrategyMerge& options) { return {.force = &options.force}; }

// The arguments of CommitWorkers, and of FindStatus, for which `run` has no effect.
struct Commit {
  std::string target;
  RunOptions run;
};

inline OptionParts PartsOf(Commit& options) { return {.run = &options.run}; }

}  // namespace reshard

#endif  // RESHARD_SRC_FRONTEND_OPTION_PARTS_H_
