// Target: the files that a conversion can write.
//
// Each family of targets is one implementation. The code that plans, writes and compares files
// knows only this interface. Thread-safe; the source must outlive it.
#ifndef RESHARD_SRC_PLAN_TARGET_H_
#define RESHARD_SRC_PLAN_TARGET_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "reshard/options.h"
#include "reshard/status.h"
#include "reshard/tensor.h"
#include "src/base/status_macros.h"
#include "src/io/open_files.h"
#include "src/plan/make_plan.h"
#include "src/plan/parameter_choice.h"
#include "src/plan/plan_findings.h"
#include "src/plan/target_file.h"
#include "src/plan/target_plan.h"
#include "src/source/source.h"
#include "src/source/table_cache.h"

namespace reshard {

// How many threads index files, the calling one included.
struct Indexers {
  explicit Indexers(size_t threads) : workers(threads), waiting(std::max(threads, kMostWaiting)) {}
  Indexers(size_t threads, size_t most) : Indexers(std::min(threads, most)) {
    waiting = std::min(waiting, most);
  }

  size_t workers;  // as long as they keep a disk busy
  size_t waiting;  // if they mostly wait for it
};

class Target {
 public:
  virtual ~Target() = default;
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;

  const Source& source() const { return source_; }
  const ParameterChoice& choice() const { return choice_; }

  // How many files there are. They are numbered from 0 on; MindSpore's by rank.
  virtual int64_t files() const = 0;
  // The first so many belong to a rank of their own, by number. Each of the others is written with
  // the file of its RankOf.
  virtual int64_t rank_files() const { return files(); }
  // Returns the files of these ranks, or of all if `ranks` is empty, ascending.
  std::vector<int64_t> FilesOf(std::span<const int64_t> ranks) const {
    std::set<int64_t> chosen(ranks.begin(), ranks.end());
    for (int64_t file = ranks.empty() ? 0 : rank_files(); file < files(); ++file) {
      if (ranks.empty() || chosen.contains(RankOf(file))) chosen.insert(file);
    }
    return {chosen.begin(), chosen.end()};
  }
  // Returns the path of a file, relative to the target folder.
  virtual std::string PathOf(int64_t file) const = 0;
  virtual FileKind KindOf(int64_t /*file*/) const { return FileKind::kTensors; }
  // Returns the number of a file's stage. Files of a stage have much in common, and are adjacent.
  virtual int64_t StageOf(int64_t /*file*/) const { return 0; }
  // Returns the rank that gets the tensors of a file. This is the file's number if files belong to
  // ranks.
  virtual int64_t RankOf(int64_t file) const { return file; }
  // Opens and indexes the source files that the first of `files` needs, several at a time, so that
  // MakeFile finds them. If these are fewer than the workers, continues with the next of `files`.
  // Ignores errors, as MakeFile tries again and reports them. Does nothing if all source files are
  // open, or if each of `files` needs a single one.
  virtual void IndexSources(std::span<const int64_t> /*files*/, const Indexers& /*indexers*/,
                            const std::stop_token& /*stop*/) const {}
  // Returns the contents of a file, without its number and path. Adds findings now and when arrays
  // are asked for. This object and `findings` must outlive the result. Errors of both calls:
  //   kInvalidArgument: no such file
  //   kMismatch: source and target do not fit, or two parameters would have one name
  //   from opening files
  virtual Result<TargetFile> MakeFile(int64_t file, PlanFindings& findings) const = 0;

  // Whether files that Plan plans state a CRC-32 of themselves; said before any is planned.
  void set_states_crc(bool states) { states_crc_ = states; }
  // The same, if only these do.
  void set_files_with_crc(std::set<int64_t> files) { files_with_crc_ = std::move(files); }

  // Makes the file and plans it (MakePlan).
  Result<TargetPlan> Plan(int64_t file, PlanFindings& findings, const SegmentVisitor& visit = {},
                          uint64_t most_kept = 0) const {
    RESHARD_ASSIGN_OR_RETURN(TargetFile made, MakeFile(file, findings));
    made.rank = file;
    made.path = PathOf(file);
    made.metadata.states_crc = files_with_crc_ ? files_with_crc_->contains(file) : states_crc_;
    return MakePlan(source_, made, visit, most_kept);
  }

 protected:
  Target(const Source& source, ParameterChoice choice)
      : source_(source), choice_(std::move(choice)) {}

  // Makes `array`, which has its name and dtype, all of `tensor`; in `shape`, if it is given.
  Status TakeWhole(SourceTensor&& tensor, TargetArray& array, const Shape* shape = nullptr) const {
    if (tensor.kind != ArrayKind::kTensor) {
      RESHARD_ASSIGN_OR_RETURN(const TableHandle table, source_.TableOf(tensor));
      array.content = Opaque{table->FindShared(tensor.name), tensor.file};
      return {};
    }
    array.shape = shape == nullptr ? tensor.full_shape : *shape;
    Pieces& pieces = OnePiece(array);
    pieces.pieces.front() = {0, Box::Whole(tensor.full_shape), Box::Whole(array.shape)};
    pieces.tensors.front() = std::move(tensor);
    return {};
  }

 private:
  const Source& source_;
  const ParameterChoice choice_;
  bool states_crc_ = false;
  std::optional<std::set<int64_t>> files_with_crc_;
};

}  // namespace reshard

#endif  // RESHARD_SRC_PLAN_TARGET_H_
