// Origin: where the files of a target folder came from, a line for each run (SPEC.md).
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

// What options do not tell of a run. Digests are 32 hexadecimal digits; empty: none.
struct OriginFacts {
  std::string plan;             // its fingerprint
  std::string source_strategy;  // digests
  std::string target_strategy;
  std::optional<std::pair<uint64_t, uint64_t>> step = {};  // epoch, step
};

// Returns what is known before the run: a JSON object, without a line's end. Paths are as they were
// given; no keys, no times, nothing of the host.
std::string EncodeOrigin(const ConversionSpec& spec, const OriginFacts& facts);

// Returns the line, with its end, of a run that EncodeOrigin told of and that `manifest` came of;
// `left` are files of sets before that it does not list and that are still there.
std::string OriginLine(std::string_view origin, const Manifest& manifest,
                       const std::vector<ManifestFile>& left = {});

// Returns the file that holds `before`, the old one or nothing, and then `line`; nothing where that
// is its last line already.
std::optional<std::string> WithOriginLine(std::string before, std::string_view line);

// What a line tells of a run.
struct OriginRun {
  std::string plan;
  // The strategies' paths, and the options that were not as usual. Its `ranks` are those of all
  // runs of the plan together; none: all.
  ConversionSpec spec;
  std::string source_strategy;  // digests; empty: none
  std::string target_strategy;
};

// Returns what the last line of `bytes`, those of the file, tells of its run; nothing if it is none
// that can be read.
std::optional<OriginRun> OptionsOfLastRun(std::string_view bytes);

struct LastRun {
  std::string format;              // as `--format` has it; empty: that of the source
  std::string names;               // the pattern that files are named by; empty: the usual one
  std::vector<ManifestFile> left;  // path, size, digest, encryption
};

// Returns what the last line of `bytes`, those of the file, tells, as far as it can be read.
LastRun LastRunOf(std::string_view bytes);

// More than any such file has.
inline constexpr uint64_t kMaxOriginBytes = uint64_t{64} << 20;

}  // namespace reshard

#endif  // RESHARD_SRC_RECORD_ORIGIN_H_
