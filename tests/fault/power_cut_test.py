#!/usr/bin/env python3
"""Cuts the power at every system call that changes a folder or makes something durable.

A conversion is stopped at the call, its file system (ext4, then XFS, each on a loop device) is shut
down without flushing even the journal, and mounted again: the old set is there, or the new one with
its manifest, every byte of it, or no manifest and whole files or none. The same command, run again
with or without --resume, completes it. Needs root; mounts are in a namespace of their own.
"""

import fcntl
import os
import pathlib
import shutil
import struct
import subprocess

import harness

CALLS = ("mkdir", "mkdirat", "renameat", "unlinkat", "fsync", "pwrite64", "write")
FILE_SYSTEMS = {"ext4": ("mkfs.ext4", "-q", "-F", "32M"), "xfs": ("mkfs.xfs", "-q", "-f", "320M")}

FS_IOC_SHUTDOWN = 0x8004587d
NO_LOG_FLUSH = struct.pack("I", 2)


class Disk:
    """A file system in a file, which can lose its power."""

    def __init__(self, kind, folder):
        *self.make, size = FILE_SYSTEMS[kind]
        self.image = folder / f"{kind}.img"
        self.template = folder / f"{kind}.template"
        self.place = folder / kind
        self.place.mkdir()
        self.template.touch()
        subprocess.run(["truncate", "-s", size, str(self.template)], check=True)
        subprocess.run([*self.make, str(self.template)], check=True)

    def fresh(self):
        subprocess.run(["cp", "--sparse=always", str(self.template), str(self.image)], check=True)
        self.mount()

    def mount(self):
        subprocess.run(["mount", "-o", "loop", str(self.image), str(self.place)], check=True)

    def unmount(self):
        subprocess.run(["umount", str(self.place)], check=True)

    def cut_power(self):
        folder = os.open(self.place, os.O_RDONLY)
        try:
            fcntl.ioctl(folder, FS_IOC_SHUTDOWN, NO_LOG_FLUSH)
        finally:
            os.close(folder)

    def has_power_cuts(self):
        self.fresh()
        try:
            self.cut_power()
            return True
        except OSError:
            return False
        finally:
            self.unmount()


def cut_at(disk, job, scenario, call, when, log):
    """Cuts the power after this call; returns whether the run came to it."""
    name, old, before, finished, more = scenario
    where = f"{disk.place.name}, {name}: power cut at {call} {when}"
    disk.fresh()
    target = disk.place / "target"
    if old:
        shutil.copytree(old, target)
        os.sync()
    with harness.Stopped(job.command(target, *more), call, when, log) as run:
        if run.stopped is not None:
            disk.cut_power()
            os.kill(run.stopped, 9)
    run.finish()
    disk.unmount()
    disk.mount()
    harness.check_nothing_looks_finished(target, finished, before, where)
    again = harness.AGAIN[when % len(harness.AGAIN)]
    harness.complete(job, target, finished, where, *more, *again)
    disk.unmount()
    return run.stopped is not None


def test(options):
    with harness.scratch_in_memory() as folder:
        folder = pathlib.Path(folder)
        job = harness.golden_job(options.reshard, "case_037")
        old = folder / "old"
        before = harness.undisturbed(harness.golden_job(options.reshard, "case_010"), old)
        replaced = folder / "replaced"
        shutil.copytree(old, replaced)
        scenarios = (
            ("a new target", None, {}, harness.undisturbed(job, folder / "new"), ()),
            ("an old set", old, before, harness.undisturbed(job, replaced, "--force"),
             ("--force",)),
        )
        log = folder / "log"
        total = 0
        for kind in FILE_SYSTEMS:
            disk = Disk(kind, folder)
            if not disk.has_power_cuts():
                harness.did_not_run(f"power cuts on {kind}", "this kernel does not shut it down")
                continue
            cuts = 0
            for scenario in scenarios:
                disk.fresh()
                target = disk.place / "target"
                if scenario[1]:
                    shutil.copytree(scenario[1], target)
                calls = harness.calls_of(job.command(target, *scenario[4]), folder / "calls")
                disk.unmount()
                chosen = [(call, when) for call in CALLS for when in sorted(calls[call])]
                for call, when in harness.sample(chosen, options):
                    cuts += cut_at(disk, job, scenario, call, when, log)
            print(f"{kind}: {cuts} power cuts survived", flush=True)
            total += cuts
    assert total > 20, f"only {total} power cuts"


def main():
    options = harness.arguments("reshard", every=True)
    if os.geteuid() != 0:
        harness.did_not_run("power cuts", "not root, who alone may shut file systems down; "
                            "lost_writes_test models them")
    elif harness.enter_mount_namespace("power cuts"):
        harness.need_programs("strace", "mkfs.ext4", "mkfs.xfs")
        test(options)


main()
