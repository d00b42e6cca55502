// The two macros that pass a failure on to the caller.
#ifndef RESHARD_SRC_BASE_STATUS_MACROS_H_
#define RESHARD_SRC_BASE_STATUS_MACROS_H_

#include "reshard/status.h"

#define RESHARD_CONCAT_INNER(a, b) a##b
#define RESHARD_CONCAT(a, b) RESHARD_CONCAT_INNER(a, b)

// Returns from the enclosing function when `expression`, a Status, is not ok.
#define RESHARD_RETURN_IF_ERROR(expression)                                        \
  do {                                                                             \
    if (::reshard::Status reshard_status_ = (expression); !reshard_status_.ok()) { \
      return reshard_status_;                                                      \
    }                                                                              \
  } while (false)

// Declares or assigns `target` from `expression`, a Result, or returns its status.
#define RESHARD_ASSIGN_OR_RETURN(target, expression) \
  RESHARD_ASSIGN_OR_RETURN_INNER(RESHARD_CONCAT(reshard_result_, __LINE__), target, expression)
#define RESHARD_ASSIGN_OR_RETURN_INNER(result, target, expression) \
  auto result = (expression);                                      \
  if (!result.ok()) return result.status();                        \
  target = std::move(result).value()

#endif  // RESHARD_SRC_BASE_STATUS_MACROS_H_
