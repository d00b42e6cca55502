#!/usr/bin/env python3
"""Full disks: file systems with too few bytes or too few inodes, and files beyond a limit.

Every size from far too small to enough, in memory file systems of a mount namespace of its own;
file systems that fill up while a file is being written; `ulimit -f`. A run without space ends with
exit code 4, leaves nothing that looks finished, an old set as it was, and can be repeated with more
space.
"""

import contextlib
import ctypes
import json
import os
import pathlib
import resource
import shutil
import subprocess

import harness

PAGE = 4096
MS_REMOUNT = 32


@contextlib.contextmanager
def memory_disk(folder, *options):
    """A file system in memory at `folder`, as long as the block lasts."""
    folder.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", ",".join(options), "tmpfs", str(folder)],
                   check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def resize(folder, *options):
    """With the system call: mount(8) repeats a user id that a user namespace may not name."""
    changed = ctypes.CDLL(None, use_errno=True).mount(
        b"tmpfs", os.fsencode(folder), None, MS_REMOUNT, ",".join(options).encode())
    if changed != 0:
        raise OSError(ctypes.get_errno(), "cannot resize", str(folder))


class Outcomes:
    """Runs that had space enough, and runs that had not."""

    def __init__(self):
        self.failed = 0
        self.succeeded = 0

    def check(self, done, target, finished, before, where):
        assert done.returncode in (0, 4), f"{where}: exit {done.returncode}: {done.stderr.decode()}"
        harness.check_documented(done, where)
        published = harness.check_nothing_looks_finished(target, finished, before, where)
        if done.returncode == 0:
            assert published, f"{where}: exit 0, but no set"
            self.succeeded += 1
        else:
            self.failed += 1


def try_sizes(job, folder, finished, outcomes):
    """Sizes in steps of a page, then numbers of inodes in steps of one, until it fits thrice."""
    for option, start, step in (("size", PAGE, PAGE), ("nr_inodes", 2, 1)):
        value = start
        fits = 0
        while fits < 3:
            where = f"{option}={value}"
            with memory_disk(folder, where, "mode=755") as disk:
                target = disk / "target"
                done = harness.run(job.command(target))
                outcomes.check(done, target, finished, {}, where)
                fits += done.returncode == 0
                resize(disk, "size=16m", "nr_inodes=1000")
                harness.complete(job, target, finished, where)
            value += step


def try_sizes_over_old_set(job, old, folder, finished, before, outcomes):
    """As try_sizes, for a set that takes the place of an old one."""
    free = 0
    fits = 0
    while fits < 3:
        where = f"an old set and {free} bytes"
        with memory_disk(folder, "size=16m", "mode=755") as disk:
            target = disk / "target"
            shutil.copytree(old, target)
            used = os.statvfs(disk)
            resize(disk, f"size={(used.f_blocks - used.f_bfree) * used.f_frsize + free}")
            done = harness.run(job.command(target, "--force"))
            outcomes.check(done, target, finished, before, where)
            fits += done.returncode == 0
            resize(disk, "size=16m")
            harness.complete(job, target, finished, where, "--force")
        free += 2 * PAGE


def fill_while_running(job, folder, finished, outcomes):
    """The disk fills up at each write of a file for which nothing could be reserved."""
    failed = outcomes.failed
    when = 0
    while True:
        when += 1
        where = f"filled before write {when}"
        with memory_disk(folder, "size=64m", "mode=755") as disk:
            target = disk / "target"
            with harness.Stopped(job.command(target), "pwrite64", when, folder.parent / "log",
                                 failing="fallocate:error=EOPNOTSUPP") as run:
                if run.stopped is not None:
                    used = os.statvfs(disk)
                    in_use = (used.f_blocks - used.f_bfree) * used.f_frsize
                    resize(disk, f"size={in_use + 100 * PAGE}")  # room for a part of the next
            done = run.finish()
            outcomes.check(done, target, finished, {}, where)
            resize(disk, "size=64m")
            harness.complete(job, target, finished, where)
        if run.stopped is None:
            break
    assert outcomes.failed > failed, "no write found the disk full"


def limit_file_sizes(job, folder, finished, outcomes):
    """`ulimit -f`, in steps: its signal, SIGXFSZ, must not kill the run."""
    largest = max(len(content) for content in finished.values())
    for limit in range(1, largest + 3 * 1024, 1024):
        target = folder / "limited"
        where = f"files of at most {limit} bytes"
        done = harness.run(job.command(target), preexec_fn=lambda most=limit: resource.setrlimit(
            resource.RLIMIT_FSIZE, (most, most)))
        outcomes.check(done, target, finished, {}, where)
        harness.complete(job, target, finished, where)
        shutil.rmtree(target)


def unknown_space(job, folder, finished):
    """A file system that says nothing of its size is not full."""
    disk = folder / "unknown"
    disk.mkdir()
    mounted = harness.run(["mount", "-t", "ramfs", "ramfs", str(disk)])
    if mounted.returncode != 0:
        harness.did_not_run("a disk of unknown size", "ramfs cannot be mounted here")
        return
    try:
        assert os.statvfs(disk).f_blocks == 0
        target = disk / "target"
        planned = harness.run([job.reshard, "plan", *job.command(target)[2:], "--json"])
        assert json.loads(planned.stdout)["space_free"] is None, planned.stdout
        done = harness.run(job.command(target))
        assert done.returncode == 0, done.stderr.decode()
        harness.check_finished(target, finished, "a disk of unknown size")
        files = sorted(str(path) for path in target.glob("rank_*/*.ckpt"))
        done = harness.run([job.reshard, "merge", *files, str(disk / "merged.ckpt"), "-q"])
        assert done.returncode == 0, done.stderr.decode()
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def report_to_full_device(job, folder):
    """A report that cannot be written is an error, though the conversion is done."""
    with open("/dev/full", "wb") as full:
        done = subprocess.run(job.command(folder / "reported", "--json"), stdout=full,
                              stderr=subprocess.PIPE, check=False)
    assert done.returncode == 4, f"report to /dev/full: exit {done.returncode}"
    assert b"standard output" in done.stderr, done.stderr


def test(options):
    outcomes = Outcomes()
    with harness.scratch_in_memory() as folder:
        folder = pathlib.Path(folder)
        small = harness.golden_job(options.reshard, "case_037")
        finished = harness.undisturbed(small, folder / "undisturbed")
        try_sizes(small, folder / "disk", finished, outcomes)
        unknown_space(small, folder, finished)

        old = folder / "old"
        before = harness.undisturbed(harness.golden_job(options.reshard, "case_010"), old)
        replaced = folder / "replaced"
        shutil.copytree(old, replaced)
        try_sizes_over_old_set(small, old, folder / "disk",
                               harness.undisturbed(small, replaced, "--force"), before, outcomes)

        harness.generate(options.gen, folder / "src", "--layers", "1", "--hidden", "512", "--ffn",
                         "1408", "--vocab", "2048", "--tp", "2", "--no-optimizer")
        large = harness.Job(options.reshard, folder / "src", folder / "src" / "strategy", None,
                            "--jobs", "1")
        fill_while_running(large, folder / "disk",
                           harness.undisturbed(large, folder / "large"), outcomes)
        limit_file_sizes(small, folder, finished, outcomes)
        report_to_full_device(small, folder)
    assert outcomes.failed > 30, f"only {outcomes.failed} runs found the disk full"
    print(f"{outcomes.failed} full disks survived, {outcomes.succeeded} runs had enough space")


def main():
    options = harness.arguments("reshard", "gen")
    harness.need_programs("strace", "unshare", "mount")
    if harness.enter_mount_namespace("full disks"):
        test(options)


main()
