// SharedDigests: the digests of files that several threads read.
//
// A thread digests each file. Threads without a file help with the files of others. Such a helper
// takes the next window, makes it present by itself, and waits for its turn only to extend the two
// digests, which go in file order. So one file keeps several threads busy, limited by the slower
// digest.
//
// Thread-safe. All threads have to leave before it dies.
#ifndef RESHARD_SRC_VERIFY_SHARED_DIGESTS_H_
#define RESHARD_SRC_VERIFY_SHARED_DIGESTS_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "reshard/status.h"
#include "src/io/source_files.h"

namespace reshard {

// The digests of a file's bytes, as 32 hexadecimal digits.
struct StoredDigests {
  std::string file;
  std::vector<std::string> blocks;
};

class SharedDigests {
 public:
  // For so many files, which FileDone counts; `progress` may be empty. `files` outlives this.
  SharedDigests(SourceFiles& files, size_t count, std::function<void(uint64_t bytes)> progress);
  ~SharedDigests();
  SharedDigests(const SharedDigests&) = delete;
  SharedDigests& operator=(const SharedDigests&) = delete;

  // Digests the first `size` bytes of a file, reading ahead. If there are several errors, returns
  // the one of the lowest offset. Errors: as SourceFiles; kCancelled.
  Result<StoredDigests> Digest(FileId file, uint64_t size, const std::stop_token& stop);

  // A thread is done with a file, with or without success.
  void FileDone();

  // Helps until all files are done, or until `stop` is requested. Errors are returned by Digest.
  void Help(const std::stop_token& stop);

 private:
  class Reading;

  Reading* FindWork();

  SourceFiles& files_;
  const std::function<void(uint64_t)> progress_;
  std::mutex mutex_;  // guards the members below
  std::condition_variable_any changed_;
  size_t left_;                   // files that are not done
  std::list<Reading*> readings_;  // of threads in Digest
};

}  // namespace reshard

#endif  // RESHARD_SRC_VERIFY_SHARED_DIGESTS_H_
