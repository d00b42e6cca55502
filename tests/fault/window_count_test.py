#!/usr/bin/env python3
"""Counts what a conversion of small tensors asks the kernel for: windows that several tensors share
are opened once, and nothing is asked for each tensor alone.
"""

import pathlib
import re

import harness

# Float32, from 4 ranks to 2: each target file takes 16 KiB of each tensor, from two sources.
TENSORS = 1000
MODEL = ("--matrices", str(TENSORS), "--rows", "512", "--columns", "16", "--dtype", "Float32",
         "--no-optimizer", "--cut", "rows")
CALLS = re.compile(r"(?:^|\s)(fstatfs|madvise|mincore|cachestat|syscall_0x1c3)\(")


def main():
    options = harness.arguments("reshard", "gen")
    harness.need_programs("strace")
    with harness.scratch_in_memory() as folder:
        folder = pathlib.Path(folder)
        source, layout, log = folder / "source", folder / "layout", folder / "log"
        harness.generate(options.gen, source, *MODEL, "--tp", "4")
        harness.generate(options.gen, layout, *MODEL, "--tp", "2", "--strategy-only")
        job = harness.Job(options.reshard, source, source / "strategy", layout / "strategy",
                          "--jobs", "1")
        done = harness.run(harness.strace(job.command(folder / "target"), log=log))
        assert done.returncode == 0, done.stderr.decode()
        calls = sum(bool(CALLS.search(line)) for line in log.read_text().splitlines())
        # Two targets take each tensor from two files.
        print(f"{calls} calls for {4 * TENSORS} copies", flush=True)
        assert calls <= TENSORS, "windows are opened for each tensor"


main()
