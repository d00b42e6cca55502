// A conversion with the logical digest on one path of the processor, whatever faster one it has:
// about what `reshard convert` takes on a processor without that.
//
//   convert_paths                                              lists the paths of this processor
//   convert_paths PATH SRC DST SRC_STRATEGY DST_STRATEGY
//
// The linker leads the library's calls of LogicalKernels() here (--wrap), so that the library needs
// no option for it.
#include <cstdio>
#include <span>
#include <string_view>

#include "reshard/convert.h"
#include "src/digest/logical_kernel.h"

namespace reshard {

using Kernels = std::span<const LogicalKernel* const>;

// The names that --wrap gives to LogicalKernels() and to what stands in for it.
Kernels KernelsHere() asm("__real__ZN7reshard14LogicalKernelsEv");
Kernels ChosenKernel() asm("__wrap__ZN7reshard14LogicalKernelsEv");

namespace {

const LogicalKernel* chosen = nullptr;

int ListKernels() {
  for (const LogicalKernel* kernel : KernelsHere()) std::printf("%s\n", kernel->name);
  return 0;
}

int RunConversion(const std::span<char*> arguments) {
  const std::string_view path = arguments[0];
  for (const LogicalKernel* kernel : KernelsHere()) {
    if (path == kernel->name) chosen = kernel;
  }
  if (chosen == nullptr) {
    std::fprintf(stderr, "convert_paths: this processor has no path %s\n", arguments[0]);
    return 2;
  }
  ConvertOptions options;
  options.source.path = arguments[1];
  options.target.folder = arguments[2];
  options.source.strategy = arguments[3];
  options.target.strategy = arguments[4];
  const auto report = Convert(options);
  if (report.ok()) return 0;
  std::fprintf(stderr, "convert_paths: %s\n", report.status().message().c_str());
  return 1;
}

}  // namespace

Kernels ChosenKernel() { return {&chosen, 1}; }

}  // namespace reshard

int main(int argc, char** argv) {
  const std::span arguments(argv + 1, static_cast<size_t>(argc) - 1);
  if (arguments.empty()) return reshard::ListKernels();
  if (arguments.size() == 5) return reshard::RunConversion(arguments);
  std::fputs("usage: convert_paths [PATH SRC DST SRC_STRATEGY DST_STRATEGY]\n", stderr);
  return 2;
}
