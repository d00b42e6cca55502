#include "src/job/worker_states.h"

#include <algorithm>

#include "src/base/status_macros.h"
#include "src/os/job_lock.h"

namespace reshard {
namespace {

void ReadRecord(const OutputDirectory& folder, const std::string& name, WorkerState& state) {
  const auto entry = folder.Look(name);
  state.damage = entry.status();
  if (!entry.ok() || !*entry) return;
  state.record_ns = (*entry)->identity.mtime_ns();
  const auto text = folder.ReadFile(name, kMaxProgressBytes);
  if (text.status().code() == StatusCode::kNotFound || (text.ok() && text->empty())) return;
  auto record = text.ok() ? ParseProgress(*text, folder.PathOf(name)) : text.status();
  state.damage = record.status();
  if (record.ok()) state.record = *record;
}

}  // namespace

Result<std::vector<WorkerState>> FindWorkers(const JobFolder& folder, uint64_t workers) {
  RESHARD_ASSIGN_OR_RETURN(const std::vector<std::string> names, folder.folder().Names());
  const auto has = [&](const std::string& name) {
    return std::binary_search(names.begin(), names.end(), name);
  };
  std::vector<WorkerState> states(std::max<uint64_t>(workers, 1));
  for (uint64_t i = 0; i < states.size(); ++i) {
    WorkerState& state = states[i];
    std::optional<WorkerShare> worker;
    if (workers > 0) worker = WorkerShare{i, workers};
    if (worker && has(FinishedName(*worker))) {
      state.kind = WorkerState::Kind::kFinished;
      continue;
    }
    const std::string name = RunLockName(worker);
    if (!has(name)) continue;
    RESHARD_ASSIGN_OR_RETURN(const auto lock, FileLock::LookAt(folder.folder(), name));
    if (!lock) continue;
    // It may have left its mark, and the lock, since the names were listed.
    if (worker && !lock->held) {
      RESHARD_ASSIGN_OR_RETURN(const auto mark, folder.folder().Look(FinishedName(*worker)));
      state.kind = mark ? WorkerState::Kind::kFinished : WorkerState::Kind::kDead;
      if (mark) continue;
    } else {
      state.kind = lock->held ? WorkerState::Kind::kRunning : WorkerState::Kind::kDead;
    }
    state.process = lock->holder;
    ReadRecord(folder.folder(), ProgressName(worker), state);
  }
  return states;
}

}  // namespace reshard
