// FileIdentity: shows that a file is still the one that was opened, unchanged.
#ifndef RESHARD_SRC_OS_FILE_IDENTITY_H_
#define RESHARD_SRC_OS_FILE_IDENTITY_H_

#include <compare>
#include <cstdint>
#include <string>

namespace reshard {

// A value, and opaque: code compares stamps or keys, and writes numbers into records. A storage
// that has no such numbers as a file system makes up those by which it can tell a change.
class FileIdentity {
 public:
  // Times are nanoseconds since 1970; how finely a file system counts them is its own matter.
  struct Numbers {
    uint64_t device = 0;
    uint64_t inode = 0;
    uint64_t size = 0;  // bytes
    int64_t mtime_ns = 0;
    // Set by the kernel at every change of content or attributes; no program can set it back, as it
    // can mtime.
    int64_t ctime_ns = 0;

    bool operator==(const Numbers&) const = default;
  };

  // Two identities have equal keys if they belong to the same file, by any path and before or after
  // a change.
  class Key {
   public:
    auto operator<=>(const Key&) const = default;

   private:
    friend class FileIdentity;
    Key(uint64_t device, uint64_t inode) : device_(device), inode_(inode) {}

    uint64_t device_;
    uint64_t inode_;
  };

  FileIdentity() = default;
  explicit FileIdentity(const Numbers& numbers) : numbers_(numbers) {}

  uint64_t size() const { return numbers_.size; }  // bytes
  Key key() const { return {numbers_.device, numbers_.inode}; }
  // Some file systems have no numbers. There, equal keys have no meaning.
  bool has_key() const { return numbers_.inode != 0; }

  // For records.
  uint64_t inode() const { return numbers_.inode; }
  int64_t mtime_ns() const { return numbers_.mtime_ns; }
  int64_t ctime_ns() const { return numbers_.ctime_ns; }

  bool operator==(const FileIdentity&) const = default;

 private:
  Numbers numbers_;
};

// Returns in words how `after` differs from `before`, such as "8192 bytes, were 4096".
std::string DescribeChange(const FileIdentity& before, const FileIdentity& after);

}  // namespace reshard

#endif  // RESHARD_SRC_OS_FILE_IDENTITY_H_
