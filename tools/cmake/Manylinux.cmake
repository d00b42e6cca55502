# Toolchain of a release's wheels, for RESHARD_ARCH (x86_64, aarch64): this machine's compiler, and zig's
# linker, which offers of glibc what 2.28 has. With RESHARD_STATIC all else is linked statically but
# libgcc_s: exceptions pass through it between the module and nanobind's.
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES RESHARD_ARCH)
if(RESHARD_ARCH STREQUAL aarch64)
  include(${CMAKE_CURRENT_LIST_DIR}/Aarch64.cmake)
else()
  set(CMAKE_CXX_COMPILER g++)
endif()

cmake_path(SET build NORMALIZE ${CMAKE_CURRENT_LIST_DIR}/../../build)
set(libraries ${build}/release-libraries/${RESHARD_ARCH})
set(Protobuf_LIBRARY ${libraries}/libprotobuf-lite.a)
set(Protobuf_LITE_LIBRARY ${Protobuf_LIBRARY})

foreach(file IN ITEMS libstdc++.a libgcc_s.so.1)
  execute_process(
    COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=${file}
    OUTPUT_VARIABLE path
    OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  list(APPEND runtime ${path})
endforeach()
list(JOIN runtime " " runtime)
set(CMAKE_CXX_CREATE_SHARED_MODULE
    "${build}/release-env/bin/python -m ziglang c++ -target ${RESHARD_ARCH}-linux-gnu.2.28 -nostdlib++ \
<LINK_FLAGS> -shared -o <TARGET> <OBJECTS> ${libraries}/newer_glibc.o <LINK_LIBRARIES> ${runtime}")
