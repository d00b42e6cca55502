#include "src/os/mapped_file.h"

#include <sys/mman.h>

#include <boost/interprocess/exceptions.hpp>
#include <boost/interprocess/mapped_region.hpp>

#include "src/base/status_macros.h"
#include "src/os/input_file.h"
#include "src/os/system_call.h"

namespace reshard {
namespace {

namespace bip = boost::interprocess;

// What mapped_region wants to know of a file that is open.
class OpenFile {
 public:
  explicit OpenFile(int descriptor) : descriptor_(descriptor) {}
  bip::mapping_handle_t get_mapping_handle() const { return {descriptor_, false}; }

 private:
  int descriptor_;
};

}  // namespace

Result<WholeMap> MapWhole(const std::string& path, MapAccess access) {
  RESHARD_ASSIGN_OR_RETURN(const InputFile input, OpenInputFile(path));
  const bool is_private = access == MapAccess::kPrivate;
  try {
    auto region = std::make_shared<bip::mapped_region>(
        OpenFile(input.descriptor.get()), is_private ? bip::copy_on_write : bip::read_only, 0,
        input.identity.size, nullptr, is_private ? MAP_NORESERVE : bip::default_map_options);
    auto* const data = static_cast<std::byte*>(region->get_address());
    return WholeMap{{std::move(region), data}, input.identity};
  } catch (const bip::interprocess_exception& failure) {
    return ErrnoStatus(failure.get_native_error(), "map", path);
  }
}

}  // namespace reshard
