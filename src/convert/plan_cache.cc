#include "src/convert/plan_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "src/base/status_macros.h"
#include "src/plan/plan_findings.h"

namespace reshard {

void PlanCache::Add(int64_t file, PlanHandle plan, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (const auto place = places_.find(file); place != places_.end()) Remove(place->second);
  kept_.push_front({file, std::move(plan), bytes});
  places_.emplace(file, kept_.begin());
  bytes_ += bytes;
  const PlanHandle added = kept_.front().plan;
  DropUnused(most_bytes_);
}

void PlanCache::MakeRoom(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  DropUnused(most_bytes_ - std::min(most_bytes_, bytes));
}

PlanHandle PlanCache::Find(int64_t file) {
  const std::lock_guard lock(mutex_);
  const auto place = places_.find(file);
  if (place == places_.end()) return nullptr;
  kept_.splice(kept_.begin(), kept_, place->second);
  return place->second->plan;
}

PlanHandle PlanCache::Take(int64_t file) {
  const std::lock_guard lock(mutex_);
  const auto place = places_.find(file);
  if (place == places_.end()) return nullptr;
  PlanHandle plan = std::move(place->second->plan);
  Remove(place->second);
  return plan;
}

void PlanCache::SetMost(uint64_t most_bytes) {
  const std::lock_guard lock(mutex_);
  most_bytes_ = most_bytes;
  DropUnused(most_bytes_);
}

uint64_t PlanCache::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

void PlanCache::Remove(std::list<Kept>::iterator kept) {
  bytes_ -= kept->bytes;
  places_.erase(kept->file);
  kept_.erase(kept);
}

void PlanCache::DropUnused(uint64_t most_bytes) {
  for (auto kept = kept_.end(); bytes_ > most_bytes && kept != kept_.begin();) {
    --kept;
    // Nobody gets it meanwhile: Find waits for the lock.
    if (kept->plan.use_count() == 1) Remove(kept++);
  }
}

Result<PlanHandle> PlanAgain(const Target& target, const PlanReport::TargetFile& expected) {
  PlanFindings findings;
  findings.silent = true;
  RESHARD_ASSIGN_OR_RETURN(TargetPlan plan, target.Plan(expected.rank, findings));
  if (plan.size != expected.size) {
    return InternalError(
        fmt::format("{}: planned {} bytes, then {}", expected.path, expected.size, plan.size));
  }
  return std::make_shared<const TargetPlan>(std::move(plan));
}

uint64_t BytesOf(const TargetPlan& plan) {
  uint64_t bytes = sizeof(TargetPlan);
  for (const Segment& segment : plan.segments) {
    bytes += MemoryBytes(segment);
    const auto* content = std::get_if<Content>(&segment);
    if (content == nullptr) continue;
    bytes += content->source_name.size();
    if (content->target_name != content->source_name) bytes += content->target_name.size();
  }
  return bytes;
}

}  // namespace reshard
