// RecordedFolder: a finished target folder with manifests and part records, made without Convert.
#ifndef RESHARD_TESTS_SUPPORT_RECORDED_FOLDER_H_
#define RESHARD_TESTS_SUPPORT_RECORDED_FOLDER_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "src/record/manifest_codec.h"
#include "src/record/part_record.h"
#include "tests/support/temporary_folder.h"

namespace reshard {

class RecordedFolder {
 public:
  RecordedFolder() : folder_(MemoryFolder()) {}

  std::string path() const { return folder_.path(); }
  std::filesystem::path PathOf(const std::string& name) const { return folder_.path() / name; }

  // Makes a target file of `size` zeros and these bytes at the offset; its content is that of the
  // `values`: flat tensors of bytes, whose shapes and digests follow. Values of one name that
  // follow each other are one parameter.
  void Add(const std::string& path, uint64_t size, uint64_t offset, std::string_view bytes,
           std::vector<RecordedValue> values = {}, bool checksum = true);
  // Writes the manifest of the files that were added since the last one.
  void Publish(const std::string& name = "manifest.json");

  // Adds 1 to a byte of a file.
  void Damage(const std::string& path, uint64_t offset) const;
  // Writes a file, in place of one that is there.
  void Write(const std::string& path, std::string_view bytes) const { folder_.Write(path, bytes); }

 private:
  const TemporaryFolder folder_;
  std::vector<ManifestFile> files_;
};

}  // namespace reshard

#endif  // RESHARD_TESTS_SUPPORT_RECORDED_FOLDER_H_
