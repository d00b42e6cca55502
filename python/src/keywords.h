// Keywords of a Python call become fields of an options struct: one line of a table for each.
//
// Called with the GIL held.
#ifndef RESHARD_PYTHON_KEYWORDS_H_
#define RESHARD_PYTHON_KEYWORDS_H_

#include <nanobind/nanobind.h>

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "python/src/interpreter.h"
#include "python/src/module.h"
#include "reshard/options.h"
#include "reshard/status.h"
#include "src/frontend/option_parts.h"
#include "src/options/option_table.h"

namespace reshard::python {

// A str or an os.PathLike, as bytes.
inline std::string TextOf(nanobind::handle value) {
  const nanobind::object encode = nanobind::module_::import_("reshard._paths").attr("encode");
  return Bytes(nanobind::cast<nanobind::bytes>(CallPython(encode, nanobind::make_tuple(value))));
}

inline void Set(std::string& field, nanobind::handle value) { field = TextOf(value); }
inline void Set(reshard::StrategyRef& field, nanobind::handle value) { field = TextOf(value); }

// Casts a value that has to be `expected`.
template <typename Field>
void Cast(Field& field, nanobind::handle value, const std::string& expected) {
  if (!nanobind::try_cast(value, field)) {
    const nanobind::object builtin = nanobind::module_::import_("builtins").attr("repr");
    const std::string text = TextOf(CallPython(builtin, nanobind::make_tuple(value)));
    throw StatusError(InvalidArgumentError("expected " + expected + ", found " + text));
  }
}

inline void Set(bool& field, nanobind::handle value) { Cast(field, value, "True or False"); }

template <std::integral Number>
void Set(Number& field, nanobind::handle value) {
  Cast(field, value, "a whole number");
}

template <typename T>
void Set(std::vector<T>& field, nanobind::handle values) {
  for (const nanobind::handle value : values) Set(field.emplace_back(), value);
}

template <typename Key, typename Value>
void Set(std::map<Key, Value>& field, nanobind::handle values) {
  nanobind::dict entries;
  Cast(entries, values, "a dict");
  for (const auto& [name, value] : entries) {
    Key key = {};
    Set(key, name);
    Set(field[std::move(key)], value);
  }
}

// A path, or the file of each rank.
inline void SetSource(SourceSpec& source, nanobind::handle value) {
  if (nanobind::isinstance<nanobind::dict>(value)) {
    Set(source.files, value);
  } else {
    Set(source.path, value);
  }
}

// The word's entry in `words`, the words that the keyword takes.
template <typename Value>
Value OneOf(std::span<const std::pair<std::string_view, Value>> words, nanobind::handle value) {
  const std::string text = TextOf(value);
  std::string expected;
  for (const auto& [word, meaning] : words) {
    if (word == text) return meaning;
    expected += (expected.empty() ? "" : ", ") + std::string(word);
  }
  throw StatusError(InvalidArgumentError("expected one of " + expected + "; found " + text));
}

template <typename Options>
struct Keyword {
  std::string_view name;
  void (*set)(Options&, nanobind::handle);
};

// The value of a keyword; no value if it counts as not given.
std::optional<OptionValue> ReadKeyword(const Option& option, nanobind::handle value);

// New names from a JSON file: its path, or a dict with its content.
Renames RenamesOf(nanobind::handle value);

// The option of the table that is this keyword of the call, or null.
inline const Option* OptionOf(std::string_view keyword, uint32_t call) {
  for (const Option& option : AllOptions()) {
    if (option.word == keyword && (option.calls & call) != 0) return &option;
  }
  return nullptr;
}

// Sets in `options` the values of `keywords`, a dict without None: options of the table that `call`
// takes, and options that the tables here add. Errors name the keyword.
template <typename Options>
void Fill(Options& options, const nanobind::dict& keywords, uint32_t call,
          std::initializer_list<std::span<const Keyword<Options>>> tables) {
  for (const auto& [key, value] : keywords) {
    const std::string name = nanobind::cast<nanobind::str>(key).c_str();
    const Keyword<Options>* found = nullptr;
    for (const auto& table : tables) {
      for (const Keyword<Options>& row : table) {
        if (row.name == name) found = &row;
      }
    }
    const Option* const option = found == nullptr ? OptionOf(name, call) : nullptr;
    if (found == nullptr && option == nullptr) {
      throw nanobind::type_error(("no keyword " + name).c_str());
    }
    try {
      if (found != nullptr) {
        found->set(options, value);
      } else if constexpr (requires { PartsOf(options); }) {
        if (const auto read = ReadKeyword(*option, value)) {
          SetOption(*option, PartsOf(options), *read);
        }
      }
    } catch (const StatusError& error) {
      throw StatusError(error.status().WithMessage(name + ": " + error.status().message()));
    } catch (nanobind::python_error& error) {
      for (PyObject* const type : {PyExc_TypeError, PyExc_ValueError}) {
        if (error.matches(type)) {
          nanobind::raise_from(error, type, "%s: %S", name.c_str(), error.value().ptr());
        }
      }
      throw;
    }
  }
}

}  // namespace reshard::python

#endif  // RESHARD_PYTHON_KEYWORDS_H_
