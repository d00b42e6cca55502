// Records of lines that end in a seal, as src/record writes them, broken on purpose.
#ifndef RESHARD_TESTS_SUPPORT_SEALED_RECORD_H_
#define RESHARD_TESTS_SUPPORT_SEALED_RECORD_H_

#include <string>

namespace reshard {

// Closes the lines of `body`, as an encoder would that has written `values` Values.
std::string Sealed(const std::string& body, int values);

// Returns `record`, which has 2 Values, with the first `piece` of its lines replaced, and sealed
// anew.
std::string Resealed(std::string record, const std::string& piece, const std::string& replacement);

}  // namespace reshard

#endif  // RESHARD_TESTS_SUPPORT_SEALED_RECORD_H_
