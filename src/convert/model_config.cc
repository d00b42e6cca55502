#include "src/convert/model_config.h"

#include <cstdint>
#include <utility>

#include "src/base/json_reader.h"
#include "src/base/status_macros.h"
#include "src/io/storage.h"

namespace reshard {
namespace {

constexpr uint64_t kMaxConfigBytes = uint64_t{1} << 20;

class ConfigReader final : public JsonReader {
 public:
  explicit ConfigReader(std::string_view path) : JsonReader(path) {}

  ModelConfig Take() && {
    // Without groups each query has its own keys and values.
    if (!config_.facts.kv_heads) config_.facts.kv_heads = config_.facts.heads;
    return std::move(config_);
  }

 private:
  Status OnValue(JsonValue& value) override {
    if (depth() != 1 || LevelAt(1).is_list) return {};
    const std::string& key = Key(1);
    ModelFacts& facts = config_.facts;
    const std::optional<int64_t> number = value.Integer();
    if (key == "num_attention_heads" && number > 0) facts.heads = number;
    if (key == "num_key_value_heads" && number > 0) facts.kv_heads = number;
    if (key == "tie_word_embeddings" && value.kind == JsonValue::Kind::kBoolean) {
      facts.ties_embeddings = value.number != 0;
    }
    const bool is_dtype = key == "dtype" || (key == "torch_dtype" && config_.dtype_key != "dtype");
    if (is_dtype && value.kind == JsonValue::Kind::kString) {
      config_.dtype_key = key;
      config_.dtype = std::move(*value.text);
    }
    return {};
  }

  Status OnOpen(bool /*is_list*/) override { return {}; }

  ModelConfig config_;
};

}  // namespace

std::optional<ModelConfig> ReadModelConfig(const std::string& folder) {
  const Storage& storage = Storage::Of(folder);
  const std::string path = PathIn(folder, kModelConfig);
  const Result<PathKind> kind = storage.KindOf(path);
  if (!kind.ok() || *kind != PathKind::kFile) return std::nullopt;
  const Result<std::string> text = storage.ReadWhole(path, kMaxConfigBytes);
  if (!text.ok()) return std::nullopt;
  ConfigReader reader(path);
  if (!reader.Read(*text).ok()) return std::nullopt;
  return std::move(reader).Take();
}

}  // namespace reshard
