#!/usr/bin/env python3
"""Kills conversions of some 100 MB at random moments, and the runs that take them up as well.

Whatever the moment: no manifest without a whole set, and a run with --resume, or without, ends with
the bytes of an undisturbed one. SIGINT and SIGTERM end a run with exit code 130 and leave a state
that can be taken up in the same way.
"""

import collections
import os
import pathlib
import random
import shutil
import signal
import subprocess
import time

import harness

KILLS = 200
INTERRUPTIONS = 20  # by each of the other signals
LOT = 5  # as many of them one after the other
SIGNALS = {"INT": signal.SIGINT, "TERM": signal.SIGTERM, "KILL": signal.SIGKILL}
MODEL = ("--layers", "4", "--hidden", "384", "--ffn", "1024", "--vocab", "4096")


def run_until(command, seconds, number):
    """Starts the command and sends it a signal after that time; returns how it ended."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE)
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(number)
    _, error = process.communicate(timeout=harness.TIMEOUT)
    return subprocess.CompletedProcess(command, process.returncode, b"", error)


def check_ended(done, name, target, where):
    """Returns whether the run was interrupted. It may have been faster than the signal."""
    if done.returncode == 0 or (done.returncode == 6 and (target / harness.MANIFEST).exists()):
        return False
    expected = -signal.SIGKILL if name == "KILL" else 130
    early = -SIGNALS[name]  # before the program has set up its handler
    assert done.returncode in (expected, early), \
        f"{where}: {done.returncode}: {done.stderr.decode()}"
    return True


def interrupt(job, target, finished, choice, duration, name):
    """Interrupts one conversion, perhaps also the run that takes it up.

    Returns how many times, and whether there were finished files to go on from.
    """
    interruptions = 0
    resume = choice.choice(harness.AGAIN)
    more = ()
    again = choice.randrange(3)
    for attempt in range(1 + again):
        seconds = choice.uniform(0, duration)
        where = f"{name} after {seconds:.3f} s, attempt {attempt + 1} {' '.join(more)}"
        done = run_until(job.command(target, *more), seconds, SIGNALS[name])
        interrupted = check_ended(done, name, target, where)
        harness.check_nothing_looks_finished(target, finished, {}, where)
        interruptions += interrupted
        if not interrupted:
            break
        more = resume
    kept = any((target / harness.WORK_FOLDER).rglob("*.jsonl"))
    harness.complete(job, target, finished, f"{where}, completed {' '.join(resume)}", *resume)
    shutil.rmtree(target)
    return interruptions, kept


def interrupt_lot(job, target, finished, seed, duration, name, wanted):
    """Returns the signal's name, the interruptions, and of how many jobs how many kept files."""
    choice = random.Random(f"{seed} {target.name}")
    interruptions = 0
    kept = collections.Counter()
    while interruptions < wanted:
        times, any_kept = interrupt(job, target, finished, choice, duration, name)
        interruptions += times
        kept[any_kept] += 1
    return name, interruptions, kept.total(), kept[True]


def timed(job, target):
    start = time.monotonic()
    done = harness.run(job.command(target))
    assert done.returncode == 0, done.stderr.decode()
    return time.monotonic() - start


def main():
    options = harness.arguments("reshard", "gen", seed=True, every=True)
    with harness.scratch() as folder:
        folder = pathlib.Path(folder)
        harness.generate(options.gen, folder / "src", *MODEL, "--tp", "4")
        harness.generate(options.gen, folder / "dst", *MODEL, "--tp", "2", "--pp", "4",
                         "--strategy-only")
        job = harness.Job(options.reshard, folder / "src", folder / "src" / "strategy",
                          folder / "dst" / "strategy")
        finished = harness.undisturbed(job, folder / "undisturbed")
        size = sum(len(content) for content in finished.values())
        # As many at a time as below.
        targets = [folder / f"timed{i}" for i in range(os.cpu_count())]
        duration = max(harness.run_all(timed, [(job, target) for target in targets]))
        for target in targets:
            shutil.rmtree(target)
        lots = []
        for name, wanted in (("KILL", KILLS), ("INT", INTERRUPTIONS), ("TERM", INTERRUPTIONS)):
            wanted = -(-wanted // options.every)
            for lot, done in enumerate(range(0, wanted, LOT)):
                lots.append((job, folder / f"{name} {lot}", finished, options.seed, duration, name,
                             min(LOT, wanted - done)))
        outcomes = harness.run_all(interrupt_lot, lots)
        for name in SIGNALS:
            interruptions, jobs, kept = (
                sum(outcome[i] * times for outcome, times in outcomes.items() if outcome[0] == name)
                for i in (1, 2, 3))
            print(f"SIG{name}: {interruptions} at random points of a job of {size / 1e6:.0f} MB "
                  f"and {duration:.2f} s, {kept} of {jobs} with finished files")


main()
