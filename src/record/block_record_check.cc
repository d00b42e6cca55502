#include "src/record/block_record_check.h"

#include <fmt/format.h>

#include "src/base/quote.h"

namespace reshard {

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

Fault PartialValueFault(const PartialValue& partial, uint64_t end, const BlockRecord& head) {
  const bool has_digests = !head.blocks.empty();
  const RecordedValue& value = partial.value;
  if (auto fault = ValueFault(value, end, head.size, has_digests)) return fault;
  Fault fault;
  if (value.offset > head.part.end() || value.offset + value.length < head.part.offset) {
    fault = fmt::format("its content has {} bytes at byte {}, none of the part of {} at byte {}",
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

}  // namespace reshard
