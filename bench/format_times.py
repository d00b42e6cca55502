#!/usr/bin/env python3
"""Times what concerns safetensors alone: looking into very many tensors, and writing one file.

    bench/format_times.py --python build/venv/bin/python

1. `reshard inspect` of a Hugging Face folder, from the page cache: a mixture of experts of 200
   shards of 500 tensors each and their index, with contents that take no space (the files are
   sparse). What is read are 12 MB of headers and 9 MB of index.
2. `reshard convert` of 8 ranks of safetensors files to one Hugging Face file, beside safetensors'
   save_file of the same tensors, which a Python that has it reads from that file first; both
   durable, by turns. Without --python it is left out.
"""

import argparse
import json
import pathlib
import shutil
import statistics
import struct
import tempfile

import measure
from measure import GIB

SHARDS = 200
TENSORS = 500  # of each shard
PROJECTIONS = (("gate_proj", [768, 2048]), ("up_proj", [768, 2048]), ("down_proj", [2048, 768]))
EXPERTS = 128  # of each layer
BYTES = 2  # of a value of BFloat16

SAVE_FILE = """
import sys, time
from safetensors.numpy import load_file, save_file
tensors = load_file(sys.argv[1])
begin = time.monotonic()
save_file(tensors, sys.argv[2], {"format": "pt"})
with open(sys.argv[2], "rb+") as file:
    __import__("os").fsync(file.fileno())
print(time.monotonic() - begin, file=open(sys.argv[3], "w"))
"""


def names():
    """Yields the name and the shape of each tensor of the mixture of experts."""
    for number in range(SHARDS * TENSORS):
        expert, projection = divmod(number, len(PROJECTIONS))
        layer, expert = divmod(expert, EXPERTS)
        name, shape = PROJECTIONS[projection]
        yield f"model.layers.{layer}.mlp.experts.{expert}.{name}.weight", shape


def make_experts(folder):
    """Writes their folder and returns how many bytes its headers and its index have."""
    tensors = names()
    weights = {}
    total = read = 0
    for shard in range(SHARDS):
        path = folder / f"model-{shard + 1:05}-of-{SHARDS:05}.safetensors"
        header = {"__metadata__": {"format": "pt"}}
        end = 0
        for name, shape in (next(tensors) for _ in range(TENSORS)):
            size = shape[0] * shape[1] * BYTES
            header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [end, end + size]}
            weights[name] = path.name
            end += size
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        with path.open("wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            file.truncate(8 + len(text) + end)
        total += end
        read += 8 + len(text)
    index = json.dumps({"metadata": {"total_size": total}, "weight_map": weights}, indent=2,
                       sort_keys=True) + "\n"
    (folder / "model.safetensors.index.json").write_text(index)
    return read, len(index)


def spread(seconds):
    return (f"{statistics.median(seconds):.2f} s ({min(seconds):.2f} to {max(seconds):.2f} in "
            f"{len(seconds)} runs)")


def time_inspect(options, scratch):
    headers, index = make_experts(scratch)
    # The first run fills the page cache.
    usages = [measure.run([options.bin / "reshard", "inspect", scratch])
              for _ in range(options.runs + 1)][1:]
    print(f"inspect, {SHARDS} shards, {SHARDS * TENSORS} tensors, {headers / 1e6:.1f} MB of "
          f"headers, {index / 1e6:.1f} MB of index: {spread([u.seconds for u in usages])}, "
          f"{max(u.rss_anon for u in usages) >> 20} MiB")


def time_save_file(options, scratch):
    rows = max(8, int(1024 * options.size) // 8 * 8)
    sample = ["--matrices", 32, "--rows", rows, "--columns", 8192, "--dtype", "Float32",
              "--no-optimizer", "--tp", 8]
    measure.run([options.bin / "reshard-gen", scratch / "ckpt", *sample])
    strategy = scratch / "ckpt" / "strategy"
    measure.run([options.bin / "reshard", "convert", scratch / "ckpt", scratch / "ranks", "-q",
                 "--src-strategy", strategy, "--dst-strategy", strategy, "--format", "safetensors"])
    reshard, whole, saved = [], [], []
    lone = scratch / "hub" / "model.safetensors"
    theirs, said = scratch / "saved.safetensors", scratch / "seconds"
    for _ in range(options.runs):
        shutil.rmtree(scratch / "hub", ignore_errors=True)
        reshard.append(measure.run(
            [options.bin / "reshard", "convert", scratch / "ranks", scratch / "hub", "-q",
             "--src-strategy", strategy, "--format", "huggingface", "--shard-size", "1TB"]))
        whole.append(measure.run([options.python, "-c", SAVE_FILE, lone, theirs, said]))
        saved.append(float(said.read_text()))
        if lone.read_bytes() != theirs.read_bytes():
            raise measure.Failure("safetensors writes other bytes")
        theirs.unlink()
    print(f"one file of {lone.stat().st_size / GIB:.2f} GiB: reshard, from 8 ranks "
          f"{spread([u.seconds for u in reshard])}, {max(u.rss_anon for u in reshard) >> 20} MiB; "
          f"safetensors, import and reading of that file and save_file "
          f"{spread([u.seconds for u in whole])}, save_file alone {spread(saved)}, "
          f"{max(u.rss_anon for u in whole) >> 20} MiB")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default="build/release/bin")
    parser.add_argument("--python", help="a Python that has safetensors and NumPy")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--size", type=float, default=1.0, help="of the one file, in GiB")
    parser.add_argument("--work", help="a folder on the disk to be measured")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        time_inspect(options, pathlib.Path(folder))
    if options.python:
        with tempfile.TemporaryDirectory(dir=options.work) as folder:
            time_save_file(options, pathlib.Path(folder))


if __name__ == "__main__":
    main()
