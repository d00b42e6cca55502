#include "src/mindspore/full_parameter.h"

#include <utility>

#include "src/base/status_macros.h"
#include "src/plan/make_copies.h"
#include "src/tensor/block_copy.h"
#include "src/tensor/byte_box.h"

namespace reshard {

Result<FullParameter> DescribeFull(const SourceShards& shards, std::string_view name) {
  const Strategy* strategy = shards.rule().source();
  if (strategy != nullptr && strategy->Contains(name)) {
    RESHARD_ASSIGN_OR_RETURN(SourceTensor tensor, shards.Describe(name, 0));
    if (tensor.kind == ArrayKind::kTensor) {
      const uint64_t bytes = TensorBytes(tensor.full_shape, tensor.dtype).value_or(0);
      return FullParameter{std::move(tensor), bytes, std::nullopt};
    }
  }
  RESHARD_ASSIGN_OR_RETURN(const SourceShards::Holder holder,
                           shards.FindWhole(name, shards.rule().NeededSourceStages(0), 0));
  const StoredArray& parameter = *holder.index->Find(name);
  const FileId file = holder.index->file();
  FullParameter full{
      StandaloneTensor(parameter, holder.stage, file), 0,
      PlacedPiece{holder.rank, file, Box::Whole(parameter.shape),
                  parameter.kind == ArrayKind::kMapTensor ? parameter.framed : parameter.content}};
  for (const ByteRange& range : full.whole->content) full.bytes += range.length;
  return full;
}

void Note(const FullParameter& parameter, PlanNotes& notes) {
  const SourceTensor& tensor = parameter.tensor;
  notes.parameters[tensor.name] = {tensor.name,
                                   tensor.kind,
                                   tensor.dtype,
                                   tensor.full_shape,
                                   parameter.bytes,
                                   tensor.file,
                                   parameter.whole.has_value()};
}

Result<std::vector<BlockCopy>> CopiesOf(const SourceShards& shards, const FullParameter& parameter,
                                        const Box& box) {
  const SourceTensor& tensor = parameter.tensor;
  if (tensor.kind != ArrayKind::kTensor) return LayOut(tensor.file, parameter.whole->content);
  std::vector<PlacedPiece> pieces;
  if (parameter.whole) {
    pieces.push_back(*parameter.whole);
  } else {
    RESHARD_ASSIGN_OR_RETURN(pieces, shards.Cover(tensor, box, 0));
  }
  const uint64_t bytes = Volume(ToByteBox(box, tensor.dtype));
  RESHARD_ASSIGN_OR_RETURN(ShardCopies made, MakeCopies(tensor, pieces, box, {0, bytes}, 0));
  return std::move(made.copies);
}

}  // namespace reshard
