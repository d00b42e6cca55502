// What libprotobuf reads of the Values of a checkpoint: ValueParser has to answer the same.
#ifndef RESHARD_TESTS_SUPPORT_CHECKPOINT_ORACLE_H_
#define RESHARD_TESTS_SUPPORT_CHECKPOINT_ORACLE_H_

#include <string>
#include <string_view>
#include <vector>

#include "format/mindspore_checkpoint/checkpoint.pb.h"
#include "format/mindspore_checkpoint/value_parser.h"
#include "reshard/status.h"

namespace reshard {

struct OracleAnswer {
  enum class Verdict {
    kValid,
    kBeyondLimits,  // libprotobuf reads it, but ValueParser's limits are below
    kInvalid,
  };
  Verdict verdict = Verdict::kInvalid;
  Checkpoint checkpoint;  // complete when not kInvalid
};

// Parses `bytes` as one message.
OracleAnswer AskLibprotobuf(std::string_view bytes);

// Returns how ValueParser's answer for `bytes` differs from libprotobuf's, "" where it does not.
std::string Difference(const OracleAnswer& expected, const Result<std::vector<ParsedValue>>& found,
                       std::string_view bytes);

}  // namespace reshard

#endif  // RESHARD_TESTS_SUPPORT_CHECKPOINT_ORACLE_H_
