// Calls of the library as functions of _reshard. Reports come as dicts with the names of the
// command line's JSON.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "python/src/module.h"
#include "python/src/watched_call.h"
#include "reshard/compare.h"
#include "reshard/strategy.h"
#include "reshard/verify.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace reshard::python {
namespace {

nb::list Texts(const std::vector<std::string>& texts) {
  nb::list list;
  for (const std::string& text : texts) list.append(Text(text));
  return list;
}

nb::dict DamageOf(const Damage& damage) {
  nb::dict fields;
  fields["path"] = Text(damage.path);
  fields["kind"] = Text(DamageKindName(damage.kind));
  fields["detail"] = Text(damage.detail);
  if (damage.block) {
    fields["first_bad_block"] =
        nb::make_tuple(damage.block->index, damage.block->range.offset, damage.block->range.length);
  } else {
    fields["first_bad_block"] = nb::none();
  }
  fields["bad_blocks"] = damage.bad_blocks;
  fields["parameters"] = Texts(damage.parameters);
  fields["parameter_count"] = damage.parameter_count;
  return fields;
}

nb::dict VerifyTarget(const nb::bytes& target, int jobs, const nb::object& watch) {
  VerifyOptions options;
  options.target = Bytes(target);
  const DamageReport report = RunWatched(jobs, watch, [&](const RunOptions& run) {
    options.run = run;
    return Verify(options);
  });
  nb::dict fields;
  fields["manifests"] = Texts(report.manifests);
  fields["files"] = report.files;
  fields["files_without_digest"] = report.files_without_digest;
  fields["bytes"] = report.bytes;
  nb::list damages;
  for (const Damage& damage : report.damages) damages.append(DamageOf(damage));
  fields["damages"] = damages;
  fields["notes"] = Texts(report.notes);
  return fields;
}

std::vector<int64_t> RanksFor(int64_t rank, const nb::bytes& src_strategy,
                              const nb::bytes& dst_strategy) {
  const std::string source = Bytes(src_strategy);
  const std::string target = Bytes(dst_strategy);
  const nb::gil_scoped_release released;
  return Take(SourceRanks(rank, source, target));
}

std::vector<std::pair<int64_t, std::vector<int64_t>>> RanksForAll(const nb::bytes& src_strategy,
                                                                  const nb::bytes& dst_strategy) {
  const std::string source = Bytes(src_strategy);
  const std::string target = Bytes(dst_strategy);
  std::vector<std::pair<int64_t, std::vector<int64_t>>> all;
  const nb::gil_scoped_release released;
  Check(ForEachSourceRanks(source, target, [&](int64_t rank, const std::vector<int64_t>& ranks) {
    all.emplace_back(rank, ranks);
  }));
  return all;
}

}  // namespace

void AddCalls(nb::module_& module) {
  module.def("verify", &VerifyTarget, "target"_a, "jobs"_a, "watch"_a);
  module.def("source_ranks", &RanksFor, "rank"_a, "src_strategy"_a, "dst_strategy"_a);
  module.def("all_source_ranks", &RanksForAll, "src_strategy"_a, "dst_strategy"_a);
}

}  // namespace reshard::python
