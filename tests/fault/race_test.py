#!/usr/bin/env python3
"""Several runs into one target: one of them writes it, those of others end with exit code 6.

Two to eight processes at a time, each converting another checkpoint, so that a mix would show.
Then one process that holds the lock stands still while others try, and one that held it is killed.
"""

import os
import pathlib
import random
import shutil
import subprocess

import harness

ROUNDS = 100
CASES = ("case_037", "case_010", "case_034")  # the same names, other bytes


def race(jobs, results, target, choice):
    """Starts the jobs at the same time, or nearly; returns which one won."""
    processes = [(index, subprocess.Popen(jobs[index].command(target), stdin=subprocess.DEVNULL,
                                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE))
                 for index in (choice.randrange(len(jobs)) for _ in range(choice.randint(2, 8)))]
    winners = []
    for index, process in processes:
        _, error = process.communicate(timeout=harness.TIMEOUT)
        assert process.returncode in (0, 6), f"exit {process.returncode}: {error.decode()}"
        if process.returncode == 0:
            winners.append(index)
    # Runs of one checkpoint may find the set whole; no run of another says that it succeeded.
    assert len(set(winners)) == 1, f"runs of {sorted(set(winners))} say that they succeeded"
    harness.check_finished(target, results[winners[0]], f"{len(processes)} runs")
    return len(processes)


def lock_held(jobs, results, folder):
    """While one run stands still at any of its calls from its lock on, no other gets in."""
    target = folder / "held"
    calls = harness.calls_of(jobs[0].command(target), folder / "calls")
    shutil.rmtree(target)
    refused = 0
    for call in ("mkdirat", "fsync", "renameat"):
        for when in sorted(calls[call])[1::3]:
            where = f"lock held at {call} {when}"
            with harness.Stopped(jobs[0].command(target), call, when, folder / "log") as run:
                assert run.stopped is not None, where
                others = [harness.run(jobs[1].command(target, *more))
                          for more in ((), ("--force",))]
            done = run.finish()
            assert done.returncode == 0, f"{where}: {done.stderr.decode()}"
            for other in others:
                assert other.returncode == 6, f"{where}: {other.returncode}: {other.stderr}"
                refused += 1
            harness.check_finished(target, results[0], where)
            shutil.rmtree(target)
    return refused


def stale_lock(jobs, results, folder):
    """The lock of a killed process is nobody's."""
    target = folder / "stale"
    with harness.Stopped(jobs[0].command(target), "fsync", 3, folder / "log") as run:
        os.kill(run.stopped, 9)
    run.finish()
    assert (target / harness.WORK_FOLDER / "lock").exists(), "the killed run left no lock"
    harness.complete(jobs[1], target, results[1], "stale lock")


def main():
    options = harness.arguments("reshard", seed=True, every=True)
    harness.need_programs("strace")
    choice = random.Random(options.seed)
    with harness.scratch_in_memory() as folder:
        folder = pathlib.Path(folder)
        jobs = [harness.golden_job(options.reshard, case) for case in CASES]
        results = [harness.undisturbed(job, folder / f"undisturbed{i}")
                   for i, job in enumerate(jobs)]
        processes = 0
        rounds = ROUNDS // options.every
        for _ in range(rounds):
            processes += race(jobs, results, folder / "target", choice)
            shutil.rmtree(folder / "target")
        refused = lock_held(jobs, results, folder)
        stale_lock(jobs, results, folder)
    print(f"{rounds} races of {processes} runs, {refused} runs refused while the lock was held, "
          "1 stale lock")


main()
