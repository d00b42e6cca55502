// Names from files, made safe to print, and lists that messages shorten to the first few items.
#ifndef RESHARD_SRC_BASE_QUOTE_H_
#define RESHARD_SRC_BASE_QUOTE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace reshard {

// Returns `name` with escapes for control characters, quotes, backslashes and backticks (\n, \x1b,
// \", \x60). Messages name options between backticks. If it exceeds 512 bytes, "..." replaces the
// middle, so that a path keeps its file name. Other bytes, UTF-8 included, stay as they are.
std::string Escape(std::string_view name);

// Returns whether `name` has control characters, quotes or backslashes, or over 512 bytes. A user's
// part of a file name must not. Backticks do not count.
bool IsUnfitForNames(std::string name);

// Returns Escape(name) between double quotes.
std::string Quote(std::string_view name);

// The first few of a list of items, which may have millions. All are counted.
class FirstFew {
 public:
  explicit FirstFew(size_t shown = 3) : shown_(shown) {}

  void Add(std::string_view item) {
    if (count_++ < shown_) items_.emplace_back(item);
  }
  // Adds items that are only counted.
  void AddUnnamed(uint64_t count) { count_ += count; }

  // True when a further item would only be counted.
  bool full() const { return items_.size() == shown_; }
  uint64_t count() const { return count_; }
  uint64_t more() const { return count_ - items_.size(); }

  // Returns "a, b and 3 more".
  std::string Joined(std::string_view separator = ", ") const;
  // Returns each item on a line of its own, after "\n  "; `rest` stands for further items.
  std::string Lines(std::string_view rest = "...") const;

 private:
  size_t shown_;
  uint64_t count_ = 0;
  std::vector<std::string> items_;
};

// Ranks or stages, added in ascending order, as ranges. There may be millions.
class NumberRanges {
 public:
  void Add(int64_t number) { AddRange(number, number); }
  // All from `first` to `last`.
  void AddRange(int64_t first, int64_t last);

  uint64_t count() const { return count_; }

  // Returns "0-3, 8 and 12 more": the first 8 ranges, and the count of the other numbers.
  std::string ToText() const;
  // Returns "rank 8" or "ranks 0-3, 8" for the noun "rank".
  std::string ToWords(std::string_view noun) const;
  // Returns "rank 8" or "ranks 0-3, 6 and 8".
  std::string ToSentence(std::string_view noun) const;

 private:
  struct Range {
    int64_t first = 0;
    int64_t last = 0;
  };
  std::vector<Range> ranges_;
  uint64_t count_ = 0;
  uint64_t more_ = 0;
};

// Returns NumberRanges::ToText of `numbers`, which ascend.
std::string RangesOf(const std::vector<int64_t>& numbers);

// Returns "[1, 2]": the first 20 of `numbers`, and how many there are beyond them.
std::string FirstNumbers(const std::vector<int64_t>& numbers);

// Returns "a, b, c": the first 3 of `items` in natural order, and how many there are beyond
// them.
std::string FirstOf(const std::vector<std::string>& items);

}  // namespace reshard

#endif  // RESHARD_SRC_BASE_QUOTE_H_
