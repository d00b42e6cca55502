// FileUse for front ends: the outputs of their own, such as a report or a log, are compared with
// the files that a call reads and writes.
#ifndef RESHARD_SRC_FRONTEND_OWN_OUTPUTS_H_
#define RESHARD_SRC_FRONTEND_OWN_OUTPUTS_H_

#include "src/os/file_use.h"  // IWYU pragma: export

#endif  // RESHARD_SRC_FRONTEND_OWN_OUTPUTS_H_
