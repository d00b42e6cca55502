#!/usr/bin/env python3
"""Short transfers: reads and writes of 1, 7, 4096 or any number of bytes, or none (EINTR).

With sources mapped and with sources that cannot be mapped, the target is what it always is.
"""

import os
import pathlib
import random
import shutil

import harness

RANDOM_RUNS = 20


def main():
    options = harness.arguments("reshard", "gen", "shim", seed=True, every=True)
    choice = random.Random(options.seed)
    runs = 0
    with harness.scratch() as folder:
        folder = pathlib.Path(folder)
        # Some 12 MB: several chunks a file, which a writer's thread writes directly where it can.
        harness.generate(options.gen, folder / "src", "--layers", "1", "--hidden", "512", "--ffn",
                         "1408", "--vocab", "2048", "--tp", "2", "--no-optimizer")
        large = harness.Job(options.reshard, folder / "src", folder / "src" / "strategy", None)
        small = harness.golden_job(options.reshard, "case_037")
        for name, job, sizes in (("small", small, (1, 7, 4096)), ("large", large, (4096, 100_000))):
            finished = harness.undisturbed(job, folder / f"{name}_undisturbed")
            chosen = [(size, 0) for size in sizes]
            chosen += [(0, choice.randrange(1 << 32)) for _ in range(RANDOM_RUNS // options.every)]
            for size, seed in chosen:
                for no_map in (0, 1):
                    where = f"{name}: at most {size} bytes, seed {seed}, no map {no_map}"
                    target = folder / name
                    done = harness.run(job.command(target), env={
                        **os.environ, "LD_PRELOAD": options.shim, "RESHARD_SHIM_SHORT": str(size),
                        "RESHARD_SHIM_SEED": str(seed), "RESHARD_SHIM_NO_MAP": str(no_map)})
                    assert done.returncode == 0, f"{where}: {done.stderr.decode()}"
                    harness.check_finished(target, finished, where)
                    shutil.rmtree(target)
                    runs += 1
    print(f"{runs} runs with short transfers")


main()
