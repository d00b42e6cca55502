#!/usr/bin/env python3
"""MindSpore loads target files out of named pipes that `reshard cat` fills.

Each case is a rank of a golden conversion, as it is or with a cast: what
load_checkpoint gets from the pipe has to be what it gets from the file that
`reshard convert` writes.
"""

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
WAYS = [[], ["--dtype", "*=float32"], ["--crc"]]


def values_in(path):
    return {name: (str(value.dtype), value.shape, value.asnumpy().tobytes())
            for name, value in mindspore.load_checkpoint(str(path)).items()}


def check(rng, reshard, folder):
    """Runs one case; returns what is wrong with it, if anything."""
    case = rng.choice(sorted(GOLDEN.glob("case_*")))
    stated = json.loads((case / "case.json").read_text())
    rank = rng.randrange(stated["dst_ranks"])
    words = [case / "src", *rng.choice(WAYS), "-q"]
    for side in ("src", "dst"):
        if stated[f"{side}_strategy"]:
            words += [f"--{side}-strategy", case / stated[f"{side}_strategy"]]
    subprocess.run([reshard, "convert", *words[:1], folder / "out", *words[1:], "--rank", str(rank)],
                   check=True, capture_output=True)
    expected = values_in(folder / f"out/rank_{rank}/checkpoint_{rank}.ckpt")
    pipe = folder / "piped.ckpt"
    os.mkfifo(pipe)
    with subprocess.Popen([reshard, "cat", *words, "--rank", str(rank), "-o", pipe],
                          stderr=subprocess.PIPE, text=True) as cat:
        found = values_in(pipe)
        said = cat.communicate(timeout=60)[1]
    if cat.returncode != 0:
        return f"{case.name} rank {rank}: cat ended with {cat.returncode}: {said}"
    if found != expected:
        return f"{case.name} rank {rank}: other values from the pipe"
    return None if expected else f"{case.name} rank {rank}: no values"


if __name__ == "__main__":
    sys.exit(case_loop.run(__doc__, check))
