#!/usr/bin/env python3
"""Converts random checkpoints with the default options and without any look at
replicas and names: both have to end alike. MindSpore is not needed."""

import argparse
import filecmp
import secrets
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import cases
from writers import strategy_json, strategy_protobuf, write_checkpoint

MAX_LINES = 8


def write_side(folder, case, side):
    """Writes a strategy and returns its path: a file, or a folder of stages."""
    write = strategy_json if side.form == "json" else strategy_protobuf
    folder.mkdir()
    path = folder
    for number, layouts in enumerate(side.stages):
        stage = number + side.first_stage
        nodes = [(f"MatMul-op{stage}", stage, [[side.devices, 1], [1]])]
        path = folder / f"strategy_{stage}.{side.form}"
        path.write_bytes(write(nodes, layouts, case.shapes))
    return folder if side.merged else path


def run(reshard, folder, name, options):
    """Returns the exit code and the messages of a conversion into `name`."""
    done = subprocess.run(
        [reshard, "convert", folder / "src", folder / name, *options],
        capture_output=True, text=True, errors="replace", timeout=300,
        check=False)
    return done.returncode, [line for line in done.stderr.splitlines()
                             if "warning:" in line or "error:" in line]


def check(seed, reshard):
    """Returns the seed and how its two conversions differ, as lines."""
    case = cases.random_case(seed, seed)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for rank, rows in case.files.items():
            path = folder / "src" / f"rank_{rank}" / "net-1_100.ckpt"
            write_checkpoint(path, rows, case.value_limit, case.crc)
        options = []
        for label, side in (("src", case.source), ("dst", case.target)):
            if side:
                options += [f"--{label}-strategy",
                            write_side(folder / f"{label}_strategy", case,
                                       side)]
        code, said = run(reshard, folder, "checked", options)
        plain_code, plain_said = run(
            reshard, folder, "unchecked",
            options + ["--check-replicas=none", "--unmatched=copy"])
        if (code, said) != (plain_code, plain_said):
            return seed, [f"exit {code}, without a look {plain_code}", *said]
        files, others = ({path.relative_to(folder / side)
                          for path in (folder / side).rglob("*")
                          # Which options there were.
                          if path.is_file() and path.name != "origin.jsonl"}
                         for side in ("unchecked", "checked"))
        return seed, [str(path) for path in sorted(files | others)
                      if path not in files or path not in others
                      or not filecmp.cmp(folder / "checked" / path,
                                         folder / "unchecked" / path, False)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reshard", required=True, type=Path)
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--seed", help="a seed printed by an earlier run")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    reshard = arguments.reshard.resolve()
    seed = arguments.seed or secrets.token_hex(4)
    print(f"seed {seed}, {arguments.cases} cases", flush=True)
    seeds = [f"{seed}/{i}" for i in range(arguments.cases)]
    failed = 0
    with ProcessPoolExecutor(arguments.jobs) as pool:
        for case, failures in pool.map(check, seeds,
                                       [reshard] * len(seeds), chunksize=8):
            if failures:
                failed += 1
                print(f"FAILED {case}", *failures[:MAX_LINES], sep="\n  ",
                      flush=True)
    print(f"seed {seed}: {len(seeds) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
