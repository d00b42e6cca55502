// LostInCasts: how many finite values casts made infinite or NaN, by parameter.
#ifndef RESHARD_SRC_WRITE_LOST_IN_CASTS_H_
#define RESHARD_SRC_WRITE_LOST_IN_CASTS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "src/record/part_record.h"

namespace reshard {

// Thread-safe.
class LostInCasts {
 public:
  void Add(std::string_view parameter, uint64_t values) {
    const std::scoped_lock lock(mutex_);
    const auto known = values_.find(parameter);
    if (known == values_.end()) {
      values_.emplace(parameter, values);
    } else {
      known->second += values;
    }
  }

  // Returns them sorted by name.
  std::vector<LostValues> values() const {
    const std::scoped_lock lock(mutex_);
    std::vector<LostValues> all;
    all.reserve(values_.size());
    for (const auto& [name, values] : values_) all.push_back({name, values});
    return all;
  }

 private:
  mutable std::mutex mutex_;  // guards what follows
  std::map<std::string, uint64_t, std::less<>> values_;
};

}  // namespace reshard

#endif  // RESHARD_SRC_WRITE_LOST_IN_CASTS_H_
