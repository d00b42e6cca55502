// A program outside the tree: it knows the installed headers and the target reshard::reshard only.
#include <cstdio>

#include "reshard/status.h"
#include "reshard/version.h"

int main() {
  const reshard::Status status = reshard::NotFoundError("no such checkpoint");
  std::printf("reshard %.*s: exit %d\n", static_cast<int>(reshard::kVersion.size()),
              reshard::kVersion.data(), reshard::ExitCode(status.code()));
  return status.ok() ? 1 : 0;
}
