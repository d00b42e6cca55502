#include "format/container/container.h"

#include <fmt/format.h>

#include "src/base/quote.h"

namespace reshard {

Status InFile(std::string_view path, const Status& status, std::string_view hint) {
  if (status.ok()) return status;
  return {status.code(), fmt::format("{}: {}{}", Escape(path), status.message(), hint)};
}

}  // namespace reshard
