#include "tests/support/recorded_folder.h"

#include <algorithm>
#include <fstream>
#include <stdexcept>
#include <utility>

#include "src/digest/logical_digest.h"
#include "src/digest/xxh3.h"

namespace reshard {
namespace {

constexpr const char* kPlan = "8d1f";

void Check(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.message());
}

// Fills in shapes and boxes, and the digests of the file at `path`.
void Complete(const std::filesystem::path& path, bool checksum,
              std::vector<RecordedValue>& values) {
  std::ifstream in(path, std::ios::binary);
  LogicalHasher hasher;
  for (auto begin = values.begin(); begin != values.end();) {
    int64_t bytes = 0;
    auto end = begin;
    for (; end != values.end() && end->name == begin->name; ++end) {
      std::string content(end->length, '\0');
      in.seekg(static_cast<std::streamoff>(end->offset));
      in.read(content.data(), static_cast<std::streamsize>(content.size()));
      Digest128 digest;
      hasher.Add(digest, reinterpret_cast<const std::byte*>(content.data()), content.size(),
                 static_cast<uint64_t>(bytes));
      end->digest = checksum ? ToHex(digest) : std::string();
      bytes += static_cast<int64_t>(end->length);
    }
    for (; begin != end; ++begin) {
      begin->dtype = DType::kInt8;
      begin->full_shape = {bytes};
      begin->box = Box::Whole(begin->full_shape);
    }
  }
}

// Fills in the digests that the bytes of the file at `path` have.
void Digest(const std::filesystem::path& path, PartRecordHead& head) {
  std::ifstream in(path, std::ios::binary);
  Xxh3 whole;
  std::string block(kDigestBlockBytes, '\0');
  for (uint64_t at = 0; at < head.size; at += block.size()) {
    block.resize(std::min(kDigestBlockBytes, head.size - at));
    in.read(block.data(), static_cast<std::streamsize>(block.size()));
    whole.Update(std::string_view(block));
    Xxh3 digest;
    digest.Update(std::string_view(block));
    head.blocks.push_back(digest.HexDigest());
  }
  head.digest = whole.HexDigest();
}

}  // namespace

void RecordedFolder::Add(const std::string& path, uint64_t size, uint64_t offset,
                         std::string_view bytes, std::vector<RecordedValue> values, bool checksum) {
  folder_.WriteSparse(path, size, offset, bytes);
  PartRecordHead head{.plan = kPlan, .path = path, .size = size};
  if (checksum) Digest(PathOf(path), head);
  Complete(PathOf(path), checksum, values);
  std::string record;
  PartRecordEncoder encoder([&](std::string_view piece) {
    record += piece;
    return Status();
  });
  Check(encoder.WriteHead(head));
  for (const RecordedValue& value : values) Check(encoder.WriteValue(value));
  Check(encoder.Finish());
  folder_.Write(RecordPath(path), record);
  files_.push_back({path, size, head.digest, encoder.size(), encoder.HexDigest()});
}

void RecordedFolder::Publish(const std::string& name) {
  const auto bytes =
      EncodeManifest({.tool_version = "1", .plan = kPlan, .files = std::exchange(files_, {})});
  Check(bytes.status());
  folder_.Write(name, *bytes);
}

void RecordedFolder::Damage(const std::string& path, uint64_t offset) const {
  std::fstream file(PathOf(path), std::ios::in | std::ios::out | std::ios::binary);
  file.exceptions(std::ios::failbit | std::ios::badbit);
  file.seekg(static_cast<std::streamoff>(offset));
  const int byte = file.get();
  file.seekp(static_cast<std::streamoff>(offset));
  file.put(static_cast<char>(byte + 1));
}

}  // namespace reshard
