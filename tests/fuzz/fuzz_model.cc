#include "tests/fuzz/fuzz_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <limits>
#include <utility>

#include "tests/support/checkpoint_bytes.h"
#include "tests/support/naive_reshard.h"

namespace reshard {
namespace {

constexpr int64_t kMostElements = 96;

// Choices out of the bytes, one each; the first option when they are used up.
class Choices {
 public:
  explicit Choices(std::string_view bytes) : bytes_(bytes) {}

  size_t Below(size_t count) {
    if (bytes_.empty()) return 0;
    const auto choice = static_cast<unsigned char>(bytes_.front()) % count;
    bytes_.remove_prefix(1);
    return choice;
  }
  // Rarely true.
  bool Odd() { return Below(16) == 15; }
  template <typename T, size_t kCount>
  const T& Of(const std::array<T, kCount>& options) {
    return options[Below(kCount)];
  }

 private:
  std::string_view bytes_;
};

class Maker {
 public:
  explicit Maker(std::string_view bytes) : choices_(bytes) {}

  FuzzModel Make() {
    const size_t tensors = 1 + choices_.Below(4);
    for (size_t i = 0; i < tensors; ++i) model_.tensors.push_back(Tensor(i));
    const size_t which = choices_.Below(4);
    model_.unmatched = choices_.Of(std::array{
        Selection::Unmatched::kCopy, Selection::Unmatched::kDrop, Selection::Unmatched::kError});
    if (which != 1) model_.source = Side();
    const std::vector<NamedLayouts> source_stages = std::exchange(stages_, {});
    const int64_t source_devices = std::exchange(devices_, 1);
    if (which != 2) model_.target = Side();
    if (!model_.source.has_strategy) {
      WriteFile(0, {});
      return std::move(model_);
    }
    for (size_t stage = 0; stage < source_stages.size(); ++stage) {
      for (int64_t local = 0; local < source_devices; ++local) {
        if (choices_.Odd()) {
          model_.is_sound = false;
          continue;
        }
        WriteFile(static_cast<int64_t>(stage) * source_devices + local, source_stages[stage],
                  local);
      }
    }
    return std::move(model_);
  }

 private:
  using NamedLayouts = std::vector<NamedLayout>;

  TestTensor Tensor(size_t index) {
    static constexpr std::array<const char*, 8> kNames = {
        "w", "layer-norm.weight", "adam_m.w", "0-w", "accu_grads.w", "1-", "\x1b[2J\n", ""};
    static constexpr std::array<DType, 6> kTypes = {DType::kInt8,    DType::kFloat16,
                                                    DType::kFloat32, DType::kInt64,
                                                    DType::kInt4,    DType::kComplex128};
    static constexpr std::array<int64_t, 16> kSizes = {1,  2,  3,  4,  5, 6, 8,  10,
                                                       12, 16, 24, 30, 0, 7, 48, int64_t{1} << 60};
    std::string name = choices_.Of(kNames);
    if (index != 0) name += fmt::format("{}", index);
    const DType dtype = choices_.Of(kTypes);
    Shape shape(choices_.Below(5));
    for (int64_t& size : shape) size = choices_.Of(kSizes);
    // A size that makes too many elements becomes 1, or any that a file can state beside a 0.
    const bool is_empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
    const int64_t most = is_empty ? std::numeric_limits<int64_t>::max() : kMostElements;
    int64_t elements = 1;
    for (int64_t& size : shape) {
      if (size > most / elements) size = 1;
      elements *= std::max<int64_t>(size, 1);
    }
    return MakeTensor(std::move(name), dtype, std::move(shape));
  }

  std::vector<int64_t> Factors(int64_t product) {
    std::vector<int64_t> factors;
    while (product > 1 || choices_.Odd()) {
      static constexpr std::array<int64_t, 6> kFactors = {2, 3, 4, 5, 7, 1};
      const int64_t factor = choices_.Of(kFactors);
      if (product % factor == 0) {
        factors.push_back(factor);
        product /= factor;
      } else {
        factors.push_back(std::exchange(product, 1));
      }
      if (factors.size() == 6) break;
    }
    if (product > 1) factors.push_back(product);
    return factors;
  }

  ParameterLayout Layout(size_t dims, int64_t devices) {
    ParameterLayout layout;
    layout.device_matrix = Factors(devices);
    const size_t axes = layout.device_matrix.size();
    std::vector<std::vector<int64_t>> map(dims);
    for (size_t axis = 0; axis < axes; ++axis) {
      const size_t dim = choices_.Below(dims + 1);
      if (dim < dims) map[dim].push_back(static_cast<int64_t>(axis));
    }
    const bool is_flat =
        std::all_of(map.begin(), map.end(), [](const auto& entries) { return entries.size() < 2; });
    if (is_flat) layout.tensor_map.emplace_back();
    for (auto& entries : map) {
      if (entries.empty()) entries.push_back(-1);
      if (choices_.Odd()) std::reverse(entries.begin(), entries.end());
      if (is_flat) {
        layout.tensor_map[0].push_back(entries[0]);
      } else {
        layout.tensor_map.push_back(entries);
      }
    }
    if (layout.tensor_map.empty()) layout.tensor_map.emplace_back();
    if (choices_.Below(4) == 3) {
      static constexpr std::array<int64_t, 7> kSizes = {-1, 2, 3, 4, 6, 8, 12};
      layout.opt_weight_shard_size = choices_.Of(kSizes);
      layout.opt_weight_shard_step = 1 << choices_.Below(4);
    }
    if (choices_.Odd()) layout.tensor_shape = Shape{1, 2};
    return layout;
  }

  // What a strategy says in place of the layout that the files have.
  ParameterLayout Spoilt(ParameterLayout layout) {
    if (!choices_.Odd()) return layout;
    model_.is_sound = false;
    static constexpr std::array<int64_t, 8> kNumbers = {
        0, 1, 2, 3, 7, -1, -2, std::numeric_limits<int64_t>::max()};
    const int64_t number = choices_.Of(kNumbers);
    switch (choices_.Below(5)) {
      case 0:
        layout.tensor_map.back().push_back(number);
        break;
      case 1:
        layout.tensor_map.push_back({number});
        break;
      case 2:
        layout.device_matrix.push_back(number);
        break;
      case 3:
        layout.opt_weight_shard_size = number;
        break;
      default:
        layout.opt_weight_shard_step = number;
    }
    return layout;
  }

  FuzzSide Side() {
    static constexpr std::array<int64_t, 12> kDevices = {1, 2, 3, 4, 6, 8, 5, 9, 10, 12, 15, 16};
    devices_ = choices_.Of(kDevices);
    const bool is_pipeline = choices_.Below(3) == 2;
    const size_t stages = is_pipeline ? 1 + choices_.Below(3) : 1;
    FuzzSide side;
    side.has_strategy = true;
    side.strategy.path = "s.ckpt";
    if (choices_.Odd()) side.strategy.first_item_stage = choices_.Below(3);
    for (size_t stage = 0; stage < stages; ++stage) {
      auto& layouts = stages_.emplace_back();
      for (const TestTensor& tensor : model_.tensors) {
        if (is_pipeline ? choices_.Below(3) == 2 : choices_.Odd()) continue;
        const int64_t devices = choices_.Odd() ? choices_.Of(kDevices) : devices_;
        layouts.push_back({tensor.name, Layout(tensor.shape.size(), devices)});
      }
      for (const NamedLayout& named : layouts) {
        side.strategy.layouts.push_back(
            NamedLayout{is_pipeline ? fmt::format("{}-{}", stage, named.name) : named.name,
                        Spoilt(named.layout)});
      }
    }
    side.has_strategy = !side.strategy.layouts.empty();
    return side;
  }

  // Adds the file of a rank: of each tensor that has a layout its shard, of others the whole.
  void WriteFile(int64_t rank, const NamedLayouts& layouts, int64_t local = 0) {
    std::string bytes;
    for (const TestTensor& full : model_.tensors) {
      const auto named = std::find_if(layouts.begin(), layouts.end(),
                                      [&](const auto& layout) { return layout.name == full.name; });
      TestTensor shard = full;
      if (named == layouts.end() && choices_.Below(4) == 3) continue;
      if (named != layouts.end()) {
        try {
          shard = NaiveShard(full, named->layout, local);
        } catch (const std::exception&) {
          model_.is_sound = false;
        }
      }
      bytes += Values(std::move(shard));
    }
    if (choices_.Odd()) {
      const std::string part = TensorMessage("int32", {1}, "abcd");
      bytes += MapValue("map", {part, part, part});
    }
    if (choices_.Odd()) bytes += TensorValue("note", "str", {0}, "a\0\0\0b\0\0\0");
    model_.files[rank] = bytes;
  }

  // The Values of a shard, cut somewhere or nowhere; rarely another shard, or none.
  std::string Values(TestTensor shard) {
    const size_t odd = choices_.Below(64);
    if (odd >= 60) model_.is_sound = false;
    if (odd == 63) return "";
    if (odd == 62) shard.dtype = DType::kFloat8E5M2;
    if (odd == 61 && !shard.shape.empty()) {
      shard.shape.push_back(shard.shape[0]);
      shard.shape.erase(shard.shape.begin());
    }
    if (odd == 60) shard.name += "x";
    const std::string_view type = DTypeName(shard.dtype);
    std::string bytes;
    std::string_view rest = shard.content;
    while (odd >= 48 && odd < 60 && bytes.size() < 2000) {
      const std::string_view part = rest.substr(0, choices_.Below(1 + rest.size()));
      bytes += TensorValue(shard.name, type, shard.shape, part);
      rest.remove_prefix(part.size());
      if (choices_.Below(3) == 0) break;
    }
    if (rest.empty() && !bytes.empty()) return bytes;
    return bytes + TensorValue(shard.name, type, shard.shape, rest);
  }

  Choices choices_;
  FuzzModel model_;
  // Of the side that was made last.
  std::vector<NamedLayouts> stages_;
  int64_t devices_ = 1;
};

}  // namespace

FuzzModel MakeFuzzModel(std::string_view bytes) { return Maker(bytes).Make(); }

}  // namespace reshard
