// The source of a new cluster's layouts (cluster_layouts.h), and the strategy that a conversion
// makes of it.
#ifndef RESHARD_SRC_CONVERT_CLUSTER_SOURCE_H_
#define RESHARD_SRC_CONVERT_CLUSTER_SOURCE_H_

#include <string>
#include <vector>

#include "reshard/options.h"
#include "reshard/status.h"
#include "reshard/strategy.h"
#include "src/convert/opened_source.h"
#include "src/mindspore/cluster_layouts.h"
#include "src/source/placement.h"

namespace reshard {

// Returns a source with the layouts alone. Errors: as MakeGrid.
Result<ClusterSource> SourceOfStrategy(const Strategy& strategy);

// Returns a source with these tensors of `opened`. A config.json in the folder `path` tells facts.
// Errors: as MakeGrid.
Result<ClusterSource> SourceOfTensors(const OpenedSource& opened, const std::string& path,
                                      const std::vector<SourceTensor>& tensors);

// Makes the strategy of `spec.target.cluster` for the parameters that `spec` takes of its source.
// Opens the source. Errors: those of OpenSource, ListTensors and LayoutsForCluster.
Result<MadeStrategy> MakeStrategyOf(const ConversionSpec& spec, const SourceLimits& limits);

}  // namespace reshard

#endif  // RESHARD_SRC_CONVERT_CLUSTER_SOURCE_H_
