#include "tools/cli/program.h"
#include "tools/mount/fuse_server.h"

int main(int argc, char** argv) { return reshard::RunProgram(argc, argv, reshard::ServeByFuse); }
