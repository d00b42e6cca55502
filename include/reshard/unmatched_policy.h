// UnmatchedPolicy: what becomes of parameters that exactly one of two given strategies has, and
// whether tensors of several elements may be in none that is given.
//
// Implemented in src/mindspore (header only).
#ifndef RESHARD_UNMATCHED_POLICY_H_
#define RESHARD_UNMATCHED_POLICY_H_

namespace reshard {

enum class UnmatchedPolicy {
  kCopy,   // copied as they stand from one source rank, as MindSpore does, with a warning
  kDrop,   // left out, with a warning
  kError,  // the conversion is refused, as it is for those that no given strategy has
};

}  // namespace reshard

#endif  // RESHARD_UNMATCHED_POLICY_H_
