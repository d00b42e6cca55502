// All of the library: look into a checkpoint (checkpoint.h), convert it (convert.h), prove it
// (verify.h), compare it (compare.h), merge files (merge.h), work with strategies (strategy.h),
// read what a conversion would write (target_view.h).
//
// Implemented in src/api (header only).
#ifndef RESHARD_RESHARD_H_
#define RESHARD_RESHARD_H_

#include "reshard/checkpoint.h"
#include "reshard/compare.h"
#include "reshard/convert.h"
#include "reshard/encryption.h"
#include "reshard/file_use.h"
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
