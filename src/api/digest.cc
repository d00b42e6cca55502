#include "reshard/digest.h"

#include <utility>

#include "src/api/counted_work.h"
#include "src/api/full_checkpoint.h"
#include "src/base/out_of_memory.h"
#include "src/base/status_macros.h"
#include "src/verify/full_parameters.h"

namespace reshard {

Result<DigestReport> DigestCheckpoint(const DigestOptions& options) {
  return CatchOutOfMemory([&]() -> Result<DigestReport> {
    RESHARD_RETURN_IF_ERROR(CheckJobs(options.jobs));
    RESHARD_ASSIGN_OR_RETURN(FullCheckpoint checkpoint,
                             OpenFullCheckpoint(options.path, options.strategy, options.suffix));
    DigestReport report;
    for (const FullParameter& parameter : checkpoint.parameters) report.bytes += parameter.bytes;
    const CountedWork work(options.jobs, options.stop, options.progress, report.bytes);
    OpenedSource& source = *checkpoint.source;
    RESHARD_ASSIGN_OR_RETURN(
        const std::vector<Digest128> digests,
        DigestFullParameters(source.files(), source.shards(), checkpoint.parameters, work.work()));
    RESHARD_RETURN_IF_ERROR(source.files().VerifyUnchanged());
    for (size_t i = 0; i < digests.size(); ++i) {
      const FullParameter& parameter = checkpoint.parameters[i];
      const SourceTensor& tensor = parameter.tensor;
      report.parameters.push_back(
          {tensor.name, tensor.kind, tensor.dtype,
           tensor.kind == ParameterKind::kTensor ? tensor.full_shape : Shape(), parameter.bytes,
           ToHex(digests[i])});
    }
    report.warnings = std::move(checkpoint.warnings);
    return report;
  });
}

}  // namespace reshard
