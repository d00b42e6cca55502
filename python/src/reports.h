// Results of the library as objects of the package's classes, with the fields of
// src/frontend/report_fields.cc.
//
// Called with the GIL held.
#ifndef RESHARD_PYTHON_REPORTS_H_
#define RESHARD_PYTHON_REPORTS_H_

#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/frontend/option_words.h"
#include "src/frontend/report_fields.h"

namespace reshard::python {

// Puts an object together. Names of options are keywords, or the names in `own`.
class PythonReport final : public ReportSink {
 public:
  explicit PythonReport(OwnWords own);

  void BeginObject(const ReportClass& of) override;
  void Name(std::string_view field) override { open_.back().name = field; }
  void EndObject() override;
  void BeginList() override { open_.push_back({nanobind::list(), {}, {}}); }
  void EndList() override;
  void BeginMap() override { open_.push_back({nanobind::dict(), {}, {}}); }
  void EndMap() override { Add(Close()); }

  void None() override { Add(nanobind::none()); }
  void Value(bool value) override { Add(nanobind::bool_(value)); }
  void Value(int64_t value) override { Add(nanobind::int_(value)); }
  void Value(uint64_t value) override { Add(nanobind::int_(value)); }
  void Value(double value) override { Add(nanobind::float_(value)); }
  void Value(std::string_view text) override;
  void Message(std::string_view text) override;

  // Returns the finished object.
  nanobind::object Take() { return std::move(done_); }

 private:
  // The fields of an object, a list or a dict that is not complete.
  struct Open {
    nanobind::object members;
    std::string name;  // of the next one
    nanobind::object of;
  };

  void Add(const nanobind::object& value);
  nanobind::object Close();

  const OwnWords own_;
  const nanobind::object classes_;
  std::vector<Open> open_;
  nanobind::object done_;
};

// Words of options for a call, from a dict.
OwnWords WordsOf(const nanobind::dict& words);

template <typename Report>
nanobind::object ReportOf(const Report& report, const ReportedCall& call,
                          const nanobind::dict& words) {
  PythonReport object(WordsOf(words));
  Describe(report, call, object);
  return object.Take();
}

// As above, for a part of a result of `inspect`, or for a warning.
template <typename Part>
nanobind::object PartOf(const Part& part, const nanobind::dict& words) {
  PythonReport object(WordsOf(words));
  Describe(part, object);
  return object.Take();
}

template <typename Part>
nanobind::tuple TupleOf(const std::vector<Part>& parts, const nanobind::dict& words) {
  nanobind::list list;
  for (const Part& part : parts) list.append(PartOf(part, words));
  return nanobind::tuple(list);
}

// Every class as (name, base or "", docstring, fields), and each field as (name, type, whether it
// may be left out). A class comes after the classes that it names.
nanobind::list ReportClasses();

}  // namespace reshard::python

#endif  // RESHARD_PYTHON_REPORTS_H_
