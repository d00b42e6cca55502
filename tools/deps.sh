#!/usr/bin/env bash
# Installs what this machine lacks of what something needs (Debian 12 or 13, Ubuntu 22.04 or newer).
# Does nothing when all is there.
#
#   tools/deps.sh GROUP...
#
#   build            what the programs and the library are built with; reshard-mount needs
#                    libfuse3-dev, too
#   test             also what tools/test.sh builds and runs
#   lint             clang (sanitizers), clang-format and clang-tidy
#   python           build/pyenv, a Python environment with what the Python package is built and
#                    tested with (Debian's python3, or $PYTHON with its headers)
#   python-clients   build/pyenv-clients, with notebooks, Dask, Ray, mpi4py, clients of object stores,
#                    pyright and Kubernetes' schemas, for the tests of programs that use the package
#   mindspore        build/venv and build/venv-newest, Python environments with MindSpore for
#                    tests/differential (python3, or $PYTHON)
#   browser          Chromium, for the test of the pages that `reshard report` writes
#   slurm            Slurm, for the test of shards in its jobs
#   aarch64          a cross compiler, qemu, and build/aarch64-root with the libraries for aarch64
#                    (Debian only)
#   release          what tools/release.sh builds wheels with: build/release-env with zig's linker, and
#                    Debian's sources of protobuf in build/release-libraries/sources (Debian only)
#   clean-root       what packages are made and checked with, and a root of this release with little
#                    but apt, in build/roots (Debian only)
#   release-roots    such roots of Debian 12 and 13, and one for arm64 with Python alone
set -euo pipefail
cd "$(dirname "$0")/.."

build_packages=(
  cmake ninja-build g++ python3
  libcli11-dev libfmt-dev nlohmann-json3-dev libprotobuf-dev protobuf-compiler libxxhash-dev
  libdeflate-dev zlib1g-dev libssl-dev libboost-dev
)
test_packages=(
  "${build_packages[@]}" mold pkg-config
  libgtest-dev libgmock-dev librapidcheck-dev libbenchmark-dev liburing-dev xxhash
  strace openssl e2fsprogs xfsprogs mount util-linux fuse3 libfuse3-dev openmpi-bin
  zsh fish man-db mandoc
)
if [[ $(uname -m) == x86_64 ]]; then
  test_packages+=(user-mode-linux)
fi
lint_packages=(clang libclang-rt-dev clang-format clang-tidy)

install_packages() {
  local missing=()
  local package
  for package in "$@"; do
    if [[ $(dpkg-query -W -f '${Status}' "$package" 2>/dev/null) != "install ok installed" ]]; then
      missing+=("$package")
    fi
  done
  ((${#missing[@]})) || return 0

  local as_root=()
  if ((EUID != 0)); then
    if ! command -v sudo >/dev/null; then
      echo "deps.sh: neither root nor sudo; install these packages: ${missing[*]}" >&2
      return 1
    fi
    as_root=(sudo)
  fi
  echo "deps.sh: installing ${missing[*]}"
  as_root+=(env DEBIAN_FRONTEND=noninteractive apt-get)
  "${as_root[@]}" update
  "${as_root[@]}" install --yes --no-install-recommends "${missing[@]}"
}

make_environment() { # VENV REQUIREMENTS
  local venv=$1
  local requirements=$2
  if cmp --silent "$requirements" "$venv/installed.txt"; then
    return 0
  fi
  local python=${PYTHON:-python3}
  if ! "$python" -c 'import ensurepip' 2>/dev/null; then
    install_packages python3-venv
    python=/usr/bin/python3
  fi
  "$python" -m venv --clear "$venv"
  "$venv/bin/python" -m pip install --quiet --requirement "$requirements"
  cp "$requirements" "$venv/installed.txt"
}

this_release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")

# A release of Debian, from wherever this machine gets its packages.
make_root() { # RELEASE TARGET OPTION...
  local release=$1 target=$2
  shift 2
  local folder=build/roots/$release-sources
  mkdir -p "$folder"
  local sources=() file
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources}; do
    [[ -s $file ]] || continue
    sed "s/\b$this_release\b/$release/g" "$file" >"$folder/${file##*/}"
    sources+=("$folder/${file##*/}")
  done
  mmdebstrap --quiet "$@" "$release" "$target" "${sources[@]}"
}

make_root_archive() { # RELEASE ARCHITECTURE OPTION...
  local archive=build/roots/$1-$2.tar
  [[ -e $archive ]] && return 0
  make_root "$1" "$archive.part.tar" --architectures="$2" "${@:3}"
  mv "$archive.part.tar" "$archive"
}

# Unpacks the libraries for aarch64.
make_aarch64_root() {
  local root=build/aarch64-root
  local libraries=(
    libc6-dev libstdc++-12-dev libgcc-12-dev libfmt-dev nlohmann-json3-dev libcli11-dev
    libprotobuf-dev libxxhash-dev libdeflate-dev zlib1g-dev libssl-dev libboost-dev libgtest-dev
    libgmock-dev librapidcheck-dev libpython3-dev
  )
  if [[ $(cat "$root/unpacked.txt" 2>/dev/null) == "${libraries[*]}" ]]; then
    return 0
  fi
  rm -rf "$root"
  mkdir -p build
  (
    IFS=,
    make_root "$this_release" "$root" --variant=extract --architectures=arm64 \
      --include="${libraries[*]}"
  )
  echo "${libraries[*]}" >"$root/unpacked.txt"
}

# The source package of protobuf, of the release that runs here.
get_sources() {
  local folder=$PWD/build/release-libraries/sources
  [[ -e $folder/complete ]] && return 0
  local apt=$PWD/build/release-libraries/apt
  rm -rf "$folder" "$apt"
  mkdir -p "$folder" "$apt"/{sources.d,lists/partial,cache/archives/partial}
  local file
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources}; do
    [[ -s $file ]] || continue
    sed -E 's/^Types:.*/Types: deb-src/; s/^deb /deb-src /' "$file" \
      >"$apt/sources.d/deps-$(basename "$file")"
  done
  printf '%s\n' "Dir::Etc::sourcelist \"/dev/null\";" "Dir::Etc::sourceparts \"$apt/sources.d\";" \
    "Dir::State::lists \"$apt/lists\";" "Dir::Cache \"$apt/cache\";" >"$apt/apt.conf"
  (
    export APT_CONFIG=$apt/apt.conf
    apt-get update
    cd "$folder"
    apt-get source --download-only "protobuf/$this_release"
  )
  touch "$folder/complete"
}

make_clean_root() { # RELEASE
  make_root_archive "$1" "$(dpkg --print-architecture)" --variant=apt --include=ca-certificates
}

install_group() { # GROUP
  case $1 in
    build) install_packages "${build_packages[@]}" ;;
    test) install_packages "${test_packages[@]}" ;;
    lint) install_packages "${lint_packages[@]}" ;;
    python)
      # The interpreter that python3-dev has the headers of.
      install_packages python3-dev python3-venv
      PYTHON=${PYTHON:-/usr/bin/python3} make_environment build/pyenv tests/python/requirements.txt
      ;;
    python-clients)
      install_packages python3-venv
      PYTHON=${PYTHON:-/usr/bin/python3} make_environment build/pyenv-clients \
        tests/python/requirements-clients.txt
      ;;
    mindspore)
      make_environment build/venv tests/differential/requirements.txt
      make_environment build/venv-newest tests/differential/requirements-newest.txt
      ;;
    browser) install_packages chromium ;;
    slurm) install_packages slurm-wlm munge ;;
    aarch64)
      install_packages g++-aarch64-linux-gnu qemu-user-static mmdebstrap
      make_aarch64_root
      ;;
    release)
      install_packages python3-dev python3-venv dpkg-dev libfuse3-dev
      PYTHON=${PYTHON:-/usr/bin/python3} make_environment build/release-env \
        tools/release/requirements.txt
      get_sources
      ;;
    clean-root)
      install_packages mmdebstrap lintian dpkg-dev
      make_clean_root "$this_release"
      ;;
    release-roots)
      install_packages mmdebstrap qemu-user-static
      make_clean_root bookworm
      make_clean_root trixie
      # What wheels ask for: Python, and the C++ library of its other packages.
      make_root_archive bookworm arm64 --variant=extract --include=python3,libstdc++6
      ;;
    *)
      echo "usage: tools/deps.sh GROUP..., of the groups that tools/deps.sh lists at its top" >&2
      exit 2
      ;;
  esac
}

if (($# == 0)); then
  install_group ''
fi
if ! command -v dpkg-query >/dev/null; then
  echo "deps.sh: not a Debian system; its names for what a build needs: ${build_packages[*]}" >&2
  exit 1
fi
for group in "$@"; do
  install_group "$group"
done
