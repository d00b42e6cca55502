// Renaming: new names of parameters, by exact names, patterns and rules.
//
// A plain value; any number of threads may read it.
#ifndef RESHARD_FORMAT_RENAME_MAP_RENAMING_H_
#define RESHARD_FORMAT_RENAME_MAP_RENAMING_H_

#include <optional>
#include <string>
#include <string_view>

#include "reshard/options.h"
#include "reshard/status.h"

namespace reshard {

// Returns whether these renames are valid for any checkpoint.
// Errors: kInvalidArgument for
//   a name that is empty or longer than a tag may be
//   two parameters with one new name
//   a pattern without `*`, or with another number of `*` than its new name
//   rules that do not exist
Status CheckRenames(const Renames& renames);

// Returns the new name of `name` by an entry of Renames::patterns, or no value if it does not
// match.
std::optional<std::string> NameByPattern(std::string_view pattern, std::string_view new_name,
                                         std::string_view name);

// Returns the renames from the new names to the old ones. Errors: kInvalidArgument if two entries
// have one new name.
Result<Renames> InverseOf(const Renames& renames);

class Renaming {
 public:
  // All names stay.
  Renaming() = default;
  // CheckRenames has accepted `renames`.
  explicit Renaming(Renames renames);

  bool empty() const { return renames_.empty(); }
  const Renames& renames() const { return renames_; }

  // Returns the new name of parameter `name`. The result refers to `name`, to an entry, or to
  // `made`, which a pattern may set. Errors: kInvalidArgument if two patterns match, or if the new
  // name is longer than a tag may be.
  Result<const std::string*> NewName(const std::string& name, std::string& made) const;
  Result<const std::string*> NewName(std::string&& name, std::string& made) const = delete;
  // As above, by value: costs a copy of the name.
  Result<std::string> NewNameOf(std::string name) const;

  // Returns whether an entry matches `name`, even if the name stays.
  bool Fits(const std::string& name) const;

 private:
  // Returns the new name by an entry that matches; null if none does. Else as NewName.
  Result<const std::string*> Find(const std::string& name, std::string& made) const;

  Renames renames_;
  const Renames* rules_ = nullptr;  // a constant
};

// The names of a source whose files have other names.
struct NamesInFiles {
  Renaming from_files;  // from the names in the files
  Renaming to_files;    // the opposite

  bool empty() const { return from_files.empty(); }
};

// Returns the failure that `rules` are for other names than `name`; kInvalidArgument.
Status RulesDoNotFit(const std::string& rules, const std::string& name);

// Returns whether `renaming` gives `name` another name. Errors: as NewName.
Result<bool> Changes(const Renaming& renaming, const std::string& name);

}  // namespace reshard

#endif  // RESHARD_FORMAT_RENAME_MAP_RENAMING_H_
