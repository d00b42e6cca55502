#!/usr/bin/env bash
# Installs what this machine lacks of what something needs (Debian 12 or 13, Ubuntu 22.04 or newer).
# Does nothing when all is there.
#
#   tools/deps.sh GROUP...
#
#   build            what the programs and the library are built with
#   test             also what tools/test.sh builds and runs
#   lint             clang (sanitizers), clang-format and clang-tidy
#   python           build/pyenv, a Python environment with what the Python package is built and
#                    tested with (Debian's python3, or $PYTHON with its headers)
#   python-clients   build/pyenv-clients, with notebooks, Dask, Ray, mpi4py and pyright, for the tests
#                    of programs that use the package
#   mindspore        build/venv and build/venv-newest, Python environments with MindSpore for
#                    tests/differential (python3, or $PYTHON)
#   browser          Chromium, for the test of the pages that `reshard report` writes
#   slurm            Slurm, for the test of shards in its jobs
#   aarch64          a cross compiler, qemu-user, and build/aarch64-root with the libraries for aarch64
#                    (Debian only)
#   clean-root       what packages are made and checked with, and build/clean-root.tar, this release
#                    with little but apt, to try packages in (Debian only)
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

# The release that runs here, from wherever this machine gets its packages.
debootstrap_here() { # TARGET OPTION...
  local target=$1
  shift
  local sources=()
  local file
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources}; do
    [[ -s $file ]] && sources+=("$file")
  done
  mmdebstrap --quiet "$@" "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$target" \
    "${sources[@]}"
}

# Unpacks the libraries for aarch64.
make_aarch64_root() {
  local root=build/aarch64-root
  local libraries=(
    libc6-dev libstdc++-12-dev libgcc-12-dev libfmt-dev nlohmann-json3-dev libcli11-dev
    libprotobuf-dev libxxhash-dev libdeflate-dev zlib1g-dev libssl-dev libboost-dev libgtest-dev
    libgmock-dev librapidcheck-dev
  )
  if [[ $(cat "$root/unpacked.txt" 2>/dev/null) == "${libraries[*]}" ]]; then
    return 0
  fi
  rm -rf "$root"
  mkdir -p build
  (
    IFS=,
    debootstrap_here "$root" --variant=extract --architectures=arm64 --include="${libraries[*]}"
  )
  echo "${libraries[*]}" >"$root/unpacked.txt"
}

make_clean_root() {
  [[ -e build/clean-root.tar ]] && return 0
  mkdir -p build
  debootstrap_here build/clean-root.part.tar --variant=apt --include=ca-certificates
  mv build/clean-root.part.tar build/clean-root.tar
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
      install_packages g++-aarch64-linux-gnu qemu-user mmdebstrap
      make_aarch64_root
      ;;
    clean-root)
      install_packages mmdebstrap lintian dpkg-dev
      make_clean_root
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
