# Installs the library, its headers and its package config (component dev), the command line with its
# man page and completion scripts (component cli).
include(CMakePackageConfigHelpers)

set(reshard_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/reshard)

install(
  TARGETS reshard
  EXPORT reshardTargets
  ARCHIVE COMPONENT dev
  FILE_SET HEADERS COMPONENT dev)
install(EXPORT reshardTargets NAMESPACE reshard:: DESTINATION ${reshard_package_dir} COMPONENT dev)
install(TARGETS reshard_cli RUNTIME COMPONENT cli)

# reshard_install_share(FILE DESTINATION [RENAME name]): a file that the program makes of itself.
function(reshard_install_share file destination)
  install(
    FILES ${PROJECT_BINARY_DIR}/share/${file}
    DESTINATION ${destination}
    COMPONENT cli ${ARGN})
endfunction()
reshard_install_share(reshard.1 ${CMAKE_INSTALL_MANDIR}/man1)
reshard_install_share(reshard.bash ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME reshard)
reshard_install_share(_reshard ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
reshard_install_share(reshard.fish ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)

configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/reshardConfig.cmake.in ${PROJECT_BINARY_DIR}/reshardConfig.cmake
  INSTALL_DESTINATION ${reshard_package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/reshardConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/reshardConfig.cmake
              ${PROJECT_BINARY_DIR}/reshardConfigVersion.cmake
              ${CMAKE_CURRENT_LIST_DIR}/FindxxHash.cmake
              ${CMAKE_CURRENT_LIST_DIR}/Findlibdeflate.cmake
        DESTINATION ${reshard_package_dir}
        COMPONENT dev)

# For those who do not build with CMake. The library is static: what it links, they link.
set(reshard_pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX}/${reshard_pc_dir}
           OUTPUT_VARIABLE reshard_pc_to_prefix)
configure_file(${CMAKE_CURRENT_LIST_DIR}/reshard.pc.in ${PROJECT_BINARY_DIR}/reshard.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/reshard.pc DESTINATION ${reshard_pc_dir} COMPONENT dev)
