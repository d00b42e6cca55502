#include "tools/cli/shared_options.h"

#include <fmt/format.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/parameters.h"
#include "tools/cli/command.h"
#include "tools/cli/messages.h"
#include "tools/page/text_format.h"

namespace reshard {
namespace {

constexpr const char* kName = "--source";

// Nothing for what is none.
std::optional<CastRule> ParseCastRule(std::string_view text) {
  constexpr std::pair<std::string_view, DType> kTypes[] = {{"float16", DType::kFloat16},
                                                           {"bfloat16", DType::kBFloat16},
                                                           {"float32", DType::kFloat32},
                                                           {"float64", DType::kFloat64},
                                                           {"float8_e4m3fn", DType::kFloat8E4M3FN},
                                                           {"float8_e5m2", DType::kFloat8E5M2}};
  const size_t equals = text.rfind('=');
  CastRule rule;
  if (equals != std::string_view::npos) {
    if (equals == 0) return std::nullopt;
    rule.pattern = text.substr(0, equals);
    text.remove_prefix(equals + 1);
  }
  if (text == "keep") return rule;
  for (const auto& [name, dtype] : kTypes) {
    if (name != text) continue;
    rule.dtype = dtype;
    return rule;
  }
  return std::nullopt;
}

}  // namespace

void AddStrategyOptions(CLI::App& app, std::string& source, std::string& target) {
  app.add_option("--src-strategy", source,
                 "Strategy of the source, a file or a folder of stage files; none: full tensors")
      ->type_name("S");
  app.add_option("--dst-strategy", target,
                 "Strategy of the target, as above; none: full tensors in one rank")
      ->type_name("D");
}

CLI::Option* AddSuffixOption(CLI::App& app, std::string& suffix) {
  return app
      .add_option("--suffix", suffix,
                  "Take the checkpoints -EPOCH_STEP, as in --suffix=-1_100 (default: the latest)")
      ->type_name("-E_S");
}

void AddRanks(const std::string& option, std::string_view list, std::vector<int64_t>& ranks) {
  constexpr int64_t kMostRanks = int64_t{1} << 20;
  constexpr size_t kMostDigits = 18;
  const auto number = [](std::string_view digits) -> std::optional<int64_t> {
    if (digits.empty() || digits.size() > kMostDigits) return std::nullopt;
    if (digits.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
    return std::stoll(std::string(digits));
  };
  for (bool more = true; more;) {
    const size_t comma = list.find(',');
    const std::string_view range = list.substr(0, comma);
    more = comma != std::string_view::npos;
    if (more) list.remove_prefix(comma + 1);
    const size_t dash = range.find('-');
    const std::optional<int64_t> first = number(range.substr(0, dash));
    const std::optional<int64_t> last =
        dash == std::string_view::npos ? first : number(range.substr(dash + 1));
    if (!first || !last || *last < *first || *last - *first >= kMostRanks) {
      throw CLI::ValidationError(option, fmt::format("has to be ranks such as 3 or 0-7,9; found {}",
                                                     PrintableName(range)));
    }
    for (int64_t rank = *first; rank <= *last; ++rank) ranks.push_back(rank);
  }
}

CLI::Option* AddRankOption(CLI::App& app, std::vector<int64_t>& ranks,
                           const std::string& description) {
  const auto add = [&ranks](const std::vector<std::string>& lists) {
    for (const std::string& list : lists) AddRanks("--rank", list, ranks);
  };
  return app.add_option_function<std::vector<std::string>>("--rank", add, description)
      ->type_name("N")
      ->allow_extra_args(false);
}

CLI::Option* AddSourceFilesOption(CLI::App& app, std::map<int64_t, std::string>& files) {
  const auto set = [&files](const std::vector<std::string>& entries) {
    for (const std::string& entry : entries) {
      const size_t equals = entry.find('=');
      std::string digits = entry.substr(0, equals);
      const CLI::Validator whole_number = WholeNumber();
      if (equals == std::string::npos || equals + 1 == entry.size() ||
          !whole_number(digits).empty()) {
        throw CLI::ValidationError(
            kName, fmt::format("has to be RANK=FILE, as in 3=rank_3/net-1_100.ckpt; found {}",
                               PrintableName(entry)));
      }
      const auto [place, added] = files.emplace(std::stoll(digits), entry.substr(equals + 1));
      if (!added) {
        throw CLI::ValidationError(kName, fmt::format("rank {} is given twice, as {} and as {}",
                                                      place->first, PrintableName(place->second),
                                                      PrintableName(entry.substr(equals + 1))));
      }
    }
  };
  return app
      .add_option_function<std::vector<std::string>>(
          kName, set,
          "File of one source rank, instead of SRC; with --rank, those that these ranks need")
      ->type_name("RANK=FILE")
      ->allow_extra_args(false);
}

CLI::Option* AddGroupInfoOption(CLI::App& app, std::vector<std::string>& paths) {
  return app
      .add_option("--group-info", paths,
                  "group_info.pb of the training run, or a pattern with {rank}; ranks in one list "
                  "replace each other")
      ->type_name("FILE")
      ->allow_extra_args(false);
}

namespace {

// From now on the system writes no core dump of this process, and lets no other one of the user
// look into its memory: besides the key, OpenSSL has there what it derives of it.
void KeepMemoryPrivate() { prctl(PR_SET_DUMPABLE, 0); }

// Options NAME-file and NAME-env, with `words` for what the first is.
std::vector<CLI::Option*> AddKeys(CLI::App& app, const std::string& name_begin, const char* words,
                                  std::shared_ptr<const EncryptionKey>& key) {
  using ReadKey = Result<std::shared_ptr<const EncryptionKey>>(const std::string&);
  const auto add = [&](const char* end, ReadKey* read, const char* type, const char* what) {
    const std::string name = name_begin + end;
    return app
        .add_option_function<std::string>(
            name,
            [&key, name, read](const std::string& from) {
              KeepMemoryPrivate();
              Result<std::shared_ptr<const EncryptionKey>> found = read(from);
              if (!found.ok()) throw CLI::ValidationError(name, found.status().message());
              key = *std::move(found);
            },
            what)
        ->type_name(type);
  };
  CLI::Option* const file = add("-file", EncryptionKey::FromFile, "FILE", words);
  CLI::Option* const variable =
      add("-env", EncryptionKey::FromEnvironment, "VAR", "Environment variable with this key");
  variable->excludes(file);
  return {file, variable};
}

}  // namespace

std::vector<CLI::Option*> AddKeyOptions(CLI::App& app, std::shared_ptr<const EncryptionKey>& key) {
  return AddKeys(app, "--key", "File with the key of encrypted .ckpt files", key);
}

std::vector<CLI::Option*> AddEncryptKeyOptions(CLI::App& app,
                                               std::shared_ptr<const EncryptionKey>& key) {
  return AddKeys(app, "--encrypt-key", "File with the key for the target files", key);
}

void AddEncryptOptions(CLI::App& app, std::optional<EncryptionMode>& mode,
                       std::shared_ptr<const EncryptionKey>& key) {
  app.add_option_function<std::string>(
         "--encrypt", [&mode](const std::string& name) { mode = ParseEncryptionMode(name); },
         "Encrypt the target .ckpt files by AES-GCM, AES-CBC or SM4-CBC; needs one of the next two")
      ->type_name("MODE")
      ->check(CLI::IsMember({"AES-GCM", "AES-CBC", "SM4-CBC"}).description(""));
  AddEncryptKeyOptions(app, key);
}

nlohmann::ordered_json SourceAsJson(const std::string& source,
                                    const std::map<int64_t, std::string>& files) {
  if (files.empty()) return source;
  nlohmann::ordered_json by_rank = nlohmann::ordered_json::object();
  for (const auto& [rank, path] : files) by_rank[std::to_string(rank)] = path;
  return by_rank;
}

std::vector<CLI::Option*> ChoiceOptions::AddTo(CLI::App& app) {
  const auto add_casts = [this](const std::vector<std::string>& rules) {
    for (const std::string& rule : rules) casts_.push_back(*ParseCastRule(rule));
  };
  return {app.add_option("--include", include_, "Only parameters whose source names match GLOB")
              ->type_name("GLOB")
              ->allow_extra_args(false),
          app.add_option("--exclude", exclude_, "Leave out what matches GLOB; wins over --include")
              ->type_name("GLOB")
              ->allow_extra_args(false),
          app.add_option("--rename", rename_file_,
                         "JSON file of new names: {\"old name\": \"new name\"} or {\"patterns\": "
                         "{\"old.*\": \"new.*\"}}")
              ->type_name("MAP.json"),
          app.add_option_function<std::vector<std::string>>(
                 "--dtype", add_casts,
                 "Cast floats whose source names match GLOB (without it: all but optimizer states "
                 "and tensors of one element) to TYPE: float16, bfloat16, float32, float64, "
                 "float8_e4m3fn, float8_e5m2 or keep; the first match counts")
              ->type_name("[GLOB=]TYPE")
              ->allow_extra_args(false)
              ->check(CLI::Validator(
                  [](std::string& text) {
                    if (ParseCastRule(text)) return std::string();
                    return fmt::format(
                        "has to be TYPE or GLOB=TYPE, and TYPE one of float16, bfloat16, float32, "
                        "float64, float8_e4m3fn, float8_e5m2 and keep; found {}",
                        PrintableName(text));
                  },
                  ""))};
}

CLI::Option* NameMapOption::AddTo(CLI::App& app) {
  return app
      .add_option(
          "--name-map", file_,
          "JSON file {\"name\": \"name in the source\", ...}, where the source has other names")
      ->type_name("MAP.json");
}

Status NameMapOption::Fill(SourceSpec& source) const {
  if (file_.empty()) return {};
  Result<Renames> map = ReadRenames(file_);
  if (!map.ok()) return map.status().WithMessage("--name-map " + map.status().message());
  if (!map->patterns.empty()) {
    return InvalidArgumentError(
        fmt::format("--name-map {}: has patterns, which --rename takes; "
                    "expected the name in the source for each name",
                    PrintableName(file_)));
  }
  source.name_map = std::move(map->names);
  return {};
}

void NameFilter::AddTo(CLI::App& app, const std::string& include) {
  app.add_option(include, include_, "Only parameters whose names match GLOB")
      ->type_name("GLOB")
      ->allow_extra_args(false);
  app.add_option("--exclude", exclude_, "Leave out what matches GLOB; wins over --include")
      ->type_name("GLOB")
      ->allow_extra_args(false);
}

bool NameFilter::Takes(std::string_view name) const {
  const auto matches = [name](const std::string& pattern) { return GlobMatch(pattern, name); };
  return (include_.empty() || std::any_of(include_.begin(), include_.end(), matches)) &&
         std::none_of(exclude_.begin(), exclude_.end(), matches);
}

Warning NameFilter::NothingTaken() const {
  std::string message;
  if (include_.empty()) {
    message = "--exclude leaves out every parameter";
  } else if (include_.size() > 1 || !exclude_.empty()) {
    message =
        "--include and --exclude leave no parameter; a pattern has to match a whole name, as "
        "*head* does";
  } else {
    message = fmt::format(
        "--include matches no parameter: \"{}\"; a pattern has to match a whole name, as *head* "
        "does",
        PrintableName(include_.front()));
  }
  return {WarningCode::kUnusedPatterns, std::move(message)};
}

std::string AlreadyPublishedText(const std::string& target) {
  return fmt::format("{}: already complete, nothing to do: neither files nor sources have changed",
                     PrintableName(target));
}

std::string WrittenFilesText(const std::vector<WrittenFile>& files) {
  Table table({{""}, {"", Align::kRight}});
  for (const WrittenFile& file : files) {
    table.AddRow({PrintableName(file.path), FormatBytes(file.size)});
  }
  return "files written:\n" + table.ToText();
}

std::string ChoiceText(uint64_t left_out, uint64_t renamed) {
  if (left_out == 0 && renamed == 0) return "";
  if (left_out == 0) return FormatCount(renamed, "parameter") + " renamed";
  std::string text = FormatCount(left_out, "parameter") + " left out";
  if (renamed > 0) text += fmt::format(", {} renamed", renamed);
  return text;
}

CLI::Validator ByteSize(SizeUnits units) {
  const auto check = [units](std::string& text) -> std::string {
    const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    std::string decimals;
    if (digits > 0 && digits < text.size() && text[digits] == '.') {
      decimals = text.substr(digits + 1);
      decimals.resize(std::min(decimals.find_first_not_of("0123456789"), decimals.size()));
    }
    std::string unit = text.substr(digits + (decimals.empty() ? 0 : decimals.size() + 1));
    for (char& letter : unit) letter = static_cast<char>(std::toupper(letter));
    const bool decimal = units == SizeUnits::kBytesDecimal && unit.size() == 2;
    if (unit.size() > 1 && unit.ends_with('B')) unit.pop_back();
    if (unit.size() > 1 && unit.ends_with('I')) unit.pop_back();
    const bool bare = unit.empty() || unit == "B";
    const size_t power = bare ? 0 : std::string_view("KMGT").find(unit) + 1;
    const size_t most_digits = bare ? 15 : 6;  // never an overflow
    constexpr size_t kMostDecimals = 9;
    if (digits == 0 || digits > most_digits || unit.size() > 1 || (!bare && power == 0) ||
        decimals.size() > kMostDecimals || (bare && !decimals.empty())) {
      return "has to be a size such as 200M or 1.5G; found " + text;
    }
    uint64_t unit_bytes = 1;
    for (size_t i = 0; i < power; ++i) unit_bytes *= decimal ? 1000 : 1024;
    uint64_t bytes = std::stoull(text.substr(0, digits)) * unit_bytes;
    if (!decimals.empty()) {
      uint64_t scale = 1;
      for (size_t i = 0; i < decimals.size(); ++i) scale *= 10;
      bytes += static_cast<uint64_t>(static_cast<double>(std::stoull(decimals)) /
                                     static_cast<double>(scale) * static_cast<double>(unit_bytes));
    }
    text = std::to_string(bytes);
    return text == "0" ? "has to be more than 0" : "";
  };
  return {check, ""};
}

CLI::Option* AddMemoryLimitOption(CLI::App& app, uint64_t& bytes) {
  return app
      .add_option("--memory-limit", bytes,
                  "Use at most SIZE, page cache included (default 256M, or a quarter of the memory "
                  "if less)")
      ->type_name("SIZE")
      ->transform(ByteSize());
}

CLI::Option* AddPartialOption(CLI::App& app, bool& partial) {
  return app.add_flag("--partial", partial,
                      "Take a file that says it is one of several, as -00001-of-00002 does, "
                      "without the others");
}

CLI::Option* AddUnmatchedOption(CLI::App& app, std::optional<UnmatchedPolicy>& policy) {
  const auto set = [&policy](const std::string& word) {
    policy = word == "drop"    ? UnmatchedPolicy::kDrop
             : word == "error" ? UnmatchedPolicy::kError
                               : UnmatchedPolicy::kCopy;
  };
  return app
      .add_option_function<std::string>("--unmatched", set,
                                        "What to do with a parameter that only one of the two "
                                        "strategies describes (default copy)")
      ->type_name("copy|drop|error")
      ->check(CLI::IsMember({"copy", "drop", "error"}).description(""));
}

CLI::Option* AddWaitOption(CLI::App& app, LockWaiting& waiting) {
  constexpr size_t kMostDigits = 9;
  waiting.report = [](const Waiting& so_far) {
    PrintWarnings(
        {{WarningCode::kWaiting,
          fmt::format("waiting for {}, which holds {}, for {} s so far",
                      so_far.holder.empty() ? "another process" : so_far.holder,
                      PrintableName(so_far.lock),
                      std::chrono::duration_cast<std::chrono::seconds>(so_far.time).count())}});
  };
  return app
      .add_option_function<int64_t>(
          "--wait", [&waiting](int64_t seconds) { waiting.most = std::chrono::seconds(seconds); },
          "Wait at most SECONDS for another process, then exit 6 (default: for ever)")
      ->type_name("SECONDS")
      ->transform(WholeNumber(kMostDigits));
}

}  // namespace reshard
