#include "tools/cli/commands.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/convert.h"
#include "tools/cli/command.h"
#include "tools/cli/command_table.h"
#include "tools/cli/conversion_arguments.h"
#include "tools/cli/messages.h"
#include "tools/cli/rank_findings.h"
#include "tools/cli/shared_options.h"
#include "tools/cli/stop_on_signal.h"
#include "tools/page/text_format.h"

namespace reshard {
namespace {

std::string FirstText(const AgainstReport::FileDifference::First& first) {
  if (first.in_header) {
    return fmt::format("  the first is in {}: expected {:#04x}, found {:#04x}\n",
                       first.parameter.empty() ? "the header of an empty tensor"
                                               : "the header of " + PrintableName(first.parameter),
                       first.expected, first.found);
  }
  return fmt::format(
      "  the first is byte {} of this rank's {}: expected {:#04x} from {} offset {}, found "
      "{:#04x}\n",
      first.shard_offset, PrintableName(first.parameter), first.expected,
      PrintableName(first.source_path), first.source_offset, first.found);
}

std::string FileText(const AgainstReport::FileDifference& difference) {
  std::string text = PrintableName(difference.path) + ": ";
  if (!difference.found_size) return text + "missing\n";
  if (*difference.found_size != difference.expected_size) {
    text += fmt::format("{} bytes, planned {}{}", *difference.found_size, difference.expected_size,
                        difference.first ? "; " : "");
  }
  if (!difference.first) return text + '\n';
  text +=
      fmt::format("{} {}, from offset {} on\n", FormatCount(difference.differing_bytes, "byte"),
                  difference.differing_bytes == 1 ? "differs" : "differ", difference.first->offset);
  text += FirstText(*difference.first);
  return text + fmt::format("  {} touched: {}\n",
                            FormatCount(difference.parameter_count, "parameter"),
                            PrintableNames(difference.parameters, difference.parameter_count));
}

std::string ReplicaText(const ReplicaReport::Difference& difference) {
  std::string text = fmt::format("replicas of {} in source stage {} differ:\n",
                                 PrintableName(difference.parameter), difference.stage);
  for (const ReplicaReport::Pair& pair : difference.pairs) {
    text += pair.other_type ? fmt::format("  rank {} has another dtype or shape than rank {}\n",
                                          pair.rank, pair.reference)
                            : fmt::format("  rank {} from rank {}, from byte {} of the shard on\n",
                                          pair.rank, pair.reference, pair.offset);
  }
  const uint64_t more = difference.pair_count - difference.pairs.size();
  return more == 0 ? text : text + fmt::format("  and {} more\n", more);
}

std::string OutcomeText(const DamageReport& report) {
  if (!report.damages.empty()) return FormatCount(report.damages.size(), "difference");
  if (report.files_without_digest == 0) return "all as written";
  if (report.files_without_digest < report.files) {
    return fmt::format("as written, {} by the size alone",
                       FormatCount(report.files_without_digest, "file"));
  }
  return "sizes as written; there are no checksums to compare";
}

// The group of the options that describe the conversion.
constexpr const char* kWithAgainst = "With --against, as given to convert";

std::string DamageText(const DamageReport::Damage& damage) {
  std::string text = fmt::format("{}: {}", PrintableName(damage.path), DamageKindName(damage.kind));
  // For a missing file there is no more to say.
  if (damage.kind != DamageReport::Damage::Kind::kMissing)
    text += ": " + PrintableText(damage.detail);
  text += '\n';
  if (damage.block) {
    text += fmt::format("  bad within bytes {} to {}", damage.block->range.offset,
                        damage.block->range.end() - 1);
    if (damage.bad_blocks > 1) {
      text += fmt::format(", the first of {} bad blocks of 64 MiB", damage.bad_blocks);
    }
    text += '\n';
  }
  if (damage.parameter_count > 0) {
    text += fmt::format("  {} touched: {}\n", FormatCount(damage.parameter_count, "parameter"),
                        PrintableNames(damage.parameters, damage.parameter_count));
  }
  return text;
}

// Lines for each differing file and parameter; "" if there are none.
std::string AgainstAsText(const AgainstReport& report) {
  std::string text;
  for (const AgainstReport::FileDifference& difference : report.differences)
    text += FileText(difference);
  for (const ReplicaReport::Difference& difference : report.replicas.differences) {
    text += ReplicaText(difference);
  }
  const uint64_t more = report.replicas.differing - report.replicas.differences.size();
  if (more > 0) text += fmt::format("and replicas of {} more\n", FormatCount(more, "parameter"));
  return text;
}

// Names of the library's options as they are typed.
std::vector<std::string> OptionsTyped(const std::vector<std::string>& names) {
  std::vector<std::string> typed;
  typed.reserve(names.size());
  for (const std::string& name : names) typed.push_back(AsTyped(fmt::format("`{}`", name)));
  return typed;
}

}  // namespace

VerifyCommand::VerifyCommand(CLI::App& parent)
    : Command(parent, "verify",
              "Check the files of a target against its manifest; exit 1 if they are damaged",
              {"reshard verify ckpt_4", "reshard verify ckpt_4 --jobs 0 --json",
               "reshard verify ckpt_4 --against ckpt_8 --src-strategy s8.ckpt --dst-strategy "
               "s4.ckpt"}) {
  AddJsonLinesOption();
  AddPositional(app(), "DST", options_.target, "Folder that `reshard convert` wrote");
  AddJobsOption(app(), options_.run.jobs);
  AddAgainst();
}

void VerifyCommand::AddAgainst() {
  app()
      .add_option("--against", against_.source.path,
                  "Instead of checking the manifest, compare each byte of DST with a conversion of "
                  "SRC, and the replicas in SRC with each other")
      ->type_name("SRC");
  table_.AddTo(app(), kAgainstCall, kWithAgainst);
  FindOption(app(), "--source")
      ->group("Options")
      ->description("As --against, with the file of source rank RANK instead of SRC; repeatable");
  FindOption(app(), "--format")
      ->description("Format of the target files (default: as found in DST)");
  for (const char* of_both : {"--key-file", "--key-env", "--retries"}) {
    FindOption(app(), of_both)->group("Options");
  }
}

int VerifyCommand::Run() {
  for (const char* name : {"--against", "--source"}) {
    if (FindOption(app(), name)->count() > 0) return RunAgainst();
  }
  for (const CLI::Option* option : app().get_options()) {
    if (option->get_group() == kWithAgainst && option->count() > 0) {
      return Fail(
          InvalidArgumentError(option->get_name() + " goes with --against or --source only"));
    }
  }
  const auto start = std::chrono::steady_clock::now();
  if (const Status given = table_.ApplyTo(PartsOf(options_)); !given.ok()) return Fail(given);
  const Result<DamageReport> report =
      CallStoppable(options_, progress_style(),
                    [](const Verification& it) { return Verify(it.target, it.key, it.run); });
  if (!report.ok()) return Fail(report.status());

  if (!quiet()) PrintNotes(report->notes);
  PrintWarnings(WarningsOf(*report));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  if (json()) {
    PrintReport(*report, {.place = options_.target, .seconds = seconds.count()});
  } else {
    PrintText(*report);
  }
  if (!quiet()) {
    PrintWords(fmt::format("{}, {} read in {} ({}): {}", FormatCount(report->files, "file"),
                           FormatBytes(report->bytes), FormatSeconds(seconds.count()),
                           FormatRate(report->bytes, seconds.count()), OutcomeText(*report)));
  }
  return report->damages.empty() ? 0 : 1;
}

void VerifyCommand::PrintText(const DamageReport& report) const {
  for (const DamageReport::Damage& damage : report.damages) PrintData(DamageText(damage));
}

int VerifyCommand::RunAgainst() {
  against_.target.folder = options_.target;
  against_.run.jobs = options_.run.jobs;
  if (const Status given = table_.ApplyTo(PartsOf(against_)); !given.ok()) return Fail(given);
  const auto print = [this](const AgainstReport& report, double seconds) {
    if (json()) {
      PrintReport(report, {options_.target, seconds, &against_.source});
    } else {
      PrintData(AgainstAsText(report));
    }
    if (!quiet()) {
      PrintNotes(report.notes);
      PrintNotes(OwnValueNotes(report.replicas, ""));
      PrintWords(fmt::format(
          "{}, {} compared in {} ({}): {}; {}", FormatCount(report.files, "file"),
          FormatBytes(report.bytes), FormatSeconds(seconds), FormatRate(report.bytes, seconds),
          report.differences.empty()
              ? "all proved"
              : FormatCount(report.differences.size(), "file") + " with differences",
          ReplicasText(report.replicas)));
      const std::string choice = ChoiceText(report.left_out, report.renamed);
      if (!choice.empty()) PrintWords(choice);
      if (!report.from_origin.empty()) {
        PrintWords(fmt::format("as in its origin.jsonl: {}",
                               fmt::join(OptionsTyped(report.from_origin), ", ")));
      }
    }
    return report.equal() ? 0 : 1;
  };
  return RunStoppable(
      against_, progress_style(), [](const Proof& it) { return VerifyAgainst(it, it.run); }, print);
}

}  // namespace reshard
