#!/usr/bin/env bash
# Builds what wheels hold and Debian's archives do not have: protobuf for shared objects, from Debian's
# source package, and newer_glibc.c.
#
#   tools/release/libraries.sh ARCH      x86_64 or aarch64
#
# Into build/release-libraries/ARCH, where tools/cmake/Manylinux.cmake looks for them. Needs what
# `tools/deps.sh release` installs, for aarch64 also `aarch64`. Does nothing when they are there.
set -euo pipefail
cd "$(dirname "$0")/../.."

arch=$1
base=$PWD/build/release-libraries
folder=$base/$arch
stamp=$(cat tools/release/{libraries.sh,newer_glibc.c} "$base"/sources/*.dsc | sha256sum)
[[ $(cat "$folder/complete" 2>/dev/null) == "$stamp" ]] && exit 0
rm -rf "$folder"
mkdir -p "$folder"

compiler=gcc toolchain=()
if [[ $arch == aarch64 ]]; then
  compiler=aarch64-linux-gnu-gcc
  toolchain=(--toolchain "$PWD/tools/cmake/Aarch64.cmake")
fi
"$compiler" -O2 -fPIC -c tools/release/newer_glibc.c -o "$folder/newer_glibc.o"

{
  dpkg-source --no-check -x "$base"/sources/protobuf_*.dsc "$folder/protobuf"
  cmake -G Ninja -S "$folder/protobuf" -B "$folder/protobuf-build" "${toolchain[@]}" \
    -D CMAKE_BUILD_TYPE=Release -D CMAKE_POSITION_INDEPENDENT_CODE=ON -D BUILD_SHARED_LIBS=OFF \
    -D protobuf_BUILD_TESTS=OFF -D protobuf_BUILD_PROTOC_BINARIES=OFF -D protobuf_WITH_ZLIB=OFF
  cmake --build "$folder/protobuf-build" --target libprotobuf-lite
} >"$folder/protobuf.log" 2>&1 || {
  tail -n 20 "$folder/protobuf.log" >&2
  exit 1
}
cp "$folder/protobuf-build/libprotobuf-lite.a" "$folder"
echo "$stamp" >"$folder/complete"
