#include "reshard/digest.h"

#include <utility>

#include "src/api/source_tensors.h"
#include "src/base/out_of_memory.h"
#include "src/base/status_macros.h"
#include "src/convert/counted_work.h"
#include "src/verify/checkpoint_contents.h"

namespace reshard {
namespace {

void AddDigest(const SourceTensor& tensor, const HeldValue& value, DigestReport& report) {
  report.bytes += value.bytes;
  report.parameters.push_back({{tensor.name, value.kind, value.dtype, value.shape, value.bytes},
                               ToHex(value.digest), value.ranks});
}

Status DigestOneReplica(const SourceTensors& opened, const SharedWork& work, DigestReport& report) {
  const OpenedSource& source = *opened.source;
  RESHARD_ASSIGN_OR_RETURN(const std::vector<Digest128> digests,
                           DigestTensors(source.tensors(), opened.tensors, work));
  for (size_t i = 0; i < digests.size(); ++i) {
    const SourceTensor& tensor = opened.tensors[i];
    HeldValue value = {tensor.kind, tensor.dtype, {}, tensor.Bytes(), digests[i], {}};
    if (tensor.kind == ArrayKind::kTensor) value.shape = tensor.full_shape;
    AddDigest(tensor, value, report);
  }
  return {};
}

Status DigestAllRanks(const SourceTensors& opened, const SharedWork& work, DigestReport& report) {
  const OpenedSource& source = *opened.source;
  RESHARD_ASSIGN_OR_RETURN(
      const CheckpointContents contents,
      ReadAllRanks(source.tensors(), source.rule().source(), opened.tensors, work));
  for (size_t i = 0; i < contents.values.size(); ++i) {
    for (const HeldValue& value : contents.values[i]) {
      AddDigest(opened.tensors[i], value, report);
    }
  }
  report.ranks = FindingsOf(opened.tensors, contents);
  return {};
}

}  // namespace

Result<DigestReport> DigestCheckpoint(const DigestOptions& options) {
  return CatchOutOfMemory([&]() -> Result<DigestReport> {
    RESHARD_RETURN_IF_ERROR(CheckJobs(options.jobs));
    RESHARD_ASSIGN_OR_RETURN(
        SourceTensors opened,
        OpenTensors({options.path, options.strategy, "", options.suffix}, options.stop));
    RESHARD_ASSIGN_OR_RETURN(const Reading reading, FindReading(opened, options.one_replica));
    DigestReport report;
    report.bytes_read = reading.bytes;
    const CountedWork work(options.jobs, options.stop, options.progress, report.bytes_read);
    OpenedSource& source = *opened.source;
    RESHARD_RETURN_IF_ERROR(CheckCrcFiles(source, reading.crc, work.work()));
    const auto digest = options.one_replica ? DigestOneReplica : DigestAllRanks;
    RESHARD_RETURN_IF_ERROR(digest(opened, work.work(), report));
    RESHARD_RETURN_IF_ERROR(source.files().VerifyUnchanged());
    report.warnings = std::move(opened.warnings);
    return report;
  });
}

}  // namespace reshard
