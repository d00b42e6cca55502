// TargetJobTest: a target folder, and runs that stage and publish small files there.
#ifndef RESHARD_TESTS_UNIT_TARGET_JOB_FIXTURE_H_
#define RESHARD_TESTS_UNIT_TARGET_JOB_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "src/job/target_job.h"
#include "tests/support/temporary_folder.h"

namespace reshard {

inline constexpr const char* kPlan = "aaaa";
inline constexpr const char* kOtherPlan = "bbbb";

using Contents = std::map<std::string, std::string>;  // bytes by path

// Returns the regular files below `folder`, and links as "-> where to".
inline Contents Everything(const std::filesystem::path& folder) {
  Contents found;
  if (!std::filesystem::exists(folder)) return found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const std::string path = std::filesystem::relative(entry.path(), folder).string();
    if (entry.is_symlink()) {
      found[path] = "-> " + std::filesystem::read_symlink(entry.path()).string();
    } else if (entry.is_regular_file()) {
      found[path] = ReadFile(entry.path());
    }
  }
  return found;
}

// Everything but manifests and what belongs to them.
inline Contents Outputs(const std::filesystem::path& folder) {
  Contents found = Everything(folder);
  std::erase_if(found, [](const auto& file) {
    return IsManifestName(file.first) || file.first.starts_with("part_records/");
  });
  return found;
}

// Returns what hands `bytes` over.
inline OutputDirectory::ByteSource SourceOf(std::string bytes) {
  return [bytes = std::move(bytes)](const OutputDirectory::ByteSink& sink) { return sink(bytes); };
}

// What is known of a part whose record has these bytes.
inline FinishedPart WithRecord(std::string bytes) {
  FinishedPart finished;
  finished.record = [bytes = std::move(bytes)](const FileDigests* /*found*/,
                                               const OutputDirectory::ByteSink& sink) {
    return sink(bytes);
  };
  return finished;
}

class TargetJobTest : public testing::Test {
 protected:
  JobSpec Spec(const Contents& contents, bool force = false,
               const std::string& plan = kPlan) const {
    JobSpec spec;
    spec.target.folder = Target().string();
    spec.fingerprint = plan;
    for (const auto& [path, bytes] : contents) spec.files.push_back({path, bytes.size()});
    spec.source_identities = {"source one", "source two"};
    spec.output.force = force;
    return spec;
  }

  // The part record of a file without Values.
  static std::string Record(const std::string& path, uint64_t size,
                            const std::string& plan = kPlan) {
    std::string record;
    PartRecordEncoder encoder([&](std::string_view piece) {
      record += piece;
      return Status();
    });
    EXPECT_TRUE(encoder.WriteHead({.plan = plan, .path = path, .size = size}).ok());
    EXPECT_TRUE(encoder.Finish().ok());
    return record;
  }
  static std::string Record(const std::string& path, const std::string& bytes,
                            const std::string& plan = kPlan) {
    return Record(path, bytes.size(), plan);
  }

  // The whole file at `path`, one of the spec's.
  static FilePart PartAt(const TargetJob& job, const std::string& path) {
    const std::vector<ManifestFile>& files = job.spec().files;
    for (size_t i = 0; i < files.size(); ++i) {
      if (files[i].path == path) return {i, {0, files[i].size}};
    }
    ADD_FAILURE() << path;
    return {};
  }

  static Status Stage(const TargetJob& job, const Contents& contents,
                      const std::string& plan = kPlan) {
    for (const auto& [path, bytes] : contents) {
      const FilePart part = PartAt(job, path);
      auto file = job.Create(part, {});
      if (!file.ok()) return file.status();
      if (Status status = file->WriteAt(0, std::as_bytes(std::span(bytes))); !status.ok()) {
        return status;
      }
      if (Status status =
              job.Finish(part, std::move(*file), WithRecord(Record(path, bytes, plan)), {});
          !status.ok()) {
        return status;
      }
    }
    return {};
  }

  static Result<PublishReport> Run(const JobSpec& spec, const Contents& contents) {
    auto job = TargetJob::Begin(spec);
    if (!job.ok()) return job.status();
    if (!job->already_staged()) {
      if (const Status status = Stage(*job, contents, spec.fingerprint); !status.ok())
        return status;
    }
    return job->Publish();
  }

  Result<PublishReport> Run(const Contents& contents, bool force = false,
                            const std::string& plan = kPlan) const {
    return Run(Spec(contents, force, plan), contents);
  }

  // Runs until the publication fails, as if killed: a folder stands where the file `path` belongs.
  void Interrupt(const JobSpec& spec, const Contents& contents, const std::string& path) const {
    auto job = TargetJob::Begin(spec);
    ASSERT_TRUE(job.ok()) << job.status().message();
    ASSERT_TRUE(Stage(*job, contents, spec.fingerprint).ok());
    const std::filesystem::path blocked = Target() / path;
    const std::filesystem::path aside = folder_.path() / "aside";
    if (std::filesystem::exists(blocked)) std::filesystem::rename(blocked, aside);
    std::filesystem::create_directories(blocked / "in the way");
    const auto report = job->Publish();
    EXPECT_EQ(report.status().code(), StatusCode::kIo);
    std::filesystem::remove_all(blocked);
    if (std::filesystem::exists(aside)) std::filesystem::rename(aside, blocked);
  }

  std::vector<ManifestFile> Listed(const std::string& name = "manifest.json",
                                   const std::string& plan = kPlan) const {
    const auto manifest = ParseManifest(ReadFile(Target() / name), name);
    EXPECT_TRUE(manifest.ok()) << manifest.status().message();
    EXPECT_EQ(manifest->plan, plan);
    std::vector<ManifestFile> files;
    for (const ManifestFile& file : manifest->files) files.push_back({file.path, file.size});
    return files;
  }

  std::filesystem::path Target() const { return folder_.path() / "above" / "target"; }
  bool HasManifest() const { return std::filesystem::exists(Target() / "manifest.json"); }
  bool HasStaging() const { return std::filesystem::exists(Target() / ".reshard"); }

  const TemporaryFolder folder_;
  const Contents zero_ = {{"rank_0/a.ckpt", "zero"}};
  const Contents one_ = {{"rank_1/a.ckpt", "one!!"}};
  const Contents both_ = {{"rank_0/a.ckpt", "zero"}, {"rank_1/a.ckpt", "one!!"}};
  const Contents newer_ = {{"rank_0/a.ckpt", "ZERO"}, {"rank_1/a.ckpt", "ONE!!"}};
};
}  // namespace reshard

#endif  // RESHARD_TESTS_UNIT_TARGET_JOB_FIXTURE_H_
