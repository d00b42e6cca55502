#!/usr/bin/env python3
"""Kills conversions of some 100 MB at random moments, and the runs that take them up as well.

Whatever the moment: no manifest without a whole set, and a run with --resume, or without, ends with
the bytes of an undisturbed one. SIGINT and SIGTERM end a run with exit code 130 and leave a state
that can be taken up in the same way.
"""

import collections
import pathlib
import random
import shutil
import signal
import subprocess
import time

import harness

KILLS = 200
INTERRUPTIONS = 20  # by each of the other signals
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


def interrupt(job, target, finished, choice, duration, name, kept):
    """Interrupts one conversion, perhaps also the run that takes it up; returns how many times."""
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
    kept[bool(list((target / harness.WORK_FOLDER).rglob("*.jsonl")))] += 1
    harness.complete(job, target, finished, f"{where}, completed {' '.join(resume)}", *resume)
    shutil.rmtree(target)
    return interruptions


def main():
    options = harness.arguments("reshard", "gen", seed=True, every=True)
    choice = random.Random(options.seed)
    with harness.scratch() as folder:
        folder = pathlib.Path(folder)
        harness.generate(options.gen, folder / "src", *MODEL, "--tp", "4")
        harness.generate(options.gen, folder / "dst", *MODEL, "--tp", "2", "--pp", "4",
                         "--strategy-only")
        job = harness.Job(options.reshard, folder / "src", folder / "src" / "strategy",
                          folder / "dst" / "strategy")
        finished = harness.undisturbed(job, folder / "undisturbed")
        size = sum(len(content) for content in finished.values())
        target = folder / "target"
        start = time.monotonic()
        assert harness.run(job.command(target)).returncode == 0
        duration = time.monotonic() - start
        shutil.rmtree(target)
        for name, wanted in (("KILL", KILLS), ("INT", INTERRUPTIONS), ("TERM", INTERRUPTIONS)):
            kept = collections.Counter()
            interruptions = 0
            while interruptions < wanted / options.every:
                interruptions += interrupt(job, target, finished, choice, duration, name, kept)
            print(f"SIG{name}: {interruptions} at random points of a job of {size / 1e6:.0f} MB "
                  f"and {duration:.2f} s, {kept[True]} of {sum(kept.values())} with finished files",
                  flush=True)


main()
