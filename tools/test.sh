#!/usr/bin/env bash
# Builds and tests reshard.
#
#   tools/test.sh         packages, the dev build and its tests
#   tools/test.sh --all   the tests of C++ under AddressSanitizer and UndefinedBehaviorSanitizer; lint;
#                         by the release build those that cannot run so, the scripts, faults
#                         (tests/fault), packages in a clean root, MindSpore against reshard; of the long
#                         suites a sample, and either ThreadSanitizer or the wheel in a clean root
#   tools/test.sh --complete   the dev build and its tests too, all files of a release, scripts under
#                         AddressSanitizer, and the long suites whole
#   tools/test.sh --aarch64    the quick tests, cross-built for aarch64 and run under qemu-user
#
# Samples and random cases follow from a seed, which is printed; RESHARD_TEST_SEED=N repeats them.
#
# Ends with a table of what ran and what did not run and why; with CI=true a part or a test that did
# not run is a failure, unless tests/not_due.txt lists it. The last line is "N passed, M failed": tests
# of every ctest run, and each other part as one. Logs are in build/logs.
set -uo pipefail
exec </dev/null
cd "$(dirname "$0")/.." || exit 1

case "$*" in
  "" | --all | --complete | --aarch64) mode=$* ;;
  *)
    echo "usage: tools/test.sh [--all | --complete | --aarch64]" >&2
    exit 2
    ;;
esac

export RESHARD_TEST_SEED=${RESHARD_TEST_SEED:-$((RANDOM << 15 | RANDOM))}
if [[ ! $RESHARD_TEST_SEED =~ ^(0|[1-9][0-9]*)$ ]]; then
  echo "test.sh: RESHARD_TEST_SEED: expected a decimal number, found '$RESHARD_TEST_SEED'" >&2
  exit 2
fi
echo "seed $RESHARD_TEST_SEED (RESHARD_TEST_SEED)"

# MindSpore forks processes of its own: what waits for one that hangs is ended, and has failed.
longest_comparison=20m

# What is run of the suites that take long.
if [[ $mode == --complete ]]; then
  long_suites=complete
  random_cases=1000
  honest_cases=2000
  planted_faults=500
  format_cases=1000
  layout_pairs=1000
  property_cases=100
  longest_comparison=60m
else
  long_suites=sample
  random_cases=60
  honest_cases=200
  planted_faults=16
  format_cases=100
  layout_pairs=60
  property_cases=30
fi
export RC_PARAMS="seed=$RESHARD_TEST_SEED max_success=$property_cases" # RapidCheck's

jobs=$(nproc)
logs=build/logs
mkdir -p "$logs"
passed=0
failed=0
table=()

record() { # PART RESULT
  table+=("$(printf '%-14s %s' "$1" "$2")")
}

# Whether a line of tests/not_due.txt matches "TEST: WHY".
is_not_due() { # TEST: WHY
  local line
  while read -r line; do
    [[ -n $line && $line != \#* && $1 == $line ]] && return 0
  done <tests/not_due.txt
  return 1
}

did_not_run() { # PART WHY
  if is_not_due "$2"; then
    record "$1" "not due: $2"
  elif [[ ${CI:-} == true ]]; then
    failed=$((failed + 1))
    record "$1" "FAILED: did not run: $2"
  else
    record "$1" "did not run: $2"
  fi
}

# Runs COMMAND with its output on the terminal and in the part's log.
logged() { # PART COMMAND...
  local part=$1
  shift
  printf '\n== %s, at %s s: %s\n' "$part" "$SECONDS" "$*"
  "$@" 2>&1 | tee "$logs/$part.log"
}

# A part that counts as one test.
run_part() { # PART COMMAND...
  local start=$SECONDS
  if logged "$@"; then
    passed=$((passed + 1))
    record "$1" "passed ($((SECONDS - start)) s)"
  else
    failed=$((failed + 1))
    record "$1" "FAILED ($((SECONDS - start)) s), see $logs/$1.log"
    return 1
  fi
}

# Environments are filled beside the builds: most of that is waiting for the network.
declare -A installing=() # groups to processes

start_install() { # GROUP OF tools/deps.sh
  tools/deps.sh "$1" >"$logs/install-$1.log" 2>&1 &
  installing[$1]=$!
}

is_installed() { # GROUP
  printf '\n== install, at %s s: tools/deps.sh %s\n' "$SECONDS" "$1"
  local status=0
  wait "${installing[$1]}" || status=$?
  cat "$logs/install-$1.log"
  return "$status"
}

# Comparisons take one core each, mostly: as many run at a time as there are cores, each with its output
# in its log, which is shown when it ends.
declare -A compared=() # processes to parts
declare -A begun=()    # and when they began

start_comparison() { # PART COMMAND...
  ((${#compared[@]} < jobs)) || end_comparison
  timeout --verbose --kill-after 10 "$longest_comparison" "${@:2}" >"$logs/$1.log" 2>&1 &
  compared[$!]=$1
  begun[$!]=$SECONDS
}

end_comparison() {
  local process status=0
  wait -n -p process "${!compared[@]}" || status=$?
  local part=${compared[$process]} seconds=$((SECONDS - begun[$process]))
  unset "compared[$process]"
  printf '\n== %s, at %s s\n' "$part" "$SECONDS"
  cat "$logs/$part.log"
  if ((status == 0)); then
    passed=$((passed + 1))
    record "$part" "passed ($seconds s)"
  else
    failed=$((failed + 1))
    record "$part" "FAILED ($seconds s), see $logs/$part.log"
  fi
}

end_comparisons() {
  while ((${#compared[@]})); do
    end_comparison
  done
}

# Prints "test: why" for each test of a ctest run that skipped itself, out of GoogleTest's output, and
# what fault tests say that they could not do.
skipped_tests() { # LOG OF CTEST
  awk '/^did not run: / { print substr($0, 14) }
       /: Skipped$/ { getline why }
       /^\[  SKIPPED \] .*\(.* ms\)$/ { print $4 ": " why }' "$1"
}

run_ctest() { # PART PRESET [CTEST OPTION...]
  local part=$1 preset=$2
  shift 2
  local start=$SECONDS
  logged "$part" ctest --preset "$preset" --parallel "$jobs" "$@"
  local summary
  summary=$(grep -E '^[0-9]+% tests passed' "$logs/$part.log")
  if [[ ! $summary =~ ([0-9]+)\ tests?\ failed\ out\ of\ ([0-9]+) ]]; then
    failed=$((failed + 1))
    record "$part" "FAILED: ctest ended without a summary, see $logs/$part.log"
    return
  fi
  local bad=${BASH_REMATCH[1]} total=${BASH_REMATCH[2]}
  passed=$((passed + total - bad))
  failed=$((failed + bad))
  local result="passed"
  ((bad == 0)) || result="FAILED"
  record "$part" "$result: $((total - bad)) of $total tests ($((SECONDS - start)) s)"
  local skipped
  while read -r skipped; do
    did_not_run "$part" "$skipped"
  done < <(skipped_tests "build/$preset/Testing/Temporary/LastTest.log")
}

# Warnings are errors with the compilers of Debian 12. A newer one may know more of them, which is no
# reason not to test.
configure() { # PRESET [CMAKE OPTION...]
  local strict=()
  [[ $(. /etc/os-release && echo "$VERSION_CODENAME") == bookworm ]] ||
    strict=(-DCMAKE_COMPILE_WARNING_AS_ERROR=OFF)
  cmake --preset "$@" "${strict[@]}"
}

configure_and_build() { # PRESET [CMAKE OPTION...]
  configure "$@" && cmake --build --preset "$1" --parallel "$jobs"
}

build_and_test() { # PRESET [CMAKE OPTION...]
  if run_part "$1-build" configure_and_build "$@"; then
    run_ctest "$1-test" "$1"
  else
    did_not_run "$1-test" "the build failed"
  fi
}

# The presets build and run the tests of C++ alone, --complete also the programs and the scripts.
build_asan() {
  local target=portable_tests
  [[ $mode != --complete ]] || target=all
  configure asan && cmake --build --preset asan --parallel "$jobs" --target "$target"
}

test_asan() {
  # ctest leaves out what both label expressions match, the preset's and this one.
  local exclude=()
  [[ $mode != --complete ]] || exclude=(--label-exclude native)
  if run_part asan-build build_asan; then
    run_ctest asan-test asan "${exclude[@]}"
  else
    did_not_run asan-test "the build failed"
  fi
}

# Of the two, --all has one, by the seed, and --complete both.
has_part() { # tsan | wheel
  local parts=(tsan wheel)
  [[ $mode == --complete || ${parts[RESHARD_TEST_SEED % 2]} == "$1" ]] ||
    { record "$1" "not in the sample of this seed" && false; }
}

# The release build, with the tests that AddressSanitizer does not run and what scripts run. Warnings are
# errors, as in the presets of developers.
build_release() { # [CMAKE OPTION...]
  cmake --preset release -DCMAKE_COMPILE_WARNING_AS_ERROR=ON -DRESHARD_BUILD_TESTS=ON "$@" &&
    cmake --build --preset release --parallel "$jobs" --target native_tests
}

# Whether the LLVM of this machine is the one whose formatter and checks the sources follow.
has_llvm_14() { # PART
  [[ $(clang-format --version) == *" version 14."* ]] ||
    { did_not_run "$1" "$(clang-format --version): the sources follow version 14" && false; }
}

find_misformatted() {
  find include src format tools python tests \( -name '*.h' -o -name '*.cc' \) -print0 |
    xargs -0 clang-format --dry-run --Werror
}

check_format() {
  if has_llvm_14 format; then
    run_part format find_misformatted
  fi
}

# Of the build whose units are several sources each: most of the time goes into their headers.
run_tidy() {
  run-clang-tidy -quiet -p build/asan -j "$jobs" "^$PWD/(build/asan/)?(src|format|tools)/" 2>&1 |
    sed -E $'s/\x1b\\[[0-9;]*m//g' | sed -E '/^([0-9]+ warnings? generated\.|clang-tidy(-14)? .*|)$/d'
}

check_tidy() {
  if [[ ! -e build/asan/compile_commands.json ]]; then
    did_not_run tidy "the asan build was not configured"
  elif has_llvm_14 tidy; then
    run_part tidy run_tidy
  fi
}

# Debian's packages of the release build, where there is nothing else of reshard.
check_packages() {
  if ((EUID != 0)); then
    did_not_run packages "needs root, to enter another root"
  elif ! logged clean-root tools/deps.sh clean-root; then
    did_not_run packages "the root could not be made, see $logs/clean-root.log"
  else
    run_part packages python3 -B tests/package/clean_root_test.py --release build/release \
      --root "build/roots/$(. /etc/os-release && echo "$VERSION_CODENAME")-$(dpkg --print-architecture).tar"
  fi
}

# The files of a release, in clean roots. With --all, the wheel for this machine alone.
check_release() {
  has_part wheel || return 0
  local files=("wheel-$(uname -m)") roots=(clean-root) pythons=()
  [[ $mode != --complete ]] || { files=() && roots+=(release-roots) && pythons=(--pythons); }
  if ! run_part release-files tools/release.sh "${files[@]}"; then
    did_not_run wheel "there is none"
    did_not_run release-roots "there are no files"
    return
  fi
  run_part wheel python3 -B tests/package/wheel_test.py --scratch build/wheel \
    --wheel build/release-files/*"_$(uname -m).whl"
  if ((EUID != 0)); then
    did_not_run release-roots "needs root, to enter another root"
  elif ! logged roots tools/deps.sh "${roots[@]}"; then
    did_not_run release-roots "the roots could not be made, see $logs/roots.log"
  else
    run_part release-roots build/release-env/bin/python -B tests/package/release_test.py \
      --files build/release-files --roots build/roots --gen build/release/bin/reshard-gen "${pythons[@]}"
  fi
}

# The Python package in one process with MindSpore, with NumPy 1.26 and with NumPy 2.
check_dropin() {
  if [[ ! -e build/release/python/reshard/_reshard.abi3.so ]]; then
    did_not_run dropin "the Python package was not built"
    return
  fi
  local environment
  for environment in venv venv-newest; do
    start_comparison "dropin-$environment" "build/$environment/bin/python" \
      tests/differential/dropin.py --package build/release/python --seed "$RESHARD_TEST_SEED" \
      --cases "$layout_pairs"
  done
  start_comparison tutorials build/venv/bin/python tests/differential/tutorial_scripts.py \
    --package build/release/python
}

# A part of pytest files in which nothing may be skipped.
run_pytest() { # PART ENVIRONMENT TEST...
  local part=$1 python=build/$2/bin/python
  shift 2
  run_part "$part" env PYTHONPATH="$PWD/build/release/python" RESHARD_BIN="$PWD/build/release/bin" \
    timeout --verbose --kill-after 10 10m "$python" -B -m pytest -q -p no:cacheprovider -rs "$@"
  local skipped
  while read -r skipped; do
    did_not_run "$part" "$skipped"
  done < <(sed -n 's/^SKIPPED \[[0-9]*\] //p' "$logs/$part.log")
}

# Programs that use the package.
check_python_package() {
  if [[ ! -e build/release/python/reshard/_reshard.abi3.so ]]; then
    did_not_run python-clients "the Python package was not built"
    return
  fi
  if ! is_installed python-clients; then
    did_not_run python-clients "they could not be installed, see $logs/install-python-clients.log"
    return
  fi
  run_pytest python-clients pyenv-clients tests/python/notebook_test.py \
    tests/python/processes_test.py tests/python/target_clients_test.py tests/python/ray_test.py \
    tests/python/dask_test.py tests/python/kubernetes_test.py
  if build/pyenv-clients/bin/pyright --version >"$logs/pyright-version.log" 2>&1; then
    run_part pyright build/pyenv-clients/bin/pyright --project tests/python/pyright.json \
      --pythonpath build/pyenv-clients/bin/python
  else
    did_not_run pyright "pyright: needs Node.js, from Debian or nodejs.org, and npm's registry"
  fi
}

run_all() {
  run_part deps tools/deps.sh test || return
  if [[ $mode == --aarch64 ]]; then
    run_part deps-aarch64 tools/deps.sh aarch64 && build_and_test aarch64
    return
  fi
  local options=()
  if logged python tools/deps.sh python; then
    options=(-DRESHARD_BUILD_PYTHON=ON -DPython_EXECUTABLE="$PWD/build/pyenv/bin/python")
  else
    did_not_run python "its environment could not be made, see $logs/python.log"
  fi
  # With --all each test runs once: those of C++ under AddressSanitizer, the others by the release build.
  [[ $mode == --all ]] || build_and_test dev "${options[@]}"
  [[ -n $mode ]] || return
  run_part lint-deps tools/deps.sh lint || return
  start_install python-clients
  start_install mindspore
  check_format
  test_asan
  check_tidy
  has_part tsan && build_and_test tsan
  if ! run_part release-build build_release "${options[@]}"; then
    did_not_run native "the release build failed"
    did_not_run packages "the release build failed"
    did_not_run python-clients "the release build failed"
    did_not_run differential "the release build failed"
    return
  fi
  # Without a browser, or without Slurm, its test says that it did not run.
  logged browser tools/deps.sh browser
  logged slurm tools/deps.sh slurm
  # Two at a time keep half of two cores busy.
  run_ctest native release --parallel $((jobs * 3 / 2)) -C complete \
    --label-regex "native|cli|lint|install|python|$long_suites" --label-exclude abridged
  check_packages
  check_release
  check_python_package
  if ! is_installed mindspore; then
    did_not_run differential "MindSpore could not be installed, see $logs/install-mindspore.log"
  else
    start_comparison differential build/venv/bin/python tests/differential/run.py \
      --reshard build/release/bin/reshard --seed "$RESHARD_TEST_SEED" --cases "$random_cases" \
      --formats 0
    rm -rf build/formats
    start_comparison formats build/venv/bin/python tests/differential/run.py \
      --reshard build/release/bin/reshard --seed "$RESHARD_TEST_SEED" --cases 0 \
      --formats "$format_cases" --keep build/formats
    end_comparisons
    # Every file of these, by the libraries that read them.
    start_comparison clients build/venv/bin/python tests/differential/clients.py build/formats
    start_comparison newest build/venv-newest/bin/python tests/differential/clients.py build/formats
    start_comparison sampled build/venv/bin/python tests/differential/sampled_test.py \
      --reshard build/release/bin/reshard --seed "$RESHARD_TEST_SEED" --cases "$honest_cases"
    start_comparison planted build/venv/bin/python tests/differential/planted_test.py \
      --reshard build/release/bin/reshard --seed "$RESHARD_TEST_SEED" --cases "$planted_faults"
    start_comparison merges build/venv/bin/python tests/differential/merges.py \
      --reshard build/release/bin/reshard --seed "$RESHARD_TEST_SEED" --cases "$random_cases"
    start_comparison casts build/venv/bin/python tests/differential/casts.py \
      --reshard build/release/bin/reshard --seed "$RESHARD_TEST_SEED" --cases "$random_cases"
    start_comparison optimizer_states build/venv/bin/python tests/differential/optimizer_states.py
    start_comparison crcs build/venv/bin/python tests/differential/crcs.py \
      --reshard build/release/bin/reshard --seed "$RESHARD_TEST_SEED" --cases "$random_cases"
    start_comparison redundancy build/venv/bin/python tests/differential/redundancy.py \
      --reshard build/release/bin/reshard --seed "$RESHARD_TEST_SEED" --cases "$random_cases"
    start_comparison pipes build/venv/bin/python tests/differential/pipes.py \
      --reshard build/release/bin/reshard --seed "$RESHARD_TEST_SEED" --cases "$random_cases"
    start_comparison encryption build/venv/bin/python tests/differential/encryption.py \
      --reshard build/release/bin/reshard --seed "$RESHARD_TEST_SEED" --cases "$random_cases"
    if build/venv/bin/python tests/differential/name_rules.py --is-possible; then
      start_comparison name_rules build/venv/bin/python tests/differential/name_rules.py \
        --reshard build/release/bin/reshard
      start_comparison mindformers_resume build/venv/bin/python \
        tests/differential/mindformers_resume.py --mindformers build/venv/lib/python3.*/site-packages \
        --reshard build/release/bin/reshard --gen build/release/bin/reshard-gen
    else
      did_not_run name_rules "MindFormers and torch are not in build/venv"
    fi
    check_dropin
    end_comparisons
    rm -rf build/formats
    if [[ -e build/release/python/reshard/_reshard.abi3.so ]]; then
      local exchange=tests/python/exchange_test.py
      run_pytest exchange venv "$exchange" \
        --deselect "$exchange::test_torch_gets_memory_that_it_may_write_to" \
        --deselect "$exchange::test_a_checkpoint_gives_torchs_tensors"
    fi
  fi
}

run_all
wait # for environments that were not asked for

printf '\n%-14s %s\n' part result
printf '%s\n' "${table[@]}"
case $mode in
  "") echo "not asked for (--all): format, tidy, asan, tsan, release, fault, packages, differential" ;&
  --all) echo "not asked for (--complete): the dev build, both ThreadSanitizer and the wheel, all release files in all roots, all faults, 1000 random cases" ;&
  --complete) echo "not asked for (--aarch64): aarch64" ;;
esac
echo "$passed passed, $failed failed"
((failed == 0))
