#!/usr/bin/env python3
"""The Python package beside MindSpore, safetensors, NumPy and the command line, in one run.

A model of about --size GiB of Float32, its matrices cut by rows and by columns over 4 tensor-parallel
ranks; the files lie in the page cache. Each figure is of a process of its own; contenders take turns.
Seconds are those of the work, imports left out.
"""

import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

from measure import GIB, Failure, drop_from_cache, read_into_cache, run

RANKS = 4


def whole(reshard, folders, jobs):
    checkpoint = reshard.open(folders["ranks"], folders["strategy"])
    return checkpoint.read(jobs=jobs, progress=False)


def reshard_ranks(folders, jobs):
    import reshard

    return lambda: whole(reshard, folders, jobs)


def reshard_file(path, jobs):
    import reshard

    return lambda: reshard.open(path).read(jobs=jobs, progress=False)


def mindspore_ranks(folders):
    import mindspore
    from mindspore.parallel import build_searched_strategy, merge_sliced_parameter

    def load():
        strategy = build_searched_strategy(folders["strategy"] + "/" + folders["strategy_file"])
        ranks = [mindspore.load_checkpoint(path) for path in folders["rank_files"]]
        return {
            name: merge_sliced_parameter([rank[name] for rank in ranks], strategy)
            if name in strategy
            else ranks[0][name]
            for name in ranks[0]
        }

    return load


def numpy_file(path, threads):
    import concurrent.futures
    import os

    import numpy as np

    size = os.path.getsize(path)
    part = -(-size // threads)

    def read():
        with concurrent.futures.ThreadPoolExecutor(threads) as pool:
            return list(
                pool.map(
                    lambda i: np.fromfile(path, np.uint8, min(part, size - i * part), offset=i * part),
                    range(threads),
                )
            )

    return read


def safetensors_file(path):
    from safetensors import safe_open

    def read():
        with safe_open(path, framework="np") as file:
            return {name: file.get_tensor(name) for name in file.keys()}

    return read


def views(path):
    import reshard

    checkpoint = reshard.open(path)
    return lambda: {name: tensor.mapped[...] for name, tensor in checkpoint.items()}


def small_reads(folders):
    import reshard

    tensor = max(reshard.open(folders["ranks"], folders["strategy"]).values(), key=lambda t: t.nbytes)
    rows = range(0, tensor.shape[0], max(1, tensor.shape[0] // 1000))
    return lambda: [tensor[row] for row in rows]


def convert(folders):
    import reshard

    return lambda: reshard.convert(
        folders["ranks"], folders["out"], src_strategy=folders["strategy"], jobs=2, progress=False
    )


def open_many(folders):
    import reshard

    return lambda: reshard.open(folders["many"], folders["many"] + "/strategy")


CONTENDERS = {
    "reshard, 4 ranks, jobs=1": lambda f: reshard_ranks(f, 1),
    "reshard, 4 ranks, jobs=2": lambda f: reshard_ranks(f, 2),
    "mindspore, 4 loads and merge_sliced_parameter": mindspore_ranks,
    "np.fromfile, 1 thread": lambda f: numpy_file(f["ckpt"], 1),
    "np.fromfile, 2 threads": lambda f: numpy_file(f["ckpt"], 2),
    "reshard, .ckpt, jobs=1": lambda f: reshard_file(f["ckpt"], 1),
    "reshard, .ckpt, jobs=2": lambda f: reshard_file(f["ckpt"], 2),
    "reshard, .safetensors, jobs=1": lambda f: reshard_file(f["safetensors"], 1),
    "reshard, .safetensors, jobs=2": lambda f: reshard_file(f["safetensors"], 2),
    "safetensors, safe_open": lambda f: safetensors_file(f["safetensors"]),
    "views of all tensors": lambda f: views(f["ckpt"]),
    "1,000 rows, each alone": small_reads,
    "open 1,024 ranks": open_many,
    "reshard.convert": convert,
}

# Each figure by the other one, in seconds: what a goal says of it.
GOALS = [
    ("mindspore, 4 loads and merge_sliced_parameter", "reshard, 4 ranks, jobs=2", "at least 10"),
    ("np.fromfile, 2 threads", "reshard, 4 ranks, jobs=2", "at least 0.6"),
    ("safetensors, safe_open", "reshard, .ckpt, jobs=2", "above 1"),
    ("safetensors, safe_open", "reshard, .safetensors, jobs=2", "above 1"),
    ("safetensors, safe_open", "reshard, .safetensors, jobs=1", "above 1"),
    ("reshard.convert", "reshard convert", "at most 1.03"),
]


def contend(name, folders):
    """In a process of its own: prints seconds, and bytes of files that became resident."""
    def file_bytes():
        with open("/proc/self/status", encoding="ascii") as status:
            return sum(int(line.split()[1]) << 10 for line in status if line.startswith("RssFile"))

    work = CONTENDERS[name](folders)
    before = file_bytes()
    begin = time.perf_counter()
    result = work()
    seconds = time.perf_counter() - begin
    print(json.dumps({"seconds": seconds, "file_bytes": file_bytes() - before}))
    return result


def make(arguments, scratch):
    """Makes the samples and returns where they are, as texts."""
    layers = max(1, round((arguments.size * GIB / 4 - 131e6) / 51.4e6))
    shape = ["--layers", layers, "--hidden", 2048, "--ffn", 5632, "--vocab", 32000, "--dtype",
             "Float32", "--no-optimizer", "--tp", RANKS]
    reshard = arguments.binaries / "reshard"
    ranks = scratch / "ranks"
    run([arguments.binaries / "reshard-gen", ranks, *shape])
    for form in ("ckpt", "safetensors"):
        run([reshard, "convert", ranks, scratch / form, "-q", "--src-strategy", ranks / "strategy",
             "--format", form])
    run([arguments.binaries / "reshard-gen", scratch / "many", "--layers", 22, "--hidden", 1024,
         "--ffn", 1024, "--vocab", 1024, "--no-optimizer", "--tp", 1024, "--dp", 1])
    strategy = next((ranks / "strategy").iterdir())
    files = sorted(ranks.glob("rank_*/*"), key=lambda path: int(path.parent.name[5:]))
    return {
        "ranks": str(ranks),
        "rank_files": [str(path) for path in files if path.suffix == ".ckpt"],
        "strategy": str(ranks / "strategy"),
        "strategy_file": strategy.name,
        "ckpt": str(next((scratch / "ckpt" / "rank_0").glob("*.ckpt"))),
        "safetensors": str(next((scratch / "safetensors" / "rank_0").glob("*.safetensors"))),
        "many": str(scratch / "many"),
        "out": str(scratch / "out"),
    }


def in_a_process(arguments, name, folders):
    shutil.rmtree(folders["out"], ignore_errors=True)
    done = subprocess.run(
        [arguments.python, __file__, "--contender", name],
        input=json.dumps(folders), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failure(f"{name}: {done.stderr.strip().splitlines()[-1:]}")
    return json.loads(done.stdout.splitlines()[-1])


def by_the_program(arguments, folders):
    shutil.rmtree(folders["out"], ignore_errors=True)
    seconds = run([arguments.binaries / "reshard", "convert", folders["ranks"], folders["out"], "-q",
                   "--src-strategy", folders["strategy"], "--jobs", 2]).seconds
    return {"seconds": seconds, "file_bytes": 0}


def import_time(arguments, modules):
    begin = time.perf_counter()
    subprocess.run([arguments.python, "-c", f"import {modules}"], check=True)
    return {"seconds": time.perf_counter() - begin, "file_bytes": 0}


def measure(arguments, scratch):
    folders = make(arguments, scratch)

    def wanted(name):
        return not arguments.only or any(part in name for part in arguments.only)

    contenders = {
        name: lambda name=name: in_a_process(arguments, name, folders)
        for name in CONTENDERS
        if wanted(name)
    }
    if wanted("reshard convert"):
        contenders["reshard convert"] = lambda: by_the_program(arguments, folders)
    for modules in ("numpy", "numpy, reshard"):
        if wanted(f"import {modules}"):
            contenders[f"import {modules}"] = lambda m=modules: import_time(arguments, m)
    # MindSpore refuses where the page cache of others has taken the memory.
    drop_from_cache([])
    read_into_cache(pathlib.Path(path) for path in [*folders["rank_files"], folders["ckpt"],
                                                    folders["safetensors"]])
    found = {name: [] for name in contenders}
    for _ in range(arguments.runs):
        for name, once in contenders.items():
            try:
                found[name].append(once())
            except Failure as failure:
                print(failure, file=sys.stderr)
    size = pathlib.Path(folders["ckpt"]).stat().st_size
    print(f"{size / GIB:.2f} GiB of Float32, {RANKS} ranks and one file; median of {arguments.runs} "
          "runs (fastest), and what of files became resident in the process")
    seconds = {}
    for name, runs in found.items():
        if runs:
            times = [one["seconds"] for one in runs]
            seconds[name] = statistics.median(times)
            resident = max(one["file_bytes"] for one in runs) >> 10
            print(f"  {name:46} {seconds[name]:9.4f} s ({min(times):.4f})   {resident} KiB of files")
    for above, below, goal in GOALS:
        if above in seconds and below in seconds:
            print(f"  {above} by {below}: {seconds[above] / seconds[below]:.2f} (goal: {goal})")
    if "import numpy, reshard" in seconds and "import numpy" in seconds:
        beyond = seconds["import numpy, reshard"] - seconds["import numpy"]
        print(f"  import reshard beyond numpy: {1000 * beyond:.0f} ms")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binaries", type=pathlib.Path, default=pathlib.Path("build/release/bin"))
    parser.add_argument("--python", default=sys.executable,
                        help="that has reshard, and MindSpore and safetensors to compare with")
    parser.add_argument("--size", type=float, default=1.0, help="in GiB")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", action="append", default=[],
                        help="contenders with this in their names; may be given several times")
    parser.add_argument("--scratch", type=pathlib.Path, default=pathlib.Path("/dev/shm/python_bench"))
    parser.add_argument("--contender", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.contender:
        contend(arguments.contender, json.load(sys.stdin))
        return
    needed = 5 * arguments.size * GIB
    if shutil.disk_usage(arguments.scratch.parent).free < needed:
        sys.exit(f"python.py: {arguments.scratch.parent}: needs {needed / GIB:g} GiB")
    arguments.scratch.mkdir()
    try:
        measure(arguments, arguments.scratch)
    except Failure as failure:
        sys.exit(f"python.py: {failure}")
    finally:
        shutil.rmtree(arguments.scratch)


if __name__ == "__main__":
    main()
