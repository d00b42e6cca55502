// Strict JSON: objects with known members in a fixed order; only optional members may be missing. A
// JsonTable has a row for each member of an object type. Reader and writer follow the same rows.
// Names and paths are any bytes and JSON strings are UTF-8, so this file also has their encoding.
//
// Only a JsonText has a state, for one thread at a time.
#ifndef RESHARD_SRC_RECORD_STRICT_JSON_H_
#define RESHARD_SRC_RECORD_STRICT_JSON_H_

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "reshard/status.h"
#include "src/base/json_reader.h"
#include "src/base/status_macros.h"

namespace reshard {

// Returns the JSON string, quotes included, that stands for `bytes` (SPEC.md, "Names and paths").
std::string BytesAsJson(std::string_view bytes);
// Appends it.
void AppendBytesAsJson(std::string_view bytes, std::string& out);
// Returns null in place of an empty string.
std::string BytesAsJsonOrNull(std::string_view bytes);

// Returns the JSON list of the results of `to_json` for each item.
template <typename Items, typename ToJson>
std::string JsonList(const Items& items, ToJson to_json) {
  std::string json = "[";
  for (const auto& item : items) {
    if (json.size() > 1) json += ',';
    json += to_json(item);
  }
  return json + ']';
}

// Returns the bytes that a string stands for; no value if no bytes are encoded so. `text` is UTF-8,
// already decoded from JSON.
std::optional<std::string> BytesOfText(std::string_view text);

enum class JsonKind : uint8_t {
  kUnsigned,
  kString,
  kStringOrNull,
  kBytes,  // a string that stands for any bytes
  kObject,
  kArray,
};

// The reason why a record is invalid; no value if it is valid. Encoders and parsers refuse the same
// values.
using Fault = std::optional<std::string>;

// The address of an object, and that of the element before it if it is in a list.
struct JsonPlace {
  void* object = nullptr;
  const void* previous = nullptr;
};

// The name of a member, in the form that a line has behind another member: `,"name":`.
class JsonName {
 public:
  static constexpr size_t kMostBytes = 24;

  constexpr JsonName() = default;  // of elements
  explicit constexpr JsonName(std::string_view name) : size_(name.size() + 4) {
    size_t at = 0;
    for (const char c : {',', '"'}) text_[at++] = c;
    for (const char c : name) text_[at++] = c;
    for (const char c : {'"', ':'}) text_[at++] = c;
  }

  constexpr bool empty() const { return size_ == 0; }
  constexpr std::string_view bare() const { return text().substr(2, size_ - 4); }
  constexpr std::string_view text() const { return {text_.data(), size_}; }

 private:
  std::array<char, kMostBytes> text_ = {};
  size_t size_ = 0;
};

class JsonText;

// The row of a member, or of an array's elements. It has no types, so that one reader and one
// writer serve all tables. JsonField and JsonFact, below, make it from types.
struct JsonMember {
  JsonName name = {};  // none for elements
  JsonKind kind = JsonKind::kObject;
  bool may_miss = false;
  // The members of an object, or the one row of an array's elements.
  std::span<const JsonMember> parts = {};
  // Takes a value into the object; a text of kBytes is already decoded. Null for objects and
  // arrays.
  Status (*take)(JsonValue& value, void* object) = nullptr;
  // Returns the place of this object or array, given the place of its owner. An element is added.
  JsonPlace (*open)(JsonPlace place) = nullptr;
  // Whether a member that may miss is written.
  bool (*is_there)(const void* object) = nullptr;
  void (*put)(const void* object, JsonText& text) = nullptr;
  // Checks the object that has the member, once the member is read or written.
  Fault (*fault)(const void* object, const void* previous) = nullptr;
};

// JsonText: a document that is being written. A part record has very many lines, so each piece of
// text is only copied, into room that was made before.
class JsonText {
 public:
  enum class Style : uint8_t { kLine, kIndented };  // no spaces, or two for each level

  // Appends to `out`, whose content is only valid after Finish.
  JsonText(Style style, std::string& out)
      : is_line_(style == Style::kLine), out_(out), size_(out.size()) {}

  // Returns the first fault that was found.
  Fault Finish();
  void Refuse(Fault fault);

  std::string_view text() const { return {out_.data(), size_}; }
  void Null() { Append("null"); }
  void Number(uint64_t number);
  void Bytes(std::string_view bytes);
  // Appends a string without characters that JSON escapes.
  void Word(std::string_view word);
  void Object(std::span<const JsonMember> members, const void* object, const void* previous);
  // Appends an array; `put(item, item before it or null)` appends an item.
  template <typename Item, typename Put>
  void Array(const std::vector<Item>& items, Put put) {
    Append('[');
    ++depth_;
    const Item* previous = nullptr;
    for (const Item& item : items) {
      if (previous != nullptr) Append(',');
      if (!is_line_) NewLine();
      put(item, previous);
      previous = &item;
    }
    Close(']', items.empty());
  }

 private:
  // Returns where the next bytes go, at most so many.
  char* Room(size_t bytes) {
    if (out_.size() - size_ < bytes) Grow(bytes);
    return out_.data() + size_;
  }
  void Grow(size_t bytes);
  void Append(std::string_view piece);
  void Append(char piece) {
    *Room(1) = piece;
    ++size_;
  }
  void Close(char bracket, bool is_empty);
  void NewLine();

  const bool is_line_;
  std::string& out_;  // with room for more
  size_t size_;       // of the text in it
  size_t depth_ = 0;
  Fault fault_;
};

// A row of the table of an object type.
template <typename Object>
struct JsonRow {
  JsonMember member;

  // The member may miss. It is left out if it has the default value of its type.
  constexpr JsonRow OrNone() const {
    JsonRow row = *this;
    row.member.may_miss = true;
    return row;
  }
  // Adds the check `kFault(object, element before it or null)`.
  template <auto kFault>
  constexpr JsonRow CheckedBy() const {
    JsonRow row = *this;
    row.member.fault = [](const void* object, const void* previous) -> Fault {
      return kFault(*static_cast<const Object*>(object), static_cast<const Object*>(previous));
    };
    return row;
  }
};

// All members of an object type, in order.
template <typename ObjectType, size_t kRows>
class JsonTable {
 public:
  using Object = ObjectType;

  template <std::same_as<JsonRow<Object>>... Rows>
  explicit constexpr JsonTable(Rows... rows) : members_{rows.member...} {}

  // Adds the check `kFault(object)` of a document, once all its members are read or written.
  template <auto kFault>
  constexpr JsonTable CheckedBy() const {
    JsonTable table = *this;
    table.fault_ = [](const void* object, const void* /*previous*/) -> Fault {
      return kFault(*static_cast<const Object*>(object));
    };
    return table;
  }

  constexpr std::span<const JsonMember> members() const { return members_; }
  // The row of a document.
  constexpr JsonMember document() const { return {.parts = members_, .fault = fault_}; }

 private:
  std::array<JsonMember, kRows> members_;
  Fault (*fault_)(const void* object, const void* previous) = nullptr;
};

template <typename Object, typename... More>
JsonTable(JsonRow<Object>, More...) -> JsonTable<Object, 1 + sizeof...(More)>;

// A codec reads and writes the values of one kind, kKind. Put(value, JsonText&) writes. Objects and
// arrays are read by the rows in kParts, other values by Take(JsonValue&, value). The codec of a
// list's items names their type, Value. Its CheckRoom(number of items), if any, limits the list.

template <const auto& kTable>
struct AsObject {
  using Value = typename std::remove_cvref_t<decltype(kTable)>::Object;
  static constexpr JsonKind kKind = JsonKind::kObject;
  static constexpr std::span<const JsonMember> kParts = kTable.members();

  static void Put(const Value& object, JsonText& text, const Value* previous = nullptr) {
    text.Object(kParts, &object, previous);
  }
};

template <typename Codec>
class AsList {
  using List = std::vector<typename Codec::Value>;

  static constexpr JsonMember Element() {
    JsonMember element{.kind = Codec::kKind};
    if constexpr (Codec::kKind == JsonKind::kObject) {
      element.parts = Codec::kParts;
      element.open = [](JsonPlace place) {
        List& list = *static_cast<List*>(place.object);
        list.emplace_back();
        return JsonPlace{&list.back(), list.size() > 1 ? &list.back() - 1 : nullptr};
      };
    } else {
      element.take = [](JsonValue& value, void* object) {
        List& list = *static_cast<List*>(object);
        if constexpr (requires { Codec::CheckRoom(size_t{}); }) {
          RESHARD_RETURN_IF_ERROR(Codec::CheckRoom(list.size()));
        }
        return Codec::Take(value, list.emplace_back());
      };
    }
    return element;
  }
  static constexpr JsonMember kElement = Element();

 public:
  static constexpr JsonKind kKind = JsonKind::kArray;
  static constexpr std::span<const JsonMember> kParts = {&kElement, 1};

  static void Put(const List& list, JsonText& text) {
    if constexpr (Codec::kKind == JsonKind::kObject) {
      text.Array(list, [&](const auto& item, const auto* last) { Codec::Put(item, text, last); });
    } else {
      text.Array(list, [&](const auto& item, const auto* /*last*/) { Codec::Put(item, text); });
    }
  }
};

template <auto kPointer>
struct PointedMember;
template <typename Class, typename Type, Type Class::*kPointer>
struct PointedMember<kPointer> {
  using Object = Class;
  static Type& Of(Class& object) { return object.*kPointer; }
  static const Type& Of(const Class& object) { return object.*kPointer; }
};

template <typename Class>
struct WholeObject {
  using Object = Class;
  static Class& Of(Class& object) { return object; }
  static const Class& Of(const Class& object) { return object; }
};

template <typename Part, typename Codec>
constexpr JsonRow<typename Part::Object> JsonRowOf(std::string_view name) {
  using Object = typename Part::Object;
  JsonMember row{.name = JsonName(name), .kind = Codec::kKind};
  if constexpr (requires { Codec::kParts; }) {
    row.parts = Codec::kParts;
    row.open = [](JsonPlace place) {
      return JsonPlace{&Part::Of(*static_cast<Object*>(place.object))};
    };
  } else {
    row.take = [](JsonValue& value, void* object) {
      return Codec::Take(value, Part::Of(*static_cast<Object*>(object)));
    };
  }
  row.is_there = [](const void* object) {
    const auto& value = Part::Of(*static_cast<const Object*>(object));
    return value != std::remove_cvref_t<decltype(value)>();
  };
  row.put = [](const void* object, JsonText& text) {
    Codec::Put(Part::Of(*static_cast<const Object*>(object)), text);
  };
  return {row};
}

// Makes the row of a value that the object stores.
template <auto kPointer, typename Codec>
constexpr auto JsonField(std::string_view name) {
  return JsonRowOf<PointedMember<kPointer>, Codec>(name);
}

// Makes the row of a value that follows from the object; the codec gets the whole object.
template <typename Object, typename Codec>
constexpr auto JsonFact(std::string_view name) {
  return JsonRowOf<WholeObject<Object>, Codec>(name);
}

// As the functions below, without the types.
Status ReadStrictJson(std::string_view bytes, const std::string& where, const JsonMember& document,
                      void* object);
Fault AppendJson(const JsonMember& document, const void* object, JsonText::Style style,
                 std::string& out);

// Reads one document, an object, without building a tree. `where` names it in messages.
// Errors: kCorrupt, naming the byte and the member; those of the codecs and checks, likewise.
template <typename Object, size_t kRows>
Status ReadStrictJson(std::string_view bytes, const std::string& where,
                      const JsonTable<Object, kRows>& table, Object& object) {
  return ReadStrictJson(bytes, where, table.document(), &object);
}

// Appends such a document, without the end of its last line. Returns the first fault; the text is
// of no use then.
template <typename Object, size_t kRows>
Fault AppendJson(const JsonTable<Object, kRows>& table, const Object& object, JsonText::Style style,
                 std::string& out) {
  return AppendJson(table.document(), &object, style, out);
}

}  // namespace reshard

#endif  // RESHARD_SRC_RECORD_STRICT_JSON_H_
