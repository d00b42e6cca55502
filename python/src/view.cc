// TargetView as the class View of _reshard. Any number of Python threads may use it: code that
// touches the disk runs without the GIL.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "python/src/forked_object.h"
#include "python/src/interpreter.h"
#include "python/src/keywords.h"
#include "python/src/module.h"
#include "python/src/reports.h"
#include "python/src/watched_call.h"
#include "reshard/byte_range.h"
#include "reshard/options.h"
#include "reshard/target_view.h"
#include "src/frontend/option_parts.h"
#include "src/frontend/own_outputs.h"
#include "src/frontend/read_ahead.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace reshard::python {
namespace {

using Destination = nb::ndarray<uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

constexpr Keyword<ConvertOptions> kView[] = {
    {"source", [](ConvertOptions& o, nb::handle v) { SetSource(o.source, v); }},
};

class View {
 public:
  static View Open(const nb::dict& keywords, int jobs, const nb::object& watch) {
    const FileUse use;
    ConvertOptions options;
    Fill<ConvertOptions>(options, keywords, kViewCall,
                         {std::span<const Keyword<ConvertOptions>>(kView)});
    return View(RunWatched(jobs, watch, [&](const RunOptions& run) {
      const FileUse joined(use);
      SetWatched(options.run, run);
      return TargetView::Open(options);
    }));
  }

  View(View&&) = default;
  View& operator=(View&&) = delete;

  nb::tuple Files() const {
    nb::list files;
    for (const PlanReport::TargetFile& file : view().files()) files.append(PartOf(file, {}));
    return nb::tuple(files);
  }

  nb::object FoundIn(const nb::dict& words) const { return PartOf(view().findings(), words); }

  // Fills `out` with bytes of a file from `offset` on.
  void ReadInto(size_t file, uint64_t offset, const Destination& out, ReadAhead& ahead) {
    Read(file, offset, {reinterpret_cast<std::byte*>(out.data()), out.size()}, ahead);
  }

  nb::bytes ReadBytes(size_t file, uint64_t offset, size_t length, ReadAhead& ahead) {
    PyObject* const made = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(length));
    if (made == nullptr) throw nb::python_error();
    nb::bytes bytes = nb::steal<nb::bytes>(made);
    // No other code has them yet.
    Read(file, offset, {reinterpret_cast<std::byte*>(PyBytes_AsString(made)), length}, ahead);
    return bytes;
  }

  void VerifyUnchanged() {
    const Opened::Use use(Ours());
    Check(view().VerifyUnchanged());
  }

 private:
  using Opened = ForkedObject<TargetView>;

  explicit View(TargetView view) : opened_(std::move(view)) {}

  const TargetView& view() const { return *opened_; }

  const Opened& Ours() {
    if (opened_.IsLost()) {
      throw StatusError(UnsupportedError(
          "a thread read from this target when the process was forked; open it in the child anew"));
    }
    return opened_;
  }

  void Read(size_t file, uint64_t offset, std::span<std::byte> out, ReadAhead& ahead) {
    const ByteRange later = ahead.Behind({offset, out.size()});
    constexpr size_t kBetweenSignals = size_t{64} << 20;
    do {
      const std::span<std::byte> part = out.first(std::min(out.size(), kBetweenSignals));
      {
        const Opened::Use use(Ours());
        Check(view().Read(file, offset, part));
        offset += part.size();
        out = out.subspan(part.size());
        // A read reports errors of a source.
        if (out.empty() && later.length > 0) static_cast<void>(view().Prefetch(file, later));
      }
      if (HeldCheckSignals() != 0) throw nb::python_error();
    } while (!out.empty());
  }

  Opened opened_;
};

}  // namespace

void AddView(nb::module_& module) {
  nb::class_<ReadAhead>(module, "ReadAhead")
      .def(nb::init<uint64_t, uint64_t>(), "begin"_a, "end"_a);
  nb::class_<View>(module, "View")
      .def_static("open", &View::Open, "keywords"_a, "jobs"_a, "watch"_a)
      .def("files", &View::Files)
      .def("findings", &View::FoundIn, "words"_a)
      .def("read_into", &View::ReadInto, "file"_a, "offset"_a, "out"_a, "ahead"_a)
      .def("read", &View::ReadBytes, "file"_a, "offset"_a, "length"_a, "ahead"_a)
      .def("verify_unchanged", &View::VerifyUnchanged);
}

}  // namespace reshard::python
