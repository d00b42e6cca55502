#!/usr/bin/env python3
"""Makes the N-th allocation of a conversion fail, for every N, once and from then on for ever.

The run ends with the right bytes, or with exit code 5 and nothing that looks finished; the same
command, run again with or without --resume, ends with the right bytes.
"""

import os
import pathlib
import shutil

import harness

CASE = "case_046"  # the one with the fewest allocations


def environment(shim, **variables):
    return {**os.environ, "LD_PRELOAD": shim, **{name: str(value) for name, value in
                                                 variables.items()}}


def count_allocations(job, shim, folder):
    count = folder / "count"
    done = harness.run(job.command(folder / "counted"),
                       env=environment(shim, RESHARD_SHIM_COUNT=count))
    assert done.returncode == 0, done.stderr.decode()
    return int(count.read_text())


def fail_at(job, shim, finished, target, number, for_ever):
    where = f"allocation {number}{' and all later ones' if for_ever else ''}"
    done = harness.run(job.command(target), env=environment(
        shim, RESHARD_SHIM_MALLOC=number, RESHARD_SHIM_FOR_EVER=int(for_ever)))
    assert done.returncode in (0, 5), f"{where}: exit {done.returncode}: {done.stderr.decode()}"
    published = harness.check_nothing_looks_finished(target, finished, {}, where)
    assert published or done.returncode != 0, f"{where}: exit 0, but no set"
    if target.exists():
        harness.complete(job, target, finished, where, *harness.AGAIN[number % len(harness.AGAIN)])
        shutil.rmtree(target)
    return done.returncode


def main():
    options = harness.arguments("reshard", "shim", every=True)
    with harness.scratch_in_memory() as folder:
        folder = pathlib.Path(folder)
        job = harness.golden_job(options.reshard, CASE)
        finished = harness.undisturbed(job, folder / "undisturbed")
        allocations = count_allocations(job, options.shim, folder)
        assert allocations > 1000, f"only {allocations} allocations: is the shim at work?"
        codes = harness.run_all(fail_at, [
            (job, options.shim, finished, folder / f"target{number}{for_ever}", number, for_ever)
            for for_ever in (False, True)
            for number in harness.sample(range(1, allocations + 1), options)])
    print(f"{sum(codes.values())} failing allocations survived; exit codes "
          f"{dict(sorted(codes.items()))}")


main()
