#include "reshard/sharded_checkpoint.h"

#include <fmt/format.h>

#include <optional>
#include <unordered_map>
#include <utility>

#include "src/api/catch_bad_alloc.h"
#include "src/api/opened_source.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/exec/gather.h"
#include "src/plan/planner.h"
#include "src/tensor/byte_box.h"

namespace reshard {
namespace {

Status NoSuchTensor(std::string_view name) {
  return NotFoundError(fmt::format("the checkpoint has no tensor {}", Quote(name)));
}

bool IsBoxOf(const Box& box, const Shape& shape) {
  if (box.begin.size() != shape.size() || box.extent.size() != shape.size()) return false;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (box.begin[d] < 0 || box.extent[d] < 0 || box.begin[d] > shape[d] ||
        box.extent[d] > shape[d] - box.begin[d]) {
      return false;
    }
  }
  return true;
}

}  // namespace

struct ShardedCheckpoint::State {
  std::unique_ptr<OpenedSource> source;
  std::vector<LogicalTensor> tensors;
  std::unordered_map<std::string_view, size_t> by_name;  // views of the names in tensors

  // A tensor as the plan knows it. `whole` is where it is copied from when no layout cuts it.
  struct Described {
    SourceTensor tensor;
    std::optional<SourceShard> whole;
  };
  Result<Described> Describe(std::string_view name) const;
  Status List();
};

ShardedCheckpoint::ShardedCheckpoint(std::unique_ptr<State> state) : state_(std::move(state)) {}
ShardedCheckpoint::ShardedCheckpoint(ShardedCheckpoint&&) noexcept = default;
ShardedCheckpoint& ShardedCheckpoint::operator=(ShardedCheckpoint&&) noexcept = default;
ShardedCheckpoint::~ShardedCheckpoint() = default;

Result<ShardedCheckpoint::State::Described> ShardedCheckpoint::State::Describe(
    std::string_view name) const {
  const SourceShards& shards = source->shards();
  const Strategy* strategy = source->rule().source();
  if (strategy != nullptr && strategy->Contains(name)) {
    RESHARD_ASSIGN_OR_RETURN(SourceTensor tensor, shards.Describe(name, 0));
    return Described{std::move(tensor), std::nullopt};
  }
  RESHARD_ASSIGN_OR_RETURN(const SourceShards::Holder holder, shards.FindWhole(name, 0, 0));
  const ParameterInfo& parameter = *holder.index->Find(name);
  return Described{SourceShards::Standalone(parameter, holder.stage, holder.index->file()),
                   SourceShard{holder.rank, holder.index->file(), Box::Whole(parameter.shape),
                               parameter.content}};
}

Status ShardedCheckpoint::State::List() {
  RESHARD_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                           Planner(source->shards(), "", UnmatchedPolicy::kCopy).NamesInOrder(0));
  for (const std::string& name : names) {
    RESHARD_ASSIGN_OR_RETURN(const Described described, Describe(name));
    const SourceTensor& tensor = described.tensor;
    if (tensor.kind != ParameterKind::kTensor) continue;
    tensors.push_back({name, tensor.dtype, tensor.full_shape, tensor.stage, !described.whole});
  }
  for (size_t i = 0; i < tensors.size(); ++i) by_name.emplace(tensors[i].name, i);
  return {};
}

Result<ShardedCheckpoint> ShardedCheckpoint::Open(const std::string& folder,
                                                  const std::string& strategy) {
  return CatchBadAlloc([&]() -> Result<ShardedCheckpoint> {
    auto state = std::make_unique<State>();
    RESHARD_ASSIGN_OR_RETURN(state->source, OpenedSource::Open({folder, strategy, "", ""}));
    RESHARD_RETURN_IF_ERROR(state->List());
    return ShardedCheckpoint(std::move(state));
  });
}

const std::vector<LogicalTensor>& ShardedCheckpoint::tensors() const { return state_->tensors; }

const LogicalTensor* ShardedCheckpoint::Find(std::string_view name) const {
  const auto found = state_->by_name.find(name);
  return found == state_->by_name.end() ? nullptr : &state_->tensors[found->second];
}

const std::vector<std::string>& ShardedCheckpoint::warnings() const {
  return state_->source->warnings();
}

Result<std::vector<Shard>> ShardedCheckpoint::Shards(std::string_view name) const {
  return CatchBadAlloc([&]() -> Result<std::vector<Shard>> {
    if (Find(name) == nullptr) return NoSuchTensor(name);
    RESHARD_ASSIGN_OR_RETURN(const State::Described described, state_->Describe(name));
    const SourceTensor& tensor = described.tensor;
    const Box whole = Box::Whole(tensor.full_shape);
    if (described.whole) return std::vector<Shard>{{whole, {described.whole->rank}}};
    std::vector<Shard> shards;
    Status status;
    tensor.grid.ForEachOverlap(whole, tensor.shard_shape, [&](const std::vector<int64_t>& parts) {
      Shard shard{ShardGrid::BoxOfParts(parts, tensor.shard_shape), {}};
      auto ranks = state_->source->shards().Holders(tensor, parts);
      if (!ranks.ok()) {
        status = ranks.status();
        return false;
      }
      shard.ranks = *std::move(ranks);
      shards.push_back(std::move(shard));
      return true;
    });
    if (!status.ok()) return status;
    return shards;
  });
}

Status ShardedCheckpoint::Read(std::string_view name, const Box& box,
                               std::span<std::byte> destination) const {
  return CatchBadAlloc([&]() -> Status {
    if (Find(name) == nullptr) return NoSuchTensor(name);
    RESHARD_ASSIGN_OR_RETURN(State::Described described, state_->Describe(name));
    const SourceTensor& tensor = described.tensor;
    if (!IsBoxOf(box, tensor.full_shape)) {
      return InvalidArgumentError(fmt::format("parameter {}: box {} is not in the full shape {}",
                                              Quote(name), ToString(box),
                                              ToString(tensor.full_shape)));
    }
    const uint64_t bytes = Volume(ToByteBox(box, tensor.dtype));
    if (destination.size() != bytes) {
      return InvalidArgumentError(
          fmt::format("parameter {}: box {} has {} bytes, the destination {}", Quote(name),
                      ToString(box), bytes, destination.size()));
    }
    std::vector<SourceShard> shards;
    if (described.whole) {
      shards.push_back(*std::move(described.whole));
    } else {
      RESHARD_ASSIGN_OR_RETURN(shards, state_->source->shards().Cover(tensor, box, 0));
    }
    RESHARD_ASSIGN_OR_RETURN(const ShardCopies made,
                             MakeCopies(tensor, shards, box, {0, bytes}, 0));
    SourceFiles& files = state_->source->files();
    RESHARD_RETURN_IF_ERROR(Gather(files, made.copies, 0, destination));
    std::vector<FileId> used;
    used.reserve(shards.size());
    for (const SourceShard& shard : shards) used.push_back(shard.file);
    return files.VerifyUnchanged(used);
  });
}

}  // namespace reshard
