// StrategyCheck: checks that the source strategy is the one that the source was saved with, by
// headers, the places of files and a sample of their content.
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
  CheckChoice::Replicas replicas = CheckChoice::Replicas::kSample;
  // If replicas differ, refuse only if a wrong strategy explains it better than a damaged rank. For
  // callers that compare all replicas anyway.
  bool only_wrong_strategy = false;
  // Refuse if many of these matrices differ between ranks (UnmatchedMatrices).
  std::span<const std::string> unmatched = {};
  SampleLimits spent = {0, 0};  // of SampleLimitsFor, already used by earlier checks
  size_t workers = 2;
  std::stop_token stop = {};
};

struct StrategyFindings {
  std::vector<Warning> warnings;
  std::optional<Findings::ReplicaSample> sample;  // if a sample was read
  // The reason why a strategy that cuts tensors is unconfirmed; else empty.
  std::string unconfirmed;
};

// Checks the parameters of `choice` in these source stages, after the needed files were opened.
// Keeps to SampleLimitsFor. Without a source strategy, compares a sample of the replicas that the
// source lists. Errors: kMismatch if the strategy is most likely another checkpoint's, or if listed
// replicas differ; as SampleShards.
Result<StrategyFindings> CheckStrategy(OpenedSource& source, const ParameterChoice& choice,
                                       std::span<const int64_t> stages,
                                       const StrategyCheckOptions& options);

// The part of the check for headers that were read. Fails with kMismatch if files of one stage hold
// more than half of the parameters that the strategy has in another stage and not in this one.
Status CheckStagesOfFiles(const OpenedSource& source, const ParameterChoice& choice);

}  // namespace reshard

#endif  // RESHARD_SRC_CONVERT_STRATEGY_CHECK_H_
