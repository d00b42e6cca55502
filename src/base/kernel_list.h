// KernelList: the kernels that this processor can run, the fastest first.
#ifndef RESHARD_SRC_BASE_KERNEL_LIST_H_
#define RESHARD_SRC_BASE_KERNEL_LIST_H_

#include <array>
#include <cstddef>
#include <span>

namespace reshard {

// At most `kMost`. A plain value.
template <typename Kernel, size_t kMost>
class KernelList {
 public:
  void Add(const Kernel& kernel) { kernels_[size_++] = &kernel; }
  std::span<const Kernel* const> span() const { return std::span(kernels_).first(size_); }

 private:
  std::array<const Kernel*, kMost> kernels_{};
  size_t size_ = 0;
};

}  // namespace reshard

#endif  // RESHARD_SRC_BASE_KERNEL_LIST_H_
