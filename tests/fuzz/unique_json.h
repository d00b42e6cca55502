// JSON as a tree, for targets that hold what is read against it.
#ifndef RESHARD_TESTS_FUZZ_UNIQUE_JSON_H_
#define RESHARD_TESTS_FUZZ_UNIQUE_JSON_H_

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

namespace reshard {

// Returns the tree of a text in which no object has a key twice; nothing where that is not what
// `bytes` are.
std::optional<nlohmann::json> UniqueJson(std::string_view bytes);

}  // namespace reshard

#endif  // RESHARD_TESTS_FUZZ_UNIQUE_JSON_H_
