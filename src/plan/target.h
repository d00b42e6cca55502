// Target: the files that a conversion can write.
//
// Each family of targets is one implementation; what plans, writes and compares files knows none of
// them. Thread-safe; the source must outlive it.
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

#include "reshard/status.h"
#include "src/base/status_macros.h"
#include "src/io/open_files.h"
#include "src/plan/make_plan.h"
#include "src/plan/parameter_choice.h"
#include "src/plan/plan_findings.h"
#include "src/plan/target_file.h"
#include "src/plan/target_plan.h"
#include "src/source/source.h"

namespace reshard {

// How many threads index files, the calling one included.
struct Indexers {
  explicit Indexers(size_t threads) : workers(threads), waiting(std::max(threads, kMostWaiting)) {}
  Indexers(size_t threads, size_t most) : Indexers(std::min(threads, most)) {
    waiting = std::min(waiting, most);
  }

  size_t workers;  // as long as they keep a disk busy
  size_t waiting;  // where mostly they wait for it
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
  // Returns the path of a file, relative to the target folder.
  virtual std::string PathOf(int64_t file) const = 0;
  // Returns the number of the stage that a file is of: files of one stage have much in common, and
  // follow one another.
  virtual int64_t StageOf(int64_t file) const = 0;
  // Returns the rank that gets what a file holds: its number, where files are ranks'.
  virtual int64_t RankOf(int64_t file) const { return file; }
  // Opens and indexes the source files that the first of `files` needs and that were not yet,
  // several at a time, for MakeFile to find them there. As long as they are fewer than workers,
  // those of the next of `files`, too. What fails is tried again by MakeFile, which says so.
  virtual void IndexSources(std::span<const int64_t> files, const Indexers& indexers,
                            const std::stop_token& stop) const = 0;
  void IndexSources(int64_t file, const Indexers& indexers, const std::stop_token& stop) const {
    IndexSources(std::span(&file, 1), indexers, stop);
  }
  // Returns what a file holds. What there is to say is added to `findings` now and when arrays are
  // asked for; this and `findings` must outlive what is returned. Errors, of both: kInvalidArgument
  // when there is no such file; kMismatch when source and target do not fit, or two parameters
  // would have one name; those of opening files.
  virtual Result<TargetFile> MakeFile(int64_t file, PlanFindings& findings) const = 0;

  // Whether files state a CRC-32 of themselves; said before any is planned.
  void set_states_crc(bool states) { states_crc_ = states; }
  // The same, where only these do.
  void set_files_with_crc(std::set<int64_t> files) { files_with_crc_ = std::move(files); }

  // Makes the file and plans it (MakePlan).
  Result<TargetPlan> Plan(int64_t file, PlanFindings& findings, const SegmentVisitor& visit = {},
                          uint64_t most_kept = 0) const {
    RESHARD_ASSIGN_OR_RETURN(TargetFile made, MakeFile(file, findings));
    made.metadata.states_crc = files_with_crc_ ? files_with_crc_->contains(file) : states_crc_;
    return MakePlan(source_, made, visit, most_kept);
  }

 protected:
  Target(const Source& source, ParameterChoice choice)
      : source_(source), choice_(std::move(choice)) {}

 private:
  const Source& source_;
  const ParameterChoice choice_;
  bool states_crc_ = false;
  std::optional<std::set<int64_t>> files_with_crc_;
};

}  // namespace reshard

#endif  // RESHARD_SRC_PLAN_TARGET_H_
