// FindStatus: how far a conversion is, from the files in its target folder.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reshard/convert.h"
#include "reshard/version.h"
#include "src/base/checked.h"
#include "src/base/out_of_memory.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/job/file_shares.h"
#include "src/job/job_folder.h"
#include "src/job/job_spec.h"
#include "src/job/leftovers.h"
#include "src/job/worker_states.h"
#include "src/os/job_lock.h"
#include "src/os/output_directory.h"

namespace reshard {
namespace {

using State = StatusReport::State;
using Worker = StatusReport::Worker;

// A record that is older than the newest one by so much belongs to a worker that hangs. Flushing a
// large file and checking it take less.
constexpr int64_t kSilenceSeconds = 120;

// A conversion that has left files in a target folder.
struct Left {
  std::string fingerprint;
  JobFolder folder;
  JobText text;
  bool is_journal = false;  // it is being published, or was
  bool is_placed = false;   // and its manifest is in place
};

Status CheckVersion(const JobText& text, const std::string& path) {
  if (text.tool_version == kVersion) return {};
  return MismatchError(fmt::format("{}: begun by reshard {}, but this is {}; ask that version",
                                   Escape(path), Escape(text.tool_version), kVersion));
}

// Returns the conversion in the folder of this name; no value if there is none.
Result<std::optional<Left>> ReadLeft(const OutputDirectory& parent, const std::string& name) {
  std::optional<Left> left;
  if (!CheckFingerprint(name).ok()) return left;
  auto folder = JobFolder::Open(parent, name);
  if (folder.status().code() == StatusCode::kIo) return folder.status();
  if (!folder.ok()) return left;  // gone, or not reshard's
  RESHARD_ASSIGN_OR_RETURN(std::optional<JobText> text, folder->ReadJob());
  const bool is_journal = !text;
  if (!text) {
    RESHARD_ASSIGN_OR_RETURN(text, folder->ReadJournal());
  }
  if (!text) return left;
  RESHARD_RETURN_IF_ERROR(CheckVersion(*text, parent.PathOf(name)));
  left.emplace(Left{name, *std::move(folder), *std::move(text), is_journal});
  if (is_journal) {
    RESHARD_ASSIGN_OR_RETURN(const auto manifest,
                             left->folder.folder().Look(left->text.manifest_name));
    left->is_placed = !manifest;
  }
  return left;
}

// Of several conversions, one that another has given up, or that was published, counts least.
int WeightOf(const Left& left) { return left.is_placed ? 0 : left.is_journal ? 1 : 2; }

// Returns the conversion that is under way in `parent`, a `.reshard`, or was.
Result<std::optional<Left>> FindLeft(const OutputDirectory& parent) {
  std::optional<Left> found;
  RESHARD_ASSIGN_OR_RETURN(const std::vector<std::string> names, parent.Names());
  for (const std::string& name : names) {
    RESHARD_ASSIGN_OR_RETURN(std::optional<Left> left, ReadLeft(parent, name));
    if (!left) continue;
    if (!found || WeightOf(*found) < WeightOf(*left)) {
      found = std::move(left);
    } else if (WeightOf(*found) == WeightOf(*left) && !left->is_placed) {
      return AlreadyExistsError(
          fmt::format("{}: two conversions, {} and {}, have left files; run one of them again with "
                      "`force`, or remove the folder of the other",
                      Escape(parent.path()), found->fingerprint, left->fingerprint));
    }
  }
  return found;
}

// "share 3 has", "shares 3, 7, 8 and 2 more have": words about some of the workers.
std::string Shares(const std::vector<uint64_t>& numbers) {
  std::vector<std::string> names;
  names.reserve(numbers.size());
  for (const uint64_t number : numbers) names.push_back(fmt::format("{}", number));
  return fmt::format("{} {} {}", names.size() == 1 ? "share" : "shares", FirstOf(names),
                     names.size() == 1 ? "has" : "have");
}

std::vector<uint64_t> NumbersOf(const StatusReport& report, Worker::State state) {
  std::vector<uint64_t> numbers;
  for (const Worker& worker : report.workers) {
    if (worker.state == state) numbers.push_back(worker.shard.index);
  }
  return numbers;
}

// Counts the parts that are whole, for a worker that does not say so itself.
Status CountWhole(const Left& left, const JobSpec& spec, const std::vector<FilePart>& share,
                  Worker& worker) {
  for (const FilePart& part : share) {
    const ManifestFile& file = spec.files[part.file];
    const bool is_whole = part.range == ByteRange{0, file.size};
    RESHARD_ASSIGN_OR_RETURN(
        const bool has,
        left.folder.HasRecord(file.path, is_whole ? std::nullopt : std::optional(part.range)));
    if (!has) continue;
    ++worker.files_done;
    worker.bytes_done = SaturatingAdd(worker.bytes_done, part.range.length);
  }
  return {};
}

void TakeRecord(const ProgressRecord& record, Worker& worker) {
  worker.phase = record.phase;
  worker.bytes_done = std::min(record.bytes_done, worker.total_bytes);
  worker.files_done = std::min(record.parts_done, worker.total_files);
  if (record.phase != Progress::Phase::kWrite || record.write_ms == 0) return;
  worker.bytes_per_second = 1000 * static_cast<double>(record.bytes_done - record.bytes_before) /
                            static_cast<double>(record.write_ms);
  if (worker.bytes_per_second <= 0) return;
  worker.seconds_left =
      static_cast<double>(worker.total_bytes - worker.bytes_done) / worker.bytes_per_second;
}

// What is to be told of workers: damaged records, and that one hangs.
std::vector<std::string> NotesAbout(const std::vector<WorkerState>& states) {
  std::vector<std::string> notes;
  int64_t newest = 0;
  for (const WorkerState& state : states) newest = std::max(newest, state.record_ns);
  const auto most = std::max<int64_t>(kSilenceSeconds, 3 * ProgressInterval(states.size()).count());
  for (size_t i = 0; i < states.size(); ++i) {
    const WorkerState& state = states[i];
    if (!state.damage.ok()) notes.push_back(state.damage.message());
    if (state.kind != WorkerState::Kind::kRunning || state.record_ns == 0) continue;
    const int64_t silence = (newest - state.record_ns) / 1'000'000'000;
    if (silence < most) continue;
    notes.push_back(
        fmt::format("share {} last told its progress {} s before another share did; if {} hangs, "
                    "end it and run "
                    "the share again",
                    i, silence, state.process.empty() ? "its process" : state.process));
  }
  return notes;
}

Status DescribeWorkers(const Left& left, const JobSpec& spec, StatusReport& report) {
  RESHARD_ASSIGN_OR_RETURN(const std::vector<WorkerState> states,
                           FindWorkers(left.folder, spec.workers));
  const std::vector<std::vector<FilePart>> shares = AllShares(spec.files, states.size());
  for (size_t i = 0; i < states.size(); ++i) {
    Worker worker;
    worker.shard = {i, states.size()};
    for (const FilePart& part : shares[i]) {
      worker.total_bytes = SaturatingAdd(worker.total_bytes, part.range.length);
    }
    worker.total_files = shares[i].size();
    worker.process = states[i].process;
    switch (states[i].kind) {
      case WorkerState::Kind::kNotStarted:
        // The lock of a run alone is there before its job.
        worker.state = spec.workers == 0 ? Worker::State::kDead : Worker::State::kNotStarted;
        break;
      case WorkerState::Kind::kRunning:
        worker.state = Worker::State::kRunning;
        break;
      case WorkerState::Kind::kFinished:
        worker.state = Worker::State::kFinished;
        worker.bytes_done = worker.total_bytes;
        worker.files_done = worker.total_files;
        break;
      case WorkerState::Kind::kDead:
        worker.state = Worker::State::kDead;
        break;
    }
    if (worker.state == Worker::State::kRunning && states[i].record) {
      TakeRecord(*states[i].record, worker);
    } else if (worker.state == Worker::State::kRunning || worker.state == Worker::State::kDead) {
      RESHARD_RETURN_IF_ERROR(CountWhole(left, spec, shares[i], worker));
    }
    report.workers.push_back(std::move(worker));
  }
  report.notes = NotesAbout(states);
  return {};
}

void AddUp(StatusReport& report) {
  double slowest = 0;
  bool known = true;  // of each running worker
  for (const Worker& worker : report.workers) {
    report.bytes_done = SaturatingAdd(report.bytes_done, worker.bytes_done);
    report.total_bytes = SaturatingAdd(report.total_bytes, worker.total_bytes);
    report.files_done += worker.files_done;
    report.total_files += worker.total_files;
    report.bytes_per_second += worker.bytes_per_second;
    if (worker.state != Worker::State::kRunning || worker.bytes_done == worker.total_bytes)
      continue;
    known = known && worker.seconds_left.has_value();
    slowest = std::max(slowest, worker.seconds_left.value_or(0));
  }
  if (report.state != State::kRunning || !known || report.bytes_per_second <= 0) return;
  // Shares that have not started come later, at the pace of those that run.
  const double all =
      static_cast<double>(report.total_bytes - report.bytes_done) / report.bytes_per_second;
  report.seconds_left = std::max(slowest, all);
}

// What a conversion alone needs, unless it runs.
std::string AttentionAlone(const Left& left, const StatusReport& report) {
  if (left.is_journal) {
    return "the conversion has ended while it was published; run the same command again to "
           "complete "
           "it";
  }
  return fmt::format("the conversion has ended unfinished{}; run the same command again{}",
                     report.workers.front().process.empty()
                         ? ""
                         : fmt::format(" ({})", report.workers.front().process),
                     report.workers.front().files_done == 0
                         ? ""
                         : fmt::format(" with `resume` to keep {} finished file{}",
                                       report.workers.front().files_done,
                                       report.workers.front().files_done == 1 ? "" : "s"));
}

// What the workers need; empty: they run. `is_busy`: a worker begins or publishes.
std::string AttentionOf(const StatusReport& report, bool is_busy) {
  if (is_busy) return "";
  if (report.publishing) return "all shares have finished; `CommitWorkers` publishes the set";
  const std::vector<uint64_t> dead = NumbersOf(report, Worker::State::kDead);
  if (!dead.empty()) {
    return fmt::format("{} ended unfinished; run {} again with `shard={}/{}`", Shares(dead),
                       dead.size() == 1 ? "it" : "each", dead.front(), report.workers.size());
  }
  if (!NumbersOf(report, Worker::State::kRunning).empty()) return "";
  const std::vector<uint64_t> rest = NumbersOf(report, Worker::State::kNotStarted);
  return fmt::format("no share is at work, and {} not started; run {} with `shard={}/{}`",
                     Shares(rest), rest.size() == 1 ? "it" : "each", rest.front(),
                     report.workers.size());
}

Result<StatusReport> Describe(const Left& left, const OutputDirectory& parent,
                              const std::string& target) {
  RESHARD_ASSIGN_OR_RETURN(const JobSpec unchecked, SpecOf(left.text, target, left.fingerprint,
                                                           parent.PathOf(left.fingerprint)));
  RESHARD_ASSIGN_OR_RETURN(const JobSpec spec, CheckedSpec(unchecked));
  StatusReport report;
  report.alone = spec.workers == 0;
  RESHARD_RETURN_IF_ERROR(DescribeWorkers(left, spec, report));
  if (left.is_journal) {
    for (Worker& worker : report.workers) {
      worker.bytes_done = worker.total_bytes;
      worker.files_done = worker.total_files;
      worker.seconds_left.reset();
      if (!report.alone) worker.state = Worker::State::kFinished;
    }
  }
  const auto is_finished = [](const Worker& worker) {
    return worker.state == Worker::State::kFinished;
  };
  report.publishing =
      left.is_journal || std::all_of(report.workers.begin(), report.workers.end(), is_finished);
  if (report.alone) {
    const bool runs = report.workers.front().state == Worker::State::kRunning;
    if (!runs) report.attention = AttentionAlone(left, report);
  } else {
    RESHARD_ASSIGN_OR_RETURN(bool is_busy, JobLock::IsWorkerBusy(parent));
    if (!is_busy && report.publishing) {
      RESHARD_ASSIGN_OR_RETURN(is_busy, left.folder.HasLiveWorker());
    }
    report.attention = AttentionOf(report, is_busy);
  }
  report.state = report.attention.empty() ? State::kRunning : State::kNeedsAttention;
  AddUp(report);
  return report;
}

Result<StatusReport> DescribePublished(const OutputDirectory& target) {
  RESHARD_ASSIGN_OR_RETURN(const std::vector<std::string> names, target.Names());
  if (std::none_of(names.begin(), names.end(),
                   [](const std::string& name) { return IsManifestName(name); })) {
    return NotFoundError(fmt::format(
        "{}: no conversion has written here: there is no manifest.json and no unfinished run; give "
        "the target folder of `Convert`, which is made once the conversion is planned",
        Escape(target.path())));
  }
  RESHARD_ASSIGN_OR_RETURN(const std::vector<ManifestFile> files, CheckPublished(target));
  StatusReport report;
  for (const ManifestFile& file : files) {
    report.total_bytes = SaturatingAdd(report.total_bytes, file.size);
  }
  report.total_files = report.files_done = files.size();
  report.bytes_done = report.total_bytes;
  return report;
}

// Returns no value if the conversion went on meanwhile, so that what was seen does not fit
// together.
Result<std::optional<StatusReport>> TryFind(const OutputDirectory& target) {
  const auto published = [&]() -> Result<std::optional<StatusReport>> {
    RESHARD_ASSIGN_OR_RETURN(StatusReport report, DescribePublished(target));
    return std::optional(std::move(report));
  };
  const auto parent = target.OpenFolder(JobLock::kFolderName);
  if (parent.status().code() == StatusCode::kNotFound) return published();
  if (!parent.ok()) return parent.status();
  RESHARD_ASSIGN_OR_RETURN(const std::optional<Left> left, FindLeft(*parent));
  if (!left) {
    RESHARD_ASSIGN_OR_RETURN(const bool is_busy, JobLock::IsWorkerBusy(*parent));
    if (!is_busy) return published();
    StatusReport planning;
    planning.state = State::kRunning;
    return std::optional(std::move(planning));
  }
  if (left->is_placed) return published();
  auto report = Describe(*left, *parent, target.path());
  RESHARD_ASSIGN_OR_RETURN(const std::optional<Left> now, ReadLeft(*parent, left->fingerprint));
  const bool is_same =
      now && now->is_journal == left->is_journal && now->is_placed == left->is_placed;
  if (!is_same) return std::optional<StatusReport>();
  if (!report.ok()) return report.status();
  return std::optional(*std::move(report));
}

}  // namespace

inline namespace v0_1 {

Result<StatusReport> FindStatus(const std::string& target) {
  return CatchOutOfMemory([&]() -> Result<StatusReport> {
    // A conversion changes its state a few times at most; only other programs change it on and on.
    constexpr int kAttempts = 10;
    const auto folder = OutputDirectory::Open(target);
    if (folder.status().code() == StatusCode::kNotFound) {
      return folder.status().WithMessage(folder.status().message() +
                                         "; a conversion makes it once it is planned");
    }
    if (folder.status().code() == StatusCode::kAlreadyExists) {
      return NotFoundError(
          fmt::format("{}: is not a folder; give the target folder of `Convert`", Escape(target)));
    }
    if (!folder.ok()) return folder.status();
    for (int i = 0; i < kAttempts; ++i) {
      auto report = TryFind(*folder);
      if (report.ok() && *report) return **std::move(report);
      // The files that it was about to read may just have been put into place.
      const bool may_be_late = report.ok() || report.status().code() == StatusCode::kNotFound;
      if (!may_be_late || i + 1 == kAttempts) {
        if (!report.ok()) return report.status();
        break;
      }
    }
    return IoError(fmt::format("{}: its files change all the time", Escape(target)));
  });
}

}  // namespace v0_1

}  // namespace reshard
