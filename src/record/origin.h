// Origin: the sources of the files in a target folder, a line for each run (SPEC.md).
//
// Pure functions; any thread.
#ifndef RESHARD_SRC_RECORD_ORIGIN_H_
#define RESHARD_SRC_RECORD_ORIGIN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reshard/options.h"
#include "src/record/manifest_codec.h"

namespace reshard {

inline constexpr std::string_view kOriginName = "origin.jsonl";

// Facts of a run that its options do not have. Digests are 32 hexadecimal digits; empty: none.
struct OriginFacts {
  std::string plan;             // its fingerprint
  std::string source_strategy;  // digests
  std::string target_strategy;
  std::optional<std::pair<uint64_t, uint64_t>> step = {};  // epoch, step
};

// Returns the facts known before the run: a JSON object, without the end of the line. Paths are as
// given. It has no keys, no times and no data about the host.
std::string EncodeOrigin(const ConversionSpec& spec, const OriginFacts& facts);

// Returns the complete line of a run, from the result of EncodeOrigin and its `manifest`. `left`
// are files of earlier sets that still exist and that the manifest does not list.
std::string OriginLine(std::string_view origin, const Manifest& manifest,
                       const std::vector<ManifestFile>& left = {});

// Returns the new content of the file: `before`, the old content or empty, followed by `line`.
// Returns no value if `line` is its last line already.
std::optional<std::string> WithOriginLine(std::string before, std::string_view line);

// The facts in a line about its run.
struct OriginRun {
  std::string plan;
  // The paths of the strategies, and the options that differ from their defaults. `ranks` covers
  // all runs of the plan together; empty: all ranks.
  ConversionSpec spec;
  std::string source_strategy;  // digests; empty: none
  std::string target_strategy;
};

// Returns the facts in the last line of the file content `bytes`; no value if it cannot be read.
std::optional<OriginRun> OptionsOfLastRun(std::string_view bytes);

struct LastRun {
  std::string format;              // as in `--format`; empty: the source's format
  std::string names;               // the pattern that files are named by; empty: the usual one
  std::vector<ManifestFile> left;  // path, size, digest, encryption
};

// Returns the facts in the last line of the file content `bytes`, as far as it can be read.
LastRun LastRunOf(std::string_view bytes);

// More than any such file has.
inline constexpr uint64_t kMaxOriginBytes = uint64_t{64} << 20;

}  // namespace reshard

#endif  // RESHARD_SRC_RECORD_ORIGIN_H_
