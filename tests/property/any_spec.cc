#include "tests/property/any_spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "tests/support/pick.h"

namespace reshard {
namespace {

constexpr std::string_view kCopy = "adam_m.";
constexpr std::array kParameterTypes = {DType::kFloat32, DType::kInt64, DType::kComplex128};

// A divisor of `number`: 1 as often as any other.
int64_t AnyDivisor(int64_t number) {
  std::vector<int64_t> divisors;
  for (int64_t d = 2; d <= number; ++d) {
    if (number % d == 0) divisors.push_back(d);
  }
  if (divisors.empty() || PickBool()) return 1;
  return divisors[Pick<size_t>(0, divisors.size())];
}

// Gives elements the values of others: of the first one, or of either of two.
void MakeAlike(TestTensor& tensor) {
  const size_t item = ItemBytes(tensor.dtype);
  const bool all = PickBool();
  for (size_t begin = item; begin < tensor.content.size(); begin += item) {
    if (all || PickBool()) tensor.content.replace(begin, item, tensor.content, 0, item);
    if (!all && begin > item && PickBool()) {
      tensor.content.replace(begin, item, tensor.content, item, item);
    }
  }
}

TestTensor AnyTensor(const std::string& name, DType dtype, const Shape& shape) {
  TestTensor tensor = MakeTensor(name, dtype, shape);
  if (Pick(0, 4) == 0) MakeAlike(tensor);
  return tensor;
}

std::string EntryText(const SpecParameter& parameter) {
  std::string name = parameter.full.name;
  if (PickBool()) name[0] = '?';
  std::string text = fmt::format(R"({{"parameter": "{}")", name);
  const bool is_cut = std::any_of(parameter.cuts.begin(), parameter.cuts.end(),
                                  [](int64_t cut) { return cut != 1; });
  if (is_cut || PickBool())
    text += fmt::format(R"(, "cuts": [{}])", fmt::join(parameter.cuts, ", "));
  if (parameter.optimizer_shards != 1 || PickBool()) {
    text += fmt::format(R"(, "optimizer_shards": {})", parameter.optimizer_shards);
  }
  return text + "}";
}

}  // namespace

NaiveParts SpecParameter::Parts(int64_t rank) const {
  return PartsBySpecification(cuts, optimizer_shards, rank);
}

TestTensor SpecParameter::Shard(int64_t rank) const {
  const NaiveParts parts = Parts(rank);
  TestTensor shard = {full.name, full.dtype, full.shape, ""};
  for (size_t d = 0; d < full.shape.size(); ++d) shard.shape[d] /= parts.cuts[d];
  const size_t item = ItemBytes(full.dtype);
  for (size_t begin = 0; begin < full.content.size(); begin += item) {
    auto rest = static_cast<int64_t>(begin / item);
    bool held = true;
    for (size_t d = full.shape.size(); d-- > 0; rest /= full.shape[d]) {
      held &= rest % full.shape[d] / shard.shape[d] == parts.part[d];
    }
    if (held) shard.content += full.content.substr(begin, item);
  }
  return shard;
}

bool SpecModel::IsCopy(const std::string& name) { return name.starts_with(kCopy); }

std::vector<TestTensor> SpecModel::FullTensors() const {
  std::vector<TestTensor> tensors = uncut;
  for (const auto& stage : stages) {
    for (const SpecParameter& parameter : stage) tensors.push_back(parameter.full);
  }
  return tensors;
}

std::vector<TestTensor> SpecModel::TensorsOf(int64_t rank) const {
  std::vector<TestTensor> tensors = uncut;
  for (const SpecParameter& parameter : stages[static_cast<size_t>(rank / devices)]) {
    tensors.push_back(parameter.Shard(rank % devices));
  }
  return tensors;
}

SpecModel AnySpecModel() {
  SpecModel model;
  constexpr std::array<int64_t, 6> kDevices = {1, 2, 3, 4, 6, 8};
  model.devices = kDevices[Pick<size_t>(0, kDevices.size())];
  model.stages.resize(PickBool() ? 1 : Pick<size_t>(1, 4));
  model.is_pipeline = model.stages.size() > 1 || PickBool();
  for (auto& stage : model.stages) {
    const auto parameters = Pick<size_t>(1, 3);
    for (size_t p = 0; p < parameters; ++p) {
      SpecParameter parameter;
      Shape shape;
      int64_t replicas = model.devices;
      for (auto dims = Pick<size_t>(0, 4); dims > 0; --dims) {
        parameter.cuts.push_back(AnyDivisor(replicas));
        replicas /= parameter.cuts.back();
        shape.push_back(parameter.cuts.back() * Pick<int64_t>(1, 4));
      }
      if (!shape.empty() && PickBool()) {
        parameter.optimizer_shards = AnyDivisor(replicas);
        shape[0] *= parameter.optimizer_shards;
      }
      const std::string name = fmt::format("layer{}.w{}", &stage - model.stages.data(), p);
      const DType dtype = kParameterTypes[Pick<size_t>(0, kParameterTypes.size())];
      parameter.full = AnyTensor(name, dtype, shape);
      stage.push_back(parameter);
      if (PickBool()) continue;
      parameter.full = AnyTensor(std::string(kCopy) + name, dtype, shape);
      if (Pick(0, 4) == 0) {
        parameter.is_own = true;
        parameter.cuts.assign(shape.size(), 1);
        parameter.optimizer_shards = 1;
      }
      stage.push_back(parameter);
    }
  }
  if (PickBool()) model.uncut.push_back(MakeTensor("step", DType::kInt64, {}));
  return model;
}

std::string SpecText(const SpecModel& model) {
  std::vector<std::string> stages;
  for (const auto& stage : model.stages) {
    std::vector<std::string> entries;
    for (const bool own : {true, false}) {  // the first entry that matches counts
      for (const SpecParameter& parameter : stage) {
        const bool has_entry = own || !SpecModel::IsCopy(parameter.full.name);
        if (has_entry && parameter.is_own == own) entries.push_back(EntryText(parameter));
      }
    }
    stages.push_back(fmt::format("[{}]", fmt::join(entries, ", ")));
  }
  return fmt::format(R"({{"devices": {}, {}}})", model.devices,
                     model.is_pipeline ? fmt::format(R"("stages": [{}])", fmt::join(stages, ", "))
                                       : R"("parameters": )" + stages[0]);
}

}  // namespace reshard
