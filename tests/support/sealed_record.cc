#include "tests/support/sealed_record.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string_view>

#include "src/digest/xxh3.h"

namespace reshard {

std::string Sealed(const std::string& body, int values) {
  Xxh3 digest;
  digest.Update(std::string_view(body));
  return body + "{\"digest\":\"" + digest.HexDigest() + "\",\"values\":" + std::to_string(values) +
         "}\n";
}

std::string Resealed(std::string record, const std::string& piece, const std::string& replacement) {
  record.resize(record.rfind("{\"digest\""));
  const size_t at = record.find(piece);
  EXPECT_NE(at, std::string::npos) << piece;
  return Sealed(record.replace(at, piece.size(), replacement), 2);
}

}  // namespace reshard
