// SharedDigests: the digests of files that several threads read.
//
// Each file has a thread that digests it. Threads that have no file left help with those that
// others are at: each takes the next window, makes it present by itself and waits for its turn only
// to extend the two digests, which have to be extended in file order. So one file keeps several
// threads busy, as far as the slower digest of the two lets them.
//
// Thread-safe. All threads have left when it dies.
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

  // Digests the first `size` bytes of a file, reading ahead. Of several errors it returns that of
  // the lowest offset. Errors: those of SourceFiles; kCancelled.
  Result<StoredDigests> Digest(FileId file, uint64_t size, const std::stop_token& stop);

  // A thread is done with one of the files, whatever came of it.
  void FileDone();

  // Helps until all files are done, or until `stop` is requested. Errors are returned by Digest.
  void Help(const std::stop_token& stop);

 private:
  class Reading;

  Reading* FindWork();

  SourceFiles& files_;
  const std::function<void(uint64_t)> progress_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable_any changed_;
  size_t left_;                   // files that are not done
  std::list<Reading*> readings_;  // of threads in Digest
};

}  // namespace reshard

#endif  // RESHARD_SRC_VERIFY_SHARED_DIGESTS_H_
