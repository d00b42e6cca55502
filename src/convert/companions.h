// Companions: the configuration, tokenizer and generation files of a model, which are copied into a
// target folder beside the weights (TargetSpec::companions).
#ifndef RESHARD_SRC_CONVERT_COMPANIONS_H_
#define RESHARD_SRC_CONVERT_COMPANIONS_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/options.h"
#include "reshard/status.h"
#include "src/convert/model_config.h"
#include "src/io/source_files.h"
#include "src/plan/extra_files_target.h"
#include "src/source/found_source.h"

namespace reshard {

// The names under which transformers saves configurations, generation settings, tokenizers and
// processors. No programs.
inline constexpr std::string_view kCompanionNames[] = {
    "added_tokens.json",
    "audio_tokenizer_config.json",
    "bpe.codes",
    "chat_template.jinja",
    "chat_template.json",
    kModelConfig,
    "generation_config.json",
    "merges.txt",
    "normalizer.json",
    "preprocessor_config.json",
    "processor_config.json",
    "sentencepiece.bpe.model",
    "source.spm",
    "special_tokens_map.json",
    "spiece.model",
    "target.spm",
    "tekken.json",
    "tiktoken.model",
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "video_preprocessor_config.json",
    "vocab.json",
    "vocab.txt",
};

// Returns the folder of the companions; `spec` asks for some. Errors: kInvalidArgument if the
// source is not in one folder.
Result<std::string> CompanionFolder(const ConversionSpec& spec);

// Finds the companions in the folder, and pins them. Their `relative_path` is the name, and their
// rank has no meaning.
// Errors:
//   kNotFound: no such folder, or none in it
//   kInvalidArgument: a link that leads out of the folder, or an entry that is no file
//   kIo
Result<std::vector<ChosenFile>> FindCompanions(const std::string& folder, SourceFiles& files);

// Returns the files of a target that copy them.
std::vector<ExtraFile> CopiesOf(std::span<const ChosenFile> companions);

// Returns a warning if the configuration states another dtype than the weights are cast to.
std::optional<Warning> CheckStatedDType(const std::string& folder,
                                        const std::vector<Selection::CastRule>& casts);

}  // namespace reshard

#endif  // RESHARD_SRC_CONVERT_COMPANIONS_H_
