// ByteStreamIterator: bytes that are read in blocks, as nlohmann's parser takes its input.
//
// Not for use from several threads at once.
#ifndef RESHARD_SRC_BASE_BYTE_STREAM_H_
#define RESHARD_SRC_BASE_BYTE_STREAM_H_

#include <cstddef>
#include <iterator>

namespace reshard {

// `Bytes` has Ready(), whether there is a next byte, which reads it where need be; Front(), that
// byte; and Skip(), which goes on to the one behind it. Copies stand where the bytes do.
template <typename Bytes>
class ByteStreamIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  explicit ByteStreamIterator(Bytes* bytes) : bytes_(bytes) {}
  reference operator*() const { return bytes_->Front(); }
  ByteStreamIterator& operator++() {
    bytes_->Skip();
    return *this;
  }
  // Only ever compared with the end.
  friend bool operator==(const ByteStreamIterator& a, const ByteStreamIterator& /*end*/) {
    return !a.bytes_->Ready();
  }

 private:
  Bytes* bytes_;
};

}  // namespace reshard

#endif  // RESHARD_SRC_BASE_BYTE_STREAM_H_
