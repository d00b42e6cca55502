# Finds xxHash 0.8 or newer (XXH3-128). Defines the target xxHash::xxHash, xxHash_FOUND and
# xxHash_VERSION. Installed with reshard's package, whose config uses it too.
find_path(xxHash_INCLUDE_DIR xxhash.h)
find_library(xxHash_LIBRARY xxhash)
mark_as_advanced(xxHash_INCLUDE_DIR xxHash_LIBRARY)

if(xxHash_INCLUDE_DIR)
  file(STRINGS ${xxHash_INCLUDE_DIR}/xxhash.h xxHash_lines
       REGEX "^#[ ]*define XXH_VERSION_(MAJOR|MINOR|RELEASE) ")
  string(REGEX REPLACE "[^;0-9]*([0-9]+)[^;]*" "\\1" xxHash_VERSION "${xxHash_lines}")
  list(JOIN xxHash_VERSION "." xxHash_VERSION)
  unset(xxHash_lines)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  xxHash
  REQUIRED_VARS xxHash_LIBRARY xxHash_INCLUDE_DIR
  VERSION_VAR xxHash_VERSION)

if(xxHash_FOUND AND NOT TARGET xxHash::xxHash)
  add_library(xxHash::xxHash UNKNOWN IMPORTED)
  set_target_properties(
    xxHash::xxHash PROPERTIES IMPORTED_LOCATION ${xxHash_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES
                                                                  ${xxHash_INCLUDE_DIR})
endif()
