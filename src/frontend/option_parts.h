// Where the calls of the library have what options of the table set. Pointers into the options,
// which must outlive them.
#ifndef RESHARD_SRC_FRONTEND_OPTION_PARTS_H_
#define RESHARD_SRC_FRONTEND_OPTION_PARTS_H_

#include "reshard/compare.h"
#include "reshard/convert.h"
#include "reshard/merge.h"
#include "reshard/options.h"
#include "reshard/verify.h"
#include "src/options/option_table.h"

namespace reshard {

inline OptionParts PartsOf(ConvertOptions& options) {
  OptionParts parts = PartsOf(static_cast<ConversionSpec&>(options));
  parts.checks = &options.checks;
  parts.partial = &options.checks.partial;
  parts.checksum = &options.checks.checksum;
  parts.force = &options.force;
  parts.prune = &options.prune;
  parts.resume = &options.resume;
  parts.memory_limit = &options.memory_limit;
  parts.io = &options.io;
  parts.shard = &options.shard;
  parts.waiting = &options.waiting;
  return parts;
}

inline OptionParts PartsOf(RecodeOptions& options) {
  return {.key = &options.key,
          .encryption = &options.encryption,
          .encryption_key = &options.encryption_key,
          .states_crc = &options.states_crc,
          .renames = &options.renames,
          .checksum = &options.checksum,
          .force = &options.force,
          .resume = &options.resume};
}

inline OptionParts PartsOf(MergeOptions& options) {
  return {.key = &options.key,
          .include = &options.include,
          .exclude = &options.exclude,
          .partial = &options.partial,
          .force = &options.force,
          .memory_limit = &options.memory_limit};
}

inline OptionParts PartsOf(VerifyOptions& options) { return {.key = &options.key}; }

inline OptionParts PartsOf(DigestOptions& options) {
  return {.source = &options.source,
          .key = &options.source.key,
          .include = &options.include,
          .exclude = &options.exclude};
}

// The key is that of both sides: copy it from `a` to `b`.
inline OptionParts PartsOf(DiffOptions& options) {
  return {.key = &options.a.key, .include = &options.include, .exclude = &options.exclude};
}

inline OptionParts PartsOf(CommitOptions& options) { return {.waiting = &options.waiting}; }

}  // namespace reshard

#endif  // RESHARD_SRC_FRONTEND_OPTION_PARTS_H_
