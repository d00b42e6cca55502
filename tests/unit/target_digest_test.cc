// Both sides of a target's digests: they agree for a right plan, whatever the chunks, and only
// then.
#include "src/write/target_digest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "src/cast/cast.h"
#include "src/plan/make_copies.h"
#include "src/record/part_record.h"
#include "src/write/gather.h"
#include "tests/support/temporary_folder.h"

namespace reshard::target_digest_test {
namespace {

using testing::HasSubstr;

// A tensor [16, 12] of Int16, held as two halves of its columns, each in its file; the target takes
// rows 4 to 11 as two Values, cut inside an element.
class TargetDigestTest : public testing::Test {
 protected:
  TargetDigestTest() {
    for (size_t i = 0; i < full_.size(); ++i) full_[i] = static_cast<char>(i * 31 + i / 7);
    SourceTensor tensor;
    tensor.name = "w";
    tensor.dtype = DType::kInt16;
    tensor.full_shape = {16, 12};
    std::vector<PlacedPiece> shards;
    for (int64_t half = 0; half < 2; ++half) {
      std::string bytes = "head";
      for (size_t row = 0; row < 16; ++row) {
        bytes += full_.substr(row * 24 + static_cast<size_t>(half) * 12, 12);
      }
      const FileId file = files_.Add(folder_.Write("half_" + std::to_string(half), bytes));
      shards.push_back({half, file, {{0, half * 6}, {16, 6}}, {{4, 16 * 12}}});
    }
    const Box box = {{4, 0}, {8, 12}};
    plan_.path = "rank_0/net0.ckpt";
    for (const ByteRange part : {ByteRange{0, 61}, ByteRange{61, 8 * 24 - 61}}) {
      plan_.segments.emplace_back(Literal{plan_.size, "header"});
      plan_.size += 6;
      auto made = MakeCopies(tensor, shards, box, part, plan_.size);
      plan_.segments.emplace_back(Content{.source_name = "w",
                                          .target_name = "w",
                                          .dtype = tensor.dtype,
                                          .geometry = {tensor.full_shape, box, made->shards},
                                          .box_offset = part.offset,
                                          .target = {plan_.size, part.length},
                                          .copies = made->copies});
      plan_.size += part.length;
    }
  }

  // Fills and adds the target chunk by chunk; `fault` may change a chunk in between.
  template <typename Fault>
  Status Run(TargetDigest& digest, uint64_t chunk_bytes, Fault fault) {
    target_.clear();
    for (uint64_t offset = 0; offset < plan_.size; offset += chunk_bytes) {
      std::string chunk(std::min(chunk_bytes, plan_.size - offset), '\0');
      const auto bytes = std::as_writable_bytes(std::span(chunk));
      ChunkDigest sums;
      sums.Begin(plan_, {offset, chunk.size()});
      const Status status = FillTarget(files_, plan_, offset, bytes, &sums, nullptr);
      if (!status.ok()) return status;
      fault(offset, chunk);
      sums.AddTarget(offset, bytes);
      digest.AddChunk(bytes, sums);
      target_ += chunk;
    }
    return digest.Compare();
  }
  Status Run(TargetDigest& digest, uint64_t chunk_bytes) {
    return Run(digest, chunk_bytes, [](uint64_t, std::string&) {});
  }

  Content& ContentAt(size_t segment) { return std::get<Content>(plan_.segments[segment]); }

  const TemporaryFolder folder_;
  SourceFiles files_{2};
  std::string full_ = std::string(16 * 24, '\0');
  TargetPlan plan_;
  std::string target_;
};

TEST_F(TargetDigestTest, IsTheSameForAnyChunks) {
  Digest128 of_rows;
  LogicalHasher().Add(of_rows, reinterpret_cast<const std::byte*>(full_.data()) + 96, 192, 96);
  for (const uint64_t chunk_bytes : std::initializer_list<uint64_t>{1, 5, 12, 13, 64, 100, 4096}) {
    TargetDigest digest(plan_);
    const Status status = Run(digest, chunk_bytes);
    ASSERT_TRUE(status.ok()) << status.message();
    Xxh3 file;
    file.Update(target_);
    EXPECT_EQ(digest.file(), file.HexDigest());
    EXPECT_THAT(digest.blocks(), testing::ElementsAre(file.HexDigest()));
    EXPECT_EQ(digest.content(1) ^ digest.content(3), of_rows) << chunk_bytes;
  }
}

TEST_F(TargetDigestTest, BlocksEndAt64MiB) {
  Xxh3 whole;
  whole.Update(std::string(kDigestBlockBytes, 'x'));
  Xxh3 rest;
  rest.Update("xxx");
  const std::vector<std::pair<uint64_t, std::vector<std::string>>> rows = {
      {0, {}},
      {3, {rest.HexDigest()}},
      {kDigestBlockBytes, {whole.HexDigest()}},
      {kDigestBlockBytes + 3, {whole.HexDigest(), rest.HexDigest()}},
      {2 * kDigestBlockBytes, {whole.HexDigest(), whole.HexDigest()}},
  };
  for (const auto& [size, blocks] : rows) {
    TargetPlan plan;
    plan.path = "rank_0/net0.ckpt";
    plan.size = size;
    plan.segments.emplace_back(Literal{0, std::string(plan.size, 'x')});
    TargetDigest digest(plan);
    std::string chunk(9 << 20, 'x');
    for (uint64_t done = 0; done < plan.size;) {
      const uint64_t length = std::min<uint64_t>(chunk.size(), plan.size - done);
      digest.AddChunk(std::as_writable_bytes(std::span(chunk)).first(length), {});
      done += length;
    }
    EXPECT_EQ(digest.blocks(), blocks) << size;
  }
}

TEST_F(TargetDigestTest, SeesAPlanThatReadsTheWrongPlace) {
  std::swap(ContentAt(3).copies[0].source_offset, ContentAt(3).copies[1].source_offset);
  std::swap(ContentAt(3).copies[0].source, ContentAt(3).copies[1].source);
  TargetDigest digest(plan_);
  const Status status = Run(digest, 4096);
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_THAT(status.message(), HasSubstr("rank_0/net0.ckpt: parameter \"w\" at offset 73: "));
}

TEST_F(TargetDigestTest, SeesAPlanThatWritesToTheWrongPlace) {
  Content& content = ContentAt(3);
  ASSERT_GE(content.copies.size(), 2U);
  BlockCopy& whole_rows = content.copies.back();
  ASSERT_FALSE(whole_rows.dims.empty());
  whole_rows.source_offset += whole_rows.dims[0].source_stride;  // one row too far
  whole_rows.dims[0].count -= 1;
  TargetDigest digest(plan_);
  EXPECT_FALSE(Run(digest, 4096).ok());
}

TEST_F(TargetDigestTest, SeesBytesChangedOnTheirWay) {
  for (uint64_t at = 0; at < plan_.size; ++at) {
    TargetDigest digest(plan_);
    const Status status = Run(digest, 64, [at](uint64_t offset, std::string& chunk) {
      if (at >= offset && at < offset + chunk.size()) chunk[at - offset] ^= 4;
    });
    EXPECT_EQ(status.code(), StatusCode::kInternal) << at;
  }
}

// A tensor [16, 6] of Float32, likewise in two files, rows 4 to 11 of it cast to BFloat16 and cut
// inside an element.
class CastDigestTest : public testing::Test {
 protected:
  CastDigestTest() {
    for (size_t i = 0; i < full_.size(); ++i) {
      full_[i] = static_cast<float>(i) * 1.0078125F + static_cast<float>(i * i) * 0.37F;
    }
    full_[30] = 3.4e38F;  // too large for the other dtype
    full_[35] = -3.4e38F;
    SourceTensor tensor;
    tensor.name = "w";
    tensor.dtype = DType::kFloat32;
    tensor.full_shape = {16, 6};
    std::vector<PlacedPiece> shards;
    for (int64_t half = 0; half < 2; ++half) {
      std::string bytes = "head";
      for (size_t row = 0; row < 16; ++row) {
        const float* const begin = full_.data() + row * 6 + static_cast<size_t>(half) * 3;
        bytes.append(reinterpret_cast<const char*>(begin), 12);
      }
      const FileId file = files_.Add(folder_.Write("half_" + std::to_string(half), bytes));
      shards.push_back({half, file, {{0, half * 3}, {16, 3}}, {{4, 16 * 12}}});
    }
    const Box box = {{4, 0}, {8, 6}};
    plan_.path = "rank_0/net0.ckpt";
    std::vector<std::byte> cast(48 * 2);
    Cast(DType::kFloat32, DType::kBFloat16, std::as_bytes(std::span(full_).subspan(24, 48)), cast);
    const auto* const values = reinterpret_cast<const char*>(cast.data());
    for (const ByteRange part : {ByteRange{0, 31}, ByteRange{31, 96 - 31}}) {
      plan_.segments.emplace_back(Literal{plan_.size, "header"});
      plan_.size += 6;
      Content content{.source_name = "w",
                      .target_name = "w",
                      .dtype = tensor.dtype,
                      .cast_to = DType::kBFloat16,
                      .geometry = {},
                      .box_offset = part.offset,
                      .target = {plan_.size, part.length},
                      .copies = {}};
      const ByteRange image = {part.offset / 2 * 4, content.ImageRange(content.target).length};
      auto made = MakeCopies(tensor, shards, box, image, plan_.size);
      content.geometry = {tensor.full_shape, box, made->shards};
      content.copies = made->copies;
      plan_.segments.emplace_back(std::move(content));
      plan_.size += part.length;
      expected_.append("header").append(values + part.offset, part.length);
    }
  }

  // Fills and adds the target chunk by chunk, which `fault` may change.
  template <typename Fault>
  Status Run(TargetDigest& digest, uint64_t chunk_bytes, Fault fault) {
    target_.clear();
    for (uint64_t offset = 0; offset < plan_.size; offset += chunk_bytes) {
      std::string chunk(std::min(chunk_bytes, plan_.size - offset), '\0');
      const auto bytes = std::as_writable_bytes(std::span(chunk));
      ChunkDigest sums;
      sums.Begin(plan_, {offset, chunk.size()});
      const Status status = FillTarget(files_, plan_, offset, bytes, &sums, &lost_);
      if (!status.ok()) return status;
      fault(offset, sums);
      sums.AddTarget(offset, bytes);
      digest.AddChunk(bytes, sums);
      target_ += chunk;
    }
    return digest.Compare();
  }

  const TemporaryFolder folder_;
  SourceFiles files_{2};
  std::vector<float> full_ = std::vector<float>(16 * 6);
  TargetPlan plan_;
  LostInCasts lost_;
  std::string expected_;
  std::string target_;
};

TEST_F(CastDigestTest, IsTheSameForAnyChunks) {
  Digest128 of_rows;
  const auto written = [&] {  // without the headers
    return expected_.substr(6, 31) + expected_.substr(6 + 31 + 6);
  }();
  LogicalHasher().Add(of_rows, reinterpret_cast<const std::byte*>(written.data()), 96, 48);
  uint64_t runs = 0;
  for (const uint64_t chunk_bytes : std::initializer_list<uint64_t>{1, 3, 5, 12, 13, 64, 4096}) {
    TargetDigest digest(plan_);
    const Status status = Run(digest, chunk_bytes, [](uint64_t, ChunkDigest&) {});
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(target_, expected_) << chunk_bytes;
    // Of what is written; each element that is lost counts once.
    EXPECT_EQ(digest.content(1) ^ digest.content(3), of_rows) << chunk_bytes;
    EXPECT_THAT(lost_.values(), testing::ElementsAre(LostValues{"w", 2 * ++runs})) << chunk_bytes;
  }
}

TEST_F(CastDigestTest, WhatIsGatheredWronglyIsNoticed) {
  TargetDigest digest(plan_);
  const std::byte one{1};
  const Status status = Run(digest, 4096, [&](uint64_t, ChunkDigest& sums) {
    sums.AddImage(3, std::get<Content>(plan_.segments[3]).target.offset + 5, std::span(&one, 1));
  });
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_THAT(status.message(), HasSubstr("parameter \"w\" at offset 43"));
}

TEST_F(CastDigestTest, SeesAPlanThatReadsTheWrongPlace) {
  auto& copies = std::get<Content>(plan_.segments[3]).copies;
  ASSERT_GE(copies.size(), 2U);
  std::swap(copies[0].source_offset, copies[1].source_offset);
  std::swap(copies[0].source, copies[1].source);
  TargetDigest digest(plan_);
  EXPECT_EQ(Run(digest, 64, [](uint64_t, ChunkDigest&) {}).code(), StatusCode::kInternal);
}

}  // namespace
}  // namespace reshard::target_digest_test
