# RESHARD_STATIC: programs without a dynamic linker or any shared library (reshard_tool links them with
# -static). Included before libraries are looked for, so that only their archives are found.
set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
set(Protobuf_USE_STATIC_LIBS ON)
set(OPENSSL_USE_STATIC_LIBS ON)

# Debian has no libfmt.a, but fmt's headers hold all of it.
find_path(fmt_INCLUDE_DIR fmt/format-inl.h REQUIRED)
add_library(fmt::fmt INTERFACE IMPORTED)
target_include_directories(fmt::fmt SYSTEM INTERFACE ${fmt_INCLUDE_DIR})
target_compile_definitions(fmt::fmt INTERFACE FMT_HEADER_ONLY=1)
