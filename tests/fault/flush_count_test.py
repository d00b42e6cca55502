#!/usr/bin/env python3
"""Counts what a conversion flushes: no more than docs/design/publishing.md says ("Flushes").

What it does flush, it needs to: lost_writes_test loses all else.
"""

import pathlib
import re
import shutil

import harness

FLUSH = re.compile(r"(fsync|fdatasync|syncfs|sync)\(")
# One target file of 80 MiB, which two shards split at 64 MiB.
SPLIT = ("--matrices", "5", "--rows", "2048", "--columns", "2048", "--dtype", "Float32",
         "--no-optimizer", "--tp", "2", "--cut", "columns")
SMALL = ("--layers", "2", "--hidden", "128", "--ffn", "256", "--vocab", "512")


def flushes(command, log):
    """Runs the command and returns how often it flushed a file or a folder."""
    done = harness.run(harness.strace(command, "-e", "trace=fsync,fdatasync,syncfs,sync", log=log))
    assert done.returncode == 0, done.stderr.decode()
    return len(FLUSH.findall(log.read_text()))


def check(what, found, expected):
    assert found == expected, f"{what}: {found} flushes, expected {expected}"
    print(f"{what}: {found} flushes", flush=True)


def folders(files):
    """part_records, and two folders for each file: the file's and its part record's."""
    return 2 * files + 1


# Of a run: the job; origin.jsonl, checksums and manifest; the folders `files`, .reshard/FINGERPRINT and .reshard;
# the target folder (three times).
RUN = 10


def of_one_process(job, files, folder):
    """Targets of so many files: new, in a folder that is there, replaced, taken up."""
    log = folder / "log"
    new = 2 * files + folders(files) + RUN
    name = f"{files} files"
    target = folder / f"above{files}" / "target"
    check(f"{name}, two folders made", flushes(job.command(target), log), new + 2)
    # The same once more, of which origin.jsonl tells nothing.
    check(f"{name}, replaced", flushes(job.command(target, "--force"), log),
          new - 1 + folders(files) + 1)
    shutil.rmtree(target)
    target.mkdir()
    check(f"{name}, no checksums", flushes(job.command(target, "--no-checksum"), log), new - 1)
    shutil.rmtree(target)

    harness.run(harness.strace(job.command(target), "-e", "trace=renameat", log=log))
    renames = [line for line in log.read_text().splitlines() if "renameat(" in line]
    journal = [number for number, line in enumerate(renames, 1) if '"journal"' in line]
    shutil.rmtree(target)
    for when, what, expected in (
            (journal[0], "all files kept", new - 2 * files - 1),
            # Nobody knows what the run before has flushed.
            (journal[0] + 1, "publication taken up", 1 + 2)):
        killed = harness.run(harness.strace(job.command(target), "-e", "trace=renameat", "-e",
                                            f"inject=renameat:signal=KILL:when={when}"))
        assert killed.returncode == -9, killed.stderr.decode()
        check(f"{name}, {what}", flushes(job.command(target, "--resume"), log), expected)
        shutil.rmtree(target)


def of_workers(job, files, workers, folder):
    log = folder / "log"
    target = folder / "shared"
    found = sum(flushes(job.command(target, "--shard", f"{i}/{workers}"), log)
                for i in range(workers))
    with_files = min(files, workers)
    # Each worker: what it staged, with `files` and part_records; then .reshard/FINGERPRINT, that it
    # has finished. The one that publishes: all of RUN but the job and `files`. The first one writes
    # the plan, too.
    expected = 1 + 1 + 1 + 4 * files + 2 * with_files + workers + RUN - 2
    check(f"{files} files by {workers} shards", found, expected)
    shutil.rmtree(target)


def of_a_split_file(job, folder):
    log = folder / "log"
    target = folder / "split"
    found = sum(flushes(job.command(target, "--shard", f"{i}/2"), log) for i in range(2))
    # Each worker: its part and the block record; `files`, the file's folder, three folders of block
    # records, .reshard/FINGERPRINT. Then the part record, with the four folders that lead to it and
    # to the file; and the plan.
    check("a file that two shards share", found, 1 + 1 + 1 + 2 * (2 + 5 + 1) + 1 + 4 + RUN - 2)


def main():
    options = harness.arguments("reshard", "gen")
    harness.need_programs("strace")
    with harness.scratch_in_memory() as folder:
        folder = pathlib.Path(folder)
        source = folder / "source"
        harness.generate(options.gen, source, *SMALL, "--tp", "2")
        for files in (1, 4, 16):
            layout = folder / f"layout{files}"
            harness.generate(options.gen, layout, *SMALL, "--tp", str(files), "--strategy-only")
            job = harness.Job(options.reshard, source, source / "strategy", layout / "strategy",
                              "--jobs", "1")
            of_one_process(job, files, folder)
            for workers in (2, 3):
                of_workers(job, files, workers, folder)
        whole = folder / "whole"
        harness.generate(options.gen, whole, *SPLIT)
        of_a_split_file(harness.Job(options.reshard, whole, whole / "strategy", None), folder)


main()
