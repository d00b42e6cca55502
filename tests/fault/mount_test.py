#!/usr/bin/env python3
"""Mounts inside a target, and sources whose file system was mounted anew.

A file system that is mounted at a folder of the target, or the same one once more (a bind mount),
takes no renames from outside: a conversion is refused before it replaces anything, whether the
mount is there from the beginning or comes before the publication, and succeeds without it. A file
system that is mounted anew has another device number: an interrupted run goes on from it.
"""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess

import harness

CASE = "case_037"


@contextlib.contextmanager
def mounted(place, *how):
    """What `how` names at `place`, which is made, as long as the block lasts."""
    place.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", *how, str(place)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", str(place)], check=True)


def mounts(folder):
    """Each kind of mount: arguments of mount(8) for a copy of the folder `content`."""

    @contextlib.contextmanager
    def bind(place, content):
        copied = folder / "bound"
        shutil.copytree(content, copied)
        with mounted(place, "--bind", str(copied)):
            yield
        shutil.rmtree(copied)

    @contextlib.contextmanager
    def memory(place, content):
        with mounted(place, "-t", "tmpfs", "tmpfs"):
            shutil.copytree(content, place, dirs_exist_ok=True)
            yield

    return {"bind mount": bind, "file system": memory}


def refused(done, where, said):
    assert done.returncode == 4, f"{where}: exit {done.returncode}: {done.stderr.decode()}"
    assert said in done.stderr.decode(), f"{where}: {done.stderr.decode()}"


def into_mounts(job, folder, old, before, finished):
    """Mounted from the beginning: `plan` and `convert`, alone and as a shard, change nothing."""
    target = folder / "target"
    places = ["rank_0", "rank_1", "part_records", "part_records/rank_1", ".reshard"]
    count = 0
    for kind, mount in mounts(folder).items():
        for place in places:
            where = f"{kind} at {place}"
            shutil.copytree(old, target)
            (target / place).mkdir(exist_ok=True)
            content = folder / "content"
            shutil.copytree(target / place, content)
            with mount(target / place, content):
                for more in ((), ("--shard", "0/1")):
                    refused(harness.run(job.command(target, "--force", *more)), where, place)
                    assert harness.snapshot(target) == before, f"{where}: the old set is not there"
                    check = harness.run([job.reshard, "verify", str(target)])
                    assert check.returncode == 0, f"{where}: {check.stdout.decode()}"
                planned = [job.reshard, "plan", *job.command(target, "--force")[2:]]
                refused(harness.run(planned), f"{where}, plan", place)
                count += 3
            harness.complete(job, target, finished, where, "--force")
            shutil.rmtree(target)
            shutil.rmtree(content)
    print(f"{count} runs into mounts refused", flush=True)


def before_publication(job, folder, old, before, finished):
    """Mounted while the run was at work: the journal is written, the old set stays."""
    target = folder / "target"
    for kind, mount in mounts(folder).items():
        for place in ("rank_0", "part_records/rank_1"):
            where = f"{kind} at {place}, mounted later"
            shutil.copytree(old, target)
            content = folder / "content"
            shutil.copytree(target / place, content)
            with harness.Stopped(job.command(target, "--force"), "pwrite64", 1,
                                 folder / "log") as run:
                assert run.stopped is not None, where
                mount_now = mount(target / place, content)
                mount_now.__enter__()
            refused(run.finish(), where, place)
            assert harness.snapshot(target) == before, f"{where}: the old set is not there"
            mount_now.__exit__(None, None, None)
            harness.complete(job, target, finished, where, "--force")
            shutil.rmtree(target)
            shutil.rmtree(content)
    print("4 publications into mounts refused", flush=True)


def attach(image):
    done = harness.run(["losetup", "--find", "--show", str(image)])
    return done.stdout.decode().strip() if done.returncode == 0 else None


def resume_after_remount(reshard, folder):
    """The sources' file system comes back with another device number."""
    image = folder / "image"
    subprocess.run(["truncate", "-s", "32M", str(image)], check=True)
    subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True)
    first = attach(image)
    if first is None:
        harness.did_not_run("sources mounted anew", "no loop device to be had (losetup)")
        return
    golden = harness.golden_job(reshard, CASE)
    disk = folder / "disk"
    job = harness.Job(reshard, disk / "src", golden.options[1], golden.options[3],
                      *golden.options[4:])
    finished = harness.undisturbed(golden, folder / "undisturbed")
    target = folder / "target"
    kept = 0
    call = 0
    with mounted(disk, first):
        shutil.copytree(golden.source, disk / "src")
        device = os.stat(disk).st_dev
        while kept == 0:  # until something was finished before the kill
            call += 1
            shutil.rmtree(target, ignore_errors=True)
            with harness.Stopped(job.command(target), "pwrite64", call, folder / "log") as run:
                assert run.stopped is not None, "no kill left something finished"
                os.kill(run.stopped, 9)
            run.finish()
            kept = len(list((target / ".reshard").rglob("part_records/**/*.jsonl")))
    # While the first device is in use, the image gets another one.
    other = folder / "other"
    subprocess.run(["truncate", "-s", "1M", str(other)], check=True)
    subprocess.run(["losetup", "--detach", first], check=True)
    subprocess.run(["losetup", first, str(other)], check=True)
    second = attach(image)
    try:
        with mounted(disk, second):
            assert os.stat(disk).st_dev != device, "the same device number again"
            done = harness.run(job.command(target, "--resume", "--json"))
            assert done.returncode == 0, done.stderr.decode()
            assert json.loads(done.stdout)["files_kept"] == kept, done.stdout
    finally:
        for device in (first, second):
            subprocess.run(["losetup", "--detach", device], check=False)
    harness.check_finished(target, finished, "sources mounted anew")
    print(f"resumed from sources mounted anew, {kept} files kept", flush=True)


def main():
    options = harness.arguments("reshard")
    harness.need_programs("strace", "unshare", "mount")
    if not harness.enter_mount_namespace("mounts in a target"):
        return
    with harness.scratch() as folder:
        folder = pathlib.Path(folder)
        job = harness.golden_job(options.reshard, CASE)
        old = folder / "old"
        before = harness.undisturbed(harness.golden_job(options.reshard, "case_010"), old)
        replaced = folder / "replaced"
        shutil.copytree(old, replaced)
        finished = harness.undisturbed(job, replaced, "--force")
        into_mounts(job, folder, old, before, finished)
        before_publication(job, folder, old, before, finished)
    if os.geteuid() != 0 or shutil.which("mkfs.ext4") is None:
        harness.did_not_run("sources mounted anew", "needs root and mkfs.ext4")
        return
    with harness.scratch() as folder:
        resume_after_remount(options.reshard, pathlib.Path(folder))


main()
