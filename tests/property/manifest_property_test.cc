// Manifests and part records of any content come back as they were, however they are fed.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "src/digest/xxh3.h"
#include "src/record/block_record.h"
#include "src/record/manifest_codec.h"
#include "src/record/part_record.h"

namespace reshard::manifest_property_test {
namespace {

std::string AnyHex(size_t digits) {
  return *rc::gen::container<std::string>(digits,
                                          rc::gen::elementOf(std::string("0123456789abcdef")));
}

std::string AnyDigestOrNone() { return *rc::gen::arbitrary<bool>() ? AnyHex(32) : std::string(); }

// Characters of one to four bytes, those that JSON escapes among them.
std::string AnyText() {
  const auto pieces = *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(
      std::vector<std::string>{"a", "Z", ".", " ", "\"", "\\", "\n", "\t", "\x01", "\x7f", "ä",
                               "張", "\xf0\x9f\x98\x80", "\xc2\x80", std::string(1, '\0')}));
  std::string text;
  for (const std::string& piece : pieces) text += piece;
  return text;
}

std::string AnyComponent() {
  return 'c' + *rc::gen::container<std::string>(rc::gen::elementOf(std::string("aZ \"\\.0")));
}

// Sorted, each once.
std::vector<std::string> AnyPaths() {
  std::set<std::string> paths;
  const int count = *rc::gen::inRange(0, 6);
  for (int i = 0; i < count; ++i) {
    std::string path = AnyComponent();
    for (int depth = *rc::gen::inRange(0, 3); depth > 0; --depth) path += '/' + AnyComponent();
    paths.insert(path);
  }
  return {paths.begin(), paths.end()};
}

uint64_t AnySize() { return *rc::gen::arbitrary<uint64_t>(); }

std::vector<ManifestSource> AnySources(bool all, bool none) {
  std::vector<ManifestSource> sources;
  for (const std::string& path : AnyPaths()) {
    sources.push_back({path, AnySize(), all ? AnyHex(32) : none ? "" : AnyDigestOrNone()});
  }
  return sources;
}

std::vector<SourceStamp> AnyStamps() {
  std::vector<SourceStamp> stamps;
  for (const std::string& path : AnyPaths()) {
    stamps.push_back({path, AnySize(), *rc::gen::arbitrary<int64_t>(), AnySize()});
  }
  return stamps;
}

RC_GTEST_PROP(ManifestProperty, ComesBack, ()) {
  Manifest manifest{.tool_version = AnyText(),
                    .plan = AnyHex(*rc::gen::inRange<size_t>(1, 65)),
                    .source_strategy = AnyDigestOrNone(),
                    .target_strategy = AnyDigestOrNone(),
                    .sources = AnySources(false, false),
                    .stamps = AnyStamps()};
  for (const std::string& path : AnyPaths()) {
    manifest.files.push_back({path, AnySize(), AnyDigestOrNone(), AnySize(), AnyHex(32)});
    manifest.files.back().key_check = AnyDigestOrNone();
  }
  const auto bytes = EncodeManifest(manifest);
  RC_ASSERT(bytes.ok());
  const auto back = ParseManifest(*bytes, "m.json");
  RC_ASSERT(back.ok());
  RC_ASSERT(*back == manifest);
  Manifest reversed = manifest;
  std::reverse(reversed.files.begin(), reversed.files.end());
  std::reverse(reversed.sources.begin(), reversed.sources.end());
  std::reverse(reversed.stamps.begin(), reversed.stamps.end());
  RC_ASSERT(*EncodeManifest(reversed) == *bytes);
}

PartRecordHead AnyHead() {
  const bool digests = *rc::gen::arbitrary<bool>();
  PartRecordHead head{.plan = AnyHex(*rc::gen::inRange<size_t>(1, 65)),
                      .path = AnyComponent(),
                      .size = *rc::gen::inRange<uint64_t>(0, 5 * kDigestBlockBytes),
                      .digest = digests ? AnyHex(32) : std::string(),
                      .sources = AnySources(digests, !digests)};
  for (uint64_t at = 0; digests && at < head.size; at += kDigestBlockBytes) {
    head.blocks.push_back(AnyHex(32));
  }
  return head;
}

std::vector<RecordedValue> AnyValues(const PartRecordHead& head) {
  std::vector<RecordedValue> values;
  uint64_t end = 0;
  while (end < head.size && *rc::gen::inRange(0, 4) != 0) {
    RecordedValue value{.name = AnyText(),
                        .dtype = static_cast<DType>(*rc::gen::inRange(0, 20)),
                        .offset = *rc::gen::inRange<uint64_t>(end, head.size),
                        .digest = head.digest.empty() ? std::string() : AnyHex(32)};
    value.length = *rc::gen::inRange<uint64_t>(0, head.size - value.offset + 1);
    end = value.offset + value.length;
    for (int dims = *rc::gen::inRange(0, 5); dims > 0; --dims) {
      const auto dim = *rc::gen::inRange<int64_t>(0, INT64_MAX);
      const auto begin = *rc::gen::inRange<int64_t>(0, dim + 1);
      value.full_shape.push_back(dim);
      value.box.begin.push_back(begin);
      value.box.extent.push_back(*rc::gen::inRange<int64_t>(0, dim - begin + 1));
    }
    values.push_back(std::move(value));
  }
  return values;
}

RC_GTEST_PROP(PartRecordProperty, ComesBackHoweverItIsFed, ()) {
  const PartRecordHead head = AnyHead();
  const std::vector<RecordedValue> values = AnyValues(head);
  std::string bytes;
  PartRecordEncoder encoder([&](std::string_view piece) {
    bytes += piece;
    return Status();
  });
  RC_ASSERT(encoder.WriteHead(head).ok());
  for (const RecordedValue& value : values) RC_ASSERT(encoder.WriteValue(value).ok());
  RC_ASSERT(encoder.Finish().ok());
  Xxh3 digest;
  digest.Update(std::string_view(bytes));
  RC_ASSERT(encoder.size() == bytes.size());
  RC_ASSERT(encoder.HexDigest() == digest.HexDigest());

  std::vector<RecordedValue> back;
  PartRecordParser parser("r.jsonl", [&](const RecordedValue& value) { back.push_back(value); });
  for (size_t at = 0; at < bytes.size();) {
    const auto length = *rc::gen::inRange<size_t>(1, bytes.size() - at + 1);
    RC_ASSERT(parser.Feed(std::string_view(bytes).substr(at, length)).ok());
    at += length;
  }
  RC_ASSERT(parser.Finish().ok());
  RC_ASSERT(*parser.head() == head);
  RC_ASSERT(back == values);
  RC_ASSERT(parser.size() == bytes.size());
  RC_ASSERT(parser.HexDigest() == digest.HexDigest());
}

RC_GTEST_PROP(BlockRecordProperty, ComesBack, ()) {
  const PartRecordHead head = AnyHead();
  RC_PRE(head.size > 0);
  const uint64_t first = *rc::gen::inRange<uint64_t>(0, (head.size - 1) / kDigestBlockBytes + 1);
  const uint64_t last = *rc::gen::inRange<uint64_t>(first, (head.size - 1) / kDigestBlockBytes + 1);
  const uint64_t end = std::min(head.size, (last + 1) * kDigestBlockBytes);
  BlockRecord record{.plan = head.plan,
                     .path = head.path,
                     .size = head.size,
                     .part = {first * kDigestBlockBytes, end - first * kDigestBlockBytes},
                     .sources = head.sources};
  const bool digests = !head.digest.empty();
  for (uint64_t block = first; digests && block <= last; ++block) {
    record.blocks.push_back(AnyHex(32));
  }
  for (ManifestSource& source : record.sources) source.digest.clear();
  for (RecordedValue& value : AnyValues(head)) {
    if (value.offset > end || value.offset + value.length < record.part.offset) continue;
    PartialValue partial{.value = std::move(value)};
    for (uint64_t source = 0; source < record.sources.size(); ++source) {
      if (*rc::gen::arbitrary<bool>()) {
        partial.taken.push_back({source, digests ? AnyHex(32) : std::string()});
      }
    }
    record.values.push_back(std::move(partial));
  }
  const auto bytes = EncodeBlockRecord(record);
  RC_ASSERT(bytes.ok());
  const auto back = ParseBlockRecord(*bytes, "r.jsonl");
  RC_ASSERT(back.ok());
  RC_ASSERT(*back == record);
}

}  // namespace
}  // namespace reshard::manifest_property_test
