#include "tools/cli/commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/cli/messages.h"
#include "tools/cli/stop_on_signal.h"
#include "tools/page/text_format.h"

namespace reshard {

CatCommand::CatCommand(CLI::App& parent)
    : Command(parent, "cat", "Pass on one target file of a conversion, without writing a target",
              {"reshard cat ckpt_8 --rank 0 --src-strategy s8.ckpt --dst-strategy s4.ckpt | zstd > "
               "0.ckpt.zst",
               "mkfifo /tmp/0.ckpt && reshard cat ckpt_8 --rank 0 --src-strategy s8.ckpt "
               "--dst-strategy s4.ckpt -o /tmp/0.ckpt",
               "reshard cat ckpt_8 --src-strategy s8.ckpt --range 0:4096 | xxd"}) {
  LeaveOutJson();
  AddPositional(app(), "SRC", options_.source.path, "The source, as of convert")->required(false);
  constexpr size_t kMostDigits = 18;
  app()
      .add_option("--rank", rank_,
                  "Target rank, or the number of a file of full tensors; needed unless there is "
                  "one file only")
      ->type_name("N")
      ->transform(WholeNumber(kMostDigits));
  app()
      .add_option_function<std::string>(
          "--range",
          [this](const std::string& text) {
            const Status read = ReadRange(text);
            if (!read.ok()) throw CLI::ValidationError("--range", read.message());
          },
          "Only LEN bytes from offset OFF on. reshard then checks that the sources have not "
          "changed, but compares no digests or CRCs")
      ->type_name("OFF:LEN");
  app()
      .add_option("-o,--output", output_,
                  "Write to the pipe of this name, or to a new file, which appears when it is "
                  "complete (default: standard output)")
      ->type_name("FILE");
  table_.AddTo(app(), kCatCall);
  AddJobsOption(app(), options_.run.jobs)->group("Run");
  app().parse_complete_callback([this] { table_.RequireOneSource(options_.source.path); });
}

Status CatCommand::ReadRange(const std::string& text) {
  const auto number = [](std::string_view digits, uint64_t& value) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return error == std::errc() && end == digits.data() + digits.size();
  };
  const std::string_view all = text;
  const size_t colon = all.find(':');
  ByteRange range;
  if (colon == std::string_view::npos || !number(all.substr(0, colon), range.offset) ||
      !number(all.substr(colon + 1), range.length)) {
    return InvalidArgumentError("has to be two numbers of bytes, as 4096:512; found " + text);
  }
  range_ = range;
  return {};
}

Result<ConvertOptions> CatCommand::Options() const {
  ConvertOptions options = options_;
  if (Status given = table_.ApplyTo(PartsOf(options)); !given.ok()) return given;
  // Opens and plans only the sources of this file. A folder of full tensors is planned as a whole.
  if (rank_ && !IsWholeFolder(options.target.format)) options.selection.ranks = {*rank_};
  if (range_) options.checks.checksum = false;
  return options;
}

Result<size_t> CatCommand::FileOf(const TargetView& view) const {
  const std::span<const PlanReport::TargetFile> files = view.files();
  std::vector<int64_t> numbers;
  size_t last = 0;
  for (size_t i = 0; i < files.size(); ++i) {
    if (rank_ == files[i].rank) return i;
    if (!rank_ && !HoldsModel(files[i].kind)) continue;
    last = i;
    numbers.push_back(files[i].rank);
  }
  if (!rank_ && numbers.size() == 1) return last;
  if (!rank_) {
    return InvalidArgumentError(fmt::format("--rank is required: the target has {} files, {}",
                                            numbers.size(), FormatRanks(numbers)));
  }
  return InvalidArgumentError(
      fmt::format("--rank {}: the target has the files {}", *rank_, FormatRanks(numbers)));
}

Result<CatCommand::Done> CatCommand::PassOn(const ConvertOptions& options, ByteOutput& output) {
  const Result<TargetView> view = TargetView::Open(options);
  if (!view.ok()) return view.status();
  if (!quiet()) PrintNotes(view->findings().notes);
  PrintWarnings(view->findings().warnings);
  const Result<size_t> file = FileOf(*view);
  if (!file.ok()) return file.status();
  const PlanReport::TargetFile& target = view->files()[*file];
  const ByteRange range = range_.value_or(ByteRange{0, target.size});
  if (range.offset > target.size || range.length > target.size - range.offset) {
    return InvalidArgumentError(fmt::format("--range {}:{}: {} has {} bytes", range.offset,
                                            range.length, PrintableName(target.path), target.size));
  }
  if (Status opened = output.Open(range.length); !opened.ok()) return opened;
  Result<std::vector<Warning>> streamed = view->Stream(
      *file, range, [&](std::span<const std::byte> bytes) { return output.Write(bytes); });
  if (!streamed.ok()) return streamed.status();
  if (Status finished = output.Finish(); !finished.ok()) return finished;
  return Done{target.path, range.length, *std::move(streamed)};
}

int CatCommand::Run() {
  const auto start = std::chrono::steady_clock::now();
  std::signal(SIGPIPE, SIG_IGN);  // that a reader has gone is an error as others are
  const Result<ConvertOptions> options = Options();
  if (!options.ok()) return Fail(options.status());
  if (const Status stays = file_use().AddOutput(output_); !stays.ok()) return Fail(stays);
  Result<ByteOutput> output = ByteOutput::Make(output_, options->force);
  if (!output.ok()) return Fail(output.status());
  const Result<Done> done =
      CallStoppable(*options, progress_style(),
                    [&](const ConvertOptions& given) { return PassOn(given, *output); });
  if (!done.ok()) return Fail(done.status());
  PrintWarnings(done->warnings);
  if (!quiet()) {
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    PrintWords(fmt::format("{}: {} passed on in {} ({})", PrintableName(done->path),
                           FormatBytes(done->bytes), FormatSeconds(taken.count()),
                           FormatRate(done->bytes, taken.count())));
  }
  return 0;
}

}  // namespace reshard
