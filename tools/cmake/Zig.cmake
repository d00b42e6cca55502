# Toolchain of the wheels: zig's compiler for RESHARD_ARCH (x86_64, aarch64) and the libraries that
# tools/release/libraries.sh built for it. What is headers alone comes from this machine.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES RESHARD_ARCH)
set(CMAKE_SYSTEM_PROCESSOR ${RESHARD_ARCH})

cmake_path(SET libraries NORMALIZE ${CMAKE_CURRENT_LIST_DIR}/../../build/release-libraries)
set(CMAKE_C_COMPILER ${libraries}/bin/${RESHARD_ARCH}-cc)
set(CMAKE_CXX_COMPILER ${libraries}/bin/${RESHARD_ARCH}-c++)
set(CMAKE_AR ${libraries}/bin/zig-ar)
set(CMAKE_RANLIB ${libraries}/bin/zig-ranlib)
set(CMAKE_FIND_ROOT_PATH ${libraries}/${RESHARD_ARCH})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
