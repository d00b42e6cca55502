# The Debian packages that `cpack -G DEB` makes of a release build: reshard (the program, its man page
# and completion scripts), libreshard-dev (the library, its headers and package config) and, with
# RESHARD_MOUNT, reshard-mount.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME reshard)
set(CPACK_PACKAGE_CONTACT "The reshard authors <reshard@reshard.invalid>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_COMPONENTS_ALL cli dev)
if(RESHARD_MOUNT)
  list(APPEND CPACK_COMPONENTS_ALL mount)
endif()
# What Debian wants besides the installed files, and elsewhere.
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/DebianFiles.cmake)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_DEBIAN_CLI_PACKAGE_NAME reshard)
set(CPACK_DEBIAN_CLI_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_CLI_PACKAGE_SHLIBDEPS ON)
set(CPACK_COMPONENT_CLI_DESCRIPTION
    "convert sharded MindSpore checkpoints to another sharding\nConverts the checkpoint of a model that was trained on some devices to the\nsharding of another number of them, as a copy, without loading a tensor.")

# A static library: what it links, a program that uses it has to link.
set(CPACK_DEBIAN_DEV_PACKAGE_NAME libreshard-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "libfmt-dev, libprotobuf-dev, libxxhash-dev, libdeflate-dev, zlib1g-dev, libssl-dev")
set(CPACK_COMPONENT_DEV_DESCRIPTION
    "read and convert sharded MindSpore checkpoints (library)\nThe static library behind reshard, its headers and its CMake package.")

# `reshard mount` runs it; apart, so that `reshard` needs no libfuse.
set(CPACK_DEBIAN_MOUNT_PACKAGE_NAME reshard-mount)
set(CPACK_DEBIAN_MOUNT_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_MOUNT_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_MOUNT_PACKAGE_DEPENDS
    "reshard (= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}), fuse3")
set(CPACK_COMPONENT_MOUNT_DESCRIPTION
    "mount the files of a resharded MindSpore checkpoint\nShows the files that reshard convert would write in a folder, without writing\nthem: reshard mount runs this program, by FUSE.")

include(CPack)
