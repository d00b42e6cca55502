#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/record/byte_text.h"
#include "src/record/manifest_check.h"
#include "src/record/part_record.h"
#include "src/record/part_record_seal.h"
#include "src/record/record_fields.h"

namespace reshard {
namespace {

Status Refuse(const std::string& path, const std::string& fault) {
  return InvalidArgumentError(
      fmt::format("no part record of {} may hold this: {}", Quote(path), fault));
}

}  // namespace

PartRecordEncoder::PartRecordEncoder(Sink sink) : sink_(std::move(sink)) {}

Status PartRecordEncoder::WriteHead(const PartRecordHead& head) {
  path_ = head.path;
  target_size_ = head.size;
  has_digests_ = !head.digest.empty();
  Fault fault = FingerprintFault(head.plan);
  if (!fault) fault = OptionalDigestFault(head.digest);
  if (!fault) fault = HeadFault(head);
  if (fault) return Refuse(path_, *fault);
  std::string line = fmt::format(
      R"({{"schema_version":{},"plan":"{}","path":{},"size":{},"digest":{},"block_bytes":{},"blocks":[)",
      kManifestSchema, head.plan, BytesAsJson(head.path), head.size, DigestOrNull(head.digest),
      kDigestBlockBytes);
  for (const std::string& block : head.blocks) {
    if (const auto wrong = DigestFault(block)) return Refuse(path_, *wrong);
    fmt::format_to(std::back_inserter(line), "{}\"{}\"", &block == head.blocks.data() ? "" : ",",
                   block);
  }
  line += R"(],"sources":[)";
  std::string_view previous;
  for (const ManifestSource& source : head.sources) {
    fault = SourceFault(source, previous);
    if (!fault) fault = OptionalDigestFault(source.digest);
    if (fault) return Refuse(path_, *fault);
    fmt::format_to(std::back_inserter(line), R"({}{{"path":{},"size":{},"digest":{}}})",
                   previous.empty() ? "" : ",", BytesAsJson(source.path), source.size,
                   DigestOrNull(source.digest));
    previous = source.path;
  }
  return Write(line + "]}\n");
}

Status PartRecordEncoder::WriteValue(const RecordedValue& value) {
  Fault fault = ValueFault(value, end_, target_size_, has_digests_);
  if (!fault) fault = OptionalDigestFault(value.digest);
  if (fault) return Refuse(path_, *fault);
  end_ = value.offset + value.length;
  ++values_;
  return Write(ValueAsJson(value) + '\n');
}

Status PartRecordEncoder::Finish() { return Write(PartRecordSeal(whole_, values_)); }

Status PartRecordEncoder::Write(const std::string& line) {
  if (line.size() > kMaxRecordLineBytes) {
    return Refuse(path_, fmt::format("a line of {} bytes; it has at most {}", line.size(),
                                     kMaxRecordLineBytes));
  }
  RESHARD_RETURN_IF_ERROR(sink_(line));
  whole_.Update(line);
  size_ += line.size();
  return {};
}

}  // namespace reshard
