#include "src/verify/parameter_values.h"

#include <memory>
#include <span>

#include "src/base/status_macros.h"
#include "src/io/in_steps.h"
#include "src/verify/copied_bytes.h"

namespace reshard {

bool HasValues(const FullParameter& parameter) {
  return parameter.tensor.kind == ArrayKind::kTensor && HasSums(parameter.tensor.dtype);
}

Result<std::vector<std::optional<ValueSums>>> SumParameters(
    SourceFiles& files, const SourceShards& shards, const std::vector<FullParameter>& parameters,
    const SharedWork& work) {
  std::vector<uint64_t> sizes;
  std::vector<std::vector<ValueSums>> pieces;  // of each parameter; each written by one thread
  for (const FullParameter& parameter : parameters) {
    sizes.push_back(HasValues(parameter) ? parameter.bytes : 0);
    pieces.emplace_back((sizes.back() + kPieceBytes - 1) / kPieceBytes);
  }
  const auto add = [&](size_t index, ByteRange piece, const std::stop_token& stop) -> Status {
    const FullParameter& parameter = parameters[index];
    RESHARD_ASSIGN_OR_RETURN(const std::vector<BlockCopy> copies,
                             CopiesOf(shards, parameter, Box::Whole(parameter.tensor.full_shape)));
    const auto buffer = std::make_unique_for_overwrite<std::byte[]>(kMostSummedBytes);
    ValueSums& sums = pieces[index][piece.offset / kPieceBytes];
    return InSteps(piece, kMostSummedBytes, stop, work.progress, [&](ByteRange part) -> Status {
      const std::span<std::byte> bytes(buffer.get(), part.length);
      RESHARD_RETURN_IF_ERROR(CollectBytes(files, copies, part.offset, bytes));
      sums.Add(SumValues(parameter.tensor.dtype, bytes));
      return {};
    });
  };
  RESHARD_RETURN_IF_ERROR(ForEachPiece(sizes, kPieceBytes, work, add));
  std::vector<std::optional<ValueSums>> all;
  for (size_t i = 0; i < parameters.size(); ++i) {
    all.emplace_back();
    if (!HasValues(parameters[i])) continue;
    all.back().emplace();
    for (const ValueSums& piece : pieces[i]) all.back()->Add(piece);
  }
  return all;
}

}  // namespace reshard
