// RunGenProgram: the whole program `reshard-gen`, which makes a sharded Llama-like checkpoint with
// its strategy files.
#ifndef RESHARD_TOOLS_GEN_GEN_PROGRAM_H_
#define RESHARD_TOOLS_GEN_GEN_PROGRAM_H_

namespace reshard {

// Does the work that the arguments of main() ask for, and returns the exit code. Does not throw.
int RunGenProgram(int argc, char** argv);

}  // namespace reshard

#endif  // RESHARD_TOOLS_GEN_GEN_PROGRAM_H_
