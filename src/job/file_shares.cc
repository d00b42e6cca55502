#include "src/job/file_shares.h"

#include <algorithm>
#include <string_view>

#include "src/base/checked.h"
#include "src/record/part_record.h"

namespace reshard {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Takes the digits off the front, without leading zeros.
std::string_view TakeNumber(std::string_view& text) {
  size_t end = 0;
  while (end < text.size() && IsDigit(text[end])) ++end;
  std::string_view number = text.substr(0, end);
  text.remove_prefix(end);
  number.remove_prefix(std::min(number.find_first_not_of('0'), number.size()));
  return number;
}

// Whether `a` comes before `b`: "rank_2" before "rank_10".
bool ByNumbers(std::string_view a, std::string_view b) {
  const std::string_view whole_a = a;
  const std::string_view whole_b = b;
  while (!a.empty() && !b.empty()) {
    if (IsDigit(a.front()) && IsDigit(b.front())) {
      const std::string_view number_a = TakeNumber(a);
      const std::string_view number_b = TakeNumber(b);
      if (number_a.size() != number_b.size()) return number_a.size() < number_b.size();
      if (number_a != number_b) return number_a < number_b;
    } else {
      if (a.front() != b.front()) return a.front() < b.front();
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
  }
  if (a.empty() != b.empty()) return a.empty();
  return whole_a < whole_b;
}

std::vector<size_t> InOrder(const std::vector<ManifestFile>& files) {
  std::vector<size_t> order(files.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return ByNumbers(files[a].path, files[b].path); });
  return order;
}

// A place in the files as they follow each other: `file` counts in their order.
struct Cut {
  size_t file = 0;
  uint64_t offset = 0;
};

// Moves a cut inside a file to an offset at which a worker may begin. An encrypted file is not cut.
uint64_t RoundedOffset(uint64_t offset, const ManifestFile& file, uint64_t share) {
  const uint64_t size = file.size;
  const auto nearer = [offset](uint64_t low, uint64_t high) {
    return offset - low < high - offset ? low : high;
  };
  if (size <= share || file.encryption) return nearer(0, size);
  const uint64_t low = offset - offset % kDigestBlockBytes;
  return nearer(low, std::min(size, low + kDigestBlockBytes));
}

// Returns the begin of each worker's share, and at last the end.
std::vector<Cut> Cuts(const std::vector<ManifestFile>& files, const std::vector<size_t>& order,
                      uint64_t workers) {
  uint64_t total = 0;  // if this overflows 64 bits, only the balance suffers
  for (const ManifestFile& file : files) {
    total = SaturatingAdd(total, file.size);
  }
  const uint64_t share = total / workers;
  std::vector<Cut> cuts = {{0, 0}};
  size_t file = 0;
  uint64_t begin = 0;  // of the file
  for (uint64_t i = 1; i < workers; ++i) {
    const uint64_t at = share * i + total % workers * i / workers;
    while (file < order.size() && files[order[file]].size <= at - begin) {
      begin += files[order[file++]].size;
    }
    if (file == order.size()) {
      cuts.push_back({file, 0});
      continue;
    }
    const uint64_t size = files[order[file]].size;
    const uint64_t offset = RoundedOffset(at - begin, files[order[file]], share);
    cuts.push_back(offset == size ? Cut{file + 1, 0} : Cut{file, offset});
  }
  cuts.push_back({order.size(), 0});
  return cuts;
}

}  // namespace

std::vector<std::vector<FilePart>> AllShares(const std::vector<ManifestFile>& files,
                                             uint64_t workers) {
  const std::vector<size_t> order = InOrder(files);
  const std::vector<Cut> cuts = Cuts(files, order, workers);
  std::vector<std::vector<FilePart>> shares(workers);
  for (size_t w = 0; w < shares.size(); ++w) {
    const Cut& begin = cuts[w];
    const Cut& end = cuts[w + 1];
    for (size_t i = begin.file; i < order.size() && i <= end.file; ++i) {
      const uint64_t size = files[order[i]].size;
      const uint64_t from = i == begin.file ? begin.offset : 0;
      const uint64_t to = i == end.file ? end.offset : size;
      if (i == end.file && to == 0) break;
      if (from < to || size == 0) shares[w].push_back({order[i], {from, to - from}});
    }
  }
  return shares;
}

std::vector<FilePart> ShareOf(const std::vector<ManifestFile>& files, const WorkerShare& worker) {
  return std::move(AllShares(files, worker.count)[worker.index]);
}

std::vector<std::vector<ByteRange>> PartsOf(const std::vector<ManifestFile>& files,
                                            uint64_t workers) {
  std::vector<std::vector<ByteRange>> parts(files.size());
  for (const std::vector<FilePart>& share : AllShares(files, workers)) {
    for (const FilePart& part : share) parts[part.file].push_back(part.range);
  }
  return parts;
}

}  // namespace reshard
