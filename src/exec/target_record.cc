#include "src/exec/target_record.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "format/manifest/part_record.h"
#include "format/manifest/source_digest.h"
#include "src/base/status_macros.h"

namespace reshard {
namespace {

// Adds up what each source gave to each parameter, whose Values lie side by side.
class SourceDigests {
 public:
  void Add(const Content& content, size_t segment, const TargetDigest& digest) {
    if (content_ != nullptr && content_->target_name != content.target_name) EndParameter();
    content_ = &content;
    for (size_t i = 0; i < content.copies.size(); ++i) {
      sums_[content.copies[i].source] ^= digest.copy(segment, i);
    }
  }

  void EndParameter() {
    for (const auto& [file, sum] : sums_) {
      digests_[file].Add(content_->target_name, content_->dtype, content_->full_shape, ToHex(sum));
    }
    sums_.clear();
  }

  std::string HexDigest(FileId file) { return digests_[file].HexDigest(); }

 private:
  const Content* content_ = nullptr;  // the last one added
  std::map<FileId, Digest128> sums_;  // of its parameter
  std::map<FileId, SourceDigest> digests_;
};

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
      if (content != nullptr) sources.Add(*content, i, *digest);
    }
    sources.EndParameter();
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

Result<std::string> EncodeTargetRecord(const TargetPlan& plan, const std::string& fingerprint,
                                       const SourceNames& names, const TargetDigest* digest) {
  std::string bytes;
  PartRecordEncoder encoder([&bytes](std::string_view piece) {
    bytes += piece;
    return Status();
  });
  RESHARD_RETURN_IF_ERROR(encoder.WriteHead(HeadOf(plan, fingerprint, names, digest)));
  for (size_t i = 0; i < plan.segments.size(); ++i) {
    const auto* content = std::get_if<Content>(&plan.segments[i]);
    if (content == nullptr) continue;
    RESHARD_RETURN_IF_ERROR(
        encoder.WriteValue({.name = content->target_name,
                            .dtype = content->dtype,
                            .full_shape = content->full_shape,
                            .box = content->target_box,
                            .offset = content->target.offset,
                            .length = content->target.length,
                            .digest = digest == nullptr ? "" : ToHex(digest->content(i))}));
  }
  RESHARD_RETURN_IF_ERROR(encoder.Finish());
  return bytes;
}

}  // namespace reshard
