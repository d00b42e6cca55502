#!/usr/bin/env python3
"""MindSpore loads target files out of what `reshard cat` passes on.

Each case is a rank of a golden conversion, as it is or with a cast: what
load_checkpoint gets from a named pipe, or of safetensors from a BytesIO, has
to be what it gets from the file that `reshard convert` writes.
"""

import io
import json
import os
import pathlib
import subprocess
import sys

os.environ["GLOG_v"] = "4"
os.environ["OMP_NUM_THREADS"] = "1"

import mindspore  # pylint: disable=wrong-import-position

import case_loop  # pylint: disable=wrong-import-position

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden" / "data" / "convert"
SAFETENSORS = ["--format", "safetensors", "--dtype", "*=float32"]
WAYS = [["--format", "ckpt"], ["--format", "ckpt", "--dtype", "*=float32"], ["--format", "ckpt", "--crc"], SAFETENSORS]


def values_in(file, kind="ckpt"):
    return {name: (str(value.dtype), value.shape, value.asnumpy().tobytes())
            for name, value in mindspore.load_checkpoint(file, format=kind).items()}


def check(rng, reshard, folder):
    """Runs one case; returns what is wrong with it, if anything."""
    case = rng.choice(sorted(GOLDEN.glob("case_*")))
    stated = json.loads((case / "case.json").read_text())
    rank = rng.randrange(stated["dst_ranks"])
    way = rng.choice(WAYS)
    words = [case / "src", *way, "-q"]
    for side in ("src", "dst"):
        if stated[f"{side}_strategy"]:
            words += [f"--{side}-strategy", case / stated[f"{side}_strategy"]]
    subprocess.run([reshard, "convert", *words[:1], folder / "out", *words[1:], "--rank", str(rank)],
                   check=True, capture_output=True)
    kind = way[1]
    expected = values_in(str(folder / f"out/rank_{rank}/checkpoint_{rank}.{kind}"), kind)
    if way == SAFETENSORS:
        cat = subprocess.run([reshard, "cat", *words, "--rank", str(rank)], check=True, capture_output=True)
        found = values_in(io.BytesIO(cat.stdout), kind)
        return None if found == expected != {} else f"{case.name} rank {rank}: other values from a BytesIO"
    pipe = folder / "piped.ckpt"
    os.mkfifo(pipe)
    with subprocess.Popen([reshard, "cat", *words, "--rank", str(rank), "-o", pipe],
                          stderr=subprocess.PIPE, text=True) as cat:
        found = values_in(str(pipe))
        said = cat.communicate(timeout=60)[1]
    if cat.returncode != 0:
        return f"{case.name} rank {rank}: cat ended with {cat.returncode}: {said}"
    if found != expected:
        return f"{case.name} rank {rank}: other values from the pipe"
    return None if expected else f"{case.name} rank {rank}: no values"


if __name__ == "__main__":
    sys.exit(case_loop.run(__doc__, check))
