#include "python/src/reports.h"

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "python/src/keywords.h"
#include "python/src/module.h"

namespace nb = nanobind;

namespace reshard::python {
namespace {

// A name that many objects have, held once.
nb::object Interned(std::string_view name) {
  PyObject* text = PyUnicode_FromStringAndSize(name.data(), static_cast<Py_ssize_t>(name.size()));
  if (text == nullptr) throw nb::python_error();
  PyUnicode_InternInPlace(&text);
  return nb::steal(text);
}

// An object of a class, made without its constructor, as pickle does it.
nb::object Made(const nb::object& of, const nb::object& fields) {
  auto* const type = reinterpret_cast<PyTypeObject*>(of.ptr());
  nb::object made = nb::steal(PyType_GenericNew(type, nullptr, nullptr));
  if (!made.is_valid() ||
      PyObject_GenericSetAttr(made.ptr(), Interned("__dict__").ptr(), fields.ptr()) != 0) {
    throw nb::python_error();
  }
  return made;
}

class ClassTable final : public TypeSink {
 public:
  void BeginObject(const ReportClass& of) override { Begin(&of); }
  void Name(std::string_view field) override { open_.back().field = field; }
  void EndObject() override {
    const Open object = Close();
    if (seen_.insert(object.name).second) {
      classes_.append(
          nb::make_tuple(Text(object.name), Text(object.base), Text(object.words), object.fields));
    }
    Type(object.name);
  }
  void BeginList() override { Begin(nullptr); }
  void EndList() override { Type("tuple[" + Close().member + ", ...]"); }
  void BeginMap() override { Begin(nullptr); }
  void EndMap() override { Type("dict[str, " + Close().member + "]"); }

  void None() override {}
  void Value(bool /*value*/) override { Type("bool"); }
  void Value(int64_t /*value*/) override { Type("int"); }
  void Value(uint64_t /*value*/) override { Type("int"); }
  void Value(double /*value*/) override { Type("float"); }
  void Value(std::string_view /*text*/) override { Type("str"); }
  void Message(std::string_view /*text*/) override { Type("str"); }

  void MayLack() override { open_.back().may_lack = true; }
  void OrNone() override { or_none_ = true; }
  void Type(std::string_view type) override {
    const std::string whole = std::string(type) + (std::exchange(or_none_, false) ? " | None" : "");
    if (open_.empty()) return;
    Open& into = open_.back();
    into.member = whole;
    into.fields.append(
        nb::make_tuple(Text(into.field), Text(whole), std::exchange(into.may_lack, false)));
  }

  nb::list Take() { return std::move(classes_); }

 private:
  struct Open {
    std::string name, base, words;  // of a class
    nb::list fields;
    std::string field;   // the next one
    std::string member;  // the type of a list's or map's members
    bool may_lack = false;
    bool or_none = false;  // the whole type
  };

  void Begin(const ReportClass* of) {
    Open& open = open_.emplace_back();
    open.or_none = std::exchange(or_none_, false);
    if (of != nullptr) open.name = of->name, open.base = of->base, open.words = of->words;
  }

  Open Close() {
    Open open = std::move(open_.back());
    open_.pop_back();
    or_none_ = open.or_none;
    return open;
  }

  bool or_none_ = false;  // the next type
  std::vector<Open> open_;
  std::set<std::string> seen_;
  nb::list classes_;
};

}  // namespace

PythonReport::PythonReport(OwnWords own)
    : own_(std::move(own)), classes_(nb::module_::import_("reshard")) {}

void PythonReport::BeginObject(const ReportClass& of) {
  open_.push_back({nb::dict(), {}, classes_.attr(std::string(of.name).c_str())});
}

void PythonReport::EndObject() {
  const nb::object of = open_.back().of;
  Add(Made(of, Close()));
}

void PythonReport::EndList() { Add(nb::tuple(Close())); }

void PythonReport::Value(std::string_view text) { Add(Text(text)); }

void PythonReport::Message(std::string_view text) {
  Add(Text(InWords(text, FrontEnd::kPython, own_)));
}

void PythonReport::Add(const nb::object& value) {
  if (open_.empty()) {
    done_ = value;
  } else if (nb::isinstance<nb::list>(open_.back().members)) {
    nb::borrow<nb::list>(open_.back().members).append(value);
  } else {
    nb::borrow<nb::dict>(open_.back().members)[Interned(open_.back().name)] = value;
  }
}

nb::object PythonReport::Close() {
  nb::object members = std::move(open_.back().members);
  open_.pop_back();
  return members;
}

OwnWords WordsOf(const nb::dict& words) {
  OwnWords own;
  for (const auto& [name, word] : words) own.emplace(TextOf(name), TextOf(word));
  return own;
}

nb::list ReportClasses() {
  ClassTable table;
  DescribeTypes(table);
  return table.Take();
}

}  // namespace reshard::python
