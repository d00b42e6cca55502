#!/usr/bin/env python3
"""Counts how often the threads of a command take a mutex: for bytes, for tensors and for files.

What many lanes share limits how many of them pay. Time cannot be tested; the number of times that
they meet can. bench/results/performance_notes.md has the figures, bench/lock_counts.py makes them.
"""

import os
import pathlib

import harness

MIB = 1 << 20
BIG = ("--matrices", "4", "--rows", "8192", "--columns", "2048", "--dtype", "Float32")
TINY = ("--matrices", "2000", "--rows", "64", "--columns", "16", "--dtype", "Float32")
MANY = ("--matrices", "8", "--rows", "512", "--columns", "16", "--dtype", "Float32")
JOBS = "8"


class Sample:
    """A checkpoint of `ranks` ranks, the layout of `targets`, and what has been made of it."""

    def __init__(self, options, folder, model, ranks, targets):
        self.options, self.folder = options, folder
        cut = (*model, "--no-optimizer", "--cut", "rows")
        harness.generate(options.gen, folder / "source", *cut, "--tp", str(ranks))
        harness.generate(options.gen, folder / "layout", *cut, "--tp", str(targets),
                         "--strategy-only")
        self.conversion = (folder / "source", folder / "target", "--src-strategy",
                           folder / "source" / "strategy", "--dst-strategy",
                           folder / "layout" / "strategy")

    def locks(self, *command):
        """How often the command takes a mutex."""
        counts = self.folder / "locks"
        words = [str(word) for word in (self.options.reshard, *command, "--jobs", JOBS)]
        done = harness.run(words, env={**os.environ, "LD_PRELOAD": self.options.shim,
                                       "RESHARD_LOCKS": str(counts)})
        assert done.returncode == 0, done.stderr.decode()
        places = [line.split() for line in counts.read_text().splitlines()
                  if line.startswith("place ")]
        taken, waited = (sum(int(place[field]) for place in places) for field in (-2, -1))
        print(f"{self.folder.name} {command[0]}: {taken} taken, {waited} waited for", flush=True)
        return taken

    def convert(self):
        return self.locks("convert", *self.conversion)

    def plan(self):
        return self.locks("plan", *self.conversion)

    def verify(self):
        return self.locks("verify", self.folder / "target")

    def digest(self):
        source = self.folder / "source"
        return self.locks("digest", source, "--strategy", source / "strategy")


def check(name, taken, most):
    assert taken <= most, f"{name}: {taken} locks, at most {most} expected"


def main():
    options = harness.arguments("reshard", "gen", "shim")
    with harness.scratch_in_memory() as folder:
        folder = pathlib.Path(folder)
        # 256 MiB, of which little else is taken than their bytes: chunks, windows, pieces.
        big = Sample(options, folder / "big", BIG, 8, 4)
        for name, command in (("convert", big.convert), ("verify", big.verify),
                              ("digest", big.digest)):
            check(name, command(), 12 * 256)
        # 2,000 tensors of 8 ranks become those of 4.
        tiny = Sample(options, folder / "tiny", TINY, 8, 4)
        check("plan", tiny.plan(), 1.5 * 4 * 2000)
        check("convert", tiny.convert(), 1.5 * 4 * 2000)
        check("verify", tiny.verify(), 2000)
        check("digest", tiny.digest(), 4 * 8 * 2000)
        # 512 files: some locks for each, and not more for each when there are more of them.
        many = Sample(options, folder / "many", MANY, 512, 4)
        check("plan", many.plan(), 40 * 512)


main()
