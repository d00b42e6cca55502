#include "src/exec/job_folder.h"

#include <fmt/format.h>

#include <cassert>
#include <string_view>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/exec/target_place.h"

namespace reshard {
namespace {

constexpr const char* kStaged = "files";
constexpr const char* kJournal = "journal";
constexpr const char* kNewJournal = "journal.new";
constexpr std::string_view kManifestLine = "manifest ";
constexpr uint64_t kMaxJournalBytes = uint64_t{256} << 20;

std::string StagedPath(const std::string& path) { return fmt::format("{}/{}", kStaged, path); }

std::vector<ManifestFile> StagedFiles(std::vector<ManifestFile> files) {
  for (ManifestFile& file : files) file.path = StagedPath(file.path);
  return files;
}

// Both sorted by path.
bool Intersect(const std::vector<ManifestFile>& a, const std::vector<ManifestFile>& b) {
  auto at_a = a.begin();
  auto at_b = b.begin();
  while (at_a != a.end() && at_b != b.end()) {
    if (at_a->path == at_b->path) return true;
    ++(at_a->path < at_b->path ? at_a : at_b);
  }
  return false;
}

}  // namespace

Journal MakeJournal(const JobSpec& spec) {
  Journal journal;
  journal.manifest_name = spec.manifest_name;
  journal.targets = fmt::format("{}{}\n", kManifestLine, spec.manifest_name);
  for (const ManifestFile& file : spec.files) {
    journal.targets += fmt::format("target {} {}\n", file.size, file.path);
  }
  for (const std::string& source : spec.source_identities) {
    journal.sources += fmt::format("source {}\n", source);
  }
  return journal;
}

Result<std::vector<std::pair<std::string, Manifest>>> ManifestsThatList(
    const OutputDirectory& target, const std::vector<ManifestFile>& files,
    const std::string& except) {
  std::vector<std::pair<std::string, Manifest>> found;
  RESHARD_ASSIGN_OR_RETURN(const std::vector<std::string> names, target.Names());
  for (const std::string& name : names) {
    if (name == except || !IsManifestName(name)) continue;
    const auto bytes = target.ReadFile(name, kMaxManifestBytes);
    if (!bytes.ok()) continue;
    auto manifest = ParseManifest(*bytes, target.PathOf(name));
    if (!manifest.ok() || !Intersect(manifest->files, files)) continue;
    found.emplace_back(name, std::move(*manifest));
  }
  return found;
}

Result<JobFolder> JobFolder::Open(const OutputDirectory& parent, const std::string& fingerprint) {
  RESHARD_ASSIGN_OR_RETURN(OutputDirectory folder, parent.OpenFolder(fingerprint));
  return JobFolder(std::move(folder));
}

Result<JobFolder> JobFolder::Make(const OutputDirectory& parent, const std::string& fingerprint) {
  RESHARD_ASSIGN_OR_RETURN(OutputDirectory folder, parent.MakeFolder(fingerprint));
  return JobFolder(std::move(folder));
}

Status JobFolder::Discard(const OutputDirectory& parent, const std::string& fingerprint) {
  const auto folder = parent.OpenFolder(fingerprint);
  if (folder.ok()) {
    RESHARD_RETURN_IF_ERROR(folder->RemoveFile(kJournal));
    RESHARD_RETURN_IF_ERROR(folder->Sync());
  }
  return parent.RemoveTree(fingerprint);
}

Status JobFolder::CleanUp(const OutputDirectory& parent, const std::string& fingerprint) {
  RESHARD_ASSIGN_OR_RETURN(const OutputDirectory folder, parent.OpenFolder(fingerprint));
  RESHARD_RETURN_IF_ERROR(folder.RemoveTree(kStaged));
  return parent.RemoveTree(fingerprint);
}

Result<StagedFile> JobFolder::Create(const std::string& path, uint64_t size) const {
  RESHARD_ASSIGN_OR_RETURN(const TargetPlace place, MakePlace(folder_, StagedPath(path)));
  return StagedFile::Create(place.folder, place.name, size);
}

Result<std::optional<Journal>> JobFolder::ReadJournal() const {
  const auto text = folder_.ReadFile(kJournal, kMaxJournalBytes);
  if (text.status().code() == StatusCode::kNotFound) return std::optional<Journal>();
  if (!text.ok()) return text.status();
  const size_t line_end = text->find('\n');
  const size_t targets_end = text->find("\n\n");
  if (!text->starts_with(kManifestLine) || targets_end == std::string::npos) {
    return CorruptError(
        fmt::format("{}: no journal of reshard's; remove the folder that it lies in",
                    Escape(folder_.PathOf(kJournal))));
  }
  Journal journal;
  journal.manifest_name = text->substr(kManifestLine.size(), line_end - kManifestLine.size());
  journal.targets = text->substr(0, targets_end + 1);
  journal.sources = text->substr(targets_end + 2);
  if (!IsManifestName(journal.manifest_name)) {
    return CorruptError(
        fmt::format("{}: {} is no manifest's name; remove the folder that it lies "
                    "in",
                    Escape(folder_.PathOf(kJournal)), Quote(journal.manifest_name)));
  }
  return std::optional(std::move(journal));
}

Result<std::optional<Manifest>> JobFolder::ReadManifest(const Journal& journal) const {
  const auto bytes = folder_.ReadFile(journal.manifest_name, kMaxManifestBytes);
  if (bytes.status().code() == StatusCode::kNotFound) return std::optional<Manifest>();
  if (!bytes.ok()) return bytes.status();
  RESHARD_ASSIGN_OR_RETURN(Manifest manifest,
                           ParseManifest(*bytes, folder_.PathOf(journal.manifest_name)));
  return std::optional(std::move(manifest));
}

Status JobFolder::Commit(const std::vector<ManifestFile>& files, const Manifest& manifest,
                         const Journal& journal, const OutputDirectory& parent,
                         const OutputDirectory& target) const {
  const std::vector<ManifestFile> staged = StagedFiles(files);
  for (const ManifestFile& file : staged) {
    RESHARD_ASSIGN_OR_RETURN(const bool whole, IsWhole(folder_, file));
    if (!whole) {
      return IoError(
          fmt::format("{}/{}: expected a file of {} bytes; it was written, but something "
                      "else has removed or changed it",
                      Escape(folder_.path()), Escape(file.path), file.size));
    }
  }
  RESHARD_ASSIGN_OR_RETURN(const std::string bytes, EncodeManifest(manifest));
  RESHARD_RETURN_IF_ERROR(folder_.WriteFile(journal.manifest_name, bytes));
  RESHARD_RETURN_IF_ERROR(
      folder_.WriteFile(kNewJournal, fmt::format("{}\n{}", journal.targets, journal.sources)));
  RESHARD_RETURN_IF_ERROR(SyncFolders(folder_, staged));
  RESHARD_RETURN_IF_ERROR(parent.Sync());
  RESHARD_RETURN_IF_ERROR(target.Sync());
  RESHARD_RETURN_IF_ERROR(folder_.Rename(kNewJournal, folder_, kJournal));
  return folder_.Sync();
}

Result<bool> JobFolder::CanPublish(const std::vector<ManifestFile>& files,
                                   const OutputDirectory& target) const {
  for (const ManifestFile& file : files) {
    RESHARD_ASSIGN_OR_RETURN(const bool staged,
                             IsWhole(folder_, {.path = StagedPath(file.path), .size = file.size}));
    if (staged) continue;
    RESHARD_ASSIGN_OR_RETURN(const bool moved, IsWhole(target, file));
    if (!moved) return false;
  }
  return true;
}

Status JobFolder::MoveFiles(const Manifest& manifest, const OutputDirectory& target) const {
  for (const ManifestFile& file : manifest.files) {
    RESHARD_ASSIGN_OR_RETURN(const std::optional<TargetPlace> from,
                             FindPlace(folder_, StagedPath(file.path)));
    if (!from) continue;
    RESHARD_ASSIGN_OR_RETURN(const auto staged, from->folder.Look(from->name));
    if (!staged) continue;  // moved already, or written by an earlier run that this one joins
    RESHARD_ASSIGN_OR_RETURN(const TargetPlace to, MakePlace(target, file.path));
    RESHARD_RETURN_IF_ERROR(from->folder.Rename(from->name, to.folder, to.name));
  }
  return SyncFolders(target, manifest.files);
}

Status JobFolder::Publish(const OutputDirectory& target) const {
  RESHARD_ASSIGN_OR_RETURN(const std::optional<Journal> journal, ReadJournal());
  assert(journal);
  const std::string& name = journal->manifest_name;
  RESHARD_ASSIGN_OR_RETURN(const std::optional<Manifest> manifest, ReadManifest(*journal));
  if (!manifest) return {};  // the last step was done
  RESHARD_ASSIGN_OR_RETURN(const auto others, ManifestsThatList(target, manifest->files, name));
  for (const auto& [other, listed] : others) RESHARD_RETURN_IF_ERROR(target.RemoveFile(other));
  RESHARD_RETURN_IF_ERROR(target.RemoveFile(name));
  // Durable before anything that they list is replaced.
  RESHARD_RETURN_IF_ERROR(target.Sync());
  RESHARD_RETURN_IF_ERROR(MoveFiles(*manifest, target));
  RESHARD_RETURN_IF_ERROR(folder_.Rename(name, target, name));
  return target.Sync();
}

}  // namespace reshard
