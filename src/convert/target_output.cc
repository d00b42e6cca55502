#include "src/convert/target_output.h"

#include <map>
#include <string>
#include <utility>

namespace reshard {

TargetOutput OutputOf(const PlanReport& plan, const TargetJob& job, Resume resume) {
  TargetOutput output;
  for (size_t i = 0; i < plan.targets.size(); ++i) {
    output.parts.push_back({i, {0, plan.targets[i].size}});
  }
  output.is_kept = [&plan, &job, resume](size_t part, const std::stop_token& stop) -> Result<bool> {
    const std::string& path = plan.targets[part].path;
    if (job.Finished(path) == nullptr) return false;
    return resume == Resume::kVerify ? job.IsAsRecorded(path, stop) : true;
  };
  output.create = [&plan, &job](size_t part, const WriteOptions& options) {
    return job.Create(plan.targets[part].path, plan.targets[part].size, options);
  };
  output.finish = [&plan, &job](size_t part, StagedFile file,
                                const OutputDirectory::ByteSource& record) {
    return job.Finish(std::move(file), plan.targets[part].path, record);
  };
  output.storage = job.storage();
  return output;
}

TargetOutput OutputOf(const PlanReport& plan, const ShardJob& job) {
  TargetOutput output;
  std::map<std::string_view, size_t> targets;
  for (size_t i = 0; i < plan.targets.size(); ++i) targets.emplace(plan.targets[i].path, i);
  for (const FilePart& part : job.unfinished()) {
    output.parts.push_back({targets.at(job.spec().files[part.file].path), part.range});
  }
  output.is_kept = [](size_t, const std::stop_token&) -> Result<bool> { return false; };
  output.create = [&job](size_t part, const WriteOptions& options) {
    return job.Create(job.unfinished()[part], options);
  };
  output.finish = [&job](size_t part, StagedFile file, const OutputDirectory::ByteSource& record) {
    return job.Finish(std::move(file), job.unfinished()[part], record);
  };
  output.storage = job.storage();
  return output;
}

}  // namespace reshard
