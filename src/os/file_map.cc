#include "src/os/file_map.h"

#include <boost/interprocess/exceptions.hpp>
#include <boost/interprocess/mapped_region.hpp>
#include <cassert>
#include <utility>

#include "src/os/system_call.h"

namespace reshard {
namespace {

namespace bip = boost::interprocess;

// What mapped_region wants to know of a file. Boost's own file_mapping opens by path, which waits
// for ever on a pipe and lets the file be exchanged between the check and the map.
class Mappable {
 public:
  explicit Mappable(int descriptor) : descriptor_(descriptor) {}
  bip::mapping_handle_t get_mapping_handle() const { return {descriptor_, false}; }

 private:
  int descriptor_;
};

}  // namespace

FileMap::FileMap(std::unique_ptr<bip::mapped_region> region) : region_(std::move(region)) {}
FileMap::FileMap(FileMap&& other) noexcept = default;
FileMap& FileMap::operator=(FileMap&& other) noexcept = default;
FileMap::~FileMap() = default;

Result<FileMap> FileMap::Make(int descriptor, uint64_t size, const std::string& path) {
  assert(size > 0);
  try {
    auto region =
        std::make_unique<bip::mapped_region>(Mappable(descriptor), bip::read_only, 0, size);
    return FileMap(std::move(region));
  } catch (const bip::interprocess_exception& failure) {
    return ErrnoStatus(failure.get_native_error(), "map", path);
  }
}

const std::byte* FileMap::data() const {
  return static_cast<const std::byte*>(region_->get_address());
}

uint64_t FileMap::size() const { return region_->get_size(); }

}  // namespace reshard
