# Finds libdeflate (CRC-32). Defines the target libdeflate::libdeflate, libdeflate_FOUND and
# libdeflate_VERSION. Installed with reshard's package, whose config uses it too.
find_path(libdeflate_INCLUDE_DIR libdeflate.h)
find_library(libdeflate_LIBRARY deflate)
mark_as_advanced(libdeflate_INCLUDE_DIR libdeflate_LIBRARY)

if(libdeflate_INCLUDE_DIR)
  file(STRINGS ${libdeflate_INCLUDE_DIR}/libdeflate.h libdeflate_line
       REGEX "^#define LIBDEFLATE_VERSION_STRING")
  string(REGEX REPLACE ".*\"(.*)\".*" "\\1" libdeflate_VERSION "${libdeflate_line}")
  unset(libdeflate_line)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  libdeflate
  REQUIRED_VARS libdeflate_LIBRARY libdeflate_INCLUDE_DIR
  VERSION_VAR libdeflate_VERSION)

if(libdeflate_FOUND AND NOT TARGET libdeflate::libdeflate)
  add_library(libdeflate::libdeflate UNKNOWN IMPORTED)
  set_target_properties(
    libdeflate::libdeflate
    PROPERTIES IMPORTED_LOCATION ${libdeflate_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES
                                                       ${libdeflate_INCLUDE_DIR})
endif()
