#include "src/job/manifest_builder.h"

#include <fmt/format.h>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/record/part_record.h"

namespace reshard {

Status ManifestBuilder::Add(const ManifestFile& file, std::string_view record) {
  const std::string path = RecordPath(file.path);
  PartRecordParser parser(path);
  RESHARD_RETURN_IF_ERROR(parser.Feed(record));
  RESHARD_RETURN_IF_ERROR(parser.Finish());
  const PartRecordHead& head = *parser.head();
  if (head.plan != manifest_.plan || head.path != file.path || head.size != file.size) {
    return MismatchError(fmt::format(
        "{}: the part record of plan {}, file {}, {} bytes; expected plan {}, file {}, {} bytes",
        Escape(path), head.plan, Quote(head.path), head.size, manifest_.plan, Quote(file.path),
        file.size));
  }
  if (!file.record_digest.empty() && file.record_digest != parser.HexDigest()) {
    return MismatchError(fmt::format("{}: its digest is {}, the manifest says {}", Escape(path),
                                     parser.HexDigest(), file.record_digest));
  }
  RESHARD_RETURN_IF_ERROR(sources_.Add(head));
  manifest_.files.push_back({.path = file.path,
                             .size = file.size,
                             .digest = head.digest,
                             .record_size = parser.size(),
                             .record_digest = parser.HexDigest()});
  return {};
}

Manifest ManifestBuilder::Finish() {
  manifest_.sources = sources_.Sources();
  return std::move(manifest_);
}

}  // namespace reshard
