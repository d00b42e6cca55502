#!/usr/bin/env python3
"""Compares the casts of reshard with the installed MindSpore's.

A checkpoint of random bits, infinities, NaNs and subnormals among them:
load_param_into_net into a network of random float dtypes, saved, has to hold
the same bits as what `reshard convert --dtype` writes by rules that say the
same.
"""

import os
import subprocess
import sys

os.environ["GLOG_v"] = "4"
os.environ["OMP_NUM_THREADS"] = "1"

import mindspore  # pylint: disable=wrong-import-position

import case_loop  # pylint: disable=wrong-import-position
import writers  # pylint: disable=wrong-import-position

FLOATS = {"Float16": (mindspore.float16, 2),
          "BFloat16": (mindspore.bfloat16, 2),
          "Float32": (mindspore.float32, 4),
          "Float64": (mindspore.float64, 8)}
# Little-endian: the largest numbers, infinity, NaNs, what rounds up to
# infinity in another dtype, the smallest subnormal.
EDGES = {
    "Float16": ["ff7b", "007c", "00fc", "017c", "00fe", "0100"],
    "BFloat16": ["7f7f", "807f", "80ff", "817f", "c0ff", "0100"],
    "Float32": ["ffff7f7f", "0000807f", "000080ff", "0100807f", "00807f7f",
                "00f07f47", "ffef7f47", "01000000", "0000c0ff"],
    "Float64": ["ffffffffffffef7f", "000000000000f07f", "000000000000f8ff",
                "000000e0ffffef47", "0000000000feef40", "0100000000000000"],
}


def rows_of(rng):
    """Returns rows of (name, dtype, dims, content), one of integers among
    them."""
    rows = [("step", "Int32", (), rng.randbytes(4))]
    for number in range(rng.randint(1, 8)):
        dtype = rng.choice(list(FLOATS))
        dims = tuple(rng.randint(1, 30) for _ in range(rng.randint(0, 3)))
        count = 1
        for dim in dims:
            count *= dim
        item = FLOATS[dtype][1]
        content = bytearray(rng.randbytes(count * item))
        for edge in EDGES[dtype]:
            place = rng.randrange(count) * item
            content[place:place + item] = bytes.fromhex(edge)
        rows.append((f"layer.{number}.weight", dtype, dims, bytes(content)))
    return rows


def mindspore_rows(source, rows, targets, folder):
    """Returns what a network of these dtypes holds once it was loaded."""
    network = mindspore.nn.Cell()
    for number, (name, dtype, dims, _) in enumerate(rows):
        of = FLOATS[targets[name]][0] if name in targets else mindspore.int32
        zeros = mindspore.ops.zeros(dims, of)
        network.insert_param_to_cell(
            f"p{number}", mindspore.Parameter(zeros, name=name))
    left = mindspore.load_param_into_net(
        network, mindspore.load_checkpoint(str(source)))
    assert left == ([], []), left
    mindspore.save_checkpoint(network, str(folder / "loaded"),
                              format="safetensors")
    return writers.read_safetensors(folder / "loaded.safetensors")


def check(rng, reshard, folder):
    """Runs one case; returns what is wrong with it, if anything."""
    rows = rows_of(rng)
    source = folder / "source.ckpt"
    writers.write_checkpoint(source, rows)
    targets = {name: rng.choice(list(FLOATS)) for name, dtype, _, _ in rows
               if dtype in FLOATS}
    rules = []
    for name, dtype in targets.items():
        rules += ["--dtype", f"{name}={dtype.lower()}"]
    expected = mindspore_rows(source, rows, targets, folder)
    done = subprocess.run(
        [reshard, "convert", source, folder / "out", "--format", "huggingface",
         "-q", *rules], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return done.stderr
    found = {row[0]: row
             for row in writers.read_safetensors(
                 folder / "out" / "model.safetensors")}
    for row in expected:
        if found.get(row[0]) != row:
            was = next(old for old in rows if old[0] == row[0])
            return f"{row[0]}: {was[1]} to {row[1]}: other bits"
    return None


if __name__ == "__main__":
    sys.exit(case_loop.run(__doc__, check))
