// Pickles made by hand, opcode by opcode, and some that Python has written.

#include "format/pickle/pickle_reader.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/pickle/pickle_expansion.h"
#include "reshard/status.h"
#include "src/base/memory_check.h"

namespace reshard::pickle_reader_test {
namespace {

using namespace std::string_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

// A pickle of the steps, between PROTO and STOP.
std::string Made(const std::string& steps, char protocol = 4) {
  return "\x80"s + protocol + steps + ".";
}

std::string Message(const std::string& bytes) {
  const auto pickle = ReadPickle(bytes);
  if (pickle.ok()) return "";
  EXPECT_EQ(pickle.status().code(), StatusCode::kCorrupt);
  return pickle.status().message();
}

// The value of a pickle that has to be read, as messages show it.
std::string Shown(const std::string& steps) {
  const std::string bytes = Made(steps);
  const auto pickle = ReadPickle(bytes);
  return pickle.ok() ? pickle->Shown(pickle->top()) : pickle.status().message();
}

TEST(PickleTest, ReadsScalars) {
  EXPECT_EQ(Shown("N"), "None");
  EXPECT_EQ(Shown("\x88"), "True");
  EXPECT_EQ(Shown("\x89"), "False");
  EXPECT_EQ(Shown("K\xff"), "255");
  EXPECT_EQ(Shown("M\x01\x02"), "513");
  EXPECT_EQ(Shown("J\xfe\xff\xff\xff"), "-2");
  EXPECT_EQ(Shown("J\x00\x00\x00\x01"s), "16777216");
  EXPECT_EQ(Shown("\x8a\x00"s), "0");
  EXPECT_EQ(Shown("\x8a\x01\xff"), "-1");
  EXPECT_EQ(Shown("\x8a\x02\xff\x00"s), "255");
  EXPECT_EQ(Shown("\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80"s), "-9223372036854775808");
  EXPECT_EQ(Shown("G\x3f\xf8\x00\x00\x00\x00\x00\x00"s), "1.5");
  EXPECT_EQ(Shown("X\x02\x00\x00\x00hi"s), "\"hi\"");
  EXPECT_EQ(Shown("\x8c\x02hi"), "\"hi\"");
  EXPECT_EQ(Shown("\x8d\x02\x00\x00\x00\x00\x00\x00\x00hi"s), "\"hi\"");
  EXPECT_EQ(Shown("C\x02hi"), "2 bytes");
  EXPECT_EQ(Shown("B\x02\x00\x00\x00hi"s), "2 bytes");
  EXPECT_EQ(Shown("\x8e\x02\x00\x00\x00\x00\x00\x00\x00hi"s), "2 bytes");
}

TEST(PickleTest, ReadsContainers) {
  EXPECT_EQ(Shown(")"), "a tuple of 0");
  EXPECT_EQ(Shown("N\x85"), "a tuple of 1");
  EXPECT_EQ(Shown("NN\x86"), "a tuple of 2");
  EXPECT_EQ(Shown("NNN\x87"), "a tuple of 3");
  EXPECT_EQ(Shown("(NNNNt"), "a tuple of 4");
  EXPECT_EQ(Shown("]Na(NNe"), "a list of 3");
  EXPECT_EQ(Shown("}NNs(NNNNu"), "a dict of 3");
  EXPECT_EQ(Shown("}(u"), "a dict of 0");
  EXPECT_EQ(Shown("NQ"), "a persistent id");
  const std::string bytes = Made(
      "]K\x01"
      "a(K\x02K\x03"
      "e");
  const auto pickle = ReadPickle(bytes);
  ASSERT_TRUE(pickle.ok()) << pickle.status().message();
  std::vector<int64_t> numbers;
  for (const PickleValue& item : pickle->Items(pickle->top())) {
    numbers.push_back(pickle->Integer(item));
  }
  EXPECT_THAT(numbers, ElementsAre(1, 2, 3));
}

TEST(PickleTest, FindsTheLastOfEqualKeys) {
  const std::string bytes = Made(
      "}(\x8c\x01"
      "aK\x01K\x05K\x06\x8c\x01"
      "aK\x02u");
  const auto pickle = ReadPickle(bytes);
  ASSERT_TRUE(pickle.ok()) << pickle.status().message();
  const PickleValue* const found = pickle->Find(pickle->top(), "a");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(pickle->Integer(*found), 2);
  EXPECT_EQ(pickle->Find(pickle->top(), "b"), nullptr);
}

TEST(PickleTest, CallsNothing) {
  EXPECT_EQ(Shown("cposix\nsystem\n"), "posix.system");
  EXPECT_EQ(Shown("cposix\nsystem\n\x8c\x02id\x85R"), "posix.system(..)");
  EXPECT_EQ(Shown("\x8c\x05posix\x8c\x06system\x93)\x81"), "posix.system(..)");
  EXPECT_EQ(Shown("c\x1b\nx\n"), "\\x1b.x");
}

TEST(PickleTest, ReadsInstances) {
  const std::string bytes = Made("cm\nC\nK\x07\x85R(K\x01K\x02u}b");
  const auto pickle = ReadPickle(bytes);
  ASSERT_TRUE(pickle.ok()) << pickle.status().message();
  const PickleValue node = pickle->top();
  ASSERT_EQ(node.kind, PickleKind::kNode);
  EXPECT_EQ(pickle->Global(node), (PickleGlobal{"m", "C"}));
  ASSERT_EQ(pickle->Items(pickle->Arguments(node)).size(), 1);
  EXPECT_EQ(pickle->Integer(pickle->Items(pickle->Arguments(node))[0]), 7);
  EXPECT_EQ(pickle->State(node).kind, PickleKind::kDict);
  EXPECT_TRUE(pickle->HasPairs(node));
  ASSERT_EQ(pickle->Items(node).size(), 2);
  EXPECT_EQ(pickle->Integer(pickle->Items(node)[1]), 2);
  EXPECT_EQ(Shown("cm\nC\n)\x81(NNe"), "m.C(..)");
}

TEST(PickleTest, GlobalsHaveNumbers) {
  const std::string bytes = Made(
      "(ca\nb\nca\nc\n\x8c\x01"
      "a\x8c\x01"
      "b\x93t");
  const auto pickle = ReadPickle(bytes);
  ASSERT_TRUE(pickle.ok()) << pickle.status().message();
  std::vector<uint32_t> numbers;
  for (const PickleValue& item : pickle->Items(pickle->top())) {
    numbers.push_back(pickle->GlobalNumber(item));
  }
  EXPECT_THAT(numbers, ElementsAre(0, 1, 0));
}

TEST(PickleTest, ReadsTheMemo) {
  EXPECT_EQ(Shown("K\x05\x94"
                  "K\x06\x94h\x01\x87"),
            "a tuple of 3");
  EXPECT_EQ(Shown("(K\x05q\x07K\x06r\x02\x00\x00\x00h\x07j\x02\x00\x00\x00t"s), "a tuple of 4");
  // MEMOIZE counts the entries that are there, not the steps.
  EXPECT_EQ(Shown("(K\x05q\x00K\x06q\x00K\x07\x94h\x01t"s), "a tuple of 4");
  EXPECT_THAT(Message(Made("h\x05")), HasSubstr("opcode BINGET at offset 2: entry 5 "));
  EXPECT_THAT(Message(Made("Nq\x05h\x06\x86")), HasSubstr("entry 6 was not put into the memo"));
  EXPECT_THAT(Message(Made("h\x05Nq\x05\x86")), HasSubstr("entry 5 was not put into the memo"));
  EXPECT_THAT(Message(Made("Nr\xff\xff\xff\xff")), HasSubstr("LONG_BINPUT at offset 3"));
  EXPECT_THAT(Message(Made("Nj\xff\xff\xff\xff\x86")), HasSubstr("LONG_BINGET at offset 3"));
  EXPECT_THAT(Message(Made("(\x94")), HasSubstr("MEMOIZE at offset 3: expected 1 values"));
}

TEST(PickleTest, RefusesOtherOpcodes) {
  for (const std::string opcode :
       {"0",    "1",    "2",    "I1\n", "L1L\n", "F1\n", "S'a'\n", "U\x01",    "V1\n",
        "d",    "l",    "g0\n", "p0\n", "i",     "o",    "P1\n",   "\x82\x01", "\x92",
        "\x8b", "\x8f", "\x90", "\x91", "\x96",  "\x97", "\x98",   "\xff"}) {
    EXPECT_THAT(Message(Made("NNN" + opcode)), HasSubstr(" at offset 5, which"));
  }
  EXPECT_THAT(Message("\x80\x02iposix\n"), StartsWith("pickle opcode 0x69 at offset 2"));
}

TEST(PickleTest, RefusesWhatIsNoWholePickle) {
  EXPECT_THAT(Message(""), HasSubstr("ends at offset 0"));
  EXPECT_THAT(Message("\x80"), HasSubstr("PROTO at offset 0: the pickle ends inside"));
  EXPECT_THAT(Message("\x80\x04"), HasSubstr("ends at offset 2, without STOP"));
  EXPECT_THAT(Message("\x80\x04N"), HasSubstr("ends at offset 3"));
  EXPECT_THAT(Message("N."), HasSubstr("expected PROTO"));
  EXPECT_THAT(Message(Made("N", 1)), HasSubstr("expected a protocol from 2 to 5, found 1"));
  EXPECT_THAT(Message(Made("N", 6)), HasSubstr("found 6"));
  EXPECT_THAT(Message(Made("\x80\x04N")), HasSubstr("at offset 0 only"));
  EXPECT_THAT(Message(Made("N") + "N"), HasSubstr("STOP at offset 3: 1 bytes are behind it"));
  EXPECT_THAT(Message(Made("")), HasSubstr("expected one value, found 0 and 0 marks"));
  EXPECT_THAT(Message(Made("NN")), HasSubstr("found 2 and 0 marks"));
  EXPECT_THAT(Message(Made("(N")), HasSubstr("found 1 and 1 marks"));
}

TEST(PickleTest, RefusesLengthsBeyondTheEnd) {
  EXPECT_EQ(Message(Made("\x95\x02\x00\x00\x00\x00\x00\x00\x00N"s)), "");
  EXPECT_THAT(Message(Made("\x95\x03\x00\x00\x00\x00\x00\x00\x00N"s)),
              HasSubstr("FRAME at offset 2: has 3 bytes, but 2 are left"));
  EXPECT_THAT(Message(Made("\x8c\x02")), HasSubstr("has 2 bytes, but 1 are left"));
  EXPECT_THAT(Message(Made("X\xff\xff\xff\xff")), HasSubstr("has 4294967295 bytes, but 1"));
  EXPECT_THAT(Message(Made("\x8e\xff\xff\xff\xff\xff\xff\xff\xff")),
              HasSubstr("BINBYTES8 at offset 2: has 18446744073709551615 bytes"));
  EXPECT_THAT(Message(Made("J\x01")), HasSubstr("BININT at offset 2: the pickle ends inside"));
  EXPECT_THAT(Message(Made("cposix")), HasSubstr("GLOBAL at offset 2: the pickle ends inside"));
}

TEST(PickleTest, TakesOnlyWhatIsAboveTheMark) {
  EXPECT_THAT(Message(Made("N(\x85")), HasSubstr("TUPLE1 at offset 4: expected 1 values"));
  EXPECT_THAT(Message(Made("N(N\x86")),
              HasSubstr("expected 2 values above the last mark, found 1"));
  EXPECT_THAT(Message(Made("Nt")), HasSubstr("TUPLE at offset 3: expected a mark"));
  EXPECT_THAT(Message(Made("(Ne")), HasSubstr("expected 2 values above the last mark, found 1"));
  EXPECT_THAT(Message(Made("](N(Ne")), HasSubstr("a list below its items, found None"));
  EXPECT_THAT(Message(Made("]((Ne")), HasSubstr("found 1"));
  EXPECT_THAT(Message(Made("(Q")), HasSubstr("BINPERSID"));
  EXPECT_THAT(Message(Made("(R")), HasSubstr("REDUCE"));
  EXPECT_THAT(Message(Made("(b")), HasSubstr("BUILD"));
  EXPECT_THAT(Message(Made("(\x93")), HasSubstr("STACK_GLOBAL"));
}

TEST(PickleTest, RefusesValuesOfOtherKinds) {
  EXPECT_THAT(Message(Made("NNa")), HasSubstr("APPEND at offset 4: expected a list"));
  EXPECT_THAT(Message(Made("]NNs")), HasSubstr("SETITEM at offset 5: expected a dict"));
  EXPECT_THAT(Message(Made("}Na")), HasSubstr("expected a list"));
  EXPECT_THAT(Message(Made("}(Nu")), HasSubstr("a key has no value"));
  EXPECT_THAT(Message(Made("NN\x93")), HasSubstr("expected two texts, found None and None"));
  EXPECT_THAT(Message(Made("N)R")), HasSubstr("expected a global and a tuple, found None and a"));
  EXPECT_THAT(Message(Made("ca\nb\n]R")), HasSubstr("found a.b and a list of 0"));
  EXPECT_THAT(Message(Made("}}b")), HasSubstr("expected an instance of a class, found a dict"));
  EXPECT_THAT(Message(Made("ca\nb\n)RNb}b")), HasSubstr("has a state already"));
  EXPECT_THAT(Message(Made("ca\nb\n)RNaNNs")), HasSubstr("both elements and keys"));
}

TEST(PickleTest, RefusesCycles) {
  EXPECT_THAT(Message(Made("]\x94h\x00"
                           "a"s)),
              HasSubstr("inside of itself"));
  EXPECT_THAT(Message(Made("]\x94h\x00\x85"
                           "a"s)),
              HasSubstr("before it was complete"));
  EXPECT_THAT(Message(Made("]\x94h\x00\x85h\x00N"
                           "a\x86"s)),
              HasSubstr("before it was complete"));
  EXPECT_THAT(Message(Made("}\x94Nh\x00s"s)), HasSubstr("inside of itself"));
  EXPECT_THAT(Message(Made("ca\nb\n)R\x94h\x00"
                           "b"s)),
              HasSubstr("inside of itself"));
}

// As a mesh of PyTorch, a part of which refers to the whole. Nothing follows states further than it
// knows their classes.
TEST(PickleTest, AnInstanceInsideOfAnotherMayGetItsState) {
  EXPECT_EQ(Message(Made("ca\nb\n)R\x94h\x00\x85"
                         "b"s)),
            "");
  // A long chain of states.
  std::string steps = "(ca\nb\n)R\x94";
  for (uint32_t i = 0; i < 100'000; ++i) {
    steps += 'j';
    steps.append(reinterpret_cast<const char*>(&i), sizeof(i));
    steps +=
        "ca\nb\n)R\x94\x85"
        "b";
  }
  EXPECT_EQ(Message(Made(steps + "t")), "");
}

TEST(PickleTest, KeepsOddValuesAsWhatTheyAre) {
  // An integer of 65 bits, and an instance of what getattr returned.
  EXPECT_EQ(Message(Made("\x8a\x09\x01\x01\x01\x01\x01\x01\x01\x01\x01")), "");
  EXPECT_EQ(Message(Made("cbuiltins\ngetattr\n)R)R")), "");
}

TEST(PickleTest, RefusesHugeNames) {
  const std::string name = "X" + std::string("\x01\x20\x00\x00", 4) + std::string(8193, 'a');
  EXPECT_THAT(Message(Made(name + "\x8c\x01"
                                  "b"
                                  "\x93")),
              HasSubstr("at most 512 bytes"));
}

TEST(PickleTest, ObjectsAreNestedUpToALimit) {
  std::string steps = ")";
  for (int i = 1; i < 64; ++i) steps += "\x85";
  EXPECT_EQ(Message(Made(steps)), "");
  EXPECT_THAT(Message(Made(steps + "\x85")), HasSubstr("more than 64 objects"));
  EXPECT_THAT(Message(Made("]" + steps + "a")), HasSubstr("more than 64 objects"));
  EXPECT_THAT(Message(Made("ca\nb\n" + steps + "R")), HasSubstr("more than 64 objects"));
  EXPECT_THAT(Message(Made("ca\nb\n)R" + steps + "b")), HasSubstr("more than 64 objects"));
  EXPECT_THAT(Message(Made(steps + "Q")), HasSubstr("more than 64 objects"));
}

// Each tuple has the one before twice: 2^60 leaves, if they were written out.
TEST(PickleTest, SharedObjectsTakeNoMemory) {
  std::string steps = ")\x94";
  for (char i = 0; i < 60; ++i) steps += "h"s + i + "\x86\x94";
  EXPECT_EQ(Message(Made(steps)), "");
}

TEST(PickleTest, KnownClassesCollapse) {
  const std::string bytes = Made(
      "(cm\nSize\nK\x07K\x08\x86\x85R\x94h\x00"s  // at once; fetched again
      "cm\nChunk\n)\x81\x94}\x8c\x01"
      "aK\x09sbh\x01"s  // with its state; put before it
      "cm\nOther\n)Rt");
  std::vector<std::string> seen;
  const PickleCollapse collapse = [&](const Pickle& pickle, const PickleValue& node) {
    const std::string_view name = pickle.Global(node).name;
    const bool has_state = pickle.State(node).kind != PickleKind::kNone;
    seen.push_back(std::string(name) + (has_state ? " with state" : ""));
    if (name == "Size") return Result(std::optional<uint64_t>(70));
    if (name == "Chunk" && has_state) return Result(std::optional<uint64_t>(90));
    return Result(std::optional<uint64_t>());
  };
  const auto pickle = ReadPickle(bytes, collapse);
  ASSERT_TRUE(pickle.ok()) << pickle.status().message();
  EXPECT_THAT(seen, ElementsAre("Size", "Chunk", "Chunk with state", "Other"));
  std::vector<uint64_t> records;
  for (const PickleValue& item : pickle->Items(pickle->top())) {
    if (item.kind == PickleKind::kRecord) records.push_back(item.data);
  }
  EXPECT_THAT(records, ElementsAre(70, 70, 90, 90));
  EXPECT_EQ(pickle->Shown(pickle->Items(pickle->top()).back()), "m.Other(..)");
}

TEST(PickleTest, ErrorsOfTheCallerEndTheReading) {
  const PickleCollapse refuse = [](const Pickle& pickle, const PickleValue& node) {
    return Result<std::optional<uint64_t>>(UnsupportedError(pickle.Shown(node)));
  };
  const std::string bytes = Made("cm\nC\n)R");
  const auto pickle = ReadPickle(bytes, refuse);
  EXPECT_EQ(pickle.status().code(), StatusCode::kUnsupported);
  EXPECT_EQ(pickle.status().message(), "m.C(..)");
}

TEST(PickleTest, AsksForMemory) {
  const MemoryCheck none = [](uint64_t /*more*/) { return ResourceExhaustedError("full"); };
  EXPECT_TRUE(ReadPickle(Made("N"), {}, none).ok());
  for (const char* const step : {"N", ")", "]", "}", "cm\nC\n)R"}) {
    std::string steps = "(";
    for (int i = 0; i < 100'000; ++i) steps += step;
    const std::string bytes = Made(steps + "t");
    EXPECT_EQ(ReadPickle(bytes, {}, none).status().code(), StatusCode::kResourceExhausted) << step;
  }
}

// Instances that collapse leave no memory behind.
TEST(PickleTest, CollapsedInstancesTakeNoMemory) {
  const MemoryCheck none = [](uint64_t /*more*/) { return ResourceExhaustedError("full"); };
  const PickleCollapse all = [](const Pickle& /*pickle*/, const PickleValue& /*node*/) {
    return Result(std::optional<uint64_t>(1));
  };
  std::string steps = "]";
  for (int i = 0; i < 20'000; ++i) steps += "cm\nC\n(K\x01K\x02K\x03K\x04t\x85Ra";
  const std::string bytes = Made(steps);
  EXPECT_TRUE(ReadPickle(bytes, all).ok());
  EXPECT_FALSE(ReadPickle(bytes, {}, none).ok());
}

// pickle.dumps({"a": [1, 2.5, None, True], "b": (b"xy", -3)}, N)
TEST(PickleTest, ReadsWhatPythonWrites) {
  const std::string pickles[] = {
      "\x80\x02}q\x00(X\x01\x00\x00\x00"
      "aq\x01]q\x02(K\x01G@\x04\x00\x00\x00\x00\x00\x00N\x88"
      "eX\x01\x00\x00\x00"
      "bq\x03"
      "c_codecs\nencode\nq\x04X\x02\x00\x00\x00xyq\x05X\x06\x00\x00\x00"
      "latin1q\x06\x86q\x07Rq\x08J\xfd\xff\xff\xff\x86q\tu."s,
      "\x80\x04\x95*\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x01"
      "a\x94]\x94(K\x01G@\x04\x00\x00\x00"
      "\x00\x00\x00N\x88"
      "e\x8c\x01"
      "b\x94"
      "C\x02xy\x94J\xfd\xff\xff\xff\x86\x94u."s,
  };
  for (const std::string& bytes : pickles) {
    const auto pickle = ReadPickle(bytes);
    ASSERT_TRUE(pickle.ok()) << pickle.status().message();
    ASSERT_EQ(pickle->top().kind, PickleKind::kDict);
    const PickleValue* const a = pickle->Find(pickle->top(), "a");
    ASSERT_NE(a, nullptr);
    ASSERT_EQ(pickle->Items(*a).size(), 4);
    EXPECT_EQ(pickle->Float(pickle->Items(*a)[1]), 2.5);
    EXPECT_TRUE(pickle->Bool(pickle->Items(*a)[3]));
    const PickleValue* const b = pickle->Find(pickle->top(), "b");
    ASSERT_NE(b, nullptr);
    EXPECT_EQ(pickle->Integer(pickle->Items(*b)[1]), -3);
  }
}

TEST(PickleExpansionTest, FollowsFromTheSizeOfThePickle) {
  PickleExpansion expansion(uint64_t{1} << 20);
  EXPECT_TRUE(expansion.Take(uint64_t{20} << 20).ok());
  EXPECT_TRUE(expansion.Take(0).ok());
  EXPECT_EQ(expansion.Take(1).code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(expansion.Take(UINT64_MAX).code(), StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace reshard::pickle_reader_test
