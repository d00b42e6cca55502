#include "src/os/used_files.h"

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <utility>

#include "src/base/out_of_memory.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/os/path_location.h"
#include "src/os/paths.h"
#include "src/os/write_file.h"

namespace reshard {

class UsedFiles : public std::enable_shared_from_this<UsedFiles> {
 public:
  Status NoteInput(const std::string& path, const FileIdentity& identity) {
    const std::lock_guard lock(mutex_);
    inputs_.try_emplace(identity.key(), path);
    return CheckInput(path, identity);
  }

  Status KeepFromOutputs(const std::string& path,
                         const std::function<Result<FileIdentity>()>& look) {
    const std::lock_guard lock(mutex_);
    for (const UsedOutput& output : outputs_) {
      if (output.files.empty()) continue;
      const auto identity = look();
      return identity.ok() ? CheckInput(path, *identity) : Status();
    }
    return {};
  }

  Status AddOutput(UsedOutput added, const std::vector<PathLocation>& places) {
    const std::lock_guard lock(mutex_);
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const UsedOutput& other = outputs_[i];
      if (other.path == added.path && other.name == added.name) return {};
      for (const PathLocation& place : places) {
        for (const PathLocation& taken : places_[i]) {
          if (place.From(taken) != "") continue;
          const bool is_named = !added.name.empty() || other.name.empty();
          return Refuse(InvalidArgumentError(fmt::format(
              "{}: {} is written there; choose another file", (is_named ? added : other).InWords(),
              Escape((is_named ? other : added).path))));
        }
      }
    }
    outputs_.push_back(std::move(added));
    places_.push_back(places);
    for (const FileIdentity& file : outputs_.back().files) {
      const auto input = inputs_.find(file.key());
      if (input != inputs_.end()) RESHARD_RETURN_IF_ERROR(CheckInput(input->second, file));
    }
    return {};
  }

  Status Check() const {
    const std::lock_guard lock(mutex_);
    return refused_;
  }

  Status RefuseOutput(Status status) {
    const std::lock_guard lock(mutex_);
    return Refuse(std::move(status));
  }

  std::optional<std::string> Find(const FileIdentity& file) const {
    const std::lock_guard lock(mutex_);
    const auto input = inputs_.find(file.key());
    return input == inputs_.end() ? std::nullopt : std::optional(input->second);
  }

  std::vector<std::string> inputs() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> paths;
    paths.reserve(inputs_.size());
    for (const auto& [key, path] : inputs_) paths.push_back(path);
    return paths;
  }

  std::vector<UsedOutput> outputs() const {
    const std::lock_guard lock(mutex_);
    return outputs_;
  }

 private:
  Status CheckInput(const std::string& path, const FileIdentity& identity) {
    for (const UsedOutput& output : outputs_) {
      for (const FileIdentity& file : output.files) {
        if (file.key() != identity.key()) continue;
        return Refuse(InvalidArgumentError(
            fmt::format("{}: would destroy {}, which is read; choose another file",
                        output.InWords(), Escape(path))));
      }
    }
    return {};
  }

  Status Refuse(Status status) {
    if (refused_.ok()) refused_ = status;
    return status;
  }

  mutable std::mutex mutex_;  // guards the members below
  std::map<FileIdentity::Key, std::string> inputs_;
  std::vector<UsedOutput> outputs_;
  std::vector<std::vector<PathLocation>> places_;  // of each output and of its staged name
  Status refused_;
};

namespace {

// Owned by the FileUse or the Thread that set it. A thread-local destructor would have to be
// registered, for which the C library takes memory; without memory, it ends the process.
constinit thread_local UsedFiles* of_thread = nullptr;

}  // namespace

std::string UsedOutput::InWords() const {
  return name.empty() ? Escape(path) : fmt::format("{} {}", name, Escape(path));
}

void SetUsedFiles(UsedFiles* files) { of_thread = files; }

std::shared_ptr<UsedFiles> CurrentUsedFiles() {
  return of_thread == nullptr ? nullptr : of_thread->shared_from_this();
}

Status NoteInput(const std::string& path, const FileIdentity& identity) {
  return of_thread == nullptr ? Status() : of_thread->NoteInput(path, identity);
}

void NoteKeyFile(const std::string& path) {
  if (path.empty() || of_thread == nullptr) return;
  const auto kind = KindOf(path);
  // It was read. If it is a pipe, or gone, no output can damage it.
  if (!kind.ok() || *kind != PathKind::kFile) return;
  if (const auto identity = IdentityOf(path); identity.ok()) {
    static_cast<void>(NoteInput(path, *identity));
  }
}

Status KeepFromOutputs(const std::string& path, const std::function<Result<FileIdentity>()>& look) {
  return of_thread == nullptr ? Status() : of_thread->KeepFromOutputs(path, look);
}

Status CheckOutputs() { return of_thread == nullptr ? Status() : of_thread->Check(); }

std::optional<std::string> NotedInput(const FileIdentity& file) {
  return of_thread == nullptr ? std::nullopt : of_thread->Find(file);
}

std::vector<std::string> NotedInputs() {
  return of_thread == nullptr ? std::vector<std::string>() : of_thread->inputs();
}

std::vector<UsedOutput> UsedOutputs() {
  return of_thread == nullptr ? std::vector<UsedOutput>() : of_thread->outputs();
}

Status RefuseOutput(Status status) {
  return of_thread == nullptr ? status : of_thread->RefuseOutput(std::move(status));
}

FileUse::FileUse() : before_(CurrentUsedFiles()), files_(before_) {
  if (files_ != nullptr) return;
  files_ = std::make_shared<UsedFiles>();
  SetUsedFiles(files_.get());
}

FileUse::FileUse(const FileUse& other) : before_(CurrentUsedFiles()), files_(other.files_) {
  SetUsedFiles(files_.get());
}

FileUse::~FileUse() { SetUsedFiles(before_.get()); }

Status FileUse::AddOutput(const std::string& path, const std::string& name) {
  return CatchOutOfMemory([&]() -> Status {
    if (path.empty()) return {};  // writing it fails
    RESHARD_ASSIGN_OR_RETURN(const PathKind kind, KindOf(path));
    if (kind == PathKind::kOther) return {};
    UsedOutput output{path, name, {}};
    std::vector<PathLocation> places;
    for (const std::string& place : {path, StagedName(path)}) {
      const auto location = PathLocation::Of(place);
      // A name that is too long to be staged is no matter of a file that is only appended to.
      if (!location.ok() && place == path) return location.status();
      if (!location.ok()) continue;
      places.push_back(*location);
      const auto found = KindOf(place);
      if (!found.ok() || *found != PathKind::kFile) continue;
      if (const auto identity = IdentityOf(place); identity.ok()) output.files.push_back(*identity);
    }
    return files_->AddOutput(std::move(output), places);
  });
}

Status FileUse::Check() const { return files_->Check(); }

}  // namespace reshard
