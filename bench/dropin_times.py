#!/usr/bin/env python3
"""reshard.mindspore beside MindSpore and the command line, in one run, by turns.

`load_checkpoint` of one file: the call, in a process that has imported MindSpore, and by how much
the most memory of the process rises in it. `transform_checkpoints` of 8 ranks to 4: the call, and
`reshard convert` from its start to its end. Files lie in memory. One round does not count; in it
what is loaded and what is written is compared.
"""

import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import sys

from measure import GIB, Failure, check_equal, drop_from_cache, run

MATRICES, SIDE = 16, 4096
SIDE_SCRIPT = pathlib.Path(__file__).with_name("dropin_side.py")
CONTENDERS = {"MindSpore": "mindspore", "reshard.mindspore": "reshard.mindspore"}


def call(arguments, module, function, compared, *values):
    """Runs one call in a process of its own; returns what dropin_side.py prints."""
    done = subprocess.run(
        [arguments.python, SIDE_SCRIPT, module, function, "digest" if compared else "-",
         *map(str, values)], env={"PYTHONPATH": str(arguments.package.resolve()), "GLOG_v": "4"},
        capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failure(f"{module}.{function}: {done.stderr.strip()[-300:]}")
    return json.loads(done.stdout.splitlines()[-1])


def print_seconds(name, taken, note=""):
    print(f"  {name:24} {statistics.median(taken):7.3f} s ({min(taken):.3f} to {max(taken):.3f})"
          f"{note}", flush=True)


def measure_loads(arguments, scratch):
    run([arguments.binaries / "reshard-gen", scratch / "full", "--matrices", MATRICES, "--rows",
         int(SIDE * arguments.size), "--columns", SIDE, "--dtype", "Float32", "--no-optimizer"])
    file = next((scratch / "full" / "rank_0").glob("*.ckpt"))
    size = file.stat().st_size
    # MindSpore refuses a file that is larger than what is free, page cache not counted.
    drop_from_cache([])
    results = {name: [] for name in CONTENDERS}
    for number in range(arguments.runs + 1):
        found = {name: call(arguments, module, "load_checkpoint", number == 0, file)
                 for name, module in CONTENDERS.items()}
        if number > 0:
            for name, result in found.items():
                results[name].append(result)
        elif len({result["digest"] for result in found.values()}) != 1:
            raise Failure("load_checkpoint: reshard.mindspore loads other values than MindSpore")
    print(f"load_checkpoint, one file of {size / GIB:.2f} GiB of Float32, median of "
          f"{arguments.runs} (fastest to slowest); the most memory above that after the imports")
    for name, found in results.items():
        memory = max(result["memory"] for result in found)
        print_seconds(name, [result["seconds"] for result in found],
                      f"   {memory / size:.2f} of the file")
    theirs, ours = (statistics.median(result["seconds"] for result in results[name])
                    for name in CONTENDERS)
    print(f"  times as fast: {theirs / ours:.2f} (goal: 3)")
    shutil.rmtree(scratch / "full")


def measure_conversions(arguments, scratch):
    shape = ["--matrices", MATRICES, "--rows", int(SIDE * arguments.size), "--columns", SIDE,
             "--dtype", "Float32", "--no-optimizer"]
    strategies = {}
    for side, ranks, more in (("source", 8, ()), ("target", 4, ("--strategy-only",))):
        run([arguments.binaries / "reshard-gen", scratch / side, *shape, "--tp", ranks, *more])
        strategies[side] = next((scratch / side / "strategy").iterdir())

    def program(out):
        return run([arguments.binaries / "reshard", "convert", scratch / "source", out,
                    "--src-strategy", strategies["source"], "--dst-strategy",
                    strategies["target"], "-q"]).seconds

    def of(module):
        return lambda out: call(arguments, module, "transform_checkpoints", False,
                                scratch / "source", out, "checkpoint_", strategies["source"],
                                strategies["target"])["seconds"]

    contenders = {"reshard convert": program}
    contenders |= {name: of(module) for name, module in CONTENDERS.items()}
    seconds = {name: [] for name in contenders}
    for number in range(arguments.runs + 1):
        for name, once in contenders.items():
            # MindSpore takes so long that one run of it has to do.
            if name == "MindSpore" and number > arguments.slow_runs:
                continue
            out = scratch / ("expected" if number == 0 and name == "reshard convert" else "out")
            taken = once(out)
            if number > 0:
                seconds[name].append(taken)
            elif name != "reshard convert":
                check_equal(scratch / "expected", out)
            shutil.rmtree(scratch / "out", ignore_errors=True)
    print(f"transform_checkpoints, 8 ranks to 4, {arguments.size:g} GiB of Float32")
    for name, taken in seconds.items():
        print_seconds(name, taken)
    of_program, theirs, ours = (statistics.median(seconds[name])
                                for name in ("reshard convert", *CONTENDERS))
    print(f"  reshard.mindspore takes {ours / of_program:.3f} of the program's time (goal: 1.03)"
          f" and is {theirs / ours:.1f} times as fast as MindSpore (goal: 15)")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", type=pathlib.Path, default=pathlib.Path("build/venv/bin/python"),
                        help="an interpreter that has MindSpore")
    parser.add_argument("--package", type=pathlib.Path, default=pathlib.Path("build/release/python"))
    parser.add_argument("--binaries", type=pathlib.Path, default=pathlib.Path("build/release/bin"))
    parser.add_argument("--only", choices=("load", "transform"))
    parser.add_argument("--size", type=float, default=1.0, help="in GiB")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--slow-runs", type=int, default=1,
                        help="of MindSpore's transform_checkpoints")
    parser.add_argument("--scratch", type=pathlib.Path, default=pathlib.Path("/dev/shm/dropin"))
    arguments = parser.parse_args()
    needed = 4 * arguments.size * GIB
    if shutil.disk_usage(arguments.scratch.parent).free < needed:
        sys.exit(f"dropin_times.py: {arguments.scratch.parent}: needs {needed / GIB:g} GiB")
    arguments.scratch.mkdir()
    try:
        if arguments.only != "transform":
            measure_loads(arguments, arguments.scratch)
        if arguments.only != "load":
            measure_conversions(arguments, arguments.scratch)
    except Failure as failure:
        sys.exit(f"dropin_times.py: {failure}")
    finally:
        shutil.rmtree(arguments.scratch)


if __name__ == "__main__":
    main()
