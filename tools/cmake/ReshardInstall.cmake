# Installs the library, its headers, its package config and the command line.
include(CMakePackageConfigHelpers)

set(reshard_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/reshard)

install(TARGETS reshard EXPORT reshardTargets FILE_SET HEADERS)
install(EXPORT reshardTargets NAMESPACE reshard:: DESTINATION ${reshard_package_dir})
if(TARGET reshard_cli)
  install(TARGETS reshard_cli)
endif()

configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/reshardConfig.cmake.in ${PROJECT_BINARY_DIR}/reshardConfig.cmake
  INSTALL_DESTINATION ${reshard_package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/reshardConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/reshardConfig.cmake
              ${PROJECT_BINARY_DIR}/reshardConfigVersion.cmake
              ${CMAKE_CURRENT_LIST_DIR}/FindxxHash.cmake
              ${CMAKE_CURRENT_LIST_DIR}/Findlibdeflate.cmake DESTINATION ${reshard_package_dir})
