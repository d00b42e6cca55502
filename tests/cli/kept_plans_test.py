#!/usr/bin/env python3
"""Holds plans and jobs to those of an earlier commit: what it planned, wrote and left unfinished.

Usage: kept_plans_test.py --reshard BIN [--gen BIN] [--fill]

kept_plans/plans.json has command lines, run in tests/, with the fingerprint of the plan and the
SHA-256 of the manifest, which lists the digests of all files and part records. The folders beside
it are targets as interrupted runs left them; kept_plans/README.md tells how both were made. --fill
adds what BIN answers to rows that have no answer yet: take the program of the commit that is to be
held.
"""

import argparse
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parent.parent
KEPT = TESTS / "cli" / "kept_plans"
CASE = TESTS / "golden" / "data" / "convert" / "case_013"
OPTIONS = ["--src-strategy", str(CASE / "src_strategy.ckpt"),
           "--dst-strategy", str(CASE / "dst_strategy.ckpt"), "--jobs", "1"]
MEMORY = "/dev/shm"
MTIME = 1767225600 * 10**9  # of the sources, when the jobs began
# Of a manifest: what a version, a schema or a checkout's own files change, and the seal over it.
NOT_KEPT = re.compile(rb'^ *"(?:schema_)?version": .*\n|^  "stamps": \[\n(?:.*\n)*?  \],\n'
                      rb'|^  "digest": .*\n', re.MULTILINE)
IDENTITY = re.compile(r"^source \d+:(\S+) inode=.*$", re.MULTILINE)


def reshard(program, *arguments):
    """Runs it in tests/ and returns what it said; ends the test unless it succeeds."""
    done = subprocess.run([program, *arguments], cwd=TESTS, stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=120, check=False)
    said = done.stderr.decode(errors="replace")
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, arguments))}: exit {done.returncode}\n{said}")
    return said


def answer(program, arguments, target):
    """Converts, and returns the plan's fingerprint and the digest of all that was written."""
    reshard(program, "convert", *[target if word == "OUT" else word for word in arguments], "-q")
    (path,) = target.glob("manifest*.json")
    manifest = path.read_bytes()
    shutil.rmtree(target)
    return {"plan": json.loads(manifest)["plan"],
            "manifest": hashlib.sha256(NOT_KEPT.sub(b"", manifest)).hexdigest()}


def check_plans(program, scratch):
    rows = json.loads((KEPT / "plans.json").read_text())
    for row in rows:
        found = answer(program, row["arguments"], scratch / "out")
        kept = {key: row.get(key) for key in found}
        if found != kept:
            sys.exit(f"{' '.join(row['arguments'])}: expected {kept}, found {found}")
    return len(rows)


def fill(program, scratch):
    path = KEPT / "plans.json"
    rows = json.loads(path.read_text())
    for row in rows:
        if "plan" not in row:
            row.update(answer(program, row["arguments"], scratch / "out"))
    path.write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")


def copy_sources(scratch):
    source = scratch / "source"
    shutil.copytree(CASE / "src", source)
    for file in source.rglob("*.ckpt"):
        os.utime(file, ns=(MTIME, MTIME))
    return source


def put_in_place(name, program, source, target):
    """Copies what a run left, with the two things in its job that cannot be kept in a repository.

    A job names its sources by inode and ctime, which a checkout has of its own (shards of a job do
    not); and the version of reshard, since another one would refuse it.
    """
    shutil.copytree(KEPT / name, target)
    (target / "work").rename(target / ".reshard")
    version = subprocess.run([program, "--version"], capture_output=True, check=True, text=True)
    for text in [*target.glob(".reshard/*/job"), *target.glob(".reshard/*/journal")]:
        job = re.sub(r"^reshard .*", version.stdout.strip(), text.read_text())

        def identity(line):
            now = (source / line[1]).stat()
            return (f"source {len(line[1])}:{line[1]} inode={now.st_ino} size={now.st_size} "
                    f"mtime={now.st_mtime_ns} ctime={now.st_ctime_ns}")

        text.write_text(IDENTITY.sub(identity, job))


def files_of(target):
    def kept(path):
        is_manifest = path.name.startswith("manifest")
        return NOT_KEPT.sub(b"", path.read_bytes()) if is_manifest else path.read_bytes()

    return {str(path.relative_to(target)): kept(path)
            for path in target.rglob("*")
            if path.is_file() and path.name != "origin.jsonl"}


def inodes(folder):
    return {str(path.relative_to(folder)): path.stat().st_ino for path in folder.rglob("*.ckpt")}


def check_job(name, program, source, expected, target, arguments, says, kept):
    """Goes on with a job; what it had finished is to be kept, and all to be as written at once."""
    put_in_place(name, program, source, target)
    staged = inodes(target)
    for folder in target.glob(".reshard/*/files"):
        staged.update(inodes(folder))
    said = reshard(program, "convert", source, target, *OPTIONS, *arguments)
    now = inodes(target)
    if says not in said:
        sys.exit(f"{name} {arguments}: expected {says!r}, found\n{said}")
    if any(now[file] != staged[file] for file in kept):
        sys.exit(f"{name} {arguments}: wrote one of {kept} anew")
    if files_of(target) != expected:
        sys.exit(f"{name} {arguments}: not what a run that is not interrupted writes")
    shutil.rmtree(target)


def check_jobs(program, scratch):
    source = copy_sources(scratch)
    reshard(program, "convert", source, scratch / "fresh", *OPTIONS, "-q")
    expected = files_of(scratch / "fresh")
    ranks = [f"rank_{rank}/checkpoint_{rank}.ckpt" for rank in range(4)]
    for name, arguments, says, kept in (
        ("alone", ["--resume"], "2 files kept from an interrupted run", ranks[:2]),
        ("alone", ["--resume=verify"], "2 files kept from an interrupted run", ranks[:2]),
        ("publishing", ["--resume"], "finished by an earlier run", ranks),
        ("workers", ["--shard", "1/2"], "the set is published", ranks[:2]),
    ):
        check_job(name, program, source, expected, scratch / "out", arguments, says, kept)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reshard", required=True, type=os.path.abspath)
    parser.add_argument("--gen")  # given to all tests of the command line
    parser.add_argument("--fill", action="store_true")
    arguments = parser.parse_args()
    # A disk would flush each of many small runs.
    place = MEMORY if os.access(MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="reshard-kept-", dir=place) as folder:
        scratch = pathlib.Path(folder)
        if arguments.fill:
            fill(arguments.reshard, scratch)
            return
        check_jobs(arguments.reshard, scratch)
        print(f"{check_plans(arguments.reshard, scratch)} plans and 4 jobs are as they were")


if __name__ == "__main__":
    main()
