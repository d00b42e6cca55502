// The program `reshard`.
#include "tools/cli/program.h"

int main(int argc, char** argv) { return reshard::RunProgram(argc, argv); }
