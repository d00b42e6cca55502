// StrategyCheck: whether the source strategy is the one that a source was saved with, as far as
// headers, the places of files and a sample of their content tell.
#ifndef RESHARD_SRC_CONVERT_STRATEGY_CHECK_H_
#define RESHARD_SRC_CONVERT_STRATEGY_CHECK_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "reshard/compare.h"
#include "reshard/options.h"
#include "reshard/status.h"
#include "src/convert/opened_source.h"
#include "src/plan/parameter_choice.h"
#include "src/verify/shard_sample.h"

namespace reshard {

struct StrategyCheckOptions {
  CheckReplicas replicas = CheckReplicas::kSample;
  // Of replicas that differ, refuse only what a wrong strategy explains better than one damaged
  // rank does: for who compares all of them anyway.
  bool only_wrong_strategy = false;
  // Refused if many of them differ between ranks (UnmatchedMatrices).
  std::span<const std::string> unmatched = {};
  SampleLimits spent = {0, 0};  // of SampleLimitsFor, by what was looked at before
  size_t workers = 2;
  std::stop_token stop = {};
};

struct StrategyFindings {
  std::vector<Warning> warnings;
  std::optional<ReplicaSample> sample;  // where there was one
  // Why nothing was found that confirms a strategy which cuts something; else empty.
  std::string unconfirmed;
};

// Checks the parameters of `choice` in these source stages, once their files that are needed were
// opened. Reads no more than SampleLimitsFor says. Without a source strategy there is nothing to
// check. Errors: kMismatch where the strategy is most likely another checkpoint's; those of
// SampleShards.
Result<StrategyFindings> CheckStrategy(OpenedSource& source, const ParameterChoice& choice,
                                       std::span<const int64_t> stages,
                                       const StrategyCheckOptions& options);

// The part of it that headers tell which were read. Fails with kMismatch where files of one stage
// hold more than half of the parameters that the strategy has in another one and not in this.
Status CheckStagesOfFiles(const OpenedSource& source, const ParameterChoice& choice);

}  // namespace reshard

#endif  // RESHARD_SRC_CONVERT_STRATEGY_CHECK_H_
