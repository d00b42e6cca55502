#include "src/os/thread.h"

#include <fmt/format.h>

#include <memory>
#include <system_error>

namespace reshard {
namespace {

using Body = std::function<void()>;

extern "C" void* RunThreadBody(void* argument) {
  const std::unique_ptr<Body> body(static_cast<Body*>(argument));
  (*body)();
  return nullptr;
}

}  // namespace

Result<Thread> Thread::Start(std::function<void()> body) {
  pthread_attr_t attributes;
  int error = pthread_attr_init(&attributes);
  if (error == 0) {
    auto argument = std::make_unique<Body>(std::move(body));
    pthread_t handle{};
    error = pthread_attr_setstacksize(&attributes, kStackBytes);
    if (error == 0) error = pthread_create(&handle, &attributes, RunThreadBody, argument.get());
    pthread_attr_destroy(&attributes);
    if (error == 0) {
      static_cast<void>(argument.release());  // the thread deletes it
      return Thread(handle);
    }
  }
  return ResourceExhaustedError(
      fmt::format("cannot start a thread: {}; use fewer, or raise `ulimit -u` or the memory limit",
                  std::generic_category().message(error)));
}

void Thread::Join() {
  if (const std::optional<pthread_t> handle = std::exchange(handle_, std::nullopt)) {
    pthread_join(*handle, nullptr);
  }
}

}  // namespace reshard
