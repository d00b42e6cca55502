#include "src/job/progress_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "src/base/number_text.h"
#include "src/base/quote.h"

namespace reshard {
namespace {

constexpr std::string_view kKey = "progress";
constexpr Progress::Phase kPhases[] = {Progress::Phase::kCheck, Progress::Phase::kWrite,
                                       Progress::Phase::kPublish};

// Takes the blanks and the word behind them off the front of `text`.
std::string_view TakeWord(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(word.size());
  return word;
}

std::optional<ProgressRecord> Parse(std::string_view text) {
  if (!text.ends_with('\n')) return std::nullopt;
  text.remove_suffix(1);
  if (TakeWord(text) != kKey) return std::nullopt;
  const std::string_view phase = TakeWord(text);
  const auto* const known =
      std::find_if(std::begin(kPhases), std::end(kPhases),
                   [&](Progress::Phase at) { return PhaseName(at) == phase; });
  if (known == std::end(kPhases)) return std::nullopt;
  ProgressRecord record;
  record.phase = *known;
  for (uint64_t* number : {&record.bytes_done, &record.bytes_before, &record.bytes_total,
                           &record.parts_done, &record.parts_total, &record.write_ms}) {
    const auto value = ParseNumber<uint64_t>(TakeWord(text));
    if (!value) return std::nullopt;
    *number = *value;
  }
  const bool in_order = record.bytes_before <= record.bytes_done &&
                        record.bytes_done <= record.bytes_total &&
                        record.parts_done <= record.parts_total;
  if (!text.empty() || !in_order) return std::nullopt;
  return record;
}

}  // namespace

std::chrono::seconds ProgressInterval(uint64_t workers) {
  constexpr uint64_t kMostInASecond = 100;
  return std::chrono::seconds(std::max<uint64_t>(1, workers / kMostInASecond));
}

std::string EncodeProgress(const ProgressRecord& record) {
  return fmt::format("{} {:7} {:20} {:20} {:20} {:20} {:20} {:20}\n", kKey, PhaseName(record.phase),
                     record.bytes_done, record.bytes_before, record.bytes_total, record.parts_done,
                     record.parts_total, record.write_ms);
}

Result<ProgressRecord> ParseProgress(std::string_view text, const std::string& path) {
  const std::optional<ProgressRecord> record = Parse(text);
  if (record) return *record;
  return CorruptError(
      fmt::format("{}: expected the line \"progress PHASE\" and six numbers, found {}",
                  Escape(path), Quote(text.substr(0, std::min<size_t>(text.size(), 40)))));
}

}  // namespace reshard
