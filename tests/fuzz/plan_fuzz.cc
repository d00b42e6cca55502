// Plans of small conversions, carried out byte by byte and compared with the definition.

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "src/mindspore/conversion_rule.h"
#include "src/mindspore/grid_placement.h"
#include "src/mindspore/mindspore_target.h"
#include "src/source/listed_placement.h"
#include "src/tensor/block_copy.h"
#include "src/tensor/byte_box.h"
#include "tests/fuzz/fuzz_model.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/checkpoint_oracle.h"
#include "tests/support/memory_file.h"
#include "tests/support/naive_reshard.h"

namespace reshard {
namespace {

// A target file, as the copies of its plan make it; nothing was written to what holds no value.
using Bytes = std::vector<std::optional<char>>;

// Where one byte goes.
struct Move {
  uint64_t source = 0;
  uint64_t target = 0;
};

// Every byte of a copy, by its definition. `RunCursor` is another way to the same.
std::vector<Move> MovesOf(const BlockCopy& copy) {
  std::vector<Move> begins = {{copy.source_offset, copy.target_offset}};
  for (const CopyDim& dim : copy.dims) {
    std::vector<Move> inner;
    for (const Move& begin : begins) {
      for (uint64_t i = 0; i < dim.count; ++i) {
        inner.push_back(
            {begin.source + i * dim.source_stride, begin.target + i * dim.target_stride});
      }
    }
    begins = std::move(inner);
  }
  std::vector<Move> moves;
  for (const Move& begin : begins) {
    for (uint64_t i = 0; i < copy.run_length; ++i) {
      moves.push_back({begin.source + i, begin.target + i});
    }
  }
  return moves;
}

std::string CursorFault(const BlockCopy& copy, const std::vector<Move>& moves, ByteRange target) {
  size_t next = 0;
  for (RunCursor cursor(copy, target); !cursor.done(); cursor.Next()) {
    for (uint64_t i = 0; i < cursor.run().length; ++i, ++next) {
      if (next == moves.size() || moves[next].source != cursor.run().source_offset + i ||
          moves[next].target != cursor.run().target_offset + i) {
        return "the runs of a copy are others than it says";
      }
    }
  }
  return next == moves.size() ? "" : "the runs of a copy end early";
}

// Whether both ends of copy `i` are the same places of the full tensor.
std::string PlaceFault(const Content& content, size_t i) {
  const LogicalMap from = SourceMapOf(content, i);
  const LogicalMap to = TargetMapOf(content);
  for (RunCursor cursor(content.copies[i], content.target); !cursor.done(); cursor.Next()) {
    const Run& run = cursor.run();
    for (uint64_t done = 0; done < run.length;) {
      const LogicalMap::Place source = from.At(run.source_offset + done);
      const LogicalMap::Place target = to.At(run.target_offset + done);
      if (source.position != target.position) return "a byte changes its place in the tensor";
      const uint64_t step = std::min({source.contiguous, target.contiguous, run.length - done});
      if (step == 0) return "a byte that is nowhere";
      const uint64_t last = done + step - 1;
      if (from.At(run.source_offset + last).position != source.position + step - 1 ||
          to.At(run.target_offset + last).position != target.position + step - 1) {
        return "bytes that are not contiguous";
      }
      done += step;
    }
  }
  return "";
}

class PlanRun {
 public:
  explicit PlanRun(const FuzzModel& model) : model_(model), files_(64), tables_(files_, 1 << 20) {}

  std::string Run() {
    std::optional<Strategy> source;
    std::optional<Strategy> target;
    for (const auto& [side, strategy] :
         {std::pair(&model_.source, &source), std::pair(&model_.target, &target)}) {
      if (!side->has_strategy) continue;
      auto made = StrategyTables::FromFile(side->strategy);
      if (!made.ok()) return RefusalFault(made.status());
      *strategy = *std::move(made);
    }
    if (!source && !target) return "";
    rule_.emplace(source ? &*source : nullptr, target ? &*target : nullptr);
    std::unique_ptr<const Placement> placement;
    if (source) {
      placement = std::make_unique<GridPlacement>(*rule_, OpenFiles());
    } else {
      placement = std::make_unique<ListedPlacement>(OpenFiles());
    }
    const Source shards(files_, tables_, *placement);
    const MindSporeTarget planned(shards, *rule_, "net_", model_.unmatched);
    PlanFindings findings;
    for (int64_t rank = 0; rank < rule_->target_ranks(); ++rank) {
      const auto plan = planned.Plan(rank, findings);
      const std::string fault = plan.ok() ? Fault(*plan) : RefusalFault(plan.status());
      if (!fault.empty()) return fmt::format("target rank {}: {}", rank, fault);
      if (!plan.ok()) break;
    }
    for (const Warning& warning : findings.Warnings()) {
      const std::string fault = RefusalFault(MismatchError(warning.message));
      if (!fault.empty()) return fault;
    }
    return "";
  }

 private:
  // Puts the files into memory, the same files for every run.
  std::map<int64_t, FileId> OpenFiles() {
    static std::vector<MemoryFile> memory;
    std::map<int64_t, FileId> ids;
    for (const auto& [rank, bytes] : model_.files) {
      if (ids.size() == memory.size()) memory.emplace_back();
      MemoryFile& file = memory[ids.size()];
      file.Set(bytes);
      const FileId id = files_.Add(file.path());
      const int64_t first = rule_->SourceRank(0, 0);  // not 0 of a stage alone
      ids.emplace(first + rank, id);
      contents_.resize(id + 1);
      contents_[id] = &bytes;
    }
    return ids;
  }

  std::string Fault(const TargetPlan& plan) const {
    Bytes bytes(plan.size);
    uint64_t end = 0;
    for (const Segment& segment : plan.segments) {
      const ByteRange range = TargetRange(segment);
      if (range.offset != end || range.length > plan.size - end) return "segments with gaps";
      end = range.end();
      if (const auto* literal = std::get_if<Literal>(&segment)) {
        std::copy(literal->bytes.begin(), literal->bytes.end(),
                  bytes.begin() + static_cast<std::ptrdiff_t>(range.offset));
        continue;
      }
      const std::string fault = Fill(std::get<Content>(segment), plan, bytes);
      if (!fault.empty()) return fault;
    }
    if (end != plan.size) return "segments that end early";
    std::string file;
    for (const std::optional<char>& byte : bytes) {
      if (!byte) return "a byte that nothing is copied to";
      file.push_back(*byte);
    }
    return FileFault(plan, file);
  }

  std::string Fill(const Content& content, const TargetPlan& plan, Bytes& bytes) const {
    for (size_t i = 0; i < content.copies.size(); ++i) {
      const BlockCopy& copy = content.copies[i];
      if (!std::binary_search(plan.sources.begin(), plan.sources.end(), copy.source)) {
        return "a copy from a file that the plan does not name";
      }
      const std::vector<Move> moves = MovesOf(copy);
      const std::string fault = CursorFault(copy, moves, content.target);
      if (!fault.empty()) return fault;
      const std::string& file = *contents_[copy.source];
      const std::string place_fault = PlaceFault(content, i);
      if (!place_fault.empty()) return place_fault;
      for (const Move& move : moves) {
        if (move.source >= file.size()) return "a copy from beyond the end of a file";
        if (move.target < content.target.offset || move.target >= content.target.end()) {
          return "a copy to beyond its content";
        }
        if (bytes[move.target]) return "a byte that is copied to twice";
        bytes[move.target] = file[move.source];
      }
    }
    return "";
  }

  // The target file is a checkpoint of as many parameters as planned, in which those that were cut
  // anew are what the target's layout says.
  std::string FileFault(const TargetPlan& plan, const std::string& file) const {
    const OracleAnswer answer = AskLibprotobuf(file);
    if (answer.verdict != OracleAnswer::Verdict::kValid) return "the target is no checkpoint";
    if (static_cast<uint64_t>(answer.checkpoint.value_size()) < plan.parameters) {
      return "fewer parameters than planned";
    }
    if (!model_.is_sound) return "";
    for (const TestTensor& full : model_.tensors) {
      if (rule_->FateOf(full.name, rule_->TargetStage(plan.rank)) !=
          ConversionRule::Fate::kConvert) {
        continue;
      }
      const std::string fault = TensorFault(full, plan.rank, answer.checkpoint);
      if (!fault.empty()) return fault;
    }
    return "";
  }

  std::string TensorFault(const TestTensor& full, int64_t rank, const Checkpoint& found) const {
    const auto& values = found.value();
    const auto value = std::find_if(values.begin(), values.end(),
                                    [&](const auto& v) { return v.tag() == full.name; });
    if (value == values.end()) return "";  // in no needed file
    TestTensor expected = full;
    if (rule_->target() != nullptr) {
      const auto stage = static_cast<size_t>(rule_->TargetStage(rank));
      const ParameterLayout& layout = *rule_->target()->stages()[stage].Find(full.name);
      expected = NaiveShard(full, layout, rule_->TargetLocalRank(rank));
    }
    const auto& dims = value->tensor().dims();
    if (Shape(dims.begin(), dims.end()) != expected.shape) return "a shard of another shape";
    if (value->tensor().tensor_content() != expected.content) return "a shard of other content";
    return "";
  }

  const FuzzModel& model_;
  SourceFiles files_;
  TableCache tables_;
  std::optional<ConversionRule> rule_;
  std::vector<const std::string*> contents_;  // by FileId
};

}  // namespace

std::string FuzzPlan(std::string_view bytes) {
  const FuzzModel model = MakeFuzzModel(bytes);
  return PlanRun(model).Run();
}

}  // namespace reshard
