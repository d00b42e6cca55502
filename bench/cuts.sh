#!/usr/bin/env bash
# The figures of docs/performance.md: 3 GB of Float32 weights on 4 ranks become 2 ranks, once with all
# matrices cut by rows and once with all cut by columns. Needs the release build and 12 GB of disk.
#
#   bench/cuts.sh [--mindspore PYTHON] [--runs N]   (tools/deps.sh --mindspore: build/venv/bin/python)
set -euo pipefail
cd "$(dirname "$0")/.."
bin=build/release/bin
work=build/cuts
model=(--layers 10 --hidden 2048 --ffn 8192 --vocab 16384 --dtype Float32 --no-optimizer)

rm -rf "$work"
for cut in rows columns; do
  "$bin/reshard-gen" "$work/$cut/4" "${model[@]}" --tp 4 --cut "$cut"
  "$bin/reshard-gen" "$work/$cut/2" "${model[@]}" --tp 2 --cut "$cut" --strategy-only
  printf '\nmatrices cut by %s\n' "$cut"
  bench/compare_cp.py "$work/$cut/4" "$work/$cut/"{4,2}/strategy/strategy_0.ckpt "$work/$cut/out" \
    --reshard "$bin/reshard" "$@"
  rm -rf "${work:?}/$cut"
done
