#include "tools/cli/commands.h"

#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reshard/convert.h"
#include "src/frontend/option_parts.h"
#include "src/frontend/worker_share.h"
#include "tools/cli/command_table.h"
#include "tools/cli/conversion_arguments.h"
#include "tools/cli/messages.h"
#include "tools/cli/rank_findings.h"
#include "tools/cli/shared_options.h"
#include "tools/cli/stop_on_signal.h"
#include "tools/page/charts.h"
#include "tools/page/report_page.h"
#include "tools/page/text_format.h"

namespace reshard {
namespace {

// "sources mapped, targets written directly", with counts if both ways were used.
std::string IoInWords(const ConvertReport::IoUsed& io) {
  const auto words = [](std::string_view noun, uint64_t a, std::string_view how_a, uint64_t b,
                        std::string_view how_b) {
    if (a == 0 || b == 0) return fmt::format("{} {}", noun, a > 0 ? how_a : how_b);
    return fmt::format("{} {} {}, {} {}", a, noun, how_a, b, how_b);
  };
  return fmt::format("{}, {}",
                     words("sources", io.sources_mapped, "mapped", io.sources_read, "read"),
                     words("targets", io.targets_direct, "written directly", io.targets_buffered,
                           "written with buffers"));
}

// The report of layouts for the page `path`. Errors: as MakeLayoutReport and CheckReport.
Result<LayoutReport> LayoutBefore(const ConvertOptions& options, const std::string& path) {
  const Status free = CheckReport(path, options.force, options.target.folder);
  if (!free.ok()) return free;
  const StopOnSignal stop;
  LayoutReportOptions layout{options, {}};
  layout.conversion.run.stop = stop.token();
  return MakeLayoutReport(layout);
}

// There is no rate for bytes that an earlier run wrote.
std::string WrittenWords(const ConvertReport& report, double seconds) {
  const std::string bytes = FormatBytes(report.bytes_written);
  if (report.files_kept > 0) return fmt::format("{} complete in {}", bytes, FormatSeconds(seconds));
  return fmt::format("{} written in {} ({})", bytes, FormatSeconds(seconds),
                     FormatRate(report.bytes_written, seconds));
}

// What a worker has done, and what becomes of the set.
std::string ShareText(const ConvertReport& report, double seconds) {
  const ConvertReport::Worker& worker = *report.shard;
  const std::string share = fmt::format("share {}/{}: ", worker.shard.index, worker.shard.count);
  if (report.already_published) return share + "nothing to do: the set is already published";
  std::string work = "nothing to write, the other shares have all files";
  if (!report.files.empty() && report.files_kept == report.files.size()) {
    work = fmt::format("{}, {}, written before", FormatCount(report.files.size(), "part"),
                       FormatBytes(report.bytes_written));
  } else if (!report.files.empty()) {
    work = fmt::format("{}, {}", FormatCount(report.files.size(), "part"),
                       WrittenWords(report, seconds));
    if (report.files_kept > 0) work += fmt::format(", {} before", report.files_kept);
  }
  if (worker.published) return share + work + "; all shares have finished; the set is published";
  if (worker.outstanding.empty()) return share + work + "; another share has published the set";
  const std::vector<int64_t> outstanding(worker.outstanding.begin(), worker.outstanding.end());
  constexpr size_t kMostListed = 16;
  const std::string others = outstanding.size() == 1
                                 ? fmt::format("share {} has", outstanding.front())
                             : ConsecutiveIn(outstanding).size() > kMostListed
                                 ? fmt::format("{} other shares have", outstanding.size())
                                 : fmt::format("shares {} have", FormatRanks(outstanding));
  return share + work + fmt::format("; the set is published once {} finished, too", others);
}

constexpr const char* kOfSourceFiles =
    "reshard convert --source 0=a.ckpt --source 4=b.ckpt one --rank 0 --src-strategy s8.ckpt "
    "--dst-strategy s4.ckpt";

}  // namespace

ConvertCommand::ConvertCommand(CLI::App& parent)
    : Command(parent, "convert", "Convert a checkpoint to another sharding, as a copy",
              {"reshard convert ckpt_8 ckpt_4 --src-strategy s8.ckpt --dst-strategy s4.ckpt",
               "reshard convert ckpt_8 first --src-strategy s8/ --dst-strategy s4/ --rank 0",
               "reshard convert ckpt_8 full --src-strategy s8.ckpt        # full tensors",
               "reshard convert full/rank_0/checkpoint_0.ckpt ckpt_2 --tp 2",
               "reshard convert 'run/node{rank}/net-1_100.ckpt' other --src-strategy s8.ckpt",
               kOfSourceFiles}) {
  AddJsonLinesOption();
  arguments_.AddTo(app(), kConvertCall);
  FindOption(app(), "--wait")->needs(FindOption(app(), "--shard"));
  app()
      .add_option("--report", page_, "Also draw the run as one HTML file (reshard report)")
      ->type_name("FILE")
      ->group("Run");
  arguments_.AddMindFormersTo(app());
}

int ConvertCommand::Run() {
  const auto each = arguments_.mindformers().ForEachFile(arguments_.target());
  if (!each.ok()) return Fail(each.status());
  if (each->size() > 1 && !page_.empty()) {
    return Fail(InvalidArgumentError(
        fmt::format("--report: one page draws one conversion; {} has {} files, give one",
                    PrintableName(arguments_.mindformers().source()), each->size())));
  }
  if (each->size() < 2) {
    if (!each->empty()) arguments_.SetMindFormers(each->front());
    return ConvertOne(nullptr);
  }
  auto documents = nlohmann::ordered_json::array();
  for (const MindFormersSpelling& one : *each) {
    arguments_.SetMindFormers(one);
    if (const int code = ConvertOne(&documents); code != 0) return code;
  }
  nlohmann::ordered_json document = JsonDocument();
  document["conversions"] = std::move(documents);
  if (json()) PrintData(ToJsonText(document) + '\n');
  return 0;
}

int ConvertCommand::ConvertOne(nlohmann::ordered_json* documents) {
  const auto start = std::chrono::steady_clock::now();
  Result<ConvertOptions> given = arguments_.Options();
  if (!given.ok()) return Fail(given.status());
  ConvertOptions& options = *given;
  options.run.lock_held = ReportWaiting;
  const MindFormersSpelling& mindformers = arguments_.mindformers();
  const Status world_size = mindformers.CheckWorldSize(options.target);
  if (!world_size.ok()) return Fail(world_size);
  std::optional<LayoutReport> layout;
  const Status stays = file_use().AddOutput(page_);
  if (!stays.ok()) return Fail(stays);
  if (!page_.empty()) {  // first, so that its errors come before any write
    Result<LayoutReport> made = LayoutBefore(options, page_);
    if (!made.ok()) return Fail(made.status());
    layout = *std::move(made);
    options.record_timeline = true;
  }
  std::set<std::string> told;
  options.note = [&](const std::string& note) {
    if (!quiet()) PrintNotes({note});
    told.insert(note);
  };
  Result<ConvertReport> report = CallStoppable(options, progress_style(), Convert);
  if (!report.ok()) return Fail(WithLauncherHint(report.status(), options.shard));
  if (auto warning = mindformers.RanksLeftOut()) report->warnings.push_back(*std::move(warning));
  if (layout) {
    const std::string run =
        TimelineSection(*report->timeline, {report->memory_planned, report->memory_limit});
    const Status drawn =
        WriteReport(page_,
                    ReportPage(
                        *layout, [](auto message) { return AsTyped(message); }, run),
                    options.force);
    if (!drawn.ok()) {
      return Fail(drawn.WithMessage(fmt::format(
          "the conversion is done, but its report is not written: {}", drawn.message())));
    }
  }

  std::vector<std::string> notes = report->notes;
  std::erase_if(notes, [&](const std::string& note) { return told.contains(note); });
  // The share that planned for all has told its findings.
  const bool follows = report->shard && (report->largest.empty() || report->already_published);
  if (!quiet() && (verbose() || !follows)) PrintNotes(notes);
  PrintWarnings(report->warnings);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  const ReportedCall call{.place = arguments_.target(), .seconds = seconds.count()};
  if (documents != nullptr) {
    JsonReport one;
    Describe(*report, call, one);
    documents->push_back(one.Take());
  } else if (json()) {
    PrintReport(*report, call);
  }
  if (!quiet()) PrintSummary(*report, seconds.count());
  return 0;
}

void ConvertCommand::PrintSummary(const ConvertReport& report, double seconds) const {
  if (report.already_published && !report.shard) {
    PrintWords(AlreadyPublishedText(arguments_.target()));
    return;
  }
  if (report.shard) {
    PrintWords(ShareText(report, seconds));
    if (report.already_published || !verbose()) return;
  } else if (report.completed_earlier_run) {
    PrintWords(fmt::format("{} published, finished by an earlier run",
                           FormatCount(report.files.size(), "file")));
  } else {
    const uint64_t sources = report.source_ranks.size();
    PrintWords(fmt::format(
        "{}, {}, {} from {}", FormatCount(report.files.size(), "file"),
        WrittenWords(report, seconds), FormatCount(report.parameters, "parameter"),
        report.source_is_whole ? FormatCount(sources, "source file")
                               : fmt::format("source {} {}", sources == 1 ? "rank" : "ranks",
                                             FormatRanks(report.source_ranks))));
  }
  if (const std::string text = ChoiceText(report.left_out, report.renamed); !text.empty()) {
    PrintWords(text);
  }
  if (report.totals) PrintWords(ChosenTotalsText(*report.chosen_totals, *report.totals));
  if (const std::string text = ConfirmedText(report.sample); !text.empty()) {
    PrintWords("source strategy " + text);
  }
  if (report.stage_alone) PrintWords(StageAloneText(*report.stage_alone));
  if (!report.step.empty()) PrintWords("step taken: " + report.step);
  if (report.replicas && report.replicas->shards == 0) {
    PrintWords("replicas compared first: none, no two source ranks hold the same shard");
  } else if (report.replicas) {
    PrintWords(fmt::format("replicas compared first: {} of {}, {}: all equal",
                           FormatCount(report.replicas->shards, "shard"),
                           FormatCount(report.replicas->compared, "parameter"),
                           FormatBytes(report.replicas->bytes)));
    PrintNotes(OwnValueNotes(*report.replicas, ""));
  }
  if (report.files_kept > 0 && !report.shard) {
    PrintWords(
        fmt::format("{} kept from an interrupted run", FormatCount(report.files_kept, "file")));
  }
  if (report.pruned > 0) {
    PrintWords(fmt::format("{} of the replaced set removed", FormatCount(report.pruned, "file")));
  }
  if (verbose()) PrintDetails(report);
}

void ConvertCommand::PrintDetails(const ConvertReport& report) const {
  if (report.memory_peak > 0) {
    PrintWords(fmt::format("memory: {} planned, {} used; {}", FormatBytes(report.memory_planned),
                           FormatBytes(report.memory_peak), IoInWords(report.io)));
  }
  if (report.crc_files > 0) {
    PrintWords(fmt::format("CRC trailers checked first: {}, {}",
                           FormatCount(report.crc_files, "source file"),
                           FormatBytes(report.crc_bytes)));
  }
  PrintWords(WrittenFilesText(report.files));
  if (!report.largest_shapes.empty()) {
    PrintWords(
        "largest full shapes (check them against the model: others mean a wrong strategy):\n" +
        LargestAsText(report.largest_shapes));
  }
}

CommitCommand::CommitCommand(CLI::App& parent)
    : Command(parent, "commit",
              "Finish a --shard conversion that was killed before it published the set",
              {"reshard commit ckpt_4"}) {
  AddPositional(app(), "DST", target_, "Target folder of the conversion");
  AddJsonLinesOption();
  table_.AddTo(app(), kCommitCall, "Options");
}

int CommitCommand::Run() {
  const StopOnSignal stop;
  RunOptions run{.stop = stop.token(), .lock_held = ReportWaiting};
  if (const Status given = table_.ApplyTo({.run = &run}); !given.ok()) return Fail(given);
  const Result<CommitReport> report = CommitWorkers(target_, run);
  if (!report.ok()) return Fail(report.status());
  PrintWarnings(report->warnings);
  if (json()) PrintReport(*report, {.place = target_});
  if (!quiet()) {
    PrintWords(fmt::format(
        "{}: {}", PrintableName(target_),
        report->already_published ? "nothing to do: it is already published" : "published"));
  }
  return 0;
}

}  // namespace reshard
