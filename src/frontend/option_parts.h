// The destinations of table options in the calls of the library. They are pointers into the
// options, which must outlive them.
#ifndef RESHARD_SRC_FRONTEND_OPTION_PARTS_H_
#define RESHARD_SRC_FRONTEND_OPTION_PARTS_H_

#include "reshard/compare.h"
#include "reshard/convert.h"
#include "reshard/options.h"
#include "reshard/target_view.h"
#include "reshard/verify.h"
#include "src/convert/option_checks.h"
#include "src/options/option_table.h"

namespace reshard {

inline OptionParts PartsOf(VerifyOptions& options) { return {.key = &options.key}; }

inline OptionParts PartsOf(DigestOptions& options) {
  return {.source = &options.source,
          .key = &options.source.key,
          .include = &options.include,
          .exclude = &options.exclude};
}

// The key serves both sides: copy it from `a` to `b`.
inline OptionParts PartsOf(DiffOptions& options) {
  return {.key = &options.a.key, .include = &options.include, .exclude = &options.exclude};
}

// The options for opening a TargetView. `force` concerns the output made from a file.
struct ViewedConversion : ConversionSpec, ViewOptions {
  OutputChoice output;
};

inline OptionParts PartsOf(ViewedConversion& options) {
  OptionParts parts = PartsOf(static_cast<ConversionSpec&>(options));
  parts.checks = &options.checks;
  parts.output = &options.output;
  parts.memory_limit = &options.memory_limit;
  return parts;
}

inline OptionParts PartsOf(CommitOptions& options) { return {.waiting = &options.waiting}; }

}  // namespace reshard

#endif  // RESHARD_SRC_FRONTEND_OPTION_PARTS_H_
