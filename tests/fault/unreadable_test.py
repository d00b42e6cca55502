#!/usr/bin/env python3
"""Sources on a FUSE file system, a page of which cannot be read, each page in turn.

FUSE counts as remote: its files are read, not mapped. Behind a shim that calls it local they are
mapped, and the page raises SIGBUS. Either way the run ends with exit code 4 and names the file, or
with the right bytes where it did not need the page; once all can be read, it completes.
"""

import collections
import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import time

import harness

CASE = "case_037"
PAGE = 4096


@contextlib.contextmanager
def mounted(fault_fs, source, place, bad, *slow):
    """The files of `source` at `place`, but for the bytes of the range `bad`."""
    place.mkdir(exist_ok=True)
    server = subprocess.Popen([fault_fs, str(source), str(place), str(bad.start), str(bad.stop),
                               *slow], stdin=subprocess.DEVNULL)
    end = time.monotonic() + harness.TIMEOUT
    while not os.path.ismount(place):
        assert server.poll() is None, f"fault_fs ended with {server.returncode}"
        assert time.monotonic() < end, "not mounted"
        time.sleep(0.002)
    try:
        yield
    finally:
        server.terminate()  # it unmounts
        server.wait(timeout=harness.TIMEOUT)


def maps_of_files(command, log):
    """How often a file is mapped for more than to ask what of it is in the page cache."""
    done = harness.run(harness.strace(command, "-e", "trace=mmap,mincore,madvise,munmap", log=log))
    assert done.returncode == 0, done.stderr.decode()
    calls = collections.defaultdict(list)  # by thread
    for line in log.read_text().splitlines():
        thread, call = line.split(maxsplit=1)
        if "resumed>" not in call:
            calls[thread].append(call)
    maps = 0
    for own in calls.values():
        for call, *then in zip(own, own[1:] + [""], own[2:] + ["", ""]):
            asks = then[0].startswith("mincore(") and then[1].startswith("munmap(")
            maps += re.search(r"MAP_SHARED, \d", call) is not None and not asks
    return maps


def test(options, folder):
    original = harness.golden_job(options.reshard, CASE)
    finished = harness.undisturbed(original, folder / "undisturbed")
    job = harness.golden_job(options.reshard, CASE, "--retries", "0")
    job.source = folder / "src"
    target = folder / "target"
    shim = {**os.environ, "LD_PRELOAD": options.shim, "RESHARD_SHIM_LOCAL": "1"}
    assert maps_of_files(original.command(folder / "local"), folder / "log") > 0
    with mounted(options.fault_fs, original.source, job.source, range(0)):
        assert maps_of_files(job.command(target), folder / "log") == 0, "maps of files on FUSE"
    harness.check_finished(target, finished, "FUSE")
    shutil.rmtree(target)
    largest = max(path.stat().st_size for path in original.source.rglob("*.ckpt"))
    outcomes = collections.Counter()
    for begin in range(0, largest, PAGE):
        for how, environment in (("read", os.environ), ("mapped", shim)):
            where = f"{how}, bad page at {begin}"
            with mounted(options.fault_fs, original.source, job.source, range(begin, begin + PAGE)):
                done = harness.run(job.command(target), env=environment)
            assert done.returncode in (0, 4), f"{where}: {done.returncode}: {done.stderr.decode()}"
            harness.check_documented(done, where)
            published = harness.check_nothing_looks_finished(target, finished, {}, where)
            assert published == (done.returncode == 0), where
            if not published:
                assert re.search(rb"rank_\d/\S+\.ckpt", done.stderr), f"{where}: {done.stderr}"
                with mounted(options.fault_fs, original.source, job.source, range(0)):
                    harness.complete(job, target, finished, where)
            outcomes[how, published] += 1
            shutil.rmtree(target)
    print(f"bad pages: {outcomes['read', False]} found by reading, {outcomes['mapped', False]} in "
          f"maps; {outcomes['read', True] + outcomes['mapped', True]} not needed")
    assert outcomes["read", False] and outcomes["mapped", False]


def same_for_all_jobs(options, folder):
    """The same page of all sources at a time: which one is named does not depend on --jobs."""
    model = ("--layers", "1", "--hidden", "512", "--ffn", "1024", "--vocab", "2048",
             "--no-optimizer", "--dtype", "Float32")
    source = folder / "sample"
    harness.generate(options.gen, source, *model, "--tp", "4")
    harness.generate(options.gen, folder / "two", *model, "--tp", "2", "--strategy-only")
    strategies = [folder / name / "strategy" / "strategy_0.ckpt" for name in ("sample", "two")]
    place = folder / "sample_on_fuse"
    size = min(path.stat().st_size for path in source.glob("rank_*/*.ckpt"))
    named = set()
    for begin in (size // 5 * fifth // PAGE * PAGE for fifth in range(5)):
        errors = set()
        with mounted(options.fault_fs, source, place, range(begin, begin + PAGE)):
            for jobs in ("1", "2", "4", "8"):
                job = harness.Job(options.reshard, place, *strategies, "--jobs", jobs, "--retries",
                                  "1")
                done = harness.run(job.command(folder / "out"))
                assert done.returncode == 4, f"bad page at {begin}: {done.stderr.decode()}"
                errors.add(done.stderr)
                shutil.rmtree(folder / "out", ignore_errors=True)
        assert len(errors) == 1, f"bad page at {begin}: {errors}"
        named |= errors
    assert len(named) == 5, named
    print("several bad pages: the same one is named by 1, 2, 4 and 8 jobs")


def main():
    options = harness.arguments("reshard", "fault_fs", "shim", "gen")
    if harness.can_mount_fuse("sources on FUSE", options.fault_fs):
        with harness.scratch_in_memory() as folder:
            test(options, pathlib.Path(folder))
            same_for_all_jobs(options, pathlib.Path(folder))


if __name__ == "__main__":
    main()
