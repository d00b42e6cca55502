#include "src/write/target_record.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "src/base/status_macros.h"
#include "src/record/part_record.h"
#include "src/write/source_digests.h"

namespace reshard {
namespace {

PartRecordHead HeadOf(const TargetPlan& plan, const std::string& fingerprint,
                      const SourceNames& names, const TargetDigest* digest) {
  PartRecordHead head;
  head.plan = fingerprint;
  head.path = plan.path;
  head.size = plan.size;
  SourceDigests sources;
  if (digest != nullptr) {
    head.digest = digest->file();
    head.blocks = digest->blocks();
    for (size_t i = 0; i < plan.segments.size(); ++i) {
      const auto* content = std::get_if<Content>(&plan.segments[i]);
      if (content == nullptr) continue;
      const RecordedValue value = ValueOf(*content);
      for (size_t c = 0; c < content->copies.size(); ++c) {
        sources.Add(value, content->copies[c].source, digest->copy(i, c));
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

}  // namespace

RecordedValue ValueOf(const Content& content) {
  return {.name = std::string(content.target_name),
          .dtype = content.dtype,
          .full_shape = content.geometry.full_shape(),
          .box = content.geometry.target_box(),
          .offset = content.target.offset,
          .length = content.target.length};
}

Status EncodeTargetRecord(const TargetPlan& plan, const std::string& fingerprint,
                          const SourceNames& names, const TargetDigest* digest,
                          const PartRecordEncoder::Sink& sink) {
  PartRecordEncoder encoder(sink);
  RESHARD_RETURN_IF_ERROR(encoder.WriteHead(HeadOf(plan, fingerprint, names, digest)));
  for (size_t i = 0; i < plan.segments.size(); ++i) {
    const auto* content = std::get_if<Content>(&plan.segments[i]);
    if (content == nullptr) continue;
    RecordedValue value = ValueOf(*content);
    if (digest != nullptr) value.digest = ToHex(digest->content(i));
    RESHARD_RETURN_IF_ERROR(encoder.WriteValue(value));
  }
  return encoder.Finish();
}

}  // namespace reshard
