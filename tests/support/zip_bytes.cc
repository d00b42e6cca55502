#include "tests/support/zip_bytes.h"

#include <algorithm>

namespace reshard {
namespace {

constexpr uint64_t kNo32 = 0xffffffff;
constexpr size_t kAlignment = 64;

void Put(std::string& out, uint64_t number, size_t count) {
  for (size_t i = 0; i < count; ++i) out += static_cast<char>(number >> (8 * i) & 0xff);
}

void PutLocal(std::string& out, const ZipEntry& entry, uint32_t crc) {
  const std::string& name = entry.local_name.empty() ? entry.name : entry.local_name;
  const bool has_descriptor = (entry.flags & 8) != 0;
  const uint64_t size = entry.content.size();
  std::string extra;
  if (entry.has_zip64) {
    Put(extra, 1, 2);
    Put(extra, 16, 2);
    Put(extra, size, 8);
    Put(extra, size, 8);
  }
  const size_t begin = out.size() + 30 + name.size() + extra.size() + 4;
  const size_t padding = (kAlignment - begin % kAlignment) % kAlignment;
  extra += "FB";
  Put(extra, padding, 2);
  extra.append(padding, 'Z');
  out += "PK\3\4";
  Put(out, 0, 2);
  Put(out, entry.flags, 2);
  Put(out, entry.method, 2);
  Put(out, 0, 4);
  Put(out, has_descriptor ? 0 : crc, 4);
  for (int i = 0; i < 2; ++i) Put(out, has_descriptor ? 0 : entry.has_zip64 ? kNo32 : size, 4);
  Put(out, name.size(), 2);
  Put(out, extra.size(), 2);
  out += name + extra + entry.content;
  if (!has_descriptor) return;
  out += "PK\7\10";
  Put(out, crc, 4);
  for (int i = 0; i < 2; ++i) Put(out, size, entry.has_zip64 ? 8 : 4);
}

void PutEntry(std::string& out, const ZipEntry& entry, uint32_t crc, uint64_t header) {
  const uint64_t size = entry.size.value_or(entry.content.size());
  std::string extra;
  if (entry.has_zip64) {
    Put(extra, 1, 2);
    Put(extra, 24, 2);
    for (const uint64_t number : {size, size, header}) Put(extra, number, 8);
  }
  if (entry.directory_extra > 0) {
    Put(extra, 0x7777, 2);
    Put(extra, entry.directory_extra, 2);
    extra.append(entry.directory_extra, 'x');
  }
  out += "PK\1\2";
  for (const uint16_t number : {uint16_t{0}, uint16_t{0}, entry.flags, entry.method}) {
    Put(out, number, 2);
  }
  Put(out, 0, 4);
  Put(out, crc, 4);
  for (int i = 0; i < 2; ++i) Put(out, entry.has_zip64 ? kNo32 : size, 4);
  Put(out, entry.name.size(), 2);
  Put(out, extra.size(), 2);
  out.append(10, '\0');  // comment, disk, attributes
  Put(out, entry.has_zip64 ? kNo32 : header, 4);
  out += entry.name + extra;
}

}  // namespace

uint32_t NaiveCrc32(std::string_view bytes) {
  uint32_t crc = ~uint32_t{0};
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xedb88320U : 0U);
  }
  return ~crc;
}

std::string ZipOf(const std::vector<ZipEntry>& entries, const ZipForm& form) {
  std::string zip;
  std::string directory;
  for (const ZipEntry& entry : entries) {
    const uint64_t header = zip.size();
    const uint32_t crc = entry.crc.value_or(NaiveCrc32(entry.content));
    PutLocal(zip, entry, crc);
    PutEntry(directory, entry, crc, entry.header.value_or(header));
  }
  const uint64_t offset = form.offset.value_or(zip.size());
  const uint64_t bytes = form.bytes.value_or(directory.size());
  const uint64_t count = form.count.value_or(entries.size());
  zip += directory + form.before_record;
  if (form.has_zip64) {
    const uint64_t record = zip.size();
    zip += "PK\6\6";
    Put(zip, 44, 8);
    Put(zip, 0x031e, 2);
    Put(zip, 0x2d, 2);
    Put(zip, 0, 8);
    for (const uint64_t number : {count, count, bytes, offset}) Put(zip, number, 8);
    zip += "PK\6\7";
    Put(zip, 0, 4);
    Put(zip, record, 8);
    Put(zip, 1, 4);
  }
  zip += "PK\5\6";
  Put(zip, 0, 4);
  for (int i = 0; i < 2; ++i)
    Put(zip, form.is_large ? 0xffff : std::min<uint64_t>(count, 0xffff), 2);
  for (const uint64_t number : {bytes, offset}) {
    Put(zip, form.is_large ? kNo32 : std::min(number, kNo32), 4);
  }
  Put(zip, 0, 2);
  return zip;
}

}  // namespace reshard
