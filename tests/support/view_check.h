// What a TargetView has to be held against: the files that Convert wrote.
#ifndef RESHARD_TESTS_SUPPORT_VIEW_CHECK_H_
#define RESHARD_TESTS_SUPPORT_VIEW_CHECK_H_

#include "reshard/convert.h"

namespace reshard {

// Expects that a view of the conversion, which has been done, has the files that lie in its target
// folder, byte for byte: each read whole, as a stream, and in pieces that begin and end anywhere.
void ExpectViewHasFiles(const ConvertOptions& done);

}  // namespace reshard

#endif  // RESHARD_TESTS_SUPPORT_VIEW_CHECK_H_
