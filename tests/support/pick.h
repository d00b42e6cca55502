// Uniform choices in properties: RapidCheck's ranges shrink towards their beginning in early cases.
#ifndef RESHARD_TESTS_SUPPORT_PICK_H_
#define RESHARD_TESTS_SUPPORT_PICK_H_

#include <rapidcheck.h>

namespace reshard {

// Returns a number in [begin, end), each as likely as the others.
template <typename T>
T Pick(T begin, T end) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<T>(begin, end));
}

inline bool PickBool() { return Pick(0, 2) == 1; }

}  // namespace reshard

#endif  // RESHARD_TESTS_SUPPORT_PICK_H_
