#!/usr/bin/env bash
# Builds the libraries that the wheels hold, for one processor, from Debian's sources and with zig, whose
# compiler links against any glibc: what is built runs with glibc 2.28 and newer.
#
#   tools/release/libraries.sh ARCH      x86_64 or aarch64
#
# Into build/release-libraries/ARCH (lib, include), where tools/cmake/Zig.cmake looks for them; the
# compilers are build/release-libraries/bin/ARCH-cc and ARCH-c++. Needs what `tools/deps.sh release`
# installs. Does nothing when they are there.
set -euo pipefail
cd "$(dirname "$0")/../.."

arch=$1
glibc=2.28
base=$PWD/build/release-libraries
prefix=$base/$arch
sources=$base/sources
work=$base/work-$arch
logs=$base/logs-$arch
[[ -e $prefix/complete ]] && exit 0
rm -rf "$prefix" "$work"
mkdir -p "$prefix/lib" "$prefix/include" "$work" "$logs" "$base/bin"

for name in cc c++; do
  printf '#!/bin/sh\nexec %q -m ziglang %s -target %s-linux-gnu.%s "$@"\n' \
    "$PWD/build/release-env/bin/python" "$name" "$arch" "$glibc" >"$base/bin/$arch-$name"
  chmod +x "$base/bin/$arch-$name"
done
for name in ar ranlib; do
  printf '#!/bin/sh\nexec %q -m ziglang %s "$@"\n' \
    "$PWD/build/release-env/bin/python" "$name" >"$base/bin/zig-$name"
  chmod +x "$base/bin/zig-$name"
done
export CC=$base/bin/$arch-cc CXX=$base/bin/$arch-c++ AR=$base/bin/zig-ar RANLIB=$base/bin/zig-ranlib
# Two builds on two machines give the same bytes: no paths of this one.
export CFLAGS="-O2 -fPIC -g0 -ffile-prefix-map=$work=." CXXFLAGS="-O2 -fPIC -g0 -ffile-prefix-map=$work=."

logged() { # LOG COMMAND...
  local log=$logs/$1.log
  shift
  "$@" >"$log" 2>&1 || {
    tail -n 20 "$log" >&2
    return 1
  }
}

# The folder of a source package of Debian's, unpacked with Debian's patches.
unpacked() { # PACKAGE
  dpkg-source --no-check -x "$sources/$1"_*.dsc "$work/$1" >"$logs/$1-unpack.log" 2>&1
  echo "$work/$1"
}

cmake_library() { # PACKAGE TARGET... -- OPTION...
  local package=$1 source targets=()
  shift
  source=$(unpacked "$package")
  while [[ $1 != -- ]]; do
    targets+=(--target "$1")
    shift
  done
  shift
  logged "$package-configure" cmake -G Ninja -S "$source" -B "$work/$package-build" \
    --toolchain "$PWD/tools/cmake/Zig.cmake" -D RESHARD_ARCH="$arch" \
    -D CMAKE_BUILD_TYPE=Release -D CMAKE_POLICY_VERSION_MINIMUM=3.5 \
    -D CMAKE_POSITION_INDEPENDENT_CODE=ON -D CMAKE_INSTALL_PREFIX="$prefix" \
    -D CMAKE_INSTALL_LIBDIR=lib -D BUILD_SHARED_LIBS=OFF "$@"
  logged "$package-build" cmake --build "$work/$package-build" "${targets[@]}"
}

# fmt, with its package config.
cmake_library fmtlib install -- -D FMT_TEST=OFF -D FMT_DOC=OFF

# xxHash and libdeflate are a few sources each.
xxhash=$(unpacked xxhash)
# shellcheck disable=SC2086
logged xxhash "$CC" $CFLAGS -c "$xxhash/xxhash.c" -o "$work/xxhash.o"
"$AR" rcs "$prefix/lib/libxxhash.a" "$work/xxhash.o"
cp "$xxhash/xxhash.h" "$prefix/include"
libdeflate=$(unpacked libdeflate)
logged libdeflate make -C "$libdeflate" libdeflate.a
cp "$libdeflate/libdeflate.a" "$prefix/lib"
cp "$libdeflate/libdeflate.h" "$prefix/include"

zlib=$(unpacked zlib)
zlib_sources=(adler32 crc32 deflate inflate inffast inftrees trees zutil compress uncompr)
for name in "${zlib_sources[@]}"; do
  # shellcheck disable=SC2086
  logged "zlib-$name" "$CC" $CFLAGS -D_LARGEFILE64_SOURCE=1 -DHAVE_UNISTD_H -c "$zlib/$name.c" \
    -o "$work/zlib-$name.o"
done
"$AR" rcs "$prefix/lib/libz.a" "$work"/zlib-*.o
cp "$zlib/zlib.h" "$zlib/zconf.h" "$prefix/include"

cmake_library protobuf libprotobuf-lite -- -D protobuf_BUILD_TESTS=OFF \
  -D protobuf_BUILD_PROTOC_BINARIES=OFF -D protobuf_WITH_ZLIB=OFF
cp "$work/protobuf-build/libprotobuf-lite.a" "$prefix/lib"
(cd "$work/protobuf/src" && find google -name '*.h' -o -name '*.inc' | tar -c -T -) |
  tar -x -C "$prefix/include"

# The ciphers of libcrypto, and nothing that a network protocol needs.
openssl=$(unpacked openssl)
(
  cd "$openssl"
  unset CFLAGS CXXFLAGS
  logged openssl-configure ./Configure "linux-$arch" no-shared no-tests no-engine no-dso no-legacy \
    no-ssl no-tls no-dtls no-ec2m no-camellia no-idea no-rc2 no-rc4 no-cast no-des no-bf no-seed \
    no-whirlpool no-md4 no-ocsp no-cms no-ct no-srp no-psk no-gost no-ts \
    -fPIC -O2 -g0 "-ffile-prefix-map=$work=." --prefix=/usr --libdir=lib
  logged openssl-build make -j"$(nproc)" build_generated
  logged openssl-crypto make -j"$(nproc)" libcrypto.a
)
cp "$openssl/libcrypto.a" "$prefix/lib"
cp -r "$openssl/include/openssl" "$prefix/include"

# Headers alone, of this machine. Not where they lie: glibc's own are beside them.
mkdir -p "$prefix/share/cmake"
cp -r /usr/include/CLI /usr/include/nlohmann /usr/include/boost "$prefix/include"
cp -r /usr/share/cmake/CLI11 /usr/share/cmake/nlohmann_json "$prefix/share/cmake"
touch "$prefix/complete"
