#include "src/os/mount_point.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <utility>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/os/path_location.h"
#include "src/os/system_call.h"

namespace reshard {
namespace {

// The path without links and dots; the last component itself is not looked at.
Result<std::string> PlaceOf(const std::string& path) {
  std::filesystem::path whole = std::filesystem::path(path).lexically_normal();
  if (!whole.has_filename()) whole = whole.parent_path();
  std::filesystem::path folder = FolderOf(whole.string());
  if (whole.filename() == "." || whole.filename() == "..") {
    folder = whole;
    whole.clear();
  }
  char* const found = realpath(folder.c_str(), nullptr);
  if (found == nullptr) return ErrnoStatus(errno, "look up", path);
  std::filesystem::path place(found);
  std::free(found);
  return whole.has_filename() ? (place / whole.filename()).string() : place.string();
}

// "\040" is how the kernel writes a blank.
std::string Unescaped(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_octal = text[i] == '\\' && i + 3 < text.size() &&
                          text.substr(i + 1, 3).find_first_not_of("01234567") == text.npos;
    if (!is_octal) {
      plain += text[i];
      continue;
    }
    plain +=
        static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
    i += 3;
  }
  return plain;
}

// Calls visit(point, type) for each mount.
Status ForEachMount(const std::function<void(const std::string& point, std::string type)>& visit) {
  std::ifstream mounts("/proc/self/mountinfo");
  if (!mounts) return ErrnoStatus(errno, "open", "/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    // ID PARENT DEVICE ROOT POINT OPTIONS [FIELDS...] - TYPE SOURCE OPTIONS
    std::istringstream fields(line);
    std::string field;
    std::string point;
    for (int i = 0; i < 5; ++i) fields >> point;
    while (fields >> field && field != "-") {
    }
    if (fields >> field) visit(Unescaped(point), std::move(field));
  }
  return {};
}

// After a failure here, the streams stay as they are.
void LeaveTerminal() {
  setsid();
  const FileDescriptor null(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null.valid()) return;
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(null.get(), fd);
}

Status UnmountByHelper(const std::string& path) {
  const std::string program = "fusermount3";
  std::string words[] = {program, "-u", "--", path};
  char* const arguments[] = {words[0].data(), words[1].data(), words[2].data(), words[3].data(),
                             nullptr};
  pid_t child = 0;
  const int error = posix_spawnp(&child, program.c_str(), nullptr, nullptr, arguments, environ);
  if (error != 0) {
    return IoError(fmt::format("{}: cannot be unmounted by this user without fusermount3, which "
                               "the package fuse3 has",
                               Escape(path)),
                   error);
  }
  int status = 0;
  if (Uninterrupted([&] { return waitpid(child, &status, 0); }) < 0) {
    return ErrnoStatus(errno, "wait for fusermount3", path);
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return IoError(fmt::format("{}: fusermount3 could not unmount it", Escape(path)));
}

}  // namespace

Result<std::optional<std::string>> MountedOn(const std::string& path) {
  RESHARD_ASSIGN_OR_RETURN(const std::string place, PlaceOf(path));
  std::optional<std::string> type;
  RESHARD_RETURN_IF_ERROR(ForEachMount([&](const std::string& point, std::string found) {
    // The last one lies above the others.
    if (point == place) type = std::move(found);
  }));
  return type;
}

Result<std::string> MountTypeAbove(const std::string& place) {
  std::string type;
  size_t longest = 0;
  RESHARD_RETURN_IF_ERROR(ForEachMount([&](const std::string& point, std::string found) {
    const bool is_above = point == "/" || point == place || place.starts_with(point + '/');
    if (!is_above || point.size() < longest) return;
    longest = point.size();
    type = std::move(found);
  }));
  return type;
}

Status Unmount(const std::string& path) {
  if (umount2(path.c_str(), UMOUNT_NOFOLLOW) == 0) return {};
  if (errno == EBUSY) {
    return AlreadyExistsError(
        fmt::format("{}: is in use; close its open files, and leave its folders", Escape(path)));
  }
  if (errno != EPERM) return ErrnoStatus(errno, "unmount", path);
  return UnmountByHelper(path);
}

Result<int> RunInBackground(const std::function<int(const std::function<void()>& ready)>& serve) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "make", "a pipe");
  const FileDescriptor from(ends[0]);
  FileDescriptor to(ends[1]);
  std::fflush(nullptr);  // so that the child does not write buffered text again
  const pid_t child = fork();
  if (child < 0) return ErrnoStatus(errno, "start", "a process");
  if (child == 0) {
    const int code = serve([&to] {
      LeaveTerminal();
      const char byte = 1;
      // The asking process may have ended; the child goes on in any case.
      if (write(to.get(), &byte, 1) == 1) to = FileDescriptor();
    });
    std::fflush(nullptr);
    _exit(code);
  }
  static_cast<void>(to.Close("a pipe"));
  char byte = 0;
  if (Uninterrupted([&] { return read(from.get(), &byte, 1); }) == 1) return 0;
  int status = 0;
  if (Uninterrupted([&] { return waitpid(child, &status, 0); }) < 0) {
    return ErrnoStatus(errno, "wait for", "a process");
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace reshard
