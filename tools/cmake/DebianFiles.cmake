# Run by CPack on the installed files before it packs them: puts what Debian's policy wants into each
# package. Times come from SOURCE_DATE_EPOCH where that is set.
set(source ${CMAKE_CURRENT_LIST_DIR}/../..)
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)

foreach(package reshard:cli libreshard-dev:dev reshard-mount:mount)
  string(REPLACE ":" ";" package ${package})
  list(GET package 0 name)
  list(GET package 1 component)
  if(NOT IS_DIRECTORY ${CPACK_TEMPORARY_DIRECTORY}/${component})
    continue()
  endif()
  set(share ${CPACK_TEMPORARY_DIRECTORY}/${component}${CPACK_PACKAGING_INSTALL_PREFIX}/share)
  set(doc ${share}/doc/${name})

  file(WRITE ${doc}/changelog.Debian
       "reshard (${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium\n\n"
       "  * Packaged by CPack; changelog.gz says what is new.\n\n"
       " -- ${CPACK_PACKAGE_CONTACT}  ${date}\n")
  file(COPY_FILE ${source}/CHANGELOG.md ${doc}/changelog)
  set(to_compress ${doc}/changelog.Debian ${doc}/changelog)
  file(WRITE ${doc}/copyright
       "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n"
       "Upstream-Name: reshard\n\n"
       "Files: *\n"
       "Copyright: 2026 The reshard authors\n"
       "License: Apache-2.0\n"
       " On Debian systems, the text of the license is in /usr/share/common-licenses/Apache-2.0\n")
  if(component STREQUAL cli)
    list(APPEND to_compress ${share}/man/man1/reshard.1)
    # Where Debian's zsh looks; site-functions is for what an administrator installs.
    file(MAKE_DIRECTORY ${share}/zsh/vendor-completions)
    file(RENAME ${share}/zsh/site-functions/_reshard ${share}/zsh/vendor-completions/_reshard)
    file(REMOVE_RECURSE ${share}/zsh/site-functions)
  endif()
  if(component STREQUAL mount)
    list(APPEND to_compress ${share}/man/man1/reshard-mount.1)
  endif()
  file(CHMOD ${to_compress} ${doc}/copyright PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
  execute_process(COMMAND gzip --best --no-name --force ${to_compress} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
