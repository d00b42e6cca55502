#!/usr/bin/env python3
"""Sources that are truncated, rewritten or replaced while a conversion reads them.

The run is stopped by the system at each of its reads and maps in turn, a source is changed, and the
run goes on: it ends with the bytes of the old source or with exit code 3, says that the source
changed, and leaves nothing that looks finished. Then the same command converts what is there now.
"""

import os
import pathlib
import shutil

import harness

# Where a run stands still: it opens, reads or maps a source, or is about to publish.
STOPS_OF_READING = ("pread64",)
STOPS = ("openat", "mmap", "madvise", "fsync", "renameat", "renameat2")
CASE = "case_037"


def truncate(path, _):
    os.truncate(path, 5000)


def truncate_to_nothing(path, _):
    os.truncate(path, 0)


def extend(path, _):
    with open(path, "ab") as file:
        file.write(b"\xff" * 100)


def rewrite(path, other):
    with open(path, "r+b") as file:
        file.write(other[:os.path.getsize(path)])


def rewrite_and_restore_time(path, other):
    """The change time (ctime) is all that tells."""
    before = os.stat(path)
    rewrite(path, other)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def replace(path, other):
    path.with_suffix(".new").write_bytes(other)
    os.replace(path.with_suffix(".new"), path)


def remove(path, _):
    path.unlink()


CHANGES = (truncate, truncate_to_nothing, extend, rewrite, rewrite_and_restore_time, replace,
           remove)


class Sources:
    """A copy of a golden conversion's sources, which a test may change."""

    def __init__(self, reshard, folder):
        self.original = harness.golden_job(reshard, CASE)
        self.job = harness.golden_job(reshard, CASE)
        self.job.source = folder / "src"
        self.restore()
        self.file = sorted(self.job.source.rglob("*.ckpt"))[-1]

    def restore(self):
        shutil.rmtree(self.job.source, ignore_errors=True)
        shutil.copytree(self.original.source, self.job.source)

    def other_values(self):
        """The same headers, mostly, and other content."""
        content = bytearray(self.file.read_bytes())
        for i in range(2000, len(content) - 2000):
            content[i] ^= 0x11 if 1100 < i % 1300 else 0
        return bytes(content)


def choose(calls):
    """Each change at each call of reading, and one at each of the others."""
    for call in STOPS_OF_READING:
        for when in sorted(calls[call]):
            for change in CHANGES:
                yield call, when, change
    for call in STOPS:
        for i, when in enumerate(sorted(calls[call])):
            yield call, when, CHANGES[i % len(CHANGES)]


def check(done, target, finished, where):
    error = done.stderr.decode()
    assert done.returncode in (0, 3), f"{where}: exit {done.returncode}: {error}"
    published = harness.check_nothing_looks_finished(target, finished, {}, where)
    assert published == (done.returncode == 0), f"{where}: exit {done.returncode}"
    if done.returncode == 3:
        assert "reshard: error: " in error, f"{where}: no message"
        assert "error: changed: " not in error or "net-1_" in error, f"{where}: which file? {error}"


def change_at(reshard, folder, finished, call, when, change):
    """Returns what a run says whose sources change at this call."""
    where = f"{change.__name__} at {call} {when}"
    folder.mkdir()
    sources = Sources(reshard, folder)
    target = folder / "target"
    with harness.Stopped(sources.job.command(target), call, when, folder / "log") as run:
        if run.stopped is not None:
            change(sources.file, sources.other_values())
    done = run.finish()
    check(done, target, finished, where)
    if done.returncode == 3:  # nothing of what was read before may be taken over
        sources.restore()
        harness.complete(sources.job, target, finished, where)
    shutil.rmtree(folder)
    if b"reshard: error: changed: " in done.stderr:
        return "found"
    if done.returncode == 3:
        return "refused"
    return "unnoticed while reading" if call in STOPS_OF_READING else "unnoticed"


def main():
    options = harness.arguments("reshard", every=True)
    harness.need_programs("strace")
    with harness.scratch_in_memory() as folder:
        folder = pathlib.Path(folder)
        job = harness.golden_job(options.reshard, CASE)
        finished = harness.undisturbed(job, folder / "undisturbed")
        calls = harness.calls_of(job.command(folder / "counted"), folder / "calls")
        outcomes = harness.run_all(
            change_at, [(options.reshard, folder / str(i), finished, *chosen)
                        for i, chosen in harness.sample(list(enumerate(choose(calls))), options)])
    missed = outcomes["unnoticed while reading"]
    assert outcomes["found"] > missed, f"only {outcomes['found']} changes were found"
    print(f"{outcomes['found']} changes of sources found, {outcomes['refused']} sources refused "
          f"for what they had become, {missed + outcomes['unnoticed']} runs that had read all, or not "
          "looked yet")


main()
