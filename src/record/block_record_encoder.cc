#include <fmt/format.h>

#include <iterator>

#include "src/base/quote.h"
#include "src/record/block_record.h"
#include "src/record/block_record_check.h"
#include "src/record/byte_text.h"
#include "src/record/part_record_seal.h"
#include "src/record/record_fields.h"

namespace reshard {
namespace {

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
      kManifestSchema, record.plan, BytesAsJson(record.path), record.size, record.part.offset,
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
  std::string line = fmt::format(R"({{"value":{},"taken":[)", ValueAsJson(partial.value));
  const char* comma = "";
  for (const TakenDigest& taken : partial.taken) {
    fmt::format_to(std::back_inserter(line), R"({}{{"source":{},"digest":{}}})", comma,
                   taken.source, DigestOrNull(taken.digest));
    comma = ",";
  }
  return line + "]}\n";
}

}  // namespace

Result<std::string> EncodeBlockRecord(const BlockRecord& record) {
  const auto refuse = [&](const std::string& fault) {
    return InvalidArgumentError(
        fmt::format("no block record of {} may hold this: {}", Quote(record.path), fault));
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

}  // namespace reshard
