#include "src/record/block_record.h"

#include <fmt/format.h>

#include <cstddef>
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

constexpr JsonTable kPartTable{
    JsonField<&ByteRange::offset, AsUnsigned>("offset"),
    JsonField<&ByteRange::length, AsUnsigned>("length"),
};
constexpr JsonTable kUnprovedSourceTable{
    JsonField<&ManifestSource::path, AsBytes>("path").CheckedBy<SourceFault>(),
    JsonField<&ManifestSource::size, AsUnsigned>("size"),
};
constexpr JsonTable kBlockHeadTable =
    JsonTable{
        JsonFact<BlockRecord, SchemaVersion<kRecordSchema>>("schema_version"),
        JsonField<&BlockRecord::plan, AsFingerprint>("plan"),
        JsonField<&BlockRecord::path, AsTargetPath>("path"),
        JsonField<&BlockRecord::size, AsUnsigned>("size"),
        JsonField<&BlockRecord::part, AsObject<kPartTable>>("part"),
        JsonFact<BlockRecord, BlockBytes>("block_bytes"),
        JsonField<&BlockRecord::blocks, AsList<AsDigest>>("blocks"),
        JsonField<&BlockRecord::sources, AsList<AsObject<kUnprovedSourceTable>>>("sources"),
    }
        .CheckedBy<BlockHeadFault>();

constexpr JsonTable kTakenTable{
    JsonField<&TakenDigest::source, AsUnsigned>("source"),
    JsonField<&TakenDigest::digest, AsDigestOrNull>("digest"),
};
constexpr JsonTable kLineTable{
    JsonField<&PartialValue::value, AsObject<kValueTable>>("value"),
    JsonField<&PartialValue::taken, AsList<AsObject<kTakenTable>>>("taken"),
    JsonField<&PartialValue::lost, AsUnsigned>("lost").OrNone(),
    JsonField<&PartialValue::zeros, AsUnsigned>("zeros").OrNone(),
};

}  // namespace

Result<std::string> EncodeBlockRecord(const BlockRecord& record) {
  const auto refuse = [&](const std::string& fault) {
    return InvalidArgumentError(
        fmt::format("a block record of {} cannot hold this: {}", Quote(record.path), fault));
  };
  std::string line;
  if (const auto fault = AppendJson(kBlockHeadTable, record, JsonText::Style::kLine, line)) {
    return refuse(*fault);
  }
  std::string bytes = line + '\n';
  uint64_t end = 0;
  for (const PartialValue& partial : record.values) {
    line.clear();
    Fault fault = AppendJson(kLineTable, partial, JsonText::Style::kLine, line);
    if (!fault) fault = PartialValueFault(partial, end, record);
    if (fault) return refuse(*fault);
    end = partial.value.offset + partial.value.length;
    line += '\n';
    if (line.size() > kMaxRecordLineBytes) {
      return refuse(
          fmt::format("a line of {} bytes; it has at most {}", line.size(), kMaxRecordLineBytes));
    }
    bytes += line;
  }
  Xxh3 lines;
  lines.Update(std::string_view{bytes});
  bytes += PartRecordSeal(lines, record.values.size());
  return bytes;
}

Result<BlockRecord> ParseBlockRecord(std::string_view bytes, const std::string& path) {
  BlockRecord record;
  bool has_head = false;
  uint64_t end = 0;
  const auto take = [&](std::string_view line, const std::string& where) -> Status {
    if (!has_head) {
      has_head = true;
      return ReadWithAdvice(line, where, kBlockHeadTable, record);
    }
    PartialValue partial;
    RESHARD_RETURN_IF_ERROR(ReadWithAdvice(line, where, kLineTable, partial));
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
