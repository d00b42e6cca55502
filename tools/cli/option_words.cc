#include "tools/cli/option_words.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace reshard {
namespace {

struct OptionWords {
  std::string_view name;   // as the library has it
  std::string_view words;  // what is typed; where it ends in "=" or a blank, a value follows
};

// A name with a value comes before the same name with any.
constexpr OptionWords kOptionWords[] = {
    {"CommitWorkers", "`reshard commit`"},
    {"Convert", "`reshard convert`"},
    {"MakeStrategy", "`reshard strategy make`"},
    {"Recode", "`reshard recode`"},
    {"ShardedCheckpoint::Shards", "`reshard inspect --strategy`"},
    {"Verify", "`reshard verify`"},
    {"VerifyAgainst", "--against"},
    {"checks.replicas=", "--check-replicas="},
    {"casts", "--dtype"},
    {"checkpoint", "--from CKPT"},
    {"checksum=false", "--no-checksum"},
    {"crc", "--crc"},
    {"encryption", "--encrypt"},
    {"encryption_key", "--encrypt-key-file or --encrypt-key-env"},
    {"checks.reference", "--reference"},
    {"exclude", "--exclude"},
    {"exclude=", "--exclude "},
    {"files", "--files"},
    {"force", "--force"},
    {"format", "--format"},
    {"format=", "--format "},
    {"group_info", "--group-info"},
    {"include", "--include"},
    {"io.target", "--io"},
    {"io.target=", "--io "},
    {"key", "--key-file or --key-env"},
    {"kind=segments", "--segments"},
    {"name_map", "--name-map"},
    {"names", "--names"},
    {"parameters", "--param"},
    {"part_size", "--part-size"},
    {"partial", "--partial"},
    {"prefix", "--prefix"},
    {"prune", "--prune"},
    {"ranks", "--rank"},
    {"renames", "--rename"},
    {"resume", "--resume"},
    {"resume=", "--resume="},
    {"shard=", "--shard "},
    {"shard_size", "--shard-size"},
    {"source.files", "--source"},
    {"source.files=", "--source "},
    {"suffix", "--suffix"},
    {"suffix=", "--suffix="},
    {"target.strategy", "--dst-strategy"},
    {"unmatched", "--unmatched"},
    {"unmatched=", "--unmatched "},
};

std::string_view& SourceStrategyWords() {
  static std::string_view words = "--src-strategy";
  return words;
}

// What is typed for `name`, or nothing.
std::string WordsOf(std::string_view name) {
  if (name == "source.strategy") return std::string(SourceStrategyWords());
  for (const OptionWords& row : kOptionWords) {
    if (name == row.name) return std::string(row.words);
    if (row.name.ends_with('=') && name.starts_with(row.name)) {
      return std::string(row.words).append(name.substr(row.name.size()));
    }
  }
  return {};
}

}  // namespace

void SpellSourceStrategy(std::string_view words) { SourceStrategyWords() = words; }

std::string InOptionWords(std::string_view message) {
  std::string text;
  size_t done = 0;
  for (const NamedOption& option : NamedOptions(message)) {
    const std::string words = WordsOf(message.substr(option.offset + 1, option.length - 2));
    if (words.empty()) continue;
    text.append(message.substr(done, option.offset - done)).append(words);
    done = option.offset + option.length;
  }
  return text.append(message.substr(done));
}

std::vector<std::string> InOptionWords(const std::vector<std::string>& messages) {
  std::vector<std::string> words;
  words.reserve(messages.size());
  for (const std::string& message : messages) words.push_back(InOptionWords(message));
  return words;
}

std::vector<Warning> InOptionWords(std::vector<Warning> warnings) {
  for (Warning& warning : warnings) warning.message = InOptionWords(warning.message);
  return warnings;
}

}  // namespace reshard
