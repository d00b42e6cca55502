// The program `reshard-gen`.
#include "tools/gen/gen_program.h"

int main(int argc, char** argv) { return reshard::RunGenProgram(argc, argv); }
