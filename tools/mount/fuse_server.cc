#include "tools/mount/fuse_server.h"

#include <fmt/format.h>
#include <fuse_lowlevel.h>
#include <poll.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <ctime>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "reshard/byte_range.h"
#include "src/frontend/read_ahead.h"
#include "tools/mount/target_tree.h"

namespace reshard {
namespace {

// Names and sizes do not change while the target is mounted, so the kernel may keep them.
constexpr double kForever = 1e8;  // seconds
constexpr uint64_t kBlockBytes = 4096;
constexpr unsigned kThreads = 8;

int ErrorOf(const Status& status) {
  switch (status.code()) {
    case StatusCode::kChanged:
    case StatusCode::kNotFound:
    case StatusCode::kCorrupt:  // a source that is shorter now
      return ESTALE;
    case StatusCode::kResourceExhausted:
      return ENOMEM;
    case StatusCode::kCancelled:
      return EINTR;
    default:
      return EIO;
  }
}

// A file that somebody has opened.
struct OpenFile {
  explicit OpenFile(uint64_t size) : ahead(0, size) {}

  ReadAhead ahead;
  std::string text;  // of the status
};

OpenFile* OpenFileOf(const fuse_file_info& info) { return reinterpret_cast<OpenFile*>(info.fh); }

// libfuse's last message, which would otherwise go to standard error. Any thread.
struct LibraryWords {
  std::mutex mutex;
  std::string last;
};

LibraryWords& SaidByLibrary() {
  static LibraryWords said;
  return said;
}

__attribute__((format(printf, 2, 0))) void NoteSaid(fuse_log_level /*level*/, const char* format,
                                                    va_list values) {
  char line[512];
  std::vsnprintf(line, sizeof(line), format, values);
  LibraryWords& said = SaidByLibrary();
  const std::lock_guard lock(said.mutex);
  said.last = line;
  while (said.last.ends_with('\n')) said.last.pop_back();
}

class FuseServer {
 public:
  explicit FuseServer(const MountRequest& request)
      : request_(request), tree_(request.view.files()), made_(std::time(nullptr)) {}

  Status Serve();

 private:
  static FuseServer& Of(fuse_req_t request) {
    return *static_cast<FuseServer*>(fuse_req_userdata(request));
  }
  static const fuse_lowlevel_ops& Operations();

  void Lookup(fuse_req_t request, fuse_ino_t folder, const char* name);
  void GetAttributes(fuse_req_t request, fuse_ino_t number);
  void ReadFolder(fuse_req_t request, fuse_ino_t number, size_t size, off_t offset);
  void Open(fuse_req_t request, fuse_ino_t number, fuse_file_info& info);
  void Read(fuse_req_t request, fuse_ino_t number, size_t size, off_t offset,
            const fuse_file_info& info);
  void Measure(fuse_req_t request);

  struct stat AttributesOf(TargetTree::Number number, const TargetTree::Node& node);
  // Tells why something failed, once. Returns the errno.
  int Tell(const Status& status);
  std::string StatusText();

  const MountRequest& request_;
  const TargetTree tree_;
  const time_t made_;
  std::mutex mutex_;  // guards the members below
  std::set<std::string> reasons_;
};

struct stat FuseServer::AttributesOf(TargetTree::Number number, const TargetTree::Node& node) {
  struct stat found = {};
  found.st_ino = number;
  found.st_mode = node.is_folder ? S_IFDIR | 0555 : S_IFREG | 0444;
  found.st_nlink = node.is_folder ? 2 : 1;
  found.st_uid = getuid();
  found.st_gid = getgid();
  const uint64_t size = number == TargetTree::kStatus ? StatusText().size() : node.size;
  found.st_size = static_cast<off_t>(size);
  found.st_blocks = static_cast<blkcnt_t>((size + 511) / 512);
  found.st_blksize = 1 << 20;
  found.st_atime = found.st_mtime = found.st_ctime = made_;
  return found;
}

void FuseServer::Lookup(fuse_req_t request, fuse_ino_t folder, const char* name) {
  fuse_entry_param entry = {};
  entry.entry_timeout = kForever;
  entry.ino = tree_.Look(folder, name);
  if (entry.ino != 0) {
    entry.attr = AttributesOf(entry.ino, *tree_.Find(entry.ino));
    entry.attr_timeout = entry.ino == TargetTree::kStatus ? 0 : kForever;
  }
  fuse_reply_entry(request, &entry);  // without a number: no such file, which is kept in mind
}

void FuseServer::GetAttributes(fuse_req_t request, fuse_ino_t number) {
  const TargetTree::Node* const node = tree_.Find(number);
  if (node == nullptr) {
    fuse_reply_err(request, ENOENT);
    return;
  }
  const struct stat found = AttributesOf(number, *node);
  fuse_reply_attr(request, &found, number == TargetTree::kStatus ? 0 : kForever);
}

void FuseServer::ReadFolder(fuse_req_t request, fuse_ino_t number, size_t size, off_t offset) {
  const TargetTree::Node* const folder = tree_.Find(number);
  if (folder == nullptr || !folder->is_folder) {
    fuse_reply_err(request, ENOTDIR);
    return;
  }
  std::vector<char> out(size);
  size_t used = 0;
  for (auto place = static_cast<uint64_t>(offset); place < folder->children.size() + 2; ++place) {
    const TargetTree::Number entry = place == 0   ? number
                                     : place == 1 ? folder->parent
                                                  : folder->children[place - 2];
    const TargetTree::Node& node = *tree_.Find(entry);
    const char* const name = place == 0 ? "." : place == 1 ? ".." : node.name.c_str();
    struct stat found = {};
    found.st_ino = entry;
    found.st_mode = node.is_folder ? S_IFDIR : S_IFREG;
    const size_t added = fuse_add_direntry(request, out.data() + used, size - used, name, &found,
                                           static_cast<off_t>(place + 1));
    if (added > size - used) break;
    used += added;
  }
  fuse_reply_buf(request, out.data(), used);
}

void FuseServer::Open(fuse_req_t request, fuse_ino_t number, fuse_file_info& info) {
  const TargetTree::Node* const node = tree_.Find(number);
  if (node == nullptr || node->is_folder) {
    fuse_reply_err(request, node == nullptr ? ENOENT : EISDIR);
    return;
  }
  if ((info.flags & O_ACCMODE) != O_RDONLY) {
    fuse_reply_err(request, EROFS);
    return;
  }
  auto open = std::make_unique<OpenFile>(node->size);
  if (number == TargetTree::kStatus) {
    open->text = StatusText();
    info.direct_io = 1;
  } else {
    const Status unchanged = request_.view.VerifyUnchanged(node->file);
    if (!unchanged.ok()) {
      fuse_reply_err(request, Tell(unchanged));
      return;
    }
    info.direct_io = request_.caches ? 0 : 1;
    info.keep_cache = request_.caches ? 1 : 0;
  }
  info.fh = reinterpret_cast<uint64_t>(open.get());
  if (fuse_reply_open(request, &info) == 0) static_cast<void>(open.release());  // Release frees it
}

void FuseServer::Read(fuse_req_t request, fuse_ino_t number, size_t size, off_t offset,
                      const fuse_file_info& info) {
  OpenFile& open = *OpenFileOf(info);
  const auto begin = static_cast<uint64_t>(offset);
  if (number == TargetTree::kStatus) {
    const std::string_view text = open.text;
    const std::string_view part = text.substr(std::min<uint64_t>(begin, text.size()), size);
    fuse_reply_buf(request, part.data(), part.size());
    return;
  }
  const TargetTree::Node& node = *tree_.Find(number);
  const uint64_t end = std::min<uint64_t>(node.size, begin + size);
  if (begin >= end) {
    fuse_reply_buf(request, nullptr, 0);
    return;
  }
  // Of each of libfuse's threads, for all its requests; not cleared.
  thread_local std::unique_ptr<std::byte[]> buffer;
  thread_local size_t buffer_bytes = 0;
  if (buffer_bytes < end - begin) {
    buffer.reset(new (std::nothrow) std::byte[end - begin]);
    buffer_bytes = buffer == nullptr ? 0 : end - begin;
    if (buffer == nullptr) {
      fuse_reply_err(request, ENOMEM);
      return;
    }
  }
  const std::span<std::byte> out(buffer.get(), end - begin);
  Status status = request_.view.Read(node.file, begin, out);
  // Only then are these the bytes of the sources that were opened.
  if (status.ok()) status = request_.view.VerifyUnchanged(node.file);
  if (!status.ok()) {
    fuse_reply_err(request, Tell(status));
    return;
  }
  // Once it is answered, the file may be closed, and `open` gone.
  const ByteRange later = open.ahead.Behind({begin, end - begin});
  fuse_reply_buf(request, reinterpret_cast<const char*>(out.data()), out.size());
  // A later read reports errors of a source.
  if (later.length > 0) static_cast<void>(request_.view.Prefetch(node.file, later));
}

void FuseServer::Measure(fuse_req_t request) {
  struct statvfs found = {};
  found.f_bsize = found.f_frsize = kBlockBytes;
  found.f_blocks = (tree_.bytes() + kBlockBytes - 1) / kBlockBytes;
  found.f_files = tree_.count();
  found.f_namemax = 255;
  fuse_reply_statfs(request, &found);
}

int FuseServer::Tell(const Status& status) {
  if (status.code() != StatusCode::kCancelled) {
    const std::lock_guard lock(mutex_);
    if (reasons_.insert(status.message()).second) request_.failed(status);
  }
  return ErrorOf(status);
}

std::string FuseServer::StatusText() {
  const std::lock_guard lock(mutex_);
  if (reasons_.empty()) return "ok\n";
  std::string text;
  for (const std::string& reason : reasons_) text += reason + '\n';
  return text;
}

const fuse_lowlevel_ops& FuseServer::Operations() {
  static const fuse_lowlevel_ops kOperations = [] {
    fuse_lowlevel_ops made = {};
    made.init = [](void* server, fuse_conn_info* /*connection*/) {
      static_cast<FuseServer*>(server)->request_.ready();
    };
    made.lookup = [](fuse_req_t request, fuse_ino_t folder, const char* name) {
      Of(request).Lookup(request, folder, name);
    };
    made.getattr = [](fuse_req_t request, fuse_ino_t number, fuse_file_info* /*info*/) {
      Of(request).GetAttributes(request, number);
    };
    made.readdir = [](fuse_req_t request, fuse_ino_t number, size_t size, off_t offset,
                      fuse_file_info* /*info*/) {
      Of(request).ReadFolder(request, number, size, offset);
    };
    made.open = [](fuse_req_t request, fuse_ino_t number, fuse_file_info* info) {
      Of(request).Open(request, number, *info);
    };
    made.read = [](fuse_req_t request, fuse_ino_t number, size_t size, off_t offset,
                   fuse_file_info* info) {
      Of(request).Read(request, number, size, offset, *info);
    };
    made.release = [](fuse_req_t request, fuse_ino_t /*number*/, fuse_file_info* info) {
      delete OpenFileOf(*info);
      fuse_reply_err(request, 0);
    };
    made.statfs = [](fuse_req_t request, fuse_ino_t /*number*/) { Of(request).Measure(request); };
    return made;
  }();
  return kOperations;
}

// Ends the loop of the thread that makes it. It ends when standard input, a pipe, ends, because the
// starting process has gone, and when a signal has ended the session. libfuse's loop misses a
// signal that comes just before it waits, or that another thread takes.
class EndWatch {
 public:
  EndWatch(fuse_session* session, bool with_input) {
    struct stat input = {};
    const bool is_pipe = with_input && fstat(STDIN_FILENO, &input) == 0 && S_ISFIFO(input.st_mode);
    thread_ = std::jthread([session, is_pipe, loop = pthread_self()](const std::stop_token& stop) {
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_BLOCK, &all, nullptr);  // they are for the loop
      bool ended = false;
      while (!stop.stop_requested()) {
        constexpr int kLook = 100;  // milliseconds
        pollfd waits = {.fd = is_pipe && !ended ? STDIN_FILENO : -1, .events = 0, .revents = 0};
        ended = poll(&waits, 1, kLook) > 0 || ended;
        if (ended || fuse_session_exited(session) != 0) {
          pthread_kill(loop, SIGTERM);  // NOLINT(bugprone-bad-signal-to-kill-thread): is handled
        }
      }
    });
  }

 private:
  std::jthread thread_;
};

Status FuseServer::Serve() {
  std::string options = "ro,nosuid,nodev,default_permissions,fsname=reshard,subtype=reshard";
  if (request_.allows_others) options += ",allow_other";
  std::string words[] = {"reshard-mount", "-o", options};
  char* values[] = {words[0].data(), words[1].data(), words[2].data(), nullptr};
  fuse_args arguments = FUSE_ARGS_INIT(3, values);
  fuse_set_log_func(NoteSaid);
  const std::unique_ptr<fuse_session, void (*)(fuse_session*)> session(
      fuse_session_new(&arguments, &Operations(), sizeof(fuse_lowlevel_ops), this),
      fuse_session_destroy);
  const auto failure = [&](std::string_view what) {
    LibraryWords& said = SaidByLibrary();
    const std::lock_guard lock(said.mutex);
    return IoError(
        fmt::format("{}: {}{}{}", request_.folder, what, said.last.empty() ? "" : ": ", said.last));
  };
  if (session == nullptr) return failure("cannot be mounted");
  if (fuse_set_signal_handlers(session.get()) != 0) return failure("cannot wait for signals");
  Status status;
  if (fuse_session_mount(session.get(), request_.folder.c_str()) != 0) {
    status = failure("cannot be mounted; is /dev/fuse there, and may this user open it?");
  } else {
    fuse_loop_config* const config = fuse_loop_cfg_create();
    fuse_loop_cfg_set_clone_fd(config, 0);
    fuse_loop_cfg_set_max_threads(config, kThreads);
    fuse_loop_cfg_set_idle_threads(config, kThreads);
    {
      const EndWatch watch(session.get(), request_.ends_with_input);
      // A signal's number, or an error.
      const int ended = fuse_session_loop_mt(session.get(), config);
      if (ended < 0) status = failure("the kernel could not be served any longer");
    }
    fuse_loop_cfg_destroy(config);
    fuse_session_unmount(session.get());
  }
  fuse_remove_signal_handlers(session.get());
  fuse_opt_free_args(&arguments);
  return status;
}

}  // namespace

Status ServeByFuse(const MountRequest& request) { return FuseServer(request).Serve(); }

}  // namespace reshard
