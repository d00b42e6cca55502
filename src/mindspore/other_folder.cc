#include "src/mindspore/other_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>

#include "format/container_table/container_table.h"
#include "format/mindformers_metadata/file_names.h"
#include "src/base/number_text.h"
#include "src/base/quote.h"

namespace reshard {
namespace {

// Takes the number behind the last `mark` off `text`. Returns whether there is one.
bool TakeNumberAfter(std::string_view& text, std::string_view mark) {
  const size_t at = text.rfind(mark);
  if (at == std::string_view::npos || !HasOnlyDigits(text.substr(at + mark.size()))) return false;
  text = text.substr(0, at);
  return true;
}

// The names that `takes` takes of safetensors files, given without the extension.
template <typename Takes>
FirstFew Named(const std::vector<DirectoryEntry>& entries, const Takes& takes) {
  constexpr std::string_view kEnd = ".safetensors";
  FirstFew names;
  for (const DirectoryEntry& entry : entries) {
    std::string_view stem = entry.name;
    if (!entry.is_regular || !stem.ends_with(kEnd)) continue;
    stem.remove_suffix(kEnd.size());
    if (takes(stem)) names.Add(Escape(entry.name));
  }
  return names;
}

bool Has(const std::vector<DirectoryEntry>& entries, std::string_view name) {
  return std::any_of(entries.begin(), entries.end(),
                     [name](const DirectoryEntry& entry) { return entry.name == name; });
}

// Files with one extension that other programs write.
struct OtherFiles {
  std::string_view extension;
  std::string_view advice;
};

constexpr std::string_view kFromPyTorch =
    "PyTorch files, which are taken from a folder only if an index (pytorch_model.bin.index.json) "
    "names them; give the path of a file";
constexpr OtherFiles kOtherFiles[] = {
    {".distcp",
     "the files of a PyTorch DCP checkpoint without .metadata, which says what they hold; get it "
     "from where the files came from"},
    {".bin", kFromPyTorch},
    {".pt", kFromPyTorch},
    {".pth", kFromPyTorch},
    {".gguf", "GGUF files, which reshard does not read; take the model's safetensors files"},
    {".h5", "HDF5 files, which reshard does not read; take the model's safetensors files"},
    {".msgpack", "Flax files, which reshard does not read; take the model's safetensors files"},
    {".onnx", "ONNX files, which reshard does not read; take the model's safetensors files"},
    {".npz", "NumPy files, which reshard does not read; save their arrays as safetensors"},
    {".npy", "NumPy files, which reshard does not read; save their arrays as safetensors"},
    {".mindir", "MindIR files, which hold a graph; take the checkpoint files of the run"},
};

std::string DescribeOtherFiles(const std::vector<DirectoryEntry>& entries) {
  const auto is_checkpoint = [](const DirectoryEntry& entry) {
    return entry.is_regular && ContainerNamed(entry.name) != nullptr;
  };
  if (std::any_of(entries.begin(), entries.end(), is_checkpoint)) return {};
  for (const OtherFiles& kind : kOtherFiles) {
    FirstFew names;
    for (const DirectoryEntry& entry : entries) {
      if (entry.is_regular && entry.name.ends_with(kind.extension)) names.Add(Escape(entry.name));
    }
    if (names.count() == 0) continue;
    const size_t semicolon = kind.advice.find(';');
    return fmt::format("{} ({}){}", kind.advice.substr(0, semicolon), names.Joined(),
                       kind.advice.substr(semicolon));
  }
  return {};
}

std::string DescribeMindFormers(const std::vector<DirectoryEntry>& entries) {
  FirstFew files;
  for (const DirectoryEntry& entry : entries) {
    if (!entry.is_directory && ParseMindFormersName(entry.name)) files.Add(Escape(entry.name));
  }
  const bool has_latest = Has(entries, kLatestIteration);
  if (!has_latest && (files.count() == 0 || !Has(entries, kMindFormersMetadataFile))) return {};
  return fmt::format(
      "a checkpoint of MindFormers 2.0 ({}), which states itself where its parts of tensors are; "
      "leave out the source strategy and the suffix",
      has_latest ? std::string(kLatestIteration) : files.Joined());
}

}  // namespace

std::string DescribeOtherFolder(const std::vector<DirectoryEntry>& entries) {
  if (std::string found = DescribeMindFormers(entries); !found.empty()) return found;
  const FirstFew dcp = Named(entries, [](std::string_view stem) {
    return stem.starts_with("shard-") && TakeNumberAfter(stem, "-of-") &&
           TakeNumberAfter(stem, "-model-");
  });
  if (dcp.count() > 0) {
    return fmt::format(
        "shards of PyTorch's HuggingFaceStorageWriter ({}), which state themselves where their "
        "parts of tensors are; leave out the source strategy and the suffix",
        dcp.Joined());
  }
  const FirstFew parts = Named(entries, [](std::string_view stem) {
    return TakeNumberAfter(stem, "-part-") && TakeNumberAfter(stem, "-rank-");
  });
  if (parts.count() > 0) {
    return fmt::format(
        "files of vLLM's sharded_state, several for each rank and without a word on how tensors "
        "are cut ({}), which reshard does not read; take the model that they were made of",
        parts.Joined());
  }
  const FirstFew shards = Named(entries, [](std::string_view stem) {
    return TakeNumberAfter(stem, "-of-") && TakeNumberAfter(stem, "-");
  });
  if (shards.count() > 1) {
    return fmt::format(
        "{} files of a Hugging Face folder ({}), but no index (such as "
        "model.safetensors.index.json), which says which file has which tensor; get it from where "
        "the files came from",
        shards.count(), shards.Joined());
  }
  if (Has(entries, "model_index.json")) {
    FirstFew folders;
    for (const DirectoryEntry& entry : entries) {
      if (entry.is_directory) folders.Add(Escape(entry.name));
    }
    return fmt::format(
        "a diffusers pipeline (model_index.json) with each model in its own folder ({}); give one "
        "folder",
        folders.Joined());
  }
  return DescribeOtherFiles(entries);
}

}  // namespace reshard
