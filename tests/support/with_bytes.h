// Progress callbacks of tests that do something while a call is at work.
#ifndef RESHARD_TESTS_SUPPORT_WITH_BYTES_H_
#define RESHARD_TESTS_SUPPORT_WITH_BYTES_H_

#include <functional>
#include <utility>

#include "reshard/options.h"

namespace reshard {

// Returns a callback for RunOptions::progress that calls `act` whenever bytes have been dealt with:
// not while a call plans, nor where a phase only begins.
inline std::function<void(const Progress&)> WithBytes(std::function<void()> act) {
  return [act = std::move(act)](const Progress& progress) {
    if (progress.done_bytes > 0) act();
  };
}

}  // namespace reshard

#endif  // RESHARD_TESTS_SUPPORT_WITH_BYTES_H_
