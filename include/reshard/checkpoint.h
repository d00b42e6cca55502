// Checkpoint: start here. One checkpoint file as a store of named tensors.
//
//   auto checkpoint = reshard::Checkpoint::Open("net-1_100.ckpt");
//   if (!checkpoint.ok()) ...
//   auto spans = checkpoint->View("dense.weight");
//
// Opening reads headers only. The file stays mapped and open while the Checkpoint lives. Move-only;
// const member functions may be called from any number of threads.
//
// Implemented in src/api.
#ifndef RESHARD_CHECKPOINT_H_
#define RESHARD_CHECKPOINT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/status.h"
#include "reshard/stored_array.h"

namespace reshard {

class Checkpoint {
 public:
  // Opens and indexes a .ckpt file.
  // Errors: kNotFound, kCorrupt (path, parameter, offset, expected, found), kUnsupported
  // (encrypted), kIo.
  static Result<Checkpoint> Open(const std::string& path);

  Checkpoint(Checkpoint&&) noexcept;
  Checkpoint& operator=(Checkpoint&&) noexcept;
  ~Checkpoint();

  const std::string& path() const;
  uint64_t file_size() const;
  // In file order.
  const std::vector<StoredArray>& parameters() const;
  // Returns the parameter of this name, or null.
  const StoredArray* Find(std::string_view name) const;
  // The CRC-32 that the file's trailer states, where it has one. It is not checked.
  std::optional<uint64_t> crc() const;

  // Returns the content of a parameter as spans of the map, one for each Value of the file (more
  // than one above 512 MiB); nothing is copied. Valid while the Checkpoint lives. For a MapTensor:
  // keys, values, status of each Value. When another process cuts the file short meanwhile,
  // touching a span beyond its new end raises SIGBUS, and bytes behind the end in the last page
  // read as 0; ShardedCheckpoint::Read guards against both. Errors: kNotFound.
  Result<std::vector<std::span<const std::byte>>> View(std::string_view name) const;

 private:
  struct State;
  explicit Checkpoint(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace reshard

#endif  // RESHARD_CHECKPOINT_H_
