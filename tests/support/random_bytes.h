// Content for files and tensors of tests.
#ifndef RESHARD_TESTS_SUPPORT_RANDOM_BYTES_H_
#define RESHARD_TESTS_SUPPORT_RANDOM_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace reshard {

// Returns `size` bytes that follow from `seed` alone.
std::string RandomBytes(size_t size, uint64_t seed);

}  // namespace reshard

#endif  // RESHARD_TESTS_SUPPORT_RANDOM_BYTES_H_
