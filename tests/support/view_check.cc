#include "tests/support/view_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "reshard/target_view.h"
#include "tests/support/temporary_folder.h"

namespace reshard {
namespace {

// Pieces of small files begin at every byte, so at every border of a header and a content; those of
// larger ones at some.
constexpr size_t kMostPieces = 120;
constexpr size_t kPieceBytes = 13;

void ExpectPiece(const TargetView& view, size_t file, const std::string& expected, size_t offset,
                 size_t length) {
  std::string piece(length, '?');
  const Status status = view.Read(file, offset, std::as_writable_bytes(std::span(piece)));
  ASSERT_TRUE(status.ok()) << status.message();
  ASSERT_TRUE(piece == std::string_view(expected).substr(offset, length))
      << view.files()[file].path << ": other bytes from " << offset << " on";
}

void ExpectStream(const TargetView& view, size_t file, const std::string& expected) {
  std::string found;
  const auto streamed =
      view.Stream(file, {0, expected.size()}, [&](std::span<const std::byte> bytes) -> Status {
        found.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        return {};
      });
  ASSERT_TRUE(streamed.ok()) << streamed.status().message();
  ASSERT_TRUE(found == expected) << view.files()[file].path << ": other bytes in its stream";
}

}  // namespace

void ExpectViewHasFiles(const ConvertOptions& done) {
  ConvertOptions options;
  static_cast<ConversionSpec&>(options) = done;
  options.checks = done.checks;
  options.checks.parameters.clear();
  const auto view = TargetView::Open(options);
  ASSERT_TRUE(view.ok()) << view.status().message();
  for (size_t i = 0; i < view->files().size(); ++i) {
    const PlanReport::TargetFile& file = view->files()[i];
    const std::string expected = ReadFile(done.target.folder + "/" + file.path);
    ASSERT_EQ(file.size, expected.size()) << file.path;
    // The first piece has a CRC-32 found for it, where the file states one.
    const size_t step = std::max<size_t>(1, expected.size() / kMostPieces);
    for (size_t offset = 0; offset < expected.size(); offset += step) {
      const size_t length = std::min(kPieceBytes + offset % 5, expected.size() - offset);
      ASSERT_NO_FATAL_FAILURE(ExpectPiece(*view, i, expected, offset, length));
    }
    ASSERT_NO_FATAL_FAILURE(ExpectPiece(*view, i, expected, 0, expected.size()));
    ASSERT_NO_FATAL_FAILURE(ExpectStream(*view, i, expected));
  }
  const Status unchanged = view->VerifyUnchanged();
  EXPECT_TRUE(unchanged.ok()) << unchanged.message();
}

}  // namespace reshard
