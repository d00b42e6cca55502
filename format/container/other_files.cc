#include "format/container/other_files.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <iterator>

namespace reshard {
namespace {

struct Signature {
  std::string_view bytes;
  std::string_view kind;
  size_t offset = 0;
};

constexpr std::string_view kPickle =
    "a Python pickle, as files of old PyTorch releases (.pt, .pth, .bin) are; load and save it "
    "again with torch";

constexpr Signature kSignatures[] = {
    {"version https://git-lfs.github.com/",
     "a Git LFS pointer, not the file itself; run git lfs pull"},
    {"PK\x03\x04", "a zip archive, as PyTorch's .bin and .pt and NumPy's .npz files are"},
    {"\x80\x02", kPickle},
    {"\x80\x03", kPickle},
    {"\x80\x04", kPickle},
    {"\x80\x05", kPickle},
    {"GGUF", "a GGUF file, as llama.cpp has them; take the model's safetensors files"},
    {"\x89HDF\r\n\x1a\n", "an HDF5 file (.h5); take the model's safetensors files"},
    {"\x28\xb5\x2f\xfd", "a zstd file; unpack it first"},
    {"\xfd"
     "7zXZ",
     "an xz file; unpack it first"},
    {"\x1f\x8b", "a gzip file; unpack it first"},
    {"\x93NUMPY", "a numpy file (.npy)"},
    {"ustar", "a tar archive; unpack it first", 257},
};

bool IsHtml(std::string_view head) {
  constexpr std::string_view kTags[] = {"<!doctype html", "<html"};
  const size_t begin = head.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return false;
  head.remove_prefix(begin);
  return std::any_of(std::begin(kTags), std::end(kTags), [head](std::string_view tag) {
    return head.size() >= tag.size() &&
           std::equal(tag.begin(), tag.end(), head.begin(), [](char a, char b) {
             return a == std::tolower(static_cast<unsigned char>(b));
           });
  });
}

// The keys that identify kinds of JSON files, in this order.
constexpr Signature kJsonKeys[] = {
    {"\"weight_map\"", "the index of a folder of full tensors; give the folder that it lies in"},
    {"\"state_dict_metadata\"",
     "the metadata.json of a MindFormers 2.0 checkpoint; give the folder that it lies in"},
    {"\"_diffusers_version\"",
     "a file of a diffusers model; give the folder with its safetensors files"},
    {"\"model_type\"", "a model's config.json; give the folder with its safetensors files"},
};

std::string_view KindOfJson(std::string_view head) {
  if (!head.starts_with('{')) return {};
  for (const Signature& key : kJsonKeys) {
    if (head.find(key.bytes) != std::string_view::npos) return key.kind;
  }
  return {};
}

// Digits of a digest, alone or before a file's name.
bool IsChecksum(std::string_view head) {
  const size_t digits = std::min(head.find_first_not_of("0123456789abcdefABCDEF"), head.size());
  constexpr size_t kLengths[] = {32, 40, 64, 128};
  const bool has_length =
      std::find(std::begin(kLengths), std::end(kLengths), digits) != std::end(kLengths);
  return has_length && (digits == head.size() || head[digits] == ' ' || head[digits] == '\n' ||
                        head[digits] == '\r');
}

}  // namespace

std::string_view KindOfOtherFile(std::string_view head) {
  for (const Signature& signature : kSignatures) {
    // The header of a safetensors file may have as many bytes.
    if (signature.kind == kPickle && head.size() > 8 && head[8] == '{') continue;
    if (head.size() >= signature.offset &&
        head.substr(signature.offset).starts_with(signature.bytes)) {
      return signature.kind;
    }
  }
  if (const std::string_view json = KindOfJson(head); !json.empty()) return json;
  if (IsChecksum(head)) return "a file of checksums; give the file that it is of";
  return IsHtml(head) ? "an HTML page, perhaps a login or error page" : std::string_view();
}

}  // namespace reshard
