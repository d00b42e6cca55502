#include "src/record/block_record.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/record/part_record.h"
#include "src/record/record_fields.h"
#include "src/record/strict_json.h"

namespace reshard {
namespace {

// The rules that tie the members of a head to each other; each source has passed SourceFault. The
// record's values do not count.
Fault BlockHeadFault(const BlockRecord& record) {
  const ByteRange& part = record.part;
  if (part.length == 0 || part.offset > record.size || part.length > record.size - part.offset) {
    return fmt::format("a part of {} bytes at byte {} of a file of {}", part.length, part.offset,
                       record.size);
  }
  if (part.offset % kDigestBlockBytes != 0 ||
      (part.end() % kDigestBlockBytes != 0 && part.end() != record.size)) {
    return fmt::format("a part of {} bytes at byte {}, but parts are whole blocks of {} bytes",
                       part.length, part.offset, kDigestBlockBytes);
  }
  const uint64_t blocks =
      part.length / kDigestBlockBytes + (part.length % kDigestBlockBytes == 0 ? 0 : 1);
  if (!record.blocks.empty() && record.blocks.size() != blocks) {
    return fmt::format("{} digests of blocks, but a part of {} bytes has {}", record.blocks.size(),
                       part.length, blocks);
  }
  return std::nullopt;
}

// `end` is the first byte of the target file that no earlier Value has; `head` has passed
// BlockHeadFault.
Fault PartialValueFault(const PartialValue& partial, uint64_t end, const BlockRecord& head) {
  const bool has_digests = !head.blocks.empty();
  const RecordedValue& value = partial.value;
  if (auto fault = ValueFault(value, end, head.size, has_digests)) return fault;
  Fault fault;
  if (value.offset > head.part.end() || value.offset + value.length < head.part.offset) {
    fault = fmt::format("its content has {} bytes at byte {}, outside the part of {} at byte {}",
                        value.length, value.offset, head.part.length, head.part.offset);
  }
  const TakenDigest* previous = nullptr;
  for (const TakenDigest& taken : partial.taken) {
    if (fault) break;
    if (taken.source >= head.sources.size()) {
      fault = fmt::format("taken from source number {} of {}", taken.source, head.sources.size());
    } else if (previous != nullptr && previous->source >= taken.source) {
      fault = fmt::format("source number {} after {}, but they are sorted and occur once",
                          taken.source, previous->source);
    } else if (taken.digest.empty() == has_digests) {
      fault = fmt::format("source number {}: {} digest, but the part has {}", taken.source,
                          taken.digest.empty() ? "no" : "a", has_digests ? "some" : "none");
    }
    previous = &taken;
  }
  if (!fault) return std::nullopt;
  return fmt::format("parameter {}: {}", Quote(value.name), *fault);
}

Fault HeadFaultOf(const BlockRecord& record) {
  if (auto fault = FingerprintFault(record.plan)) return fault;
  if (auto fault = TargetPathFault(record.path)) return fault;
  for (const std::string& block : record.blocks) {
    if (auto fault = DigestFault(block)) return fault;
  }
  std::string_view previous;
  for (const ManifestSource& source : record.sources) {
    if (auto fault = SourceFault(source, previous)) return fault;
    previous = source.path;
  }
  return BlockHeadFault(record);
}

Fault ValueFaultOf(const PartialValue& partial, uint64_t end, const BlockRecord& record) {
  if (auto fault = OptionalDigestFault(partial.value.digest)) return fault;
  for (const TakenDigest& taken : partial.taken) {
    if (auto fault = OptionalDigestFault(taken.digest)) return fault;
  }
  return PartialValueFault(partial, end, record);
}

std::string HeadLine(const BlockRecord& record) {
  std::string line = fmt::format(
      R"({{"schema_version":{},"plan":"{}","path":{},"size":{},"part":{{"offset":{},"length":{}}},"block_bytes":{},"blocks":[)",
      kRecordSchema, record.plan, BytesAsJson(record.path), record.size, record.part.offset,
      record.part.length, kDigestBlockBytes);
  const char* comma = "";
  for (const std::string& block : record.blocks) {
    fmt::format_to(std::back_inserter(line), "{}\"{}\"", comma, block);
    comma = ",";
  }
  line += R"(],"sources":[)";
  comma = "";
  for (const ManifestSource& source : record.sources) {
    fmt::format_to(std::back_inserter(line), R"({}{{"path":{},"size":{}}})", comma,
                   BytesAsJson(source.path), source.size);
    comma = ",";
  }
  return line + "]}\n";
}

std::string ValueLine(const PartialValue& partial) {
  std::string line = R"({"value":)";
  AppendValueAsJson(partial.value, line);
  line += R"(,"taken":[)";
  const char* comma = "";
  for (const TakenDigest& taken : partial.taken) {
    fmt::format_to(std::back_inserter(line), R"({}{{"source":{},"digest":{}}})", comma,
                   taken.source, DigestOrNull(taken.digest));
    comma = ",";
  }
  line += ']';
  if (partial.lost > 0) line += fmt::format(R"(,"lost":{})", partial.lost);
  if (partial.zeros > 0) line += fmt::format(R"(,"zeros":{})", partial.zeros);
  return line + "}\n";
}

enum BlockHeadField : int {
  kPartOffset = kAfterHeadFields,
  kPartLength,
};

enum TakenField : int {
  kTakenSource = kAfterValueFields,
  kTakenDigest,
  kTaken,
  kLost,
  kZeros,
  kLine,
};

using enum JsonKind;

constexpr JsonShape kPartMembers[] = {{"offset", kUnsigned, kPartOffset},
                                      {"length", kUnsigned, kPartLength}};
constexpr JsonShape kSourceMembers[] = {{"path", kBytes, kHeadSourcePath},
                                        {"size", kUnsigned, kHeadSourceSize}};
constexpr JsonShape kSourceElement[] = {{nullptr, kObject, kHeadSource, kSourceMembers}};
constexpr JsonShape kHeadMembers[] = {
    {"schema_version", kUnsigned, kHeadSchemaVersion},
    {"plan", kString, kHeadPlan},
    {"path", kBytes, kHeadPath},
    {"size", kUnsigned, kHeadSize},
    {"part", kObject, kHeadOther, kPartMembers},
    {"block_bytes", kUnsigned, kHeadBlockBytes},
    {"blocks", kArray, kHeadOther, kHeadBlockElement},
    {"sources", kArray, kHeadOther, kSourceElement},
};
constexpr JsonShape kHeadShape = {nullptr, kObject, kHead, kHeadMembers};

constexpr JsonShape kTakenMembers[] = {{"source", kUnsigned, kTakenSource},
                                       {"digest", kStringOrNull, kTakenDigest}};
constexpr JsonShape kTakenElement[] = {{nullptr, kObject, kTaken, kTakenMembers}};
constexpr JsonShape kLineMembers[] = {{"value", kObject, kValueObject, kValueMembers},
                                      {"taken", kArray, kValueOther, kTakenElement},
                                      {"lost", kUnsigned, kLost, {}, true},
                                      {"zeros", kUnsigned, kZeros, {}, true}};
constexpr JsonShape kLineShape = {nullptr, kObject, kLine, kLineMembers};

Status TakeHead(int field, const JsonValue& value, BlockRecord& record, ManifestSource& source) {
  switch (field) {
    case kPartOffset:
      record.part.offset = value.number;
      return {};
    case kPartLength:
      record.part.length = value.number;
      return {};
    case kHead:
      return CorruptIf(BlockHeadFault(record));
    default:
      return TakeHeadField(field, value, record, source);
  }
}

Status TakeField(int field, const JsonValue& value, PartialValue& partial, TakenDigest& taken) {
  switch (field) {
    case kLost:
      partial.lost = value.number;
      return {};
    case kZeros:
      partial.zeros = value.number;
      return {};
    case kTakenSource:
      taken.source = value.number;
      return {};
    case kTakenDigest:
      return SetDigest(value, taken.digest);
    case kTaken:
      partial.taken.push_back(std::exchange(taken, {}));
      return {};
    default:
      return TakeValueField(field, value, partial.value);
  }
}

}  // namespace

Result<std::string> EncodeBlockRecord(const BlockRecord& record) {
  const auto refuse = [&](const std::string& fault) {
    return InvalidArgumentError(
        fmt::format("a block record of {} cannot hold this: {}", Quote(record.path), fault));
  };
  if (const auto fault = HeadFaultOf(record)) return refuse(*fault);
  std::string bytes = HeadLine(record);
  uint64_t end = 0;
  for (const PartialValue& partial : record.values) {
    if (const auto fault = ValueFaultOf(partial, end, record)) return refuse(*fault);
    end = partial.value.offset + partial.value.length;
    const std::string line = ValueLine(partial);
    if (line.size() > kMaxRecordLineBytes) {
      return refuse(
          fmt::format("a line of {} bytes; it has at most {}", line.size(), kMaxRecordLineBytes));
    }
    bytes += line;
  }
  Xxh3 lines;
  lines.Update(std::string_view{bytes});
  return bytes + PartRecordSeal(lines, record.values.size());
}

Result<BlockRecord> ParseBlockRecord(std::string_view bytes, const std::string& path) {
  BlockRecord record;
  bool has_head = false;
  uint64_t end = 0;
  const auto take = [&](std::string_view line, const std::string& where) -> Status {
    if (!has_head) {
      has_head = true;
      ManifestSource source;
      return ReadWithAdvice(line, where, kHeadShape, [&](int field, const JsonValue& value) {
        return TakeHead(field, value, record, source);
      });
    }
    PartialValue partial;
    TakenDigest taken;
    RESHARD_RETURN_IF_ERROR(
        ReadWithAdvice(line, where, kLineShape, [&](int field, const JsonValue& value) {
          return TakeField(field, value, partial, taken);
        }));
    if (const auto fault = PartialValueFault(partial, end, record)) {
      return CorruptError(fmt::format("{}: {}; {}", Escape(where), *fault, kManifestAdvice));
    }
    end = partial.value.offset + partial.value.length;
    record.values.push_back(std::move(partial));
    return {};
  };
  SealedLines lines(path);
  RESHARD_RETURN_IF_ERROR(lines.Feed(bytes, take));
  RESHARD_RETURN_IF_ERROR(lines.Finish());
  return record;
}

}  // namespace reshard
