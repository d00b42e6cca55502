#include "format/torch_zip/zip_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reshard/byte_range.h"
#include "tests/support/says.h"
#include "tests/support/zip_bytes.h"

namespace reshard::zip_directory_test {
namespace {

// A file of these bytes, which outlive it. Reads beyond the end fail the test.
struct FileInMemory {
  explicit FileInMemory(std::string content) : bytes(std::move(content)) {}

  FileBytes file() {
    return {"a.pt", bytes.size(),
            [this](uint64_t offset, std::span<std::byte> out) -> Status {
              reads.push_back({offset, out.size()});
              if (offset > bytes.size() || out.size() > bytes.size() - offset) {
                return InternalError("a read beyond the end");
              }
              std::memcpy(out.data(), bytes.data() + offset, out.size());
              return {};
            },
            [](ByteRange) { return Status(); }};
  }

  std::string bytes;
  std::vector<ByteRange> reads;
};

const std::vector<ZipEntry>& Members() {
  static const std::vector<ZipEntry> kMembers = {{.name = "a/data.pkl", .content = "pickle"},
                                                 {.name = "a/byteorder", .content = "little"},
                                                 {.name = "a/data/0", .content = "0123456789"},
                                                 {.name = "a/data/1", .content = ""}};
  return kMembers;
}

// Reads the zip and each of its members. The bytes in front do not belong to it.
Status ReadAll(const std::string& zip, const std::string& in_front = "",
               const std::string& behind = "") {
  FileInMemory memory(in_front + zip + behind);
  const FileBytes file = memory.file();
  Result<ZipDirectory> read = ZipDirectory::Read(file, {in_front.size(), zip.size()}, {});
  if (!read.ok()) return read.status();
  for (const ZipMember& member : read->members()) {
    const Result<ByteRange> content = read->ContentOf(member);
    if (!content.ok()) return content.status();
    const Result<std::string> text = read->ReadChecked(member, {});
    if (!text.ok()) return text.status();
    EXPECT_EQ(*text, memory.bytes.substr(content->offset, content->length));
  }
  return {};
}

TEST(ZipDirectoryTest, HasMembersAndTheirPlaces) {
  for (const bool has_zip64 : {false, true}) {
    for (const bool is_large : {false, true}) {
      if (is_large && !has_zip64) continue;
      const std::string zip = ZipOf(Members(), {.has_zip64 = has_zip64, .is_large = is_large});
      FileInMemory memory("in front" + zip + "behind");
      const FileBytes file = memory.file();
      Result<ZipDirectory> read = ZipDirectory::Read(file, {8, zip.size()}, {});
      ASSERT_TRUE(read.ok()) << read.status().message();
      ASSERT_EQ(read->members().size(), Members().size());
      for (const ZipEntry& entry : Members()) {
        const ZipMember* const member = read->Find(entry.name);
        ASSERT_NE(member, nullptr) << entry.name;
        EXPECT_EQ(member->crc, NaiveCrc32(entry.content));
        const Result<ByteRange> content = read->ContentOf(*member);
        ASSERT_TRUE(content.ok()) << content.status().message();
        EXPECT_EQ(memory.bytes.substr(content->offset, content->length), entry.content);
        const Result<std::string> checked = read->ReadChecked(*member, {});
        ASSERT_TRUE(checked.ok()) << checked.status().message();
        EXPECT_EQ(*checked, entry.content);
      }
      EXPECT_EQ(read->Find("a/data"), nullptr);
      EXPECT_EQ(read->Find(""), nullptr);
    }
  }
}

TEST(ZipDirectoryTest, TakesTwoReadsOfAnItem) {
  std::vector<ZipEntry> members = Members();
  members[2].content.assign(100000, 'x');
  const std::string zip = ZipOf(members);
  FileInMemory memory(zip + zip);
  const FileBytes file = memory.file();
  Result<ZipDirectory> read = ZipDirectory::Read(file, {zip.size(), zip.size()}, {});
  ASSERT_TRUE(read.ok()) << read.status().message();
  ASSERT_TRUE(read->ReadChecked(*read->Find("a/data.pkl"), {}).ok());
  ASSERT_TRUE(read->ContentOf(*read->Find("a/data/0")).ok());
  EXPECT_THAT(memory.reads,
              testing::ElementsAre(ByteRange{zip.size(), kZipHeadBytes},
                                   ByteRange{2 * zip.size() - kZipTailBytes, kZipTailBytes}));
}

TEST(ZipDirectoryTest, OtherFormsOfMembers) {
  const auto with = [](const std::function<void(ZipEntry&)>& change) {
    std::vector<ZipEntry> members = Members();
    for (ZipEntry& member : members) change(member);
    return ReadAll(ZipOf(members));
  };
  EXPECT_TRUE(with([](ZipEntry& entry) { entry.flags = 0x0800; }).ok());
  EXPECT_TRUE(with([](ZipEntry& entry) { entry.has_zip64 = true; }).ok());
  EXPECT_TRUE(with([](ZipEntry& entry) { entry.directory_extra = 9; }).ok());
  EXPECT_TRUE(with([](ZipEntry& entry) {
                entry.has_zip64 = true;
                entry.flags = 0;
              }).ok());
  EXPECT_TRUE(ReadAll(ZipOf({})).ok());
}

TEST(ZipDirectoryTest, RefusesOtherMembers) {
  const struct {
    const char* what;
    std::function<void(std::vector<ZipEntry>&)> change;
  } rows[] = {
      {"compressed", [](auto& all) { all[2].method = 8; }},
      {"encrypted", [](auto& all) { all[2].flags |= 1; }},
      {"strongly encrypted", [](auto& all) { all[2].flags |= 0x40; }},
      {"two of a name", [](auto& all) { all[3].name = all[2].name; }},
      {"another local name", [](auto& all) { all[2].local_name = "a/data/2"; }},
      {"a longer local name", [](auto& all) { all[2].local_name = "a/data/23"; }},
      {"another CRC", [](auto& all) { all[2].crc = 7; }},
      {"too long for its place", [](auto& all) { all[1].size = 1 << 10; }},
      {"a size that wraps",
       [](auto& all) {
         all[2].has_zip64 = true;
         all[2].size = ~uint64_t{0} - 20;
       }},
      {"beyond the zip", [](auto& all) { all[2].header = 1 << 20; }},
      {"in the place of another", [](auto& all) { all[2].header = 0; }},
      {"inside another", [](auto& all) { all[2].header = 70; }},
      {"a header that wraps",
       [](auto& all) {
         all[3].has_zip64 = true;
         all[3].header = ~uint64_t{0} - 5;
       }},
  };
  for (const auto& row : rows) {
    std::vector<ZipEntry> members = Members();
    row.change(members);
    const Status status = ReadAll(ZipOf(members), "front", "behind");
    EXPECT_EQ(status.code(), StatusCode::kCorrupt) << row.what;
    EXPECT_THAT(status.message(), Naming("a.pt: item at 5: member \"a/")) << row.what;
  }
}

TEST(ZipDirectoryTest, RefusesOtherEndRecords) {
  const uint64_t far = ~uint64_t{0} - 30;
  const ZipForm forms[] = {
      {.count = 5},
      {.count = 3},
      {.count = far},
      {.bytes = 10},
      {.bytes = far},
      {.offset = 1},
      {.offset = far},
      {.bytes = 0},
      {.has_zip64 = false, .is_large = true},
      {.has_zip64 = false, .count = 3},
      {.has_zip64 = false, .bytes = 1 << 20},
      {.has_zip64 = false, .offset = 1 << 20},
  };
  size_t number = 0;
  for (const ZipForm& form : forms) {
    const Status status = ReadAll(ZipOf(Members(), form));
    EXPECT_EQ(status.code(), StatusCode::kCorrupt) << "form " << number;
    EXPECT_THAT(status.message(), testing::StartsWith("a.pt: ")) << "form " << number;
    ++number;
  }
}

TEST(ZipDirectoryTest, RefusesAnItemBeyondTheFile) {
  FileInMemory memory(ZipOf(Members()));
  const FileBytes file = memory.file();
  for (const ByteRange& zip : {ByteRange{1, file.size}, ByteRange{file.size + 1, 0},
                               ByteRange{~uint64_t{0}, 2}, ByteRange{0, ~uint64_t{0}}}) {
    EXPECT_EQ(ZipDirectory::Read(file, zip, {}).status().code(), StatusCode::kCorrupt);
  }
}

TEST(ZipDirectoryTest, NoPartOfAZipIsRead) {
  const std::string zip = ZipOf(Members());
  for (size_t length = 0; length < zip.size(); ++length) {
    EXPECT_EQ(ReadAll(zip.substr(0, length)).code(), StatusCode::kCorrupt) << length;
    EXPECT_EQ(ReadAll(zip.substr(zip.size() - length)).code(), StatusCode::kCorrupt) << length;
  }
}

// Damage is found, or it does not change the contents and names.
TEST(ZipDirectoryTest, NoDamagedByteChangesAContent) {
  const std::string good = ZipOf(Members());
  for (size_t at = 0; at < good.size(); ++at) {
    for (const int flip : {1, 0x80, 0xff}) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ flip);
      FileInMemory memory(bad);
      const FileBytes file = memory.file();
      Result<ZipDirectory> read = ZipDirectory::Read(file, {0, bad.size()}, {});
      if (!read.ok()) {
        EXPECT_EQ(read.status().code(), StatusCode::kCorrupt) << at;
        continue;
      }
      for (const ZipMember& member : read->members()) {
        const Result<std::string> text = read->ReadChecked(member, {});
        if (!text.ok()) {
          EXPECT_EQ(text.status().code(), StatusCode::kCorrupt) << at;
          continue;
        }
        bool known = false;
        for (const ZipEntry& entry : Members()) known = known || entry.content == *text;
        EXPECT_TRUE(known) << at << ": " << *text;
      }
    }
  }
}

TEST(ZipDirectoryTest, AsksForMemory) {
  std::vector<ZipEntry> members;
  for (int i = 0; i < 1000; ++i) members.push_back({.name = std::to_string(i)});
  FileInMemory memory(ZipOf(members));
  const FileBytes file = memory.file();
  const MemoryCheck none = [](uint64_t) { return ResourceExhaustedError("no memory"); };
  EXPECT_EQ(ZipDirectory::Read(file, {0, file.size}, none).status().code(),
            StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace reshard::zip_directory_test
