# What every target of ours has in common, and the functions that define modules.

# Warnings of our own code. Generated code does not link this. They are errors where the presets of
# developers say so (CMAKE_COMPILE_WARNING_AS_ERROR): a newer compiler may know more of them.
add_library(reshard_warnings INTERFACE)
target_compile_options(
  reshard_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion)

# Include paths inside the tree: public headers as "reshard/x.h", internal ones from the root
# ("src/tensor/byte_box.h"), protobuf's generated ones as "format/<name>/x.pb.h".
add_library(reshard_internal INTERFACE)
target_include_directories(
  reshard_internal INTERFACE ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/include
                             ${PROJECT_SOURCE_DIR})
target_include_directories(reshard_internal SYSTEM INTERFACE ${PROJECT_BINARY_DIR}/generated)

# reshard_proto(NAME FILE): the object library reshard_NAME of the code that protoc makes of FILE,
# a schema in the current folder. (protobuf_generate would drop the folder from the include path.)
function(reshard_proto name file)
  set(target reshard_${name})
  set(generated ${PROJECT_BINARY_DIR}/generated)
  set(schema ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  cmake_path(RELATIVE_PATH schema BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE path)
  cmake_path(REMOVE_EXTENSION path OUTPUT_VARIABLE stem)
  file(MAKE_DIRECTORY ${generated})
  add_custom_command(
    OUTPUT ${generated}/${stem}.pb.cc ${generated}/${stem}.pb.h
    COMMAND protobuf::protoc --proto_path=${PROJECT_SOURCE_DIR} --cpp_out=${generated} ${path}
    DEPENDS ${schema} protobuf::protoc
    COMMENT "protoc ${path}"
    VERBATIM)
  add_library(${target} OBJECT ${generated}/${stem}.pb.cc ${generated}/${stem}.pb.h)
  # Not ours: clang-tidy is to look at it no more than at a library.
  set_target_properties(${target} PROPERTIES UNITY_BUILD OFF COMPILE_WARNING_AS_ERROR OFF)
  reshard_embeddable(${target})
  reshard_compile_fast(${target})
  target_include_directories(${target} SYSTEM PUBLIC ${generated})
  target_link_libraries(${target} PUBLIC protobuf::libprotobuf-lite)
endfunction()

# So that the static library can go into a shared object, as a module of Python is, which then
# exports none of its names. CMake's own variables for visibility, where they are set, count.
function(reshard_embeddable target)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  if(NOT DEFINED CMAKE_CXX_VISIBILITY_PRESET)
    set_target_properties(
      ${target} PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  endif()
endfunction()

# For code that runs a few times a conversion: -O3 takes twice the time of -O1 to compile it, and
# makes no conversion faster. With sanitizers, -O0 takes two fifths of the time of -O1. GCC takes a
# tenth less if it never looks for memory of its own that it no longer needs; a unit takes up to 3 GB.
function(reshard_compile_fast target)
  target_compile_options(
    ${target} PRIVATE $<$<CONFIG:Release>:-O1> $<$<CONFIG:Debug>:-O0>
                      $<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=4000000>)
endfunction()

# reshard_module(NAME
#   [HOT]                           its code sees every byte of a conversion: optimized for speed
#   [PARSES]                        its code sees every byte of a header: optimized in Debug, too
#   [KERNELS]                       HOT, but its sources are compiled one by one, as some are for another
#                                   instruction set
#   [SOURCES file.cc...]            compiled together with other modules: all that are HOT, all that are
#                                   PARSES, or those of the others with one value of RESHARD_UNIT
#   [PUBLIC_HEADERS reshard/x.h...] the headers in include/ that this module implements
#   [PROTOS file.proto...]          schemas whose generated code belongs to the module
#   [DEPENDS module...]             modules whose headers it includes (tools/dev/layering.txt)
#   [LINK target...])               libraries from outside the tree
function(reshard_module name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "HOT;PARSES;KERNELS" "" "SOURCES;PUBLIC_HEADERS;PROTOS;DEPENDS;LINK")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "reshard_module(${name}): unexpected ${arg_UNPARSED_ARGUMENTS}")
  endif()
  set(target reshard_${name})

  set(links reshard_internal ${arg_LINK})
  foreach(module IN LISTS arg_DEPENDS)
    if(NOT TARGET reshard_${module})
      message(FATAL_ERROR "reshard_module(${name}): DEPENDS ${module}, which is not added above it")
    endif()
    list(APPEND links reshard_${module})
  endforeach()
  foreach(proto IN LISTS arg_PROTOS)
    cmake_path(GET proto STEM stem)
    reshard_proto(${stem}_proto ${proto})
    list(APPEND links reshard_${stem}_proto)
    set_property(GLOBAL APPEND PROPERTY RESHARD_OBJECTS reshard_${stem}_proto)
  endforeach()

  add_library(${target} INTERFACE)
  target_link_libraries(${target} INTERFACE ${links})
  if(arg_SOURCES)
    if(arg_KERNELS)
      set(unit reshard_unit_${name})
    elseif(arg_HOT)
      set(unit reshard_unit_hot)
    elseif(arg_PARSES)
      set(unit reshard_unit_parsers)
    else()
      set(unit reshard_unit_${RESHARD_UNIT})
    endif()
    if(NOT TARGET ${unit})
      add_library(${unit} OBJECT)
      reshard_embeddable(${unit})
      target_link_libraries(${unit} PRIVATE reshard_warnings)
      if(arg_KERNELS)
        set_target_properties(${unit} PROPERTIES UNITY_BUILD OFF)
      elseif(arg_PARSES)
        target_compile_options(${unit} PRIVATE $<$<CONFIG:Release>:-O1>)
      elseif(NOT arg_HOT)
        reshard_compile_fast(${unit})
      endif()
      set_property(GLOBAL APPEND PROPERTY RESHARD_OBJECTS ${unit})
    endif()
    target_sources(${unit} PRIVATE ${arg_SOURCES})
    target_link_libraries(${unit} PRIVATE ${target})
  endif()
  set_property(GLOBAL APPEND PROPERTY RESHARD_PUBLIC_HEADERS ${arg_PUBLIC_HEADERS})
endfunction()

# reshard_join_modules(NAME): the static library NAME (alias reshard::NAME) of all modules so far
# with their public headers.
function(reshard_join_modules name)
  get_property(objects GLOBAL PROPERTY RESHARD_OBJECTS)
  get_property(headers GLOBAL PROPERTY RESHARD_PUBLIC_HEADERS)
  list(TRANSFORM headers PREPEND ${PROJECT_SOURCE_DIR}/include/)

  add_library(${name} STATIC)
  add_library(reshard::${name} ALIAS ${name})
  foreach(object IN LISTS objects)
    target_sources(${name} PRIVATE $<TARGET_OBJECTS:${object}>)
  endforeach()
  target_sources(
    ${name} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/include
                   FILES ${headers} ${PROJECT_BINARY_DIR}/include/reshard/version.h)
  target_compile_features(${name} PUBLIC cxx_std_20)
  # VERIFY: the target all_verify_interface_header_sets compiles each public header alone.
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX VERIFY_INTERFACE_HEADER_SETS ON)
endfunction()

# reshard_tool_library(NAME SOURCES file.cc... [LINK target...]): the static library NAME, on top of the
# library, which programs and the Python module link.
function(reshard_tool_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINK")
  add_library(${name} STATIC ${arg_SOURCES})
  reshard_embeddable(${name})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(
    ${name}
    PUBLIC reshard::reshard ${arg_LINK}
    PRIVATE reshard_warnings)
endfunction()

# reshard_tool(NAME [OUTPUT_NAME name] SOURCES file.cc... [LINK target...]): the program NAME in
# bin/ of the build folder, on top of the library.
function(reshard_tool name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "OUTPUT_NAME" "SOURCES;LINK")
  if(NOT arg_SOURCES)
    return()
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE reshard::reshard reshard_warnings ${arg_LINK})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  if(RESHARD_STATIC)
    target_link_options(${name} PRIVATE -static)
  endif()
  if(arg_OUTPUT_NAME)
    set_target_properties(${name} PROPERTIES OUTPUT_NAME ${arg_OUTPUT_NAME})
  endif()
endfunction()
