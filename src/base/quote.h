// Names from files, made safe to print, and lists of which a message shows the first few.
#ifndef RESHARD_SRC_BASE_QUOTE_H_
#define RESHARD_SRC_BASE_QUOTE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace reshard {

// Returns `name` with control characters, quotes and backslashes escaped (\n, \x1b, \"); beyond 512
// bytes "..." stands for the middle, so that a path keeps its file name. Other bytes, UTF-8
// included, stay as they are.
std::string Escape(std::string_view name);

// Returns Escape(name) between double quotes.
std::string Quote(std::string_view name);

// The first few of things that are counted, of which there may be millions.
class FirstFew {
 public:
  explicit FirstFew(size_t shown = 20) : shown_(shown) {}

  void Add(std::string_view item) {
    if (count_++ < shown_) items_.emplace_back(item);
  }
  void Add(int64_t number) {
    if (count_++ < shown_) items_.push_back(std::to_string(number));
  }
  // As many more, which nobody names.
  void AddUnnamed(uint64_t count) { count_ += count; }

  // True when a further item would only be counted.
  bool full() const { return items_.size() == shown_; }
  uint64_t count() const { return count_; }
  uint64_t more() const { return count_ - items_.size(); }

  // Returns "a, b and 3 more".
  std::string Joined(std::string_view separator = ", ") const;
  // Returns "a, b, ...".
  std::string Dotted() const;
  // Returns each on a line of its own, which begins with "\n  "; `rest` stands for more of them.
  std::string Lines(std::string_view rest = "...") const;

 private:
  size_t shown_;
  uint64_t count_ = 0;
  std::vector<std::string> items_;
};

// Returns "[1, 2]": the first 20 of `numbers`, and how many there are beyond them.
std::string FirstNumbers(const std::vector<int64_t>& numbers);

// Returns "a, b, c": the first 20 of `items`, and how many there are beyond them.
std::string FirstOf(const std::vector<std::string>& items);

}  // namespace reshard

#endif  // RESHARD_SRC_BASE_QUOTE_H_
