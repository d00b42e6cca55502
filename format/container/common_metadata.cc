#include "format/container/common_metadata.h"

#include <algorithm>
#include <iterator>

namespace reshard {
namespace {

// The boxes of a sharded checkpoint, by PyTorch and by reshard; sums over a set of files; hashes of
// a file.
constexpr std::string_view kOwnLayout[] = {
    "DCP_SHARDING_INFO", "DCP_VERSION",      "reshard",         "total_parameters",
    "total_size",        "sshs_legacy_hash", "sshs_model_hash", "modelspec.hash_sha256"};

}  // namespace

bool IsOfOwnLayout(std::string_view key) {
  return std::find(std::begin(kOwnLayout), std::end(kOwnLayout), key) != std::end(kOwnLayout);
}

void CommonMetadata::Add(const std::shared_ptr<const FileStrings>& of_file) {
  if (of_file == last_) return;
  last_ = of_file;
  if (!agreed_) {
    agreed_ = *of_file;
    return;
  }
  for (auto known = agreed_->begin(); known != agreed_->end();) {
    const auto found = of_file->find(known->first);
    if (found != of_file->end() && found->second == known->second) {
      ++known;
    } else {
      disagreed_.insert(known->first);
      known = agreed_->erase(known);
    }
  }
  for (const auto& [key, value] : *of_file) {
    if (!agreed_->contains(key)) disagreed_.insert(key);
  }
}

void CommonMetadata::SetOn(FileMetadata& metadata) const {
  if (!agreed_) return;
  for (const auto& [key, value] : *agreed_) {
    if (key == kFormatKey) {
      metadata.format = value;
    } else if (!IsOfOwnLayout(key)) {
      metadata.others.emplace(key, value);
    }
  }
}

std::set<std::string> CommonMetadata::LeftOut() const {
  std::set<std::string> keys = disagreed_;
  if (agreed_) {
    for (const auto& [key, value] : *agreed_) {
      if (IsOfOwnLayout(key)) keys.insert(key);
    }
  }
  keys.erase(std::string(kFormatKey));
  return keys;
}

std::set<std::string> CommonMetadata::Keys() const {
  std::set<std::string> keys = LeftOut();
  if (agreed_) {
    for (const auto& [key, value] : *agreed_) {
      if (key != kFormatKey) keys.insert(key);
    }
  }
  return keys;
}

}  // namespace reshard
