#!/usr/bin/env bash
# Makes the files of a release in build/release-files, from a clean clone (Debian 12, x86_64).
#
#   tools/release.sh            all parts
#   tools/release.sh PART...    those
#
#   sdist
#   wheel-ARCH     of the sdist, for x86_64 or aarch64 with glibc 2.28 or newer and CPython 3.10 or newer:
#                  nothing of the system but glibc (tools/release/libraries.sh)
#   program-ARCH   the program, without any shared library
#   packages       Debian's, for this machine's processor
#
# Then SHA256SUMS, NOTICES.txt (the licenses of what is linked statically) and sbom.json (CycloneDX).
# Nothing is downloaded but packages of Debian and what tools/release/requirements.txt lists.
set -euo pipefail
cd "$(dirname "$0")/.."

parts=("$@")
((${#parts[@]})) ||
  parts=(sdist wheel-x86_64 wheel-aarch64 program-x86_64 program-aarch64 packages)
files=$PWD/build/release-files
work=$PWD/build/release-work
env=$PWD/build/release-env
rm -rf "$files" "$work"
mkdir -p "$files" "$work"

say() { printf '\n== %s\n' "$*"; }

# Builds of one commit give the same bytes.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH

# Ninja alone starts two more compilers than there are processors, which makes all of them slower.
CMAKE_BUILD_PARALLEL_LEVEL=$(nproc)
export CMAKE_BUILD_PARALLEL_LEVEL

# The sdist, which wheels are made of, too.
make_sdist() {
  [[ ! -e $work/source ]] || return 0
  say "Source distribution"
  "$env/bin/python" -c 'import sys; from scikit_build_core.build import build_sdist
build_sdist(sys.argv[1])' "$files"
  mkdir "$work/source"
  tar -xzf "$files"/reshard-*.tar.gz -C "$work/source" --strip-components 1
  cp "$files/NOTICES.txt" "$work/source" # into the wheels
}

make_wheel() { # ARCH
  local arch=$1 source=$work/source
  make_sdist
  say "Libraries for $arch"
  tools/release/libraries.sh "$arch"
  say "Wheel for $arch"
  local settings=(
    "build-dir=$work/$arch-build"
    "cmake.args=--toolchain=$PWD/tools/cmake/Manylinux.cmake"
    "cmake.define.RESHARD_ARCH=$arch"
    "cmake.define.RESHARD_STATIC=ON"
  )
  if [[ $arch != "$(uname -m)" ]]; then
    settings+=("cmake.define.Python_INCLUDE_DIR=$(echo "$PWD"/build/aarch64-root/usr/include/python3.*)")
  fi
  PATH=$env/bin:$PATH _PYTHON_HOST_PLATFORM=linux-$arch SETUPTOOLS_EXT_SUFFIX=.abi3.so \
    "$env/bin/python" -m pip wheel --no-build-isolation --no-deps --quiet \
    --wheel-dir "$work/$arch" "$source" "${settings[@]/#/--config-settings=}"
  "$env/bin/python" -m wheel tags --remove --platform-tag "manylinux_2_28_$arch" "$work/$arch"/*.whl
  "$env/bin/python" -m auditwheel show "$work/$arch"/*.whl | tee "$work/$arch-audit.txt"
  grep -q 'manylinux_2_\(1[7-9]\|2[0-8]\)_' "$work/$arch-audit.txt"
  cp "$work/$arch"/*.whl "$files"
}

make_program() { # ARCH
  local toolchain=() build=build/static strip=strip
  say "Program for $1"
  if [[ $1 == aarch64 ]]; then
    toolchain=(--toolchain "$PWD/tools/cmake/Aarch64.cmake")
    build=build/static-aarch64
    strip=aarch64-linux-gnu-strip
  fi
  cmake --preset static -B "$build" "${toolchain[@]}"
  cmake --build "$build" --target reshard_cli
  "$strip" -o "$files/reshard-linux-$1" "$build/bin/reshard"
}

make_packages() {
  say "Debian packages"
  cmake --workflow --preset release
  (cd build/release && cpack -G DEB -B "$work/packages")
  cp "$work"/packages/*.deb "$files"
}

groups=(build release)
[[ " ${parts[*]} " != *-aarch64\ * ]] || groups+=(aarch64)
tools/deps.sh "${groups[@]}"
say "Licenses and bill of materials"
python3 tools/release/materials.py --env "$env" --files "$files"
for part in "${parts[@]}"; do
  case $part in
    sdist | packages) "make_$part" ;;
    wheel-x86_64 | wheel-aarch64 | program-x86_64 | program-aarch64) "make_${part%-*}" "${part#*-}" ;;
    *)
      echo "usage: tools/release.sh [PART...]: $part is no part" >&2
      exit 2
      ;;
  esac
done
say "Checksums"
(cd "$files" && sha256sum -- * >SHA256SUMS && cat SHA256SUMS)
