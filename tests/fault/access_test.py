#!/usr/bin/env python3
"""What is no ordinary readable file, and where nothing may be written.

Pipes, devices, sockets and folders in a source's place end a run at once, with exit code 3. Sources
that cannot be written to are enough; sources that cannot be read, and targets that cannot be
written, end a run with exit code 4, before it has made anything.
"""

import os
import pathlib
import resource
import shutil
import signal
import socket
import stat
import subprocess

import harness

CASE = "case_037"
OTHER_USER = 65534  # nobody; root may do anything, whatever the mode


def copy_sources(reshard, folder):
    job = harness.golden_job(reshard, CASE)
    shutil.copytree(job.source, folder / "src")
    job.source = folder / "src"
    return job


def make_pipe(path):
    os.mkfifo(path)


def make_socket(path):
    # The path of a socket is limited to 108 bytes.
    here = os.getcwd()
    os.chdir(path.parent)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path.name)
    os.chdir(here)


def make_link(to):
    return lambda path: path.symlink_to(to)


KINDS = {
    "a pipe": make_pipe,
    "a socket": make_socket,
    "a folder": lambda path: path.mkdir(),
    "a link to /dev/zero": make_link("/dev/zero"),
    "a link to a folder": make_link("/dev"),
    "a link to nothing": make_link("/nothing/there"),
    "a link to itself": lambda path: path.symlink_to(path.name),
}


def no_regular_files(folder, reshard):
    """In the place of a checkpoint, of a strategy, of a source and of an output."""
    count = 0
    job = copy_sources(reshard, folder)
    checkpoint = sorted(job.source.rglob("*.ckpt"))[0]
    content = checkpoint.read_bytes()
    strategy = folder / "strategy.ckpt"
    for kind, make in KINDS.items():
        checkpoint.unlink()
        make(checkpoint)
        make(strategy)
        commands = {
            "checkpoint": job.command(folder / "target"),
            "strategy": [reshard, "convert", str(harness.golden_job(reshard, CASE).source),
                         str(folder / "target"), "--src-strategy", str(strategy)],
            "source": [reshard, "convert", str(checkpoint), str(folder / "target"),
                       "--dst-strategy", job.options[3]],
            "inspected": [reshard, "inspect", str(checkpoint)],
        }
        for place, command in commands.items():
            where = f"{kind} as {place}"
            done = harness.run(command, timeout=20)
            # A folder in the source's place is an ordinary source; a circle of links is no kind.
            expected = (3, 4) if "itself" in kind else (3,)
            assert done.returncode in expected, f"{where}: {done.returncode}: {done.stderr}"
            assert not (folder / "target").exists(), where
            count += 1
        for path in (checkpoint, strategy):
            if path.is_dir() and not path.is_symlink():
                path.rmdir()
            else:
                path.unlink()
        checkpoint.write_bytes(content)
    for kind, make in KINDS.items():  # where an output belongs: never followed, never replaced
        for more in ((), ("--force",)):
            target = folder / "target"
            (target / "rank_0").mkdir(parents=True)
            make(target / "rank_0" / "out0.ckpt")
            done = harness.run(job.command(target, *more), timeout=20)
            assert done.returncode == 6, f"{kind} as output: {done.returncode}: {done.stderr}"
            assert os.listdir(target) == ["rank_0"], f"{kind} as output: {os.listdir(target)}"
            shutil.rmtree(target)
            count += 1
    print(f"{count} places with something that is no regular file")


def set_mode(folder, of_files, of_folders):
    for path in [folder, *folder.rglob("*")]:
        path.chmod(of_folders if path.is_dir() else of_files)


def read_only_sources(folder, reshard):
    """Files of mode 0400 in folders of mode 0500."""
    finished = harness.undisturbed(harness.golden_job(reshard, CASE), folder / "undisturbed")
    job = copy_sources(reshard, folder)
    set_mode(job.source, 0o400, 0o500)
    try:
        done = harness.run(job.command(folder / "target"))
        assert done.returncode == 0, done.stderr.decode()
        harness.check_finished(folder / "target", finished, "read-only sources")
    finally:
        set_mode(job.source, 0o600, 0o700)


def read_only_mount(folder, reshard):
    """Sources on a file system mounted read-only, and a target on it."""
    finished = harness.undisturbed(harness.golden_job(reshard, CASE), folder / "undisturbed")
    job = copy_sources(reshard, folder)
    subprocess.run(["mount", "--bind", str(job.source), str(job.source)], check=True)
    subprocess.run(["mount", "-o", "remount,bind,ro", str(job.source)], check=True)
    try:
        done = harness.run(job.command(folder / "target"))
        assert done.returncode == 0, done.stderr.decode()
        harness.check_finished(folder / "target", finished, "read-only mount")
        elsewhere = harness.golden_job(reshard, CASE)
        done = harness.run(elsewhere.command(job.source / "target"))
        assert done.returncode == 4, f"target read-only: {done.returncode}: {done.stderr}"
    finally:
        subprocess.run(["umount", str(job.source)], check=True)


def permissions(folder, reshard):
    """As somebody who may not read a source, list a folder, write to a target's folder."""
    job = copy_sources(reshard, folder)
    program = folder / "reshard"  # where another user can get at it
    shutil.copy(reshard, program)
    strategies = [shutil.copy(job.options[i], folder / f"strategy_{i}.ckpt") for i in (1, 3)]
    rank = job.source / "rank_1"
    file = next(rank.glob("*.ckpt"))
    for path in (folder, job.source, rank):
        path.chmod(0o755)
    open_place = folder / "open"
    closed_place = folder / "closed"
    for path in (open_place, closed_place):
        path.mkdir()
        path.chmod(0o777)
    target = open_place / "target"
    rows = {
        "file without permission": (file, 0o000, target, 4),
        "folder without permission to list": (rank, 0o311, target, 4),
        "folder without permission to pass": (rank, 0o644, target, 4),
        "target's folder without permission": (closed_place, 0o555, closed_place / "target", 4),
        "target without permission": (closed_place, 0o555, closed_place, 4),
        "strategy without permission": (pathlib.Path(strategies[0]), 0o200, target, 4),
        "all permitted": (file, 0o444, target, 0),
    }
    as_user = []
    if os.geteuid() == 0:
        as_user = ["setpriv", f"--reuid={OTHER_USER}", f"--regid={OTHER_USER}", "--clear-groups"]
    for name, (path, mode, place, code) in rows.items():
        before = stat.S_IMODE(path.stat().st_mode)
        path.chmod(mode)
        done = harness.run([*as_user, str(program), "convert", str(job.source), str(place),
                            "--src-strategy", strategies[0], "--dst-strategy", strategies[1]])
        path.chmod(before)
        assert done.returncode == code, f"{name}: {done.returncode}: {done.stderr.decode()}"
        if code != 0:
            assert b"permission" in done.stderr.lower(), f"{name}: {done.stderr.decode()}"
            assert not place.exists() or not os.listdir(place), f"{name}: something was made"
    print(f"{len(rows)} permissions looked at, as an ordinary user", flush=True)


def dumps_core(command, folder, wait):
    """Whether a program that is aborted after wait() leaves a core dump."""
    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    with subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, unlimited)
                          ) as process:
        held = wait()
        process.send_signal(signal.SIGABRT)
        status = os.waitpid(process.pid, 0)[1]
        del held
        process.returncode = -signal.SIGABRT
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGABRT, status
    return os.WCOREDUMP(status)


def no_core_dump(folder, reshard):
    """Of a program that is being given a key, although the system writes them."""
    if resource.getrlimit(resource.RLIMIT_CORE)[1] != resource.RLIM_INFINITY:
        harness.did_not_run("no core dump with a key", "ulimit -Hc is not unlimited")
        return
    if not dumps_core(["cat"], folder, lambda: None):
        harness.did_not_run("no core dump with a key", "the system writes none")
        return
    key = folder / "key"
    os.mkfifo(key)
    for option in ("--key-file", "--encrypt-key-file"):
        more = ["--encrypt", "AES-GCM"] if option == "--encrypt-key-file" else []
        command = [reshard, "convert", str(folder), str(folder / "target"), *more, option, str(key)]
        # Opening a pipe waits for who reads, and who reads for what is written.
        assert not dumps_core(command, folder, lambda: key.open("wb")), option


def in_folder(function, *more):
    with harness.scratch() as folder:
        function(pathlib.Path(folder), *more)


def main():
    reshard = harness.arguments("reshard").reshard
    if harness.NAMESPACE not in os.environ:
        in_folder(no_regular_files, reshard)
        in_folder(read_only_sources, reshard)
        in_folder(permissions, reshard)
        in_folder(no_core_dump, reshard)
    if harness.enter_mount_namespace("sources on a read-only mount"):
        in_folder(read_only_mount, reshard)


main()
