// What block records may hold; as manifest_check.h. Pure; any thread.
#ifndef RESHARD_SRC_RECORD_BLOCK_RECORD_CHECK_H_
#define RESHARD_SRC_RECORD_BLOCK_RECORD_CHECK_H_

#include <cstdint>

#include "src/record/block_record.h"
#include "src/record/manifest_check.h"

namespace reshard {

// The rules that tie the members of a head to each other; each source has passed SourceFault. The
// record's values do not count.
Fault BlockHeadFault(const BlockRecord& record);
// `end` is the first byte of the target file that no earlier Value has; `head` has passed
// BlockHeadFault.
Fault PartialValueFault(const PartialValue& value, uint64_t end, const BlockRecord& head);

}  // namespace reshard

#endif  // RESHARD_SRC_RECORD_BLOCK_RECORD_CHECK_H_
