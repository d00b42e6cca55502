// LostInCasts: how many finite values casts made infinite or NaN, and how many others than zero
// they made zero, by parameter.
#ifndef RESHARD_SRC_WRITE_LOST_IN_CASTS_H_
#define RESHARD_SRC_WRITE_LOST_IN_CASTS_H_

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/status.h"
#include "src/cast/cast.h"
#include "src/record/part_record.h"

namespace reshard {

// Thread-safe.
class LostInCasts {
 public:
  void Add(std::string_view parameter, const CastLoss& loss) {
    const std::scoped_lock lock(mutex_);
    const auto known = losses_.find(parameter);
    if (known == losses_.end()) {
      losses_.emplace(parameter, loss);
    } else {
      known->second += loss;
    }
  }

  // Returns them sorted by name.
  std::vector<LostValues> values() const {
    const std::scoped_lock lock(mutex_);
    std::vector<LostValues> all;
    all.reserve(losses_.size());
    for (const auto& [name, loss] : losses_) all.push_back({name, loss.overflowed, loss.zeroed});
    return all;
  }

 private:
  mutable std::mutex mutex_;  // guards the members below
  std::map<std::string, CastLoss, std::less<>> losses_;
};

// Returns ok if no cast made a finite value of the target file `path` infinite or NaN. Errors:
// kMismatch, naming the first parameter.
Status CheckNoOverflow(const std::string& path, const std::vector<LostValues>& lost);

}  // namespace reshard

#endif  // RESHARD_SRC_WRITE_LOST_IN_CASTS_H_
