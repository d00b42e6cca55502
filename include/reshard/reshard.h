// Includes all headers of the library:
//   checkpoint.h: look into a checkpoint
//   convert.h: convert it
//   target_view.h: read the files of a conversion without writing them
//   verify.h, compare.h: prove and compare it
//   merge.h: merge files
//   strategy.h: work with strategies
//
// Implemented in src/api (header only).
#ifndef RESHARD_RESHARD_H_
#define RESHARD_RESHARD_H_

#include "reshard/checkpoint.h"
#include "reshard/compare.h"
#include "reshard/convert.h"
#include "reshard/encryption.h"
#include "reshard/findings.h"
#include "reshard/merge.h"
#include "reshard/options.h"
#include "reshard/parameters.h"
#include "reshard/status.h"
#include "reshard/strategy.h"
#include "reshard/target_view.h"
#include "reshard/tensor.h"
#include "reshard/verify.h"
#include "reshard/version.h"

#endif  // RESHARD_RESHARD_H_
