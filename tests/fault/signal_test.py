#!/usr/bin/env python3
"""SIGINT, SIGTERM and SIGHUP end a program that waits for a read.

Files lie on a FUSE file system that takes 15 s for each read. The program ends while its first read
is still being served, with 130, and what it leaves a later run completes. What it was told to ignore
it ignores.
"""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import time

import harness
from unreadable_test import mounted

SLOW = 15  # seconds for a read
SOON = 10  # it takes one second; what waits for a read takes more than this
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
MODEL = ("--layers", "1", "--hidden", "256", "--ffn", "512", "--vocab", "512", "--tp", "4")
# Of 45 MB a target: with 32 MiB of memory most of the second is read after the first is whole.
LARGE = ("--layers", "2", "--hidden", "512", "--ffn", "2048", "--vocab", "4096", "--tp", "4")


def wait_until(condition, process, what):
    end = time.monotonic() + harness.TIMEOUT
    while not condition():
        assert process.poll() is None, f"{what}: ended before: {process.communicate()[1].decode()}"
        assert time.monotonic() < end, what
        time.sleep(0.01)


def begin(command):
    return subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def ended_by(number, process, name):
    os.kill(process.pid, number)
    try:
        process.wait(timeout=SOON)
    except subprocess.TimeoutExpired:
        process.kill()
        raise AssertionError(f"{name}: still there {SOON} s after signal {number}") from None
    assert process.returncode == 130, f"{name}: {process.returncode}"


class Commands:
    """Each command that reads checkpoints, with its files on a slow file system of its own."""

    def __init__(self, options, folder):
        self.options = options
        self.folder = folder
        self.files = folder / "files"
        strategies = self.generate(self.files, MODEL)
        self.both = ["--src-strategy", strategies[0], "--dst-strategy", strategies[1]]
        self.job = harness.Job(options.reshard, self.files / "src", *strategies)
        self.finished = harness.undisturbed(self.job, folder / "alone")
        done = harness.run(self.job.command(self.files / "dst"))
        assert done.returncode == 0, done.stderr.decode()
        done = harness.run([options.reshard, "convert", str(self.files / "src"),
                            str(self.files / "full"), "--src-strategy", str(strategies[0]), "-q"])
        assert done.returncode == 0, done.stderr.decode()

    def generate(self, place, model):
        """A checkpoint of four ranks in `place / "src"`; gives its strategy and one of two ranks."""
        harness.generate(self.options.gen, place / "src", *model)
        harness.generate(self.options.gen, place / "new", *model[:-1], "2", "--strategy-only")
        return [place / name / "strategy" / "strategy_0.ckpt" for name in ("src", "new")]

    def commands(self, place):
        src, dst = place / "src", place / "dst"
        strategy = ["--a-strategy", self.both[1], "--b-strategy", self.both[3]]
        return {
            "convert": [src, self.folder / "out", *self.both],
            "plan": [src, self.folder / "out", *self.both],
            "report": [src, "-o", self.folder / "page", *self.both],
            "verify": [dst],
            "verify --against": [dst, "--against", src, *self.both],
            "diff": [src, dst, *strategy],
            "digest": [src, "--strategy", self.both[1]],
            "merge": [*sorted(src.glob("rank_*/*.ckpt")), self.folder / "merged"],
            "strategy infer": [src, self.folder / "inferred", "--reference",
                               place / "full" / "rank_0" / "checkpoint_0.ckpt"],
        }

    def stop_all(self):
        """Many at a time: each of the file systems takes as long to end as its last read."""
        with contextlib.ExitStack() as stack:
            for i, name in enumerate(self.commands(self.files)):
                place = self.folder / f"slow{i}"
                log = self.folder / f"log{i}"
                stack.enter_context(mounted(self.options.fault_fs, self.files, place, range(0),
                                            str(SLOW * 1000), str(log)))
                words = [word for word in name.split() if not word.startswith("-")]
                process = begin([self.options.reshard, *words, *self.commands(place)[name]])
                wait_until(lambda log=log: log.read_text(), process, f"{name}: a read")
                ended_by(SIGNALS[i % len(SIGNALS)], process, name)
                print(f"{name}: ended by {SIGNALS[i % len(SIGNALS)].name}", flush=True)
        assert not (self.folder / "out").exists(), "left by one that was still planning"

    def stop_writing(self):
        """In the midst of writing, where one of two files is whole."""
        log = self.folder / "log_writing"
        strategies = self.generate(self.folder / "large", LARGE)
        source = self.folder / "large" / "src"
        finished = harness.undisturbed(
            harness.Job(self.options.reshard, source, *strategies), self.folder / "large_alone")
        job = harness.Job(self.options.reshard, self.folder / "slow", *strategies,
                          "--jobs", "1", "--memory-limit", "32M")
        target = self.folder / "writing"
        with mounted(self.options.fault_fs, source, self.folder / "slow", range(0),
                     "30", str(log)):
            process = begin(job.command(target))
            wait_until(lambda: list(target.glob(".reshard/*/files/part_records/*/*")), process,
                       "a file that is whole")
            ended_by(signal.SIGHUP, process, "writing")
            harness.check_nothing_looks_finished(target, finished, {}, "writing")
            done = harness.run(job.command(target, "--resume", "--json"))
        assert done.returncode == 0, done.stderr.decode()
        assert json.loads(done.stdout)["files_kept"] == 1, done.stdout.decode()
        harness.check_finished(target, finished, "resumed")
        print("convert in the midst of writing: ended by SIGHUP, and resumed", flush=True)

    def ignore(self):
        """As nohup has it."""
        log = self.folder / "log_ignoring"
        target = self.folder / "ignoring"
        job = harness.Job(self.options.reshard, self.folder / "slow", *self.both[1::2])
        with mounted(self.options.fault_fs, self.files / "src", self.folder / "slow", range(0),
                     "30", str(log)):
            process = begin(["sh", "-c", 'trap "" HUP; exec "$@"', "sh", *job.command(target)])
            wait_until(lambda: log.exists() and log.read_text(), process, "a read")
            os.kill(process.pid, signal.SIGHUP)
            error = process.communicate(timeout=harness.TIMEOUT)[1]
        assert process.returncode == 0, error.decode()
        harness.check_finished(target, self.finished, "SIGHUP ignored")
        print("convert that was to ignore SIGHUP: went on", flush=True)


def main():
    options = harness.arguments("reshard", "gen", "fault_fs")
    if harness.can_mount_fuse("signals on slow sources", options.fault_fs):
        with harness.scratch_in_memory() as folder:
            commands = Commands(options, pathlib.Path(folder))
            commands.stop_all()
            commands.stop_writing()
            commands.ignore()


main()
