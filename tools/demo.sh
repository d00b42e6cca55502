#!/usr/bin/env bash
# Shows what reshard does, on a checkpoint that it makes itself; needs no MindSpore. Takes a few
# seconds after the build. Leaves the files in build/demo.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '\n== %s\n' "$*"; }
show() { # COMMAND...
  printf '$'
  printf ' %q' "$@"
  echo
  "$@"
}

tools/deps.sh build
mkdir -p build/demo
say "Building (log: build/demo/build.log)"
{
  cmake --preset release &&
    cmake --build --preset release --parallel "$(nproc)" --target reshard_cli reshard_gen
} >build/demo/build.log 2>&1 || {
  tail -n 40 build/demo/build.log >&2
  exit 1
}

export PATH=$PWD/build/release/bin:$PATH
cd build/demo
rm -rf ckpt_8 ckpt_4 expected_4 suite
model=(--layers 12 --hidden 512 --ffn 1408 --vocab 4096)

say "A Llama-like checkpoint with Adam's states on 8 ranks: tensor parallel 4, optimizer sharding 2"
show reshard-gen ckpt_8 "${model[@]}" --tp 4 --dp 2 --optimizer-sharding
say "What 4 ranks have to hold under another strategy: tensor parallel 2, two pipeline stages"
show reshard-gen expected_4 "${model[@]}" --tp 2 --pp 2

say "8 ranks become 4"
show reshard convert ckpt_8 ckpt_4 --src-strategy ckpt_8/strategy --dst-strategy expected_4/strategy

say "One layer, as the first rank has it now"
show reshard inspect ckpt_4/rank_0/checkpoint_0.ckpt --filter 'model.layers.0.*'

say "Every byte is where it belongs"
for rank in 0 1 2 3; do
  show cmp "ckpt_4/rank_$rank/checkpoint_$rank.ckpt" "expected_4/rank_$rank/llama-1_100.ckpt"
done
echo "All 4 files equal those that reshard-gen made for 4 ranks directly."

say "The same proved three ways: read again by the manifest, against the sources, and by digests of tensors"
show reshard verify ckpt_4
show reshard verify ckpt_4 --against ckpt_8 --src-strategy ckpt_8/strategy --dst-strategy expected_4/strategy
show reshard diff ckpt_8 ckpt_4 --a-strategy ckpt_8/strategy --b-strategy expected_4/strategy

say "Time and memory, beside a copy that is made durable, too (bench/suite.py measures with care)"
TIMEFORMAT='%R seconds'
durable_copy() { cp -r ckpt_8 copy && sync copy/*/*; }
time show durable_copy
rm -r copy ckpt_4
time show reshard convert -v ckpt_8 ckpt_4 --src-strategy ckpt_8/strategy --dst-strategy expected_4/strategy

cat <<'END'

What happened: 8 files were mapped and indexed (headers only), the overlaps of old and new shards
became a list of byte ranges, and each of the 4 new files was gathered from the maps, chunk by chunk,
straight into place. No tensor was ever held in memory. The new files count only since manifest.json
lies beside them. Everything is in build/demo: ckpt_8, ckpt_4, expected_4.
END
