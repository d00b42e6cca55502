#!/usr/bin/env python3
"""Counts what a conversion of small tensors asks the kernel for: windows that several tensors share
are opened once, nothing is asked for each tensor alone, and of many files each is opened a few times.
"""

import pathlib
import re

import harness

# Float32, from 4 ranks to 2: each target file takes 16 KiB of each tensor, from two sources.
TENSORS = 1000
MODEL = ("--matrices", str(TENSORS), "--rows", "512", "--columns", "16", "--dtype", "Float32",
         "--no-optimizer", "--cut", "rows")
# Float32, from many ranks to 2, whose every tensor goes through all files.
FILES = 200
ROUNDS = 30
FEW_TENSORS = ("--matrices", str(ROUNDS), "--rows", str(2 * FILES), "--columns", "16", "--dtype",
               "Float32", "--no-optimizer", "--cut", "rows")
CALLS = re.compile(r"(?:^|\s)(fstatfs|madvise|fadvise64|mincore|cachestat|syscall_0x1c3)\(")


def traced(options, folder, model, ranks):
    """The calls of a conversion of so many ranks to 2, a line each."""
    source, layout, log = folder / "source", folder / "layout", folder / "log"
    harness.generate(options.gen, source, *model, "--tp", str(ranks))
    harness.generate(options.gen, layout, *model, "--tp", "2", "--strategy-only")
    job = harness.Job(options.reshard, source, source / "strategy", layout / "strategy", "--jobs",
                      "1")
    done = harness.run(harness.strace(job.command(folder / "target"), log=log))
    assert done.returncode == 0, done.stderr.decode()
    return log.read_text().splitlines()


def main():
    options = harness.arguments("reshard", "gen")
    harness.need_programs("strace")
    with harness.scratch_in_memory() as folder:
        calls = sum(bool(CALLS.search(line))
                    for line in traced(options, pathlib.Path(folder), MODEL, 4))
        # Two targets take each tensor from two files.
        print(f"{calls} calls for {4 * TENSORS} copies", flush=True)
        assert calls <= TENSORS, "windows are opened for each tensor"
    with harness.scratch_in_memory() as folder:
        opened = sum("openat(" in line and "/source/rank_" in line and ".ckpt" in line
                     for line in traced(options, pathlib.Path(folder), FEW_TENSORS, FILES))
        print(f"{FILES} files opened {opened} times for {FILES * ROUNDS} copies", flush=True)
        assert opened <= 5 * FILES, "files are opened for each tensor"


main()
