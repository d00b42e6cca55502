#include "src/write/target_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/digest/digest128.h"
#include "src/digest/xxh3.h"
#include "src/record/part_record.h"

namespace reshard {
namespace {

// Digests of the bytes that a target file took from each source.
class SourceDigests {
 public:
  // Begins a Value. Values come in the order of the target file, in which a parameter's Values are
  // adjacent.
  void Begin(std::string_view name, DType dtype, std::span<const int64_t> full_shape);
  // Adds the sum of the logical digests of the Value's bytes from `source`. The caller chooses the
  // number of a source.
  void Add(uint64_t source, const Digest128& sum);

  // After the last Value. Returns the digest of the bytes that `source` gave, even if it gave none.
  std::string HexDigest(uint64_t source);

 private:
  struct Source {
    Xxh3 lines;     // of parameters and the digests of their parts that were taken
    Digest128 sum;  // of the parameter
    bool gave = false;
  };

  void EndParameter();

  // The last parameter begun, and the sources of its bytes.
  std::string name_;
  DType dtype_ = DType::kFloat32;
  Shape full_shape_;
  std::vector<Source*> givers_;
  std::string line_;  // these two: one place for all parameters
  std::string hex_;
  std::map<uint64_t, Source> sources_;  // node-based: a source stays at its address
};

void SourceDigests::Begin(std::string_view name, DType dtype, std::span<const int64_t> full_shape) {
  if (name == name_ && !givers_.empty()) return;
  EndParameter();
  name_ = name;
  dtype_ = dtype;
  full_shape_.assign(full_shape.begin(), full_shape.end());
}

void SourceDigests::Add(uint64_t source, const Digest128& sum) {
  Source& giver = sources_[source];
  if (!giver.gave) givers_.push_back(&giver);
  giver.gave = true;
  giver.sum ^= sum;
}

std::string SourceDigests::HexDigest(uint64_t source) {
  EndParameter();
  return sources_[source].lines.HexDigest();
}

void SourceDigests::EndParameter() {
  if (givers_.empty()) return;
  SetTakenParameter(name_, dtype_, full_shape_, line_);
  for (Source* const giver : givers_) {
    SetHex(giver->sum, hex_);
    hex_ += '\n';
    giver->lines.Update(line_);
    giver->lines.Update(hex_);
    giver->sum = {};
    giver->gave = false;
  }
  givers_.clear();
}

// Sets all fields of `value` but its digest from a content. Takes no memory if it had as much
// before.
void SetValue(const Content& content, RecordedValue& value) {
  const auto set = [](std::span<const int64_t> numbers, std::vector<int64_t>& out) {
    out.assign(numbers.begin(), numbers.end());
  };
  value.name = content.target_name;
  value.dtype = content.target_dtype();
  value.cast_from.reset();
  if (content.is_cast()) value.cast_from = content.dtype;
  set(content.geometry.full_shape(), value.full_shape);
  set(content.geometry.target_begin(), value.box.begin);
  set(content.geometry.target_extent(), value.box.extent);
  value.offset = content.target.offset;
  value.length = content.target.length;
}

PartRecordHead HeadOf(const TargetPlan& plan, const RecordFacts& facts) {
  const auto& [fingerprint, names, digest, lost] = facts;
  PartRecordHead head;
  head.plan = fingerprint;
  head.path = plan.path;
  head.size = plan.size;
  head.lost.assign(lost.begin(), lost.end());
  SourceDigests sources;
  if (digest != nullptr) {
    head.digest = digest->file();
    head.blocks = digest->blocks();
    for (size_t i = 0; i < plan.segments.size(); ++i) {
      const auto* content = std::get_if<Content>(&plan.segments[i]);
      if (content == nullptr) continue;
      sources.Begin(content->target_name, content->dtype, content->geometry.full_shape());
      for (size_t c = 0; c < content->copies.size(); ++c) {
        sources.Add(content->copies[c].source, digest->copy(i, c));
      }
    }
  }
  for (const FileId file : plan.sources) {
    head.sources.push_back(names.at(file));
    if (digest != nullptr) head.sources.back().digest = sources.HexDigest(file);
  }
  std::sort(head.sources.begin(), head.sources.end(),
            [](const auto& a, const auto& b) { return a.path < b.path; });
  return head;
}

constexpr const char* kAgainAdvice = "remove the folder .reshard there, and run all shares again";

// Whether the part has bytes of the content. An empty content belongs to the part with its offset.
bool Touches(ByteRange part, uint64_t size, ByteRange content) {
  if (content.length > 0) return content.offset < part.end() && content.end() > part.offset;
  return content.offset >= part.offset &&
         (content.offset < part.end() || (content.offset == size && part.end() == size));
}

Digest128 SumOf(const std::string& hex) {
  const auto digest = ParseHex(hex);
  return digest ? *digest : Digest128();  // no value if records have no digests
}

// A Value, added up over the parts that have its bytes.
struct WholeValue {
  RecordedValue value;
  Digest128 sum;
  std::map<uint64_t, Digest128> taken;  // by source
  uint64_t lost = 0;                    // as in PartialValue
  uint64_t zeros = 0;                   // likewise
};

// Adds a part's bytes of a Value. Returns whether it is the same Value as in the earlier parts.
bool AddPartial(const PartialValue& partial, WholeValue& whole) {
  RecordedValue bare = partial.value;
  bare.digest = whole.value.digest;
  if (bare != whole.value) return false;
  whole.sum ^= SumOf(partial.value.digest);
  whole.lost += partial.lost;
  whole.zeros += partial.zeros;
  for (const TakenDigest& taken : partial.taken) whole.taken[taken.source] ^= SumOf(taken.digest);
  return true;
}

Status Disagree(const std::string& path, const std::string& what) {
  return InternalError(
      fmt::format("{}: the shares' records disagree on {}; {}", Escape(path), what, kAgainAdvice));
}

Result<std::vector<WholeValue>> AddUp(const std::vector<BlockRecord>& records,
                                      const std::string& path) {
  std::vector<WholeValue> values;
  for (const BlockRecord& record : records) {
    for (const PartialValue& partial : record.values) {
      const uint64_t offset = partial.value.offset;
      if (values.empty() || values.back().value.offset < offset) {
        values.push_back({.value = partial.value, .sum = {}, .taken = {}});
        values.back().value.digest.clear();
      }
      if (!AddPartial(partial, values.back())) return Disagree(path, Quote(partial.value.name));
    }
  }
  for (const WholeValue& whole : values) {
    if (whole.value.cast_from) continue;  // the sources have another dtype
    Digest128 taken;
    for (const auto& [source, sum] : whole.taken) taken ^= sum;
    if (taken != whole.sum) {
      return Disagree(path, fmt::format("the digests of {}", Quote(whole.value.name)));
    }
  }
  return values;
}

Status CheckFit(const std::vector<BlockRecord>& records, const std::string& path) {
  uint64_t end = 0;
  for (const BlockRecord& record : records) {
    if (record.part.offset != end) return Disagree(path, "their parts");
    if (record.sources != records.front().sources) return Disagree(path, "their sources");
    if (record.blocks.empty() != records.front().blocks.empty()) {
      return Disagree(path, "whether there are digests");
    }
    end = record.part.end();
  }
  if (records.empty() || end != records.front().size) return Disagree(path, "their parts");
  return {};
}

Status CheckBlocks(const std::vector<std::string>& written, const std::vector<std::string>& read,
                   const std::string& path) {
  const auto [wrong, found] =
      std::mismatch(written.begin(), written.end(), read.begin(), read.end());
  if (wrong == written.end() && found == read.end()) return {};
  const auto block = static_cast<uint64_t>(wrong - written.begin());
  return CorruptError(
      fmt::format("{}: block {}, from byte {} on, has changed since its share wrote it: damaged on "
                  "the disk, or the shares do not see each other's files; {}",
                  Escape(path), block, block * kDigestBlockBytes, kAgainAdvice));
}

}  // namespace

Status EncodeTargetRecord(const TargetPlan& plan, const RecordFacts& facts,
                          const FileDigests* found, const PartRecordEncoder::Sink& sink) {
  const TargetDigest* const digest = facts.digest;
  PartRecordEncoder encoder(sink);
  PartRecordHead head = HeadOf(plan, facts);
  if (digest != nullptr && found != nullptr) {
    head.digest = found->file;
    head.blocks = found->blocks;
  }
  RESHARD_RETURN_IF_ERROR(encoder.WriteHead(head));
  RecordedValue value;
  for (size_t i = 0; i < plan.segments.size(); ++i) {
    const auto* content = std::get_if<Content>(&plan.segments[i]);
    if (content == nullptr) continue;
    SetValue(*content, value);
    if (digest != nullptr) SetHex(digest->content(i), value.digest);
    RESHARD_RETURN_IF_ERROR(encoder.WriteValue(value));
  }
  return encoder.Finish();
}

Result<std::string> EncodePartBlocks(const TargetPlan& plan, ByteRange part,
                                     const RecordFacts& facts) {
  const auto& [fingerprint, names, digest, lost] = facts;
  BlockRecord record{.plan = fingerprint, .path = plan.path, .size = plan.size, .part = part};
  if (digest != nullptr) record.blocks = digest->blocks();
  for (const FileId file : plan.sources) record.sources.push_back(names.at(file));
  std::sort(record.sources.begin(), record.sources.end(),
            [](const auto& a, const auto& b) { return a.path < b.path; });
  std::map<FileId, uint64_t> numbers;
  for (const FileId file : plan.sources) {
    const auto at = std::lower_bound(
        record.sources.begin(), record.sources.end(), names.at(file).path,
        [](const ManifestSource& source, const std::string& path) { return source.path < path; });
    numbers[file] = static_cast<uint64_t>(at - record.sources.begin());
  }
  for (size_t i = 0; i < plan.segments.size(); ++i) {
    const auto* content = std::get_if<Content>(&plan.segments[i]);
    if (content == nullptr || !Touches(part, plan.size, content->target)) continue;
    PartialValue partial;
    SetValue(*content, partial.value);
    if (digest != nullptr) partial.value.digest = ToHex(digest->content(i));
    std::map<uint64_t, Digest128> taken;
    for (size_t c = 0; c < content->copies.size(); ++c) {
      Digest128& sum = taken[numbers.at(content->copies[c].source)];
      if (digest != nullptr) sum ^= digest->copy(i, c);
    }
    for (const auto& [source, sum] : taken) {
      partial.taken.push_back({source, digest == nullptr ? "" : ToHex(sum)});
    }
    if (content->is_cast()) {
      const auto of_value = std::find_if(lost.begin(), lost.end(), [&](const LostValues& values) {
        return values.name == content->target_name;
      });
      const bool is_first =
          record.values.empty() || record.values.back().value.name != partial.value.name;
      if (of_value != lost.end() && is_first) {
        partial.lost = of_value->values;
        partial.zeros = of_value->zeros;
      }
    }
    record.values.push_back(std::move(partial));
  }
  return EncodeBlockRecord(record);
}

Result<std::string> JoinBlockRecords(const std::vector<BlockRecord>& records,
                                     const FileDigests& read, const FileDigests* with_crc,
                                     const std::string& path) {
  RESHARD_RETURN_IF_ERROR(CheckFit(records, path));
  RESHARD_ASSIGN_OR_RETURN(const std::vector<WholeValue> values, AddUp(records, path));
  const BlockRecord& first = records.front();
  PartRecordHead head{
      .plan = first.plan, .path = first.path, .size = first.size, .sources = first.sources};
  const bool digests = !first.blocks.empty();
  if (digests) {
    for (const BlockRecord& record : records) {
      head.blocks.insert(head.blocks.end(), record.blocks.begin(), record.blocks.end());
    }
    RESHARD_RETURN_IF_ERROR(CheckBlocks(head.blocks, read.blocks, path));
    if (with_crc != nullptr) head.blocks = with_crc->blocks;
    head.digest = with_crc != nullptr ? with_crc->file : read.file;
    SourceDigests sources;
    for (const WholeValue& whole : values) {
      sources.Begin(whole.value.name, whole.value.cast_from.value_or(whole.value.dtype),
                    whole.value.full_shape);
      for (const auto& [source, sum] : whole.taken) sources.Add(source, sum);
    }
    for (size_t i = 0; i < head.sources.size(); ++i) head.sources[i].digest = sources.HexDigest(i);
  }
  std::map<std::string, LostValues> lost;
  for (const WholeValue& whole : values) {
    if (whole.lost == 0 && whole.zeros == 0) continue;
    LostValues& of_name = lost[whole.value.name];
    of_name.values += whole.lost;
    of_name.zeros += whole.zeros;
  }
  for (auto& [name, of_name] : lost) {
    of_name.name = name;
    head.lost.push_back(std::move(of_name));
  }
  std::string bytes;
  PartRecordEncoder encoder([&bytes](std::string_view piece) {
    bytes += piece;
    return Status();
  });
  RESHARD_RETURN_IF_ERROR(encoder.WriteHead(head));
  for (const WholeValue& whole : values) {
    RecordedValue value = whole.value;
    if (digests) value.digest = ToHex(whole.sum);
    RESHARD_RETURN_IF_ERROR(encoder.WriteValue(value));
  }
  RESHARD_RETURN_IF_ERROR(encoder.Finish());
  return bytes;
}

}  // namespace reshard
