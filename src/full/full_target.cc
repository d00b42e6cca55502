#include "src/full/full_target.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

#include "src/base/checked.h"
#include "src/base/memory_check.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/full/full_folder.h"
#include "src/full/packing.h"
#include "src/tensor/byte_box.h"

namespace reshard {
namespace {

// Bytes that are held for a tensor while a folder is divided.
constexpr uint64_t kOfTensor = 128;

// Whether Hugging Face's readers know this value of `format`.
bool IsOfHuggingFace(std::string_view format) {
  return format == "pt" || format == "tf" || format == "flax" || format == "mlx" || format == "np";
}

}  // namespace

struct FullTarget::Tensor {
  std::string_view name;  // in the target
  size_t array = 0;       // its number in the whole file
  int64_t stage = 0;
  uint64_t bytes = 0;
  UnifiedPlace place = UnifiedPlace::kPart;
};

Result<std::unique_ptr<FullTarget>> FullTarget::Make(const Target& whole,
                                                     const FullLayout& layout) {
  std::unique_ptr<FullTarget> target(new FullTarget(whole, layout.family));
  RESHARD_RETURN_IF_ERROR(target->Divide(layout));
  return target;
}

Status FullTarget::Divide(const FullLayout& layout) {
  PlanFindings findings;
  findings.silent = true;  // planning says it
  RESHARD_ASSIGN_OR_RETURN(const TargetFile whole, whole_.MakeFile(0, findings));
  std::vector<Tensor> tensors;
  tensors.reserve(whole.arrays);
  TargetArray array;
  for (size_t i = 0; i < whole.arrays; ++i) {
    if (i % kMemoryCheckInterval == 0) {
      RESHARD_RETURN_IF_ERROR(CheckMemory(source().memory(), i * kOfTensor));
    }
    RESHARD_RETURN_IF_ERROR(whole.make(i, array));
    Tensor tensor;
    tensor.array = i;
    std::string_view source_name = array.name;
    std::optional<int64_t> rank;  // that it is taken from as it stands
    uint64_t bytes = TensorBytes(array.shape, array.dtype).value_or(0);
    if (const auto* const pieces = std::get_if<Pieces>(&array.content)) {
      if (!pieces->tensors.empty()) {
        source_name = pieces->tensors.front().name;
        tensor.stage = pieces->tensors.front().stage;
        rank = pieces->tensors.front().rank;
      }
    } else {
      const StoredArray& opaque = *std::get<Opaque>(array.content).array;
      source_name = opaque.name;
      bytes = opaque.bytes;
    }
    if (layout.place) tensor.place = layout.place(source_name);
    if (tensor.place == UnifiedPlace::kNowhere) {
      left_out_.emplace(source_name);
      continue;
    }
    if (tensor.place == UnifiedPlace::kHyperParam && rank.value_or(0) != 0 &&
        !source().ranks().is_folder) {
      not_in_first_.insert(Quote(source_name));
    }
    const auto sum = CheckedAdd(totals_.bytes, bytes);
    if (!sum) {
      return MismatchError(
          fmt::format("parameter {}: with its {} bytes all parameters have more "
                      "than can be counted",
                      Quote(array.name), bytes));
    }
    tensor.bytes = bytes;
    if (tensor.place == UnifiedPlace::kPart) {
      totals_.bytes = *sum;
      totals_.elements += ElementCount(array.shape).value_or(0);
    }
    tensor.name = names_.Keep(array.name);
    tensors.push_back(tensor);
  }
  if (tensors.empty()) return MismatchError("no parameter is left to write");
  states_redundancy_ = layout.states_redundancy && layout.states_redundancy();
  return AddFiles(std::move(tensors), layout.most_bytes);
}

Status FullTarget::AddFiles(std::vector<Tensor> tensors, uint64_t most_bytes) {
  // MindSpore goes through the stages from the first one on.
  if (family_ == FolderFamily::kUnified) {
    std::stable_sort(tensors.begin(), tensors.end(),
                     [](const Tensor& a, const Tensor& b) { return a.stage < b.stage; });
  }
  const auto beside = std::stable_partition(
      tensors.begin(), tensors.end(),
      [](const Tensor& tensor) { return tensor.place == UnifiedPlace::kPart; });
  std::vector<uint64_t> bytes;
  bytes.reserve(tensors.size());
  for (auto tensor = tensors.begin(); tensor != beside; ++tensor) bytes.push_back(tensor->bytes);
  if (bytes.empty()) {
    return MismatchError(
        "only parameters that no strategy has are left to write, and a unified folder cannot hold "
        "these alone");
  }
  const Packing packing = family_ == FolderFamily::kUnified ? PackUnified(bytes, most_bytes)
                                                            : PackHuggingFace(bytes, most_bytes);
  for (size_t file = 0; file < packing.size(); ++file) {
    std::string path(kHuggingFaceFile);
    if (family_ == FolderFamily::kUnified) {
      path = fmt::format("part{}.safetensors", file);
    } else if (packing.size() > 1) {
      path = fmt::format("model-{:05}-of-{:05}.safetensors", file + 1, packing.size());
    }
    paths_.push_back(std::move(path));
    std::vector<size_t>& arrays = arrays_.emplace_back();
    arrays.reserve(packing[file].size());
    for (const size_t place : packing[file]) {
      arrays.push_back(tensors[place].array);
      weights_.push_back({tensors[place].name, static_cast<uint32_t>(file)});
    }
  }
  if (family_ == FolderFamily::kHuggingFace && packing.size() == 1) weights_.clear();
  if (beside == tensors.end()) return {};
  paths_.emplace_back(kHyperParamFile);
  std::vector<size_t>& arrays = arrays_.emplace_back();
  for (auto tensor = beside; tensor != tensors.end(); ++tensor) arrays.push_back(tensor->array);
  return {};
}

int64_t FullTarget::files() const {
  return static_cast<int64_t>(paths_.size() + (weights_.empty() ? 0 : 1));
}

std::string FullTarget::PathOf(int64_t file) const {
  const auto place = static_cast<size_t>(file);
  if (place < paths_.size()) return paths_[place];
  return std::string(family_ == FolderFamily::kUnified ? kParamNameMap : kHuggingFaceIndex);
}

void FullTarget::IndexSources(std::span<const int64_t> /*files*/, const Indexers& indexers,
                              const std::stop_token& stop) const {
  whole_.IndexSources(std::array{int64_t{0}}, indexers, stop);
}

Result<TargetFile> FullTarget::MakeFile(int64_t file, PlanFindings& findings) const {
  if (file < 0 || file >= files()) {
    return InvalidArgumentError(
        fmt::format("file {} is not one of the {} files of the target", file, files()));
  }
  RESHARD_ASSIGN_OR_RETURN(TargetFile made, whole_.MakeFile(0, findings));
  made.container = &kFullContainer;
  if (family_ == FolderFamily::kHuggingFace && !IsOfHuggingFace(made.metadata.format)) {
    made.metadata.format = "pt";
  }
  if (!findings.silent) findings.left_out.insert(left_out_.begin(), left_out_.end());
  const auto place = static_cast<size_t>(file);
  if (place < arrays_.size() && paths_[place] == kHyperParamFile) {
    if (!findings.silent) {
      findings.not_in_first_rank.insert(not_in_first_.begin(), not_in_first_.end());
    }
  } else {
    if (states_redundancy_) made.metadata.removes_redundancy = false;
  }
  if (place >= arrays_.size()) {
    made.arrays = 0;
    RESHARD_ASSIGN_OR_RETURN(made.literal, MakeIndex());
    made.making_bytes += made.literal.size() + weights_.size() * sizeof(weights_[0]);
    return made;
  }
  made.arrays = arrays_[place].size();
  made.make = [&arrays = arrays_[place], make = std::move(made.make)](
                  size_t number, TargetArray& array) { return make(arrays[number], array); };
  return made;
}

Result<std::string> FullTarget::MakeIndex() const {
  return family_ == FolderFamily::kUnified ? EncodeParamNameMap(weights_, paths_, totals_)
                                           : EncodeHuggingFaceIndex(weights_, paths_, totals_);
}

}  // namespace reshard
