# Functions that define tests. Each program is one ctest or several, labelled with its folder's name.

find_package(GTest REQUIRED)

# reshard_test_library(NAME SOURCES file.cc... [LINK target...]): code shared by tests.
function(reshard_test_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINK")
  if(NOT arg_SOURCES)
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE reshard::reshard reshard_internal ${arg_LINK})
    return()
  endif()
  add_library(${name} STATIC ${arg_SOURCES})
  target_link_libraries(
    ${name}
    PUBLIC reshard::reshard reshard_internal ${arg_LINK}
    PRIVATE reshard_warnings)
endfunction()

# reshard_test(NAME
#   SOURCES file.cc...
#   [SHARDS n]              n ctests, NAME_1 to NAME_n, each of which runs some of its tests
#   [LINK target...]        beside the library, test_support and GoogleTest's main (gmock included)
#   [TOOLS target...]       programs it runs: reshard_cli, reshard_gen
#   [LABELS label...]       beside the folder's name; `threads`: also run under ThreadSanitizer;
#                           `native`: measures memory or traces, so not run under AddressSanitizer)
# The code sees RESHARD_TESTS_DIR (the tests/ folder) and RESHARD_BIN_DIR (where the programs are).
function(reshard_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "SHARDS" "SOURCES;LINK;TOOLS;LABELS")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_SOURCES)
    message(FATAL_ERROR "reshard_test(${name}): needs SOURCES; unexpected: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  cmake_path(GET CMAKE_CURRENT_SOURCE_DIR FILENAME folder)
  add_executable(${name} ${arg_SOURCES})
  target_precompile_headers(${name} REUSE_FROM reshard_test_support)
  target_compile_definitions(
    ${name} PRIVATE RESHARD_TESTS_DIR="${PROJECT_SOURCE_DIR}/tests"
                    RESHARD_BIN_DIR="${PROJECT_BINARY_DIR}/bin")
  target_link_libraries(${name} PRIVATE reshard_test_support reshard_warnings GTest::gmock_main
                                        ${arg_LINK})
  if(arg_TOOLS)
    add_dependencies(${name} ${arg_TOOLS})
  endif()
  if("threads" IN_LIST arg_LABELS)
    add_dependencies(threads_tests ${name})
  endif()
  if("native" IN_LIST arg_LABELS OR folder STREQUAL cli)
    add_dependencies(native_tests ${name})
  endif()
  if(NOT "native" IN_LIST arg_LABELS)
    add_dependencies(portable_tests ${name})
  endif()
  if(NOT arg_SHARDS)
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES LABELS "${folder};${arg_LABELS}")
    return()
  endif()
  foreach(shard RANGE 1 ${arg_SHARDS})
    math(EXPR index "${shard} - 1")
    add_test(NAME ${name}_${shard} COMMAND ${name})
    set_tests_properties(
      ${name}_${shard}
      PROPERTIES LABELS "${folder};${arg_LABELS}"
                 ENVIRONMENT "GTEST_TOTAL_SHARDS=${arg_SHARDS};GTEST_SHARD_INDEX=${index}")
  endforeach()
endfunction()
