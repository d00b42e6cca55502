// LayoutTable: names and their layouts, in order, in little memory.
//
// Models repeat few layouts in very many parameters: equal ones are held once, and names lie side
// by side. Copies share both. Not thread-safe while it is filled; then any number of threads may
// read it.
#ifndef RESHARD_SRC_MINDSPORE_LAYOUT_TABLE_H_
#define RESHARD_SRC_MINDSPORE_LAYOUT_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/name_arena.h"
#include "src/mindspore/parameter_layout.h"

namespace reshard {

// A layout that stands by itself, to be written.
struct NamedLayout {
  std::string name;
  ParameterLayout layout;

  friend bool operator==(const NamedLayout&, const NamedLayout&) = default;
};

// One of a table, which has to outlive it.
struct LayoutEntry {
  std::string_view name;
  const ParameterLayout& layout;

  // NOLINTNEXTLINE(google-explicit-constructor): both say the same
  operator NamedLayout() const { return {std::string(name), layout}; }
  friend bool operator==(const LayoutEntry& a, const LayoutEntry& b) {
    return a.name == b.name && (&a.layout == &b.layout || a.layout == b.layout);
  }
  friend bool operator==(const LayoutEntry& a, const NamedLayout& b) {
    return a.name == b.name && a.layout == b.layout;
  }
};

class LayoutTable {
 public:
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = LayoutEntry;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = LayoutEntry;

    Iterator(const LayoutTable& table, size_t place) : table_(&table), place_(place) {}
    LayoutEntry operator*() const { return (*table_)[place_]; }
    Iterator& operator++() {
      ++place_;
      return *this;
    }
    Iterator operator++(int) {
      const Iterator before = *this;
      ++place_;
      return before;
    }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    const LayoutTable* table_;
    size_t place_;
  };
  using value_type = LayoutEntry;
  using iterator = Iterator;
  using const_iterator = Iterator;

  LayoutTable() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): both say the same
  LayoutTable(const std::vector<NamedLayout>& layouts);
  LayoutTable(std::initializer_list<NamedLayout> layouts)
      : LayoutTable(std::vector<NamedLayout>(layouts)) {}

  void push_back(const LayoutEntry& entry);
  void push_back(const NamedLayout& named) { push_back(LayoutEntry{named.name, named.layout}); }
  // Gives the entry at `place` the layout `layout`.
  void Replace(size_t place, const ParameterLayout& layout);
  void clear() { *this = LayoutTable(); }

  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  LayoutEntry operator[](size_t place) const {
    const Entry& entry = entries_[place];
    return {{entry.name, entry.size}, *layouts_[entry.layout]};
  }
  LayoutEntry front() const { return (*this)[0]; }
  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, size()}; }

  friend bool operator==(const LayoutTable& a, const LayoutTable& b);
  friend bool operator==(const LayoutTable& a, const std::vector<NamedLayout>& b) {
    return a == LayoutTable(b);
  }

 private:
  struct Entry {
    const char* name;  // in names_
    uint32_t size;
    uint32_t layout;  // in layouts_
  };
  struct ByValue {
    bool operator()(const ParameterLayout* a, const ParameterLayout* b) const { return *a < *b; }
  };

  uint32_t Intern(const ParameterLayout& layout);

  std::vector<Entry> entries_;
  std::vector<std::shared_ptr<const ParameterLayout>> layouts_;
  std::map<const ParameterLayout*, uint32_t, ByValue> by_value_;  // places in layouts_
  NameArena names_;
};

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_LAYOUT_TABLE_H_
