#!/usr/bin/env python3
"""Counts the system calls of the shards of a conversion, for 10, 100 and 1,000 shards.

N shards turn tiny files of 4 N ranks into those of N. The first, a middle and the last shard run
under strace. For the middle one, others are at work. docs/design/scale.md quotes the table.
"""

import argparse
import concurrent.futures
import contextlib
import fcntl
import os
import pathlib
import re
import shutil
import subprocess

MODEL = ("--matrices", "2", "--columns", "4", "--dtype", "Float32", "--no-optimizer", "--cut",
         "rows")
SOURCES_OF_TARGET = 4

CALL = re.compile(r"^\d+ +(\w+)\((.*?)\) += (-?\d+)", re.MULTILINE)
NAME = re.compile(r'"((?:[^"\\]|\\.)*)"')
FLUSHES = ("fsync", "fdatasync", "sync_file_range", "syncfs")
# Calls that a server of metadata answers.
NAMED = ("open", "openat", "stat", "lstat", "newfstatat", "statx", "access", "faccessat", "readlink",
         "readlinkat", "mkdir", "mkdirat", "unlink", "unlinkat", "rename", "renameat", "renameat2",
         "link", "linkat", "statfs")


def counts_of(trace, source, target):
    """Opens of sources, listings, other calls by name below either folder, and flushes."""
    opens = listings = named = flushes = 0
    for call, words, result in CALL.findall(trace):
        name = NAME.search(words)
        path = name.group(1) if name else ""
        is_folder = "O_DIRECTORY" in words
        if call == "openat" and path.startswith(f"{source}/rank_") and not is_folder:
            opens += 1
        elif call == "getdents64":
            listings += result == "0"
        elif call in FLUSHES:
            flushes += 1
        elif call in NAMED and (not path.startswith("/") or path.startswith((source, target))):
            named += 1
    return opens, listings, named, flushes


@contextlib.contextmanager
def others_at_work(target):
    """Holds the lock that shards at work share."""
    with open(f"{target}/.reshard/lock", "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        yield


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binaries", type=pathlib.Path, default=pathlib.Path("build/release/bin"))
    parser.add_argument("--scratch", type=pathlib.Path, default=pathlib.Path("/dev/shm/shares"))
    parser.add_argument("--shards", type=int, action="append", help="10, 100 and 1000")
    options = parser.parse_args()
    reshard, gen = (options.binaries.resolve() / name for name in ("reshard", "reshard-gen"))
    print("| shards | source files | shard | opens of sources | listings | other calls by name "
          "| flushes |")
    print("|" + " --- |" * 7)
    for shards in options.shards or [10, 100, 1000]:
        shutil.rmtree(options.scratch, ignore_errors=True)
        options.scratch.mkdir(parents=True)
        source, layout, target = (str(options.scratch / name)
                                  for name in ("source", "layout", "target"))
        ranks = SOURCES_OF_TARGET * shards
        model = (*MODEL, "--rows", str(ranks))
        subprocess.run([gen, source, *model, "--tp", str(ranks)], check=True,
                       stderr=subprocess.DEVNULL)
        subprocess.run([gen, layout, *model, "--tp", str(shards), "--strategy-only"], check=True,
                       stderr=subprocess.DEVNULL)
        command = [reshard, "convert", source, target, "--src-strategy", f"{source}/strategy",
                   "--dst-strategy", f"{layout}/strategy", "--jobs", "1", "-q", "--shard"]

        def run(number, prefix=()):
            subprocess.run([*prefix, *command, f"{number}/{shards}"], check=True,
                           stdin=subprocess.DEVNULL)

        def count(name, number):
            log = options.scratch / "log"
            run(number, ("strace", "-f", "-qq", "-o", log, "-e", "trace=%file,%desc"))
            counts = counts_of(log.read_text(), source, target)
            print("| " + " | ".join(str(word) for word in (shards, ranks, name, *counts)) + " |",
                  flush=True)

        count("first", 0)
        with others_at_work(target):
            count("middle", shards // 2)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(run, [i for i in range(1, shards - 1) if i != shards // 2]))
        count("last", shards - 1)
        shutil.rmtree(options.scratch)


if __name__ == "__main__":
    main()
