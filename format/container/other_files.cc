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

constexpr Signature kSignatures[] = {
    {"version https://git-lfs.github.com/",
     "a Git LFS pointer, not the file itself; run git lfs pull"},
    {"PK\x03\x04", "a zip archive, as PyTorch and npz files are"},
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

}  // namespace

std::string_view KindOfOtherFile(std::string_view head) {
  for (const Signature& signature : kSignatures) {
    if (head.size() >= signature.offset &&
        head.substr(signature.offset).starts_with(signature.bytes)) {
      return signature.kind;
    }
  }
  return IsHtml(head) ? "an HTML page, perhaps a login or error page" : std::string_view();
}

}  // namespace reshard
