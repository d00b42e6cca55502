#include "tools/cli/commands.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>

#include "src/frontend/mount_place.h"
#include "tools/cli/messages.h"
#include "tools/cli/stop_on_signal.h"
#include "tools/page/text_format.h"

namespace reshard {
namespace {

constexpr const char* kProgram = "reshard-mount";

}  // namespace

MountCommand::MountCommand(CLI::App& parent, MountServer serve, std::vector<std::string> words)
    : Command(parent, "mount", "Show a conversion's files in a folder, without writing them",
              {"reshard mount ckpt_8 /mnt/ckpt_4 --src-strategy s8.ckpt --dst-strategy s4.ckpt",
               "reshard mount ckpt_8 /mnt/full --src-strategy s8.ckpt --background",
               "reshard unmount /mnt/full"}),
      serve_(serve),
      words_(std::move(words)) {
  LeaveOutJson();
  AddPositional(app(), "SRC", options_.source.path, "The source, as of convert")->required(false);
  AddPositional(app(), "MNT", folder_, "Empty folder that the files are to be in")->required(false);
  app().parse_complete_callback([this] { Complete(); });
  app().add_flag("--background", background_,
                 "Return when the files are there, and serve them in the background");
  app().add_flag("--cache", caches_,
                 "Keep the files' bytes in the page cache: for programs that map files, or read "
                 "them several times");
  app().add_flag("--allow-other", allows_others_,
                 "Let other users read; needs user_allow_other in /etc/fuse.conf");
  table_.AddTo(app(), kMountCall);
  AddJobsOption(app(), options_.run.jobs)->group("Run");
}

void MountCommand::Complete() {
  if (table_.Has("source.files") && folder_.empty()) folder_.swap(options_.source.path);
  table_.RequireOneSource(options_.source.path);
  if (folder_.empty()) throw CLI::RequiredError("MNT");
}

int MountCommand::Run() {
  if (serve_ == nullptr) return Fail(Hand());
  if (const Status given = table_.ApplyTo(PartsOf(options_)); !given.ok()) return Fail(given);
  const Status place = CheckMountPlace(folder_, options_.source);
  if (!place.ok()) return Fail(place);
  if (!background_) return Serve([] {});
  const Result<int> code =
      ServeInBackground([this](const std::function<void()>& ready) { return Serve(ready); });
  return code.ok() ? *code : Fail(code.status());
}

Status MountCommand::Hand() const {
  std::vector<std::string> words = {kProgram};
  words.insert(words.end(), words_.begin(), words_.end());
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::error_code error;
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) execv((own.parent_path() / kProgram).c_str(), arguments.data());
  execvp(kProgram, arguments.data());
  return UnsupportedError(fmt::format(
      "mounting takes the program {}, which cannot be run ({}); install the package {}, or build "
      "with -DRESHARD_MOUNT=ON",
      kProgram, std::generic_category().message(errno), kProgram));
}

int MountCommand::Serve(const std::function<void()>& ready) {
  const auto opened = CallStoppable(options_, progress_style(), [](const ConvertOptions& given) {
    // Other programs have the pages, too, and the kernel gives them back when it wants memory.
    return TargetView::Open(given, /*keep_pages=*/true);
  });
  if (!opened.ok()) return Fail(opened.status());
  FinishLog();
  if (const Status free = file_use().Check(); !free.ok()) return Fail(free);
  if (!quiet()) PrintNotes(opened->findings().notes);
  PrintWarnings(opened->findings().warnings);
  uint64_t bytes = 0;
  for (const PlanReport::TargetFile& file : opened->files()) bytes += file.size;
  MountRequest request{.view = *opened, .folder = folder_};
  request.caches = caches_;
  request.allows_others = allows_others_;
  request.ends_with_input = !background_;
  request.ready = [&] {
    if (!quiet()) {
      PrintWords(fmt::format("{}: {}, {}, ready", PrintableName(folder_),
                             FormatCount(opened->files().size(), "file"), FormatBytes(bytes)));
    }
    ready();
  };
  request.failed = [](const Status& status) { Fail(status); };
  const Status served = serve_(request);
  return served.ok() ? 0 : Fail(served);
}

UnmountCommand::UnmountCommand(CLI::App& parent)
    : Command(parent, "unmount", "End a mount of a conversion's files",
              {"reshard unmount /mnt/ckpt_4"}) {
  LeaveOutJson();
  AddPositional(app(), "MNT", folder_, "Folder that the files are in");
}

int UnmountCommand::Run() {
  const Status ended = EndMount(folder_);
  return ended.ok() ? 0 : Fail(ended);
}

}  // namespace reshard
