#include "src/os/mapped_file.h"

#include <sys/mman.h>

#include <boost/interprocess/exceptions.hpp>
#include <boost/interprocess/mapped_region.hpp>
#include <cassert>
#include <utility>

#include "src/os/system_call.h"

namespace reshard {
namespace {

namespace bip = boost::interprocess;

// The interface that mapped_region needs of a file. Boost's own file_mapping opens by path. That
// waits for ever on a pipe, and the file could be exchanged between the check and the map.
class Mappable {
 public:
  explicit Mappable(int descriptor) : descriptor_(descriptor) {}
  bip::mapping_handle_t get_mapping_handle() const { return {descriptor_, false}; }

 private:
  int descriptor_;
};

}  // namespace

Result<std::shared_ptr<std::byte>> MapFile(int descriptor, uint64_t size, const std::string& path,
                                           MapAccess access) {
  assert(size > 0);
  const bool is_private = access == MapAccess::kPrivate;
  try {
    auto region = std::make_shared<bip::mapped_region>(
        Mappable(descriptor), is_private ? bip::copy_on_write : bip::read_only, 0, size, nullptr,
        is_private ? MAP_NORESERVE : bip::default_map_options);
    auto* const data = static_cast<std::byte*>(region->get_address());
    return std::shared_ptr<std::byte>(std::move(region), data);
  } catch (const bip::interprocess_exception& failure) {
    return ErrnoStatus(failure.get_native_error(), "map", path);
  }
}

}  // namespace reshard
