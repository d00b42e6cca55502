#include "src/sharded/slice_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "src/base/quote.h"

namespace reshard {

SliceTables::SliceTables(const PartList& parts, std::map<FileId, int64_t> numbers,
                         std::string metadata, std::function<bool(std::string_view)> wants)
    : parts_(parts),
      numbers_(std::move(numbers)),
      metadata_(std::move(metadata)),
      wants_(std::move(wants)) {
  for (uint32_t i = 0; i < parts_.tensors().size(); ++i) {
    for (const PartList::Part& part : parts_.tensors()[i].parts) {
      const auto number = static_cast<size_t>(part.rank());
      if (number >= expected_.size()) expected_.resize(number + 1);
      std::vector<uint32_t>& of_file = expected_[number];
      if (of_file.empty() || of_file.back() != i) of_file.push_back(i);
    }
  }
}

Result<IndexedFile> SliceTables::Choose(IndexedFile read, const std::string& path) {
  const int64_t number = numbers_.at(read.file());
  const auto place = static_cast<size_t>(number);
  const std::vector<uint32_t> none;
  const std::vector<uint32_t>& expected = place < expected_.size() ? expected_[place] : none;
  std::vector<std::string> lost;
  size_t found = 0;
  for (const uint32_t i : expected) {
    const PartList::Tensor& tensor = parts_.tensors()[i];
    const StoredArray* const array = read.Find(tensor.name);
    if (array != nullptr) ++found;
    if (wants_ && !wants_(tensor.name)) continue;
    if (array == nullptr) {
      lost.push_back(Quote(tensor.name));
      continue;
    }
    const auto part =
        std::find_if(tensor.parts.begin(), tensor.parts.end(),
                     [number](const PartList::Part& held) { return held.rank() == number; });
    if (array->kind == ArrayKind::kTensor && array->dtype == tensor.dtype &&
        array->shape == part->shape()) {
      continue;
    }
    return MismatchError(fmt::format(
        "{}: {}: expected {} {} as in {}, found {} {}; do the files belong to one checkpoint?",
        Escape(path), Quote(tensor.name), DTypeName(*tensor.dtype), ToString(part->shape()),
        Escape(metadata_), DTypeName(array->dtype), ToString(array->shape)));
  }
  if (!lost.empty()) {
    return MismatchError(fmt::format(
        "{}: lacks {} of the {} tensors that {} lists: {}; do the files belong to one checkpoint?",
        Escape(path), lost.size(), expected.size(), Escape(metadata_), FirstOf(lost)));
  }
  if (found == read.arrays().size()) return read;
  std::vector<std::string> left_out;
  for (const StoredArray& array : read.arrays()) {
    const PartList::Tensor* const tensor = parts_.Find(array.name);
    const auto i = tensor == nullptr ? 0 : static_cast<uint32_t>(tensor - parts_.tensors().data());
    if (tensor == nullptr || !std::binary_search(expected.begin(), expected.end(), i)) {
      left_out.push_back(Quote(array.name));
    }
  }
  const std::lock_guard lock(mutex_);
  left_out_.insert_or_assign(number, std::move(left_out));
  return read;
}

std::vector<Warning> SliceTables::Warnings() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> all;
  for (const auto& [number, names] : left_out_) all.insert(all.end(), names.begin(), names.end());
  if (all.empty()) return {};
  return {{WarningCode::kLeftOut,
           fmt::format("{}: does not list {} tensors that its files hold; left out: {}",
                       Escape(metadata_), all.size(), FirstOf(all))}};
}

}  // namespace reshard
