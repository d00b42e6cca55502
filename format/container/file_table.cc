#include "format/container/file_table.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <functional>
#include <numeric>
#include <set>

#include "src/tensor/byte_box.h"

namespace reshard {
namespace {

// The allocator's own bytes for each allocation.
constexpr size_t kOfAllocation = 16;

uint64_t NextTableId() {
  static std::atomic<uint64_t> last = 0;
  return ++last;
}

uint64_t SumOf(std::span<const ByteRange> ranges) {
  uint64_t bytes = 0;
  for (const ByteRange& range : ranges) bytes += range.length;
  return bytes;
}

bool AreSame(std::span<const ByteRange> a, std::span<const ByteRange> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

size_t HashOf(const std::vector<StoredArray>& arrays) {
  constexpr size_t kMultiplier = 0x9e3779b97f4a7c15;  // 2^64 / the golden ratio: spreads the bits
  size_t hash = arrays.size();
  for (const StoredArray& array : arrays) {
    hash = (hash ^ std::hash<std::string_view>()(array.name)) * kMultiplier;
    const uint64_t offset = array.framed.empty() ? 0 : array.framed.front().offset;
    hash = (hash ^ array.bytes ^ offset) * kMultiplier;
  }
  return hash;
}

// One for all tables.
const std::shared_ptr<const FileStrings>& WithoutMetadata() {
  static const auto kNone = std::make_shared<const FileStrings>();
  return kNone;
}

// About the bytes that the strings take.
size_t MemoryOf(const FileStrings& strings) {
  constexpr size_t kOfNode = 128;
  size_t bytes = 0;
  for (const auto& [key, value] : strings) bytes += kOfNode + key.size() + value.size();
  return bytes;
}

}  // namespace

size_t StatedShards::memory() const {
  size_t bytes = begins.size() + set.size();
  std::set<const DeviceMesh*> meshes;  // which tensors share
  for (const MeshTensor& tensor : mesh) {
    bytes += tensor.memory();
    if (meshes.insert(tensor.mesh.get()).second) bytes += tensor.mesh->ranks.memory();
  }
  return bytes;
}

size_t BesideArrays::memory() const {
  size_t bytes = unread.capacity() * sizeof(UnreadTensor);
  for (const UnreadTensor& tensor : unread) bytes += tensor.name.capacity() + tensor.why.capacity();
  bytes += objects.capacity() * sizeof(BesideObject);
  for (const BesideObject& object : objects) {
    bytes += object.name.capacity() + object.kind.capacity();
  }
  return bytes;
}

FileTable::FileTable(const Container& container)
    : id_(NextTableId()), container_(&container), metadata_(WithoutMetadata()) {}

TableBuilder::TableBuilder(const Container& container) : table_(new FileTable(container)) {}

const StoredArray* FileTable::Find(std::string_view name) const {
  const auto place = std::lower_bound(
      by_name_.begin(), by_name_.end(), name,
      [this](uint32_t i, std::string_view wanted) { return arrays_[i].name < wanted; });
  if (place == by_name_.end() || arrays_[*place].name != name) return nullptr;
  return &arrays_[*place];
}

const StoredArray* FileTable::Find(std::string_view name, size_t& next) const {
  const StoredArray* const found =
      next < arrays_.size() && arrays_[next].name == name ? &arrays_[next] : Find(name);
  if (found != nullptr) next = static_cast<size_t>(found - arrays_.data()) + 1;
  return found;
}

std::optional<std::pair<const StoredArray*, const StoredArray*>> FileTable::FindTwice() const {
  const auto twice = std::adjacent_find(
      by_name_.begin(), by_name_.end(),
      [this](uint32_t a, uint32_t b) { return arrays_[a].name == arrays_[b].name; });
  if (twice == by_name_.end()) return std::nullopt;
  return std::pair(&arrays_[*twice], &arrays_[*(twice + 1)]);
}

void TableBuilder::Add(const StoredArray& array) {
  FileTable::Parts& parts = table_->parts_;
  Entry entry;
  const std::string_view name = parts.names.Keep(array.name);
  entry.name = name.data();
  entry.name_bytes = static_cast<uint32_t>(name.size());
  entry.kind = array.kind;
  entry.dtype = array.dtype;
  entry.shape = KeepShape(array.shape);
  entry.framed_count = static_cast<uint32_t>(array.framed.size());
  entry.is_placed = !array.content.empty() || array.framed.empty();
  entry.has_contents = array.kind != ArrayKind::kMapTensor && entry.is_placed &&
                       !AreSame(array.content, array.framed);
  ranges_.assign(array.framed.begin(), array.framed.end());
  if (entry.has_contents) {
    assert(array.content.size() == array.framed.size());
    ranges_.insert(ranges_.end(), array.content.begin(), array.content.end());
  }
  entry.framed = parts.ranges.Keep(ranges_).data();
  if (array.kind == ArrayKind::kMapTensor) {
    entry.map_tensor = static_cast<uint32_t>(map_tensors_.size());
    map_tensors_.push_back(parts.map_tensors.Keep(array.map_tensor));
    for (const StoredArray::MapTensorPart& part : array.map_tensor) {
      more_memory_ += part.shape.size() * sizeof(int64_t) + kOfAllocation;
    }
  }
  entries_.push_back(entry);
}

const Shape* TableBuilder::KeepShape(const Shape& shape) {
  auto place = std::find_if(recent_.begin(), recent_.end(), [&shape](const Shape* known) {
    return known == nullptr || *known == shape;
  });
  if (place == recent_.end()) *--place = nullptr;
  if (*place == nullptr) {
    *place = table_->parts_.shapes.Keep({&shape, 1}).data();
    more_memory_ += shape.size() * sizeof(int64_t) + kOfAllocation;
  }
  std::rotate(recent_.begin(), place, std::next(place));
  return recent_.front();
}

StoredArray TableBuilder::ArrayOf(const Entry& entry) const {
  StoredArray array{.name = {entry.name, entry.name_bytes},
                    .kind = entry.kind,
                    .dtype = entry.dtype,
                    .shape = *entry.shape,
                    .bytes = 0,
                    .framed = {entry.framed, entry.framed_count},
                    .content = {},
                    .map_tensor = {}};
  if (entry.kind == ArrayKind::kMapTensor) {
    array.map_tensor = map_tensors_[entry.map_tensor];
    for (const StoredArray::MapTensorPart& part : array.map_tensor) {
      array.bytes += part.content.length;
    }
  } else if (!entry.is_placed) {
    array.bytes = TensorBytes(array.shape, array.dtype).value_or(0);
  } else {
    array.content = {entry.framed + (entry.has_contents ? entry.framed_count : 0),
                     entry.framed_count};
    array.bytes = SumOf(array.content);
  }
  return array;
}

void TableBuilder::SortByContent() {
  const auto begins_before = [](const Entry& a, const Entry& b) {
    return std::pair(a.framed->offset, a.framed->length) <
           std::pair(b.framed->offset, b.framed->length);
  };
  if (std::is_sorted(entries_.begin(), entries_.end(), begins_before)) return;
  std::stable_sort(entries_.begin(), entries_.end(), begins_before);
}

void TableBuilder::SetMetadata(std::shared_ptr<const FileStrings> metadata) {
  more_memory_ += MemoryOf(*metadata);
  table_->metadata_ = std::move(metadata);
}

size_t TableBuilder::memory() const {
  const FileTable::Parts& parts = table_->parts_;
  return parts.names.memory() + parts.shapes.memory() + parts.ranges.memory() +
         parts.map_tensors.memory() + more_memory_ + entries_.size() * sizeof(Entry) +
         BytesToFinish();
}

std::shared_ptr<const FileTable> TableBuilder::Finish() && {
  FileTable& table = *table_;
  table.memory_ = sizeof(FileTable) + memory() - entries_.size() * sizeof(Entry);
  table.arrays_.reserve(entries_.size());
  for (; !entries_.empty(); entries_.pop_front()) {
    table.arrays_.push_back(ArrayOf(entries_.front()));
  }
  table.by_name_.resize(table.arrays_.size());
  std::iota(table.by_name_.begin(), table.by_name_.end(), 0U);
  std::stable_sort(table.by_name_.begin(), table.by_name_.end(), [&table](uint32_t a, uint32_t b) {
    return table.arrays_[a].name < table.arrays_[b].name;
  });
  table.hash_ = HashOf(table.arrays_);
  return std::move(table_);
}

}  // namespace reshard
