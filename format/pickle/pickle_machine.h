// PickleMachine: carries out the steps of a pickle, with a stack and a memo, on values that have no
// code behind them.
//
// Not for use from several threads at once.
#ifndef RESHARD_FORMAT_PICKLE_PICKLE_MACHINE_H_
#define RESHARD_FORMAT_PICKLE_PICKLE_MACHINE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "format/pickle/pickle_cursor.h"
#include "format/pickle/pickle_memo.h"
#include "format/pickle/pickle_reader.h"
#include "format/pickle/pickle_value.h"
#include "reshard/status.h"
#include "src/base/memory_check.h"

namespace reshard {

class PickleMachine {
 public:
  // `collapse` and `memory` have to stay.
  PickleMachine(std::string_view bytes, const PickleCollapse& collapse, const MemoryCheck& memory)
      : bytes_(bytes), collapse_(collapse), pickle_(bytes, memory) {}

  // Errors: as ReadPickle.
  Result<Pickle> Run() &&;

 private:
  using Step = PickleStep;

  // The functions below return false after an error, which is in status_ then.
  bool FindFetches();
  bool Carry(const Step& step);
  bool PushInteger(const Step& step);
  bool PushText(const Step& step, PickleKind kind);
  bool PushEmptyTuple();
  bool PushTuple(const Step& step, size_t size);
  bool PushTupleAboveMark(const Step& step);
  bool AddOne(const Step& step);
  bool AddAboveMark(const Step& step);
  bool PushGlobal(const Step& step, const PickleGlobal& global);
  bool PushStackGlobal(const Step& step);
  bool PushPersistentId(const Step& step);
  bool PushNode(const Step& step);
  bool SetState(const Step& step);
  bool Stop(const Step& step);
  bool Put(const Step& step, uint64_t index);
  bool Fetch(const Step& step);

  // Adds the top `count` values to the object below them, at `place` in the stack. Removes all
  // above the object.
  bool AddItems(const Step& step, size_t place, size_t count);
  // Offers the node on top of the stack to the caller.
  bool Collapse();
  bool Push(const PickleValue& value) {
    stack_.push_back(value);
    return Grow(sizeof(PickleValue));
  }
  // Asks for memory now and then, after `bytes` more were taken.
  bool Grow(uint64_t bytes) { return !objects().Grow(bytes) || CheckGrowth(); }
  bool CheckGrowth();
  // Takes values off the stack, and one use of each.
  void DropDownTo(size_t size);
  bool Seal(const Step& step, const PickleValue& inner, const PickleValue& outer);
  // Whether `count` values are above the last mark.
  bool Has(const Step& step, size_t count) {
    const size_t below = marks_.empty() ? 0 : marks_.back();
    return stack_.size() - below >= count || Lacks(step, count);
  }
  bool Lacks(const Step& step, size_t count);  // returns false
  bool TakeMark(const Step& step, size_t& place);
  // The value `depth` below the top.
  PickleValue& FromTop(size_t depth) { return stack_[stack_.size() - 1 - depth]; }
  bool Fail(const Step& step, std::string_view what);

  std::string_view bytes_;
  const PickleCollapse& collapse_;
  Pickle pickle_;
  PickleObjects& objects() { return pickle_.objects_; }
  PickleMemo memo_;
  std::vector<PickleValue> stack_;
  std::vector<size_t> marks_;               // the heights of the stack at each
  std::optional<PickleValue> empty_tuple_;  // every one, as none can change
  Status status_;
};

}  // namespace reshard

#endif  // RESHARD_FORMAT_PICKLE_PICKLE_MACHINE_H_
