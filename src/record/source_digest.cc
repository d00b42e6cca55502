#include "src/record/source_digest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/quote.h"
#include "src/record/byte_text.h"

namespace reshard {
namespace {

constexpr size_t kMostText = 512;  // of a few lines

}  // namespace

void SourceDigest::Add(std::string_view name, DType dtype, const Shape& full_shape,
                       std::string_view digest) {
  const std::string text = BytesAsJson(name);
  const std::string escaped = text.substr(1, text.size() - 2);  // without the quotes
  lines_.Update(fmt::format("{}\t{}\t[{}]\t{}\n", escaped, DTypeName(dtype),
                            fmt::join(full_shape, ","), digest));
}

Status SourceSummary::Add(const PartRecordHead& head) {
  for (const ManifestSource& taken : head.sources) {
    const auto known = sources_.find(taken.path);
    if (known == sources_.end() || known->second.size == taken.size) continue;
    return MismatchError(fmt::format(
        "the part record of {} says that the source {} has {} bytes, an earlier one {}; convert "
        "from one source only",
        Quote(head.path), Quote(taken.path), taken.size, known->second.size));
  }
  for (const ManifestSource& taken : head.sources) {
    Source& source = sources_[taken.path];
    source.size = taken.size;
    if (taken.digest.empty()) source.has_digest = false;
    const std::string line = fmt::format("{}\t{}\n", head.path, taken.digest);
    if (!source.lines && source.few.size() + line.size() > kMostText) {
      source.lines.emplace().Update(source.few);
      std::string().swap(source.few);
    }
    if (source.lines) {
      source.lines->Update(line);
    } else {
      source.few += line;
    }
  }
  return {};
}

std::vector<ManifestSource> SourceSummary::Sources() const {
  std::vector<ManifestSource> sources;
  sources.reserve(sources_.size());
  for (const auto& [path, source] : sources_) {
    sources.push_back({.path = path, .size = source.size});
    if (!source.has_digest) continue;
    if (source.lines) {
      sources.back().digest = source.lines->HexDigest();
    } else {
      Xxh3 lines;
      lines.Update(source.few);
      sources.back().digest = lines.HexDigest();
    }
  }
  return sources;
}

}  // namespace reshard
