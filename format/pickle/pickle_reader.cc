#include "format/pickle/pickle_reader.h"

#include <fmt/format.h>

#include <bit>
#include <limits>

#include "format/pickle/pickle_machine.h"
#include "src/base/quote.h"

namespace reshard {
namespace {

// The most memory for values. A DTensor takes some 25 bytes for each of its own. The machine asks
// after each MiB.
constexpr uint64_t kLeastMiB = 16;
constexpr uint64_t kMemoryPerByte = 36;

}  // namespace

double Pickle::Float(const PickleValue& value) const { return std::bit_cast<double>(value.data); }

const PickleValue* Pickle::Find(const PickleValue& dict, std::string_view key) const {
  const std::span<const PickleValue> items = Items(dict);
  for (size_t i = items.size(); i >= 2; i -= 2) {
    const PickleValue& found = items[i - 2];
    if (found.kind == PickleKind::kText && Text(found) == key) return &items[i - 1];
  }
  return nullptr;
}

std::string Pickle::Shown(const PickleValue& value) const {
  switch (value.kind) {
    case PickleKind::kNone:
      return "None";
    case PickleKind::kBool:
      return Bool(value) ? "True" : "False";
    case PickleKind::kInteger:
      return fmt::format("{}", Integer(value));
    case PickleKind::kFloat:
      return fmt::format("{}", Float(value));
    case PickleKind::kText:
      return Quote(Text(value));
    case PickleKind::kBytes:
      return fmt::format("{} bytes", value.length);
    case PickleKind::kGlobal:
    case PickleKind::kNode:
      return fmt::format("{}.{}{}", Escape(Global(value).module), Escape(Global(value).name),
                         value.kind == PickleKind::kNode ? "(..)" : "");
    case PickleKind::kTuple:
      return fmt::format("a tuple of {}", Items(value).size());
    case PickleKind::kList:
      return fmt::format("a list of {}", Items(value).size());
    case PickleKind::kDict:
      return fmt::format("a dict of {}", Items(value).size() / 2);
    case PickleKind::kPersistentId:
      return "a persistent id";
    case PickleKind::kRecord:
      return "a known object";
  }
  return "";
}

Result<Pickle> ReadPickle(std::string_view bytes, const PickleCollapse& collapse,
                          const MemoryCheck& memory) {
  if (bytes.size() > std::numeric_limits<uint32_t>::max()) {
    return CorruptError(
        fmt::format("a pickle of {} bytes; expected less than 4 GiB", bytes.size()));
  }
  uint64_t left = kLeastMiB + (kMemoryPerByte * bytes.size() >> 20);
  const MemoryCheck bounded = [&](uint64_t more) -> Status {
    if (left-- > 0) return CheckMemory(memory, more);
    return ResourceExhaustedError(fmt::format(
        "its values take more than {} times its {} bytes in memory", kMemoryPerByte, bytes.size()));
  };
  return PickleMachine(bytes, collapse, bounded).Run();
}

}  // namespace reshard
