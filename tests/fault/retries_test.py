#!/usr/bin/env python3
"""Sources on a FUSE file system that fails for a moment, or for good.

FUSE counts as remote: failed reads and opens are repeated, and the outputs are the right ones. A
file that is another one by then is an error, and so is a failure that stays. A signal ends a wait.
"""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import time

import harness
from unreadable_test import mounted

CASE = "case_037"
EVERYWHERE = range(0, 1 << 40)


@contextlib.contextmanager
def failing(options, source, place, bad=EVERYWHERE, slow=(), **variables):
    """`source` at `place` on a file system with these FAULT_FS_... variables."""
    names = {f"FAULT_FS_{name}": str(value) for name, value in variables.items()}
    os.environ.update(names)
    try:
        with mounted(options.fault_fs, source, place, bad, *slow):
            yield
    finally:
        for name in names:
            del os.environ[name]


def passing(options, job, original, finished, target):
    """So many failures are more than reads in other sizes get over, and fewer than retries do."""
    for variables in ({"FAILURES": 6}, {"FAILURES": 6, "ERROR": "ESTALE"},
                      {"FAILURES": 6, "ERROR": "ETIMEDOUT"}, {"FAILURES": 0, "FAILED_OPENS": 3}):
        with failing(options, original.source, job.source, **variables):
            done = harness.run(job.command(target))
        assert done.returncode == 0, f"{variables}: {done.stderr.decode()}"
        assert not done.stderr, done.stderr
        harness.check_finished(target, finished, str(variables))
        shutil.rmtree(target)
        with failing(options, original.source, job.source, **variables):
            done = harness.run(job.command(target, "--retries", "0"))
        assert done.returncode == 4, f"{variables}: {done.returncode}: {done.stderr.decode()}"
        assert b"attempts" not in done.stderr, done.stderr
        shutil.rmtree(target, ignore_errors=True)


def for_good(options, job, original, target):
    for variables in ({}, {"ERROR": "ESTALE"}, {"FAILURES": 0, "FAILED_OPENS": 10000}):
        with failing(options, original.source, job.source, **variables):
            for retries, attempts in ((), b"all 4 attempts"), (("--retries", "1"), b"all 2 attempts"):
                done = harness.run(job.command(target, *retries))
                assert done.returncode == 4, f"{variables}: {done.returncode}: {done.stderr}"
                assert attempts + b" failed (--retries)" in done.stderr, done.stderr
                shutil.rmtree(target, ignore_errors=True)


def changed(options, job, original, target, folder):
    """The file is opened again, and is another one."""
    copy = folder / "copy"
    shutil.copytree(original.source, copy)
    for failures, words in ((1, b"changed while"), (10000, b"the file changed while it was in use")):
        with failing(options, copy, job.source, FAILURES=failures, ERROR="ESTALE", TOUCH=1):
            done = harness.run(job.command(target))
        assert done.returncode == 3 and words in done.stderr, (done.returncode, done.stderr)
        assert b"attempts" not in done.stderr, done.stderr
        shutil.rmtree(target, ignore_errors=True)


def stopped(options, job, original, target, folder):
    """In the wait of 4 s before the fourth retry."""
    log = folder / "reads"
    with failing(options, original.source, job.source, slow=("0", str(log))):
        process = subprocess.Popen(job.command(target, "--retries", "100"), stderr=subprocess.PIPE)
        end = time.monotonic() + harness.TIMEOUT
        while not log.exists() or len(log.read_text().splitlines()) < 4:
            assert process.poll() is None and time.monotonic() < end, process.returncode
            time.sleep(0.01)
        begin = time.monotonic()
        process.send_signal(signal.SIGTERM)
        errors = process.communicate(timeout=harness.TIMEOUT)[1]
        took = time.monotonic() - begin
    assert process.returncode == 130, (process.returncode, errors)
    assert took < 3, f"a stop took {took:.1f} s"  # a second, on a machine that has nothing else to do
    shutil.rmtree(target, ignore_errors=True)


def local(original, target):
    """The same error of a local file system is reported at once."""
    source = next(original.source.rglob("*.ckpt"))
    command = original.command(target)
    done = harness.run(["strace", "-f", "-o", "/dev/null", "-P", str(source), "-e",
                        "inject=openat:error=EIO", *command])
    assert done.returncode == 4, (done.returncode, done.stderr)
    assert b"attempts" not in done.stderr and b"cannot open" in done.stderr, done.stderr


def main():
    options = harness.arguments("reshard", "fault_fs")
    harness.need_programs("strace")
    if not harness.can_mount_fuse("retries", options.fault_fs):
        return
    with harness.scratch_in_memory() as name:
        folder = pathlib.Path(name)
        original = harness.golden_job(options.reshard, CASE)
        finished = harness.undisturbed(original, folder / "undisturbed")
        job = harness.golden_job(options.reshard, CASE)
        job.source = folder / "src"
        target = folder / "target"
        passing(options, job, original, finished, target)
        for_good(options, job, original, target)
        changed(options, job, original, target, folder)
        stopped(options, job, original, target, folder)
        local(original, target)
    print("retries: failures that pass, that stay, of a changed file; a stop; a local file system")


if __name__ == "__main__":
    main()
