#include "format/pickle/pickle_machine.h"

#include <fmt/format.h>

#include <bit>
#include <optional>
#include <utility>

#include "src/base/status_macros.h"

namespace reshard {
namespace {

// Of a module or of a class. Others look at it whenever it occurs, which takes a few bytes.
constexpr size_t kMostNameBytes = 512;

}  // namespace

Result<Pickle> PickleMachine::Run() && {
  if (!FindFetches()) return status_;
  PickleCursor cursor(bytes_);
  PickleStep step;
  do {
    if (!cursor.Next(step)) return cursor.status();
    if (!Carry(step)) return status_;
  } while (step.opcode != PickleOpcode::kStop);
  pickle_.top_ = stack_.back();
  pickle_.objects_.Finish();
  return std::move(pickle_);
}

// Passes over the pickle once, for the memo entries that it fetches.
bool PickleMachine::FindFetches() {
  PickleCursor cursor(bytes_);
  PickleStep step;
  do {
    if (!cursor.Next(step)) {
      status_ = cursor.status();
      return false;
    }
    if (step.opcode != PickleOpcode::kBinGet && step.opcode != PickleOpcode::kLongBinGet) continue;
    if (step.number >= bytes_.size()) {
      return Fail(step, fmt::format("entry {} was not put into the memo", step.number));
    }
    memo_.Want(static_cast<uint32_t>(step.number));
  } while (step.opcode != PickleOpcode::kStop);
  memo_.SetUp();
  return true;
}

bool PickleMachine::Carry(const Step& step) {
  using enum PickleOpcode;
  switch (step.opcode) {
    case kProto:
    case kFrame:
      return true;
    case kStop:
      return Stop(step);
    case kMark:
      marks_.push_back(stack_.size());
      return Grow(sizeof(size_t));
    case kNone:
      return Push({PickleKind::kNone, 0, 0});
    case kNewTrue:
      return Push({PickleKind::kBool, 0, 1});
    case kNewFalse:
      return Push({PickleKind::kBool, 0, 0});
    case kBinInt:
    case kBinInt1:
    case kBinInt2:
    case kLong1:
      return PushInteger(step);
    case kBinFloat:  // the only number with the most significant byte first
      return Push({PickleKind::kFloat, 0, __builtin_bswap64(step.number)});
    case kShortBinUnicode:
    case kBinUnicode:
    case kBinUnicode8:
      return PushText(step, PickleKind::kText);
    case kShortBinBytes:
    case kBinBytes:
    case kBinBytes8:
      return PushText(step, PickleKind::kBytes);
    case kEmptyTuple:
      return PushEmptyTuple();
    case kTuple1:
      return PushTuple(step, 1);
    case kTuple2:
      return PushTuple(step, 2);
    case kTuple3:
      return PushTuple(step, 3);
    case kTuple:
      return PushTupleAboveMark(step);
    case kEmptyList:
      return Push(objects().New(PickleKind::kList));
    case kEmptyDict:
      return Push(objects().New(PickleKind::kDict));
    case kAppend:
    case kSetItem:
      return AddOne(step);
    case kAppends:
    case kSetItems:
      return AddAboveMark(step);
    case kGlobal:
      return PushGlobal(step, step.global);
    case kStackGlobal:
      return PushStackGlobal(step);
    case kReduce:
    case kNewObj:
      return PushNode(step);
    case kBuild:
      return SetState(step);
    case kBinPersId:
      return PushPersistentId(step);
    case kMemoize:
      return Put(step, memo_.puts());
    case kBinPut:
    case kLongBinPut:
      return Put(step, step.number);
    case kBinGet:
    case kLongBinGet:
      return Fetch(step);
  }
  return false;  // the cursor passes no other opcode
}

bool PickleMachine::PushInteger(const Step& step) {
  uint64_t number = step.number;
  if (step.opcode == PickleOpcode::kBinInt) {
    number = static_cast<uint64_t>(int64_t{static_cast<int32_t>(number)});
  } else if (step.opcode == PickleOpcode::kLong1) {
    const size_t size = step.bytes.size();
    // No number of a tensor: only its bytes are kept.
    if (size > sizeof(number)) return PushText(step, PickleKind::kBytes);
    const bool is_negative = size > 0 && static_cast<int8_t>(step.bytes.back()) < 0;
    number = is_negative ? ~uint64_t{0} : 0;
    for (size_t i = size; i-- > 0;) number = number << 8 | static_cast<uint8_t>(step.bytes[i]);
  }
  return Push({PickleKind::kInteger, 0, number});
}

bool PickleMachine::PushText(const Step& step, PickleKind kind) {
  const auto offset = static_cast<uint64_t>(step.bytes.data() - bytes_.data());
  return Push({kind, static_cast<uint32_t>(step.bytes.size()), offset});
}

bool PickleMachine::PushEmptyTuple() {
  if (!empty_tuple_) empty_tuple_ = objects().New(PickleKind::kTuple);
  objects().Use(*empty_tuple_);
  return Push(*empty_tuple_);
}

bool PickleMachine::PushTuple(const Step& step, size_t size) {
  if (!Has(step, size)) return false;
  const PickleValue tuple = objects().New(PickleKind::kTuple);
  const auto first = stack_.end() - static_cast<ptrdiff_t>(size);
  // Their uses get into the tuple.
  objects().at(tuple).items.assign(first, stack_.end());
  stack_.erase(first, stack_.end());
  for (const PickleValue& item : objects().at(tuple).items) {
    if (!Seal(step, item, tuple)) return false;
  }
  return Push(tuple);
}

bool PickleMachine::PushTupleAboveMark(const Step& step) {
  size_t place = 0;
  return TakeMark(step, place) && PushTuple(step, stack_.size() - place);
}

bool PickleMachine::AddOne(const Step& step) {
  const size_t count = step.opcode == PickleOpcode::kAppend ? 1 : 2;
  return Has(step, count + 1) && AddItems(step, stack_.size() - count - 1, count);
}

bool PickleMachine::AddAboveMark(const Step& step) {
  size_t place = 0;
  if (!TakeMark(step, place)) return false;
  const size_t count = stack_.size() - place;
  return Has(step, count + 1) && AddItems(step, place - 1, count);
}

bool PickleMachine::AddItems(const Step& step, size_t place, size_t count) {
  const bool are_pairs =
      step.opcode == PickleOpcode::kSetItem || step.opcode == PickleOpcode::kSetItems;
  const PickleValue outer = stack_[place];
  const PickleKind kind = are_pairs ? PickleKind::kDict : PickleKind::kList;
  if (outer.kind != kind && outer.kind != PickleKind::kNode) {
    return Fail(step, fmt::format("expected {} below its items, found {}",
                                  are_pairs ? "a dict" : "a list", pickle_.Shown(outer)));
  }
  if (are_pairs && count % 2 != 0) return Fail(step, "a key has no value");
  PickleObject& object = objects().at(outer);
  if (object.is_sealed) return Fail(step, "its object was used before it was complete");
  if (outer.kind == PickleKind::kNode && !object.items.empty() && object.has_pairs != are_pairs) {
    return Fail(step, "its object has both elements and keys");
  }
  object.has_pairs = are_pairs;
  for (size_t i = 0; i < count; ++i) {
    const PickleValue& item = stack_[place + 1 + i];
    if (item.is_object() && item.data == outer.data) {
      return Fail(step, "an object would be inside of itself");
    }
    if (!Seal(step, item, outer)) return false;
    object.items.push_back(item);
  }
  stack_.resize(place + 1);  // the uses are in the object
  return Grow(count * sizeof(PickleValue));
}

bool PickleMachine::PushStackGlobal(const Step& step) {
  if (!Has(step, 2)) return false;
  const PickleValue module = FromTop(1);
  const PickleValue name = FromTop(0);
  if (module.kind != PickleKind::kText || name.kind != PickleKind::kText) {
    return Fail(step, fmt::format("expected two texts, found {} and {}", pickle_.Shown(module),
                                  pickle_.Shown(name)));
  }
  DropDownTo(stack_.size() - 2);
  return PushGlobal(step, {pickle_.Text(module), pickle_.Text(name)});
}

bool PickleMachine::PushGlobal(const Step& step, const PickleGlobal& global) {
  if (global.module.size() > kMostNameBytes || global.name.size() > kMostNameBytes) {
    return Fail(step, fmt::format("expected names of at most {} bytes", kMostNameBytes));
  }
  return Push(objects().GlobalValue(global));
}

bool PickleMachine::PushPersistentId(const Step& step) {
  if (!Has(step, 1)) return false;
  const PickleValue value = objects().New(PickleKind::kPersistentId);
  objects().at(value).arguments = FromTop(0);
  stack_.pop_back();
  return Seal(step, objects().at(value).arguments, value) && Push(value);
}

bool PickleMachine::PushNode(const Step& step) {
  if (!Has(step, 2)) return false;
  const PickleValue global = FromTop(1);
  const PickleValue arguments = FromTop(0);
  // A nested class is what getattr returned: a node, whose own global tells nothing of this one.
  const bool is_made = global.kind == PickleKind::kNode || global.kind == PickleKind::kRecord;
  if ((global.kind != PickleKind::kGlobal && !is_made) || arguments.kind != PickleKind::kTuple) {
    return Fail(step, fmt::format("expected a global and a tuple, found {} and {}",
                                  pickle_.Shown(global), pickle_.Shown(arguments)));
  }
  const PickleValue node = objects().New(PickleKind::kNode);
  const PickleValue named = is_made ? objects().GlobalValue({"", "(unnamed)"}) : global;
  objects().at(node).global = static_cast<uint32_t>(named.data);
  objects().at(node).arguments = arguments;
  stack_.resize(stack_.size() - 2);
  return Seal(step, arguments, node) && Push(node) && Collapse();
}

bool PickleMachine::SetState(const Step& step) {
  if (!Has(step, 2)) return false;
  const PickleValue node = FromTop(1);
  const PickleValue state = FromTop(0);
  if (node.kind != PickleKind::kNode) {
    return Fail(step,
                fmt::format("expected an instance of a class, found {}", pickle_.Shown(node)));
  }
  PickleObject& object = objects().at(node);
  // One that is inside of another may get its state yet: a class may refer to what refers to it.
  if (object.has_state) return Fail(step, "its object has a state already");
  if (state.is_object() && state.data == node.data) {
    return Fail(step, "an object would be inside of itself");
  }
  if (!Seal(step, state, node)) return false;
  object.state = state;
  object.has_state = true;
  stack_.pop_back();
  return Collapse();
}

bool PickleMachine::Collapse() {
  if (!collapse_) return true;
  const PickleValue node = FromTop(0);
  Result<std::optional<uint64_t>> record = collapse_(pickle_, node);
  if (!record.ok()) {
    status_ = record.status();
    return false;
  }
  if (!*record) return true;
  FromTop(0) = {PickleKind::kRecord, 0, **record};
  objects().at(node).record = **record;  // for the memo
  objects().at(node).is_sealed = true;
  objects().Release(node);
  return true;
}

bool PickleMachine::Put(const Step& step, uint64_t index) {
  if (!Has(step, 1)) return false;
  if (index >= bytes_.size()) {
    return Fail(step, fmt::format("entry {} of the memo: the pickle has {} bytes only", index,
                                  bytes_.size()));
  }
  memo_.CountPut(static_cast<uint32_t>(index));
  std::optional<PickleValue>* const entry = memo_.Find(static_cast<uint32_t>(index));
  if (entry == nullptr) return true;
  objects().Use(FromTop(0));
  if (*entry) objects().Release(**entry);
  *entry = FromTop(0);
  return true;
}

bool PickleMachine::Fetch(const Step& step) {
  std::optional<PickleValue>* const entry = memo_.Find(static_cast<uint32_t>(step.number));
  if (entry == nullptr || !*entry) {
    return Fail(step, fmt::format("entry {} was not put into the memo", step.number));
  }
  if ((*entry)->kind == PickleKind::kNode) {
    const std::optional<uint64_t> record = objects().at(**entry).record;
    if (record) {
      objects().Release(**entry);
      *entry = PickleValue{PickleKind::kRecord, 0, *record};
    }
  }
  objects().Use(**entry);
  return Push(**entry);
}

bool PickleMachine::Stop(const Step& step) {
  if (marks_.empty() && stack_.size() == 1) return true;
  return Fail(
      step, fmt::format("expected one value, found {} and {} marks", stack_.size(), marks_.size()));
}

bool PickleMachine::CheckGrowth() {
  status_ = objects().CheckGrowth();
  return status_.ok();
}

void PickleMachine::DropDownTo(size_t size) {
  while (stack_.size() > size) {
    objects().Release(stack_.back());
    stack_.pop_back();
  }
}

bool PickleMachine::Seal(const Step& step, const PickleValue& inner, const PickleValue& outer) {
  if (objects().Seal(inner, outer)) return true;
  return Fail(step,
              fmt::format("more than {} objects are inside of each other", kMostPickleLevels));
}

bool PickleMachine::Lacks(const Step& step, size_t count) {
  const size_t below = marks_.empty() ? 0 : marks_.back();
  return Fail(step, fmt::format("expected {} values above the last mark, found {}", count,
                                stack_.size() - below));
}

bool PickleMachine::TakeMark(const Step& step, size_t& place) {
  if (marks_.empty()) return Fail(step, "expected a mark, found none");
  place = marks_.back();
  marks_.pop_back();
  return true;
}

bool PickleMachine::Fail(const Step& step, std::string_view what) {
  status_ = PickleError(step, what);
  return false;
}

}  // namespace reshard
