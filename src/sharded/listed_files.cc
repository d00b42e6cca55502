#include "src/sharded/listed_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <stop_token>
#include <utility>

#include "src/base/status_macros.h"
#include "src/io/open_files.h"
#include "src/io/storage.h"
#include "src/os/threads.h"

namespace reshard {
namespace {

// Tables that are held at a time.
constexpr size_t kTablesHeld = 64;

}  // namespace

bool IsWanted(const SourceRequest& request, std::string_view name) {
  return !request.wants || request.wants(name);
}

Result<ChosenFile> PinFile(const SourceRequest& request, const std::string& relative,
                           int64_t number) {
  const std::string path = PathIn(request.path, relative);
  RESHARD_ASSIGN_OR_RETURN(const FileIdentity identity, Storage::Of(path).Pin(path));
  return ChosenFile{number, relative, request.files.Add(path, identity), identity};
}

NumberRanges Gaps(const std::vector<int64_t>& numbers, int64_t first, std::optional<int64_t> end) {
  NumberRanges missing;
  for (const int64_t number : numbers) {
    if (number > first) missing.AddRange(first, number - 1);
    if (number == std::numeric_limits<int64_t>::max()) return missing;
    first = number + 1;
  }
  if (end && first < *end) missing.AddRange(first, *end - 1);
  return missing;
}

Status ForEachTable(const FoundSource& found, const SourceRequest& request,
                    const std::function<Result<IndexedFile>(FileId file)>& read,
                    const std::function<Status(const ChosenFile& file, const IndexedFile&)>& take) {
  const std::span<const ChosenFile> files = found.files;
  const size_t askers = Askers(request.files.path(files.front().id), 1);
  for (size_t first = 0; first < files.size(); first += kTablesHeld) {
    const std::span<const ChosenFile> batch =
        files.subspan(first, std::min(kTablesHeld, files.size() - first));
    std::vector<std::optional<IndexedFile>> tables(batch.size());
    const auto read_one = [&](size_t i, const std::stop_token& /*stop*/) -> Status {
      RESHARD_ASSIGN_OR_RETURN(tables[i], read(batch[i].id));
      const Container& container = tables[i]->table().container();
      if (&container != found.container) {
        return CorruptError(fmt::format("{}: expected {}, found {}",
                                        Escape(request.files.path(batch[i].id)),
                                        found.container->kind, container.kind));
      }
      return CheckMemory(request.memory);
    };
    RESHARD_RETURN_IF_ERROR(RunWorkers(askers, batch.size(), read_one, std::stop_token()));
    for (size_t i = 0; i < batch.size(); ++i) {
      RESHARD_RETURN_IF_ERROR(take(batch[i], *tables[i]));
    }
  }
  return {};
}

Result<std::vector<size_t>> AddListedFiles(const ShardedFolder& folder,
                                           const SourceRequest& request,
                                           const std::vector<std::string>& names,
                                           FoundSource& found) {
  std::vector<size_t> missing;
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string relative = folder.below + names[i];
    found.indexed.push_back(PathIn(request.path, relative));
    Result<ChosenFile> file = PinFile(request, relative, static_cast<int64_t>(i));
    if (file.status().code() != StatusCode::kNotFound) {
      RESHARD_RETURN_IF_ERROR(file.status());
      found.files.push_back(*std::move(file));
      continue;
    }
    missing.push_back(i);
    if (!request.files_may_be_missing) continue;
    found.files.push_back(
        {static_cast<int64_t>(i), relative, request.files.Add(found.indexed.back()), {}});
  }
  if (!found.files.empty()) return missing;
  FirstFew shown;
  for (const std::string& name : names) shown.Add(Escape(name));
  const std::string path = Escape(PathIn(request.path, folder.below));
  if (names.empty()) {
    return MismatchError(fmt::format("{}: its metadata names no file with tensors", path));
  }
  return MismatchError(
      fmt::format("{}: all {} files that its metadata names are missing: {}; complete the folder",
                  path, names.size(), shown.Joined()));
}

Status CheckMissingFiles(const std::string& metadata, const std::vector<std::string>& names,
                         const std::vector<size_t>& missing, const PartList& parts,
                         const SourceRequest& request, FoundSource& found) {
  if (missing.empty() || request.files_may_be_missing) return {};
  const std::string path = Escape(metadata);
  FirstFew shown;
  for (const size_t file : missing) shown.Add(Escape(names[file]));
  const auto is_there = [&](const PartList::Part& part) {
    return !std::binary_search(missing.begin(), missing.end(), static_cast<size_t>(part.rank()));
  };
  for (const PartList::Tensor& tensor : parts.tensors()) {
    if (!IsWanted(request, tensor.name)) continue;
    for (size_t i = 0; i < tensor.parts.size();) {
      const auto replicas = PartList::ReplicasAt(tensor, i);
      i += replicas.size();
      // A part without elements needs no file.
      if (replicas.front().box().empty()) continue;
      if (std::any_of(replicas.begin(), replicas.end(), is_there)) continue;
      return MismatchError(fmt::format(
          "{}: names {} files, but {} {} missing: {}; no other file has box {} of {}. Complete the "
          "folder, or leave such tensors out with `exclude`",
          path, names.size(), missing.size(), missing.size() == 1 ? "is" : "are", shown.Joined(),
          ToString(replicas.front().box()), Quote(tensor.name)));
    }
  }
  found.warnings.push_back(
      {WarningCode::kMissingRanks,
       fmt::format("{}: {} of its {} files {} missing, and others have the same slices: {}", path,
                   missing.size(), names.size(), missing.size() == 1 ? "is" : "are",
                   shown.Joined())});
  return {};
}

void WarnOfOtherFiles(const ShardedFolder& folder,
                      const std::function<bool(const std::string& name)>& is_other,
                      const std::string& what, FoundSource& found) {
  FirstFew others;
  for (const DirectoryEntry& entry : folder.entries) {
    if (!entry.is_directory && is_other(entry.name)) others.Add(Escape(entry.name));
  }
  if (others.count() == 0) return;
  found.warnings.push_back(
      {WarningCode::kFilesNotRead, fmt::format("{}, left out: {}", what, others.Joined())});
}

}  // namespace reshard
