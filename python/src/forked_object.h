// ForkedObject: an object that threads use without the GIL, in a process that may be forked.
//
// Its own methods are called with the GIL held.
#ifndef RESHARD_PYTHON_FORKED_OBJECT_H_
#define RESHARD_PYTHON_FORKED_OBJECT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "python/src/interpreter.h"

namespace reshard::python {

// `Object` has HasThreads().
template <typename Object>
class ForkedObject {
 public:
  explicit ForkedObject(Object object) : state_(std::make_unique<State>(std::move(object))) {}
  ForkedObject(ForkedObject&&) = default;
  ForkedObject& operator=(ForkedObject&&) = delete;
  ~ForkedObject() {
    // Destroying it would wait for threads that are not in this process.
    if (state_ && IsLost()) static_cast<void>(state_.release());
  }

  const Object& operator*() const { return state_->object; }

  // Whether a thread of the parent process used it at the time of a fork. The thread is not here,
  // so its locks stay held. Asked before each use.
  bool IsLost() {
    if (state_->forks == fork_count) return false;
    if (state_->users != 0 || state_->object.HasThreads()) return true;
    state_->forks = fork_count;
    return false;
  }

 private:
  struct State {
    explicit State(Object given) : object(std::move(given)) {}

    Object object;
    std::atomic<int> users = 0;  // threads that use it
    uint64_t forks = fork_count;
  };

 public:
  // A thread that uses the object.
  class User {
   public:
    explicit User(const ForkedObject& used) : state_(*used.state_) { ++state_.users; }
    User(const User&) = delete;
    User& operator=(const User&) = delete;
    ~User() { --state_.users; }

   private:
    State& state_;
  };

  // A user that gives up the GIL.
  struct Use {
    explicit Use(const ForkedObject& used) : user(used) {}

    const WithoutGil released;
    const User user;
  };

 private:
  std::unique_ptr<State> state_;
};

}  // namespace reshard::python

#endif  // RESHARD_PYTHON_FORKED_OBJECT_H_
