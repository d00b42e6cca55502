# Installs BUILD_DIR into a fresh prefix under WORK_DIR, moves the prefix, and configures, builds
# and runs the examples of the documents against it, with the flags that the library was built with.

set(examples ${CMAKE_CURRENT_LIST_DIR}/../../docs/examples)
set(case ${CMAKE_CURRENT_LIST_DIR}/../golden/data/convert/case_000)

function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT code EQUAL 0)
    list(JOIN ARGV " " command)
    message(FATAL_ERROR "exit ${code}: ${command}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK_DIR})
file(MAKE_DIRECTORY ${WORK_DIR})
run(${CMAKE_COMMAND} --install ${BUILD_DIR} --config ${CONFIG} --prefix ${WORK_DIR}/installed)
# A package that names its own place of installation would not survive this.
file(RENAME ${WORK_DIR}/installed ${WORK_DIR}/prefix)

foreach(file share/man/man1/reshard.1 share/bash-completion/completions/reshard
             share/zsh/site-functions/_reshard share/fish/vendor_completions.d/reshard.fish)
  file(READ ${WORK_DIR}/prefix/${file} text)
  if(NOT text MATCHES [[src\\?-strategy]])  # roff has a backslash there
    message(FATAL_ERROR "${file}: options are missing")
  endif()
endforeach()

run(${CMAKE_COMMAND} -S ${examples} -B ${WORK_DIR}/build -G ${GENERATOR}
    -D CMAKE_PREFIX_PATH=${WORK_DIR}/prefix -D CMAKE_CXX_COMPILER=${CXX_COMPILER}
    -D CMAKE_CXX_FLAGS=${CXX_FLAGS})
run(${CMAKE_COMMAND} --build ${WORK_DIR}/build)

# expect(WHAT PATTERN): the last output matches.
function(expect what pattern)
  if(NOT output MATCHES "${pattern}")
    message(FATAL_ERROR "${what}: expected ${pattern}, found:\n${output}")
  endif()
endfunction()

run(${WORK_DIR}/build/view_parameter ${case}/src/rank_0/net-1_100.ckpt)
expect(view_parameter "layer0.gamma \\[24, 4\\]")

# The same without CMake.
find_program(PKG_CONFIG pkg-config REQUIRED)
file(GLOB_RECURSE package ${WORK_DIR}/prefix/*/reshard.pc)
cmake_path(GET package PARENT_PATH package_folder)
set(ENV{PKG_CONFIG_PATH} ${package_folder})
run(${PKG_CONFIG} --cflags --libs reshard)
separate_arguments(flags UNIX_COMMAND "${CXX_FLAGS} ${output}")
run(${CXX_COMPILER} -std=c++20 ${examples}/view_parameter.cc -o ${WORK_DIR}/by_pkg_config ${flags})
run(${WORK_DIR}/by_pkg_config ${case}/src/rank_0/net-1_100.ckpt)
expect(view_parameter "layer0.gamma \\[24, 4\\]")

# The first half of moments.layer0.gamma, [24, 8] of Float32, is what target rank 0 holds of it.
set(slice ${WORK_DIR}/slice)
execute_process(
  COMMAND ${WORK_DIR}/build/load_slice ${case}/src ${case}/src_strategy.ckpt moments.layer0.gamma 0 2
  OUTPUT_FILE ${slice} RESULT_VARIABLE code)
file(READ ${slice} bytes HEX)
file(READ ${case}/expected/rank_0/out0.ckpt whole HEX)
string(LENGTH "${bytes}" digits)
string(FIND "${whole}" "${bytes}" at)
if(NOT code EQUAL 0 OR NOT digits EQUAL 1536 OR at EQUAL -1)
  message(FATAL_ERROR "load_slice: exit ${code}, ${digits} digits, found at ${at}")
endif()

run(${WORK_DIR}/build/inspect_checkpoint ${case}/src ${case}/src_strategy.ckpt)
expect(inspect_checkpoint "moments.layer0.gamma Float32 \\[48, 8\\]: [0-9]+ parts?, the first in ranks 0")

execute_process(
  COMMAND ${WORK_DIR}/build/convert_checkpoint ${case}/src ${WORK_DIR}/cancelled
          ${case}/src_strategy.ckpt ${case}/dst_strategy.ckpt 0
  RESULT_VARIABLE code OUTPUT_QUIET ERROR_QUIET)
if(NOT code EQUAL 130 OR EXISTS ${WORK_DIR}/cancelled/manifest.json)
  message(FATAL_ERROR "convert_checkpoint: exit ${code} when it is cancelled at once")
endif()
run(${WORK_DIR}/build/convert_checkpoint ${case}/src ${WORK_DIR}/target ${case}/src_strategy.ckpt
    ${case}/dst_strategy.ckpt)
expect(convert_checkpoint "rank_7/checkpoint_7.ckpt")
run(${CMAKE_COMMAND} -E compare_files ${WORK_DIR}/target/rank_7/checkpoint_7.ckpt
    ${case}/expected/rank_7/out7.ckpt)
