// ValueParser against libprotobuf: random encodings, valid and mutated, fields in any order.
//
// Set RESHARD_SEED to the seed of a failed run to repeat it.

#include "format/mindspore_checkpoint/value_parser.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <random>
#include <string>

#include "tests/support/checkpoint_bytes.h"
#include "tests/support/checkpoint_oracle.h"
#include "tests/support/parse_values.h"

namespace reshard::value_parser_property_test {
namespace {

// Makes encodings that use the freedom of the wire format.
class EncodingMaker {
 public:
  explicit EncodingMaker(uint64_t seed) : random_(seed) {}

  uint64_t Number(uint64_t below) { return random_() % below; }
  bool OneIn(uint64_t n) { return Number(n) == 0; }

  std::string CheckpointMessage() {
    return Message(6, [this] { return Block(1, ValueMessage()); });
  }

  std::string Mutated(std::string bytes) {
    for (uint64_t changes = 1 + Number(3); changes > 0 && !bytes.empty(); --changes) {
      const size_t at = Number(bytes.size());
      switch (Number(4)) {
        case 0:
          bytes[at] = static_cast<char>(random_());
          break;
        case 1:
          bytes[at] = static_cast<char>(bytes[at] ^ (1 << Number(8)));
          break;
        case 2:
          bytes.erase(at, 1 + Number(4));
          break;
        default:
          bytes.insert(at, 1, static_cast<char>(random_()));
      }
    }
    if (OneIn(4)) bytes.resize(Number(bytes.size() + 1));
    return bytes;
  }

 private:
  // Some fields: mostly known ones, the others unknown.
  template <typename KnownField>
  std::string Message(uint64_t most, KnownField known_field) {
    std::string bytes;
    for (uint64_t fields = Number(most + 1); fields > 0; --fields) {
      bytes += OneIn(6) ? UnknownField(0) : known_field();
    }
    return bytes;
  }

  std::string ValueMessage() {
    // Most Values have what is required, in either order.
    const std::string tag = OneIn(30) ? "" : Block(1, Text());
    const std::string body = OneIn(30) ? "" : TensorOrMap();
    std::string rest = Message(3, [this] { return OneIn(2) ? Block(1, Text()) : TensorOrMap(); });
    return OneIn(2) ? tag + rest + body : body + rest + tag;
  }

  std::string TensorOrMap() {
    if (!OneIn(4)) return Block(2, TensorMessage());
    std::string map;
    for (uint64_t tensors = OneIn(8) ? Number(6) : 3; tensors > 0; --tensors) {
      map += Block(1, TensorMessage());
      if (OneIn(8)) map += UnknownField(0);
    }
    return Block(3, map);
  }

  std::string TensorMessage() {
    const std::string type = OneIn(30) ? "" : Block(2, Text());
    const std::string content = OneIn(30) ? "" : Block(3, Text());
    const std::string rest = Message(4, [this] {
      switch (Number(6)) {
        case 0:
          return Block(2, Text());
        case 1:
          return Block(3, Text());
        case 2:
          return Block(1, PackedDims());
        default:
          return PaddedVarint(Field(1, 0), 5) + Dim();
      }
    });
    return OneIn(2) ? rest + type + content : content + type + rest;
  }

  std::string PackedDims() {
    std::string dims;
    for (uint64_t count = OneIn(40) ? 80 : Number(4); count > 0; --count) dims += Dim();
    return dims;
  }

  std::string Dim() { return PaddedVarint(OneIn(8) ? random_() : Number(300), 10); }

  std::string Text() {
    std::string text(OneIn(20) ? Number(400) : Number(12), ' ');
    for (char& c : text) c = static_cast<char>(random_());
    return text;
  }

  // Any field number and wire type, so that known numbers come with wrong types and, rarely, with
  // their own; groups nest.
  std::string UnknownField(uint64_t depth) {
    const uint64_t number = OneIn(2) ? 1 + Number(4) : 1 + Number(uint64_t{1} << (1 + Number(29)));
    const std::string value = OneIn(2) ? Text() : std::string();
    switch (Number(5)) {
      case 0:
        return PaddedVarint(Field(number, 0), 5) + PaddedVarint(random_() >> Number(64), 10);
      case 1:
        return PaddedVarint(Field(number, 1), 5) + "fixed 64";
      case 2:
        return Block(5 + number, Text());
      case 3: {
        const uint64_t inner = OneIn(20) ? 90 + Number(12) : 0;
        std::string group;
        for (uint64_t i = 0; i < inner; ++i) group += PaddedVarint(Field(7, 3), 5);
        for (uint64_t fields = Number(3); depth < 4 && fields > 0; --fields) {
          group += UnknownField(depth + 1);
        }
        for (uint64_t i = 0; i < inner; ++i) group += PaddedVarint(Field(7, 4), 5);
        return PaddedVarint(Field(number, 3), 5) + group + PaddedVarint(Field(number, 4), 5);
      }
      default:
        return PaddedVarint(Field(number, 5), 5) + "f 32";
    }
  }

  static uint64_t Field(uint64_t number, uint64_t wire_type) { return number << 3 | wire_type; }

  std::string Block(uint64_t field, const std::string& bytes) {
    return PaddedVarint(Field(field, 2), 5) + PaddedVarint(bytes.size(), 5) + bytes;
  }

  // Sometimes in more bytes than it takes, `most` at most.
  std::string PaddedVarint(uint64_t number, uint64_t most) {
    return Varint(number, OneIn(10) ? 1 + Number(most) : 0);
  }

  std::mt19937_64 random_;
};

struct Tally {
  int valid = 0;    // libprotobuf and the limits accept it
  int limited = 0;  // libprotobuf accepts it
  int invalid = 0;
};

void Compare(const std::string& bytes, EncodingMaker& maker, Tally* tally) {
  const OracleAnswer expected = AskLibprotobuf(bytes);
  switch (expected.verdict) {
    case OracleAnswer::Verdict::kValid:
      ++tally->valid;
      break;
    case OracleAnswer::Verdict::kBeyondLimits:
      ++tally->limited;
      break;
    case OracleAnswer::Verdict::kInvalid:
      ++tally->invalid;
  }
  EXPECT_EQ(Difference(expected, ParseValues(bytes, [&] { return maker.Number(40); }), bytes), "");
}

std::string Hex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const char c : bytes) {
    out += kDigits[static_cast<uint8_t>(c) >> 4];
    out += kDigits[static_cast<uint8_t>(c) & 15];
  }
  return out;
}

TEST(ValueParserPropertyTest, AnswersLikeLibprotobuf) {
  const char* wanted = std::getenv("RESHARD_SEED");
  const uint64_t seed = wanted != nullptr ? std::stoull(wanted) : std::random_device()();
  std::cout << "RESHARD_SEED=" << seed << '\n';
  EncodingMaker maker(seed);
  Tally tally;
  for (int i = 0; i < 40000; ++i) {
    std::string bytes = maker.CheckpointMessage();
    if (i % 2 == 1) bytes = maker.Mutated(std::move(bytes));
    Compare(bytes, maker, &tally);
    ASSERT_FALSE(HasFailure()) << "case " << i << " of seed " << seed << ": " << Hex(bytes);
  }
  std::cout << tally.valid << " valid, " << tally.limited << " beyond limits, " << tally.invalid
            << " invalid\n";
  // Each kind is there in numbers, or the maker is broken.
  EXPECT_GT(tally.valid, 5000);
  EXPECT_GT(tally.limited, 500);
  EXPECT_GT(tally.invalid, 5000);
}

}  // namespace
}  // namespace reshard::value_parser_property_test
