#!/usr/bin/env python3
"""Kills a conversion at every system call that changes a folder or makes something durable.

Whatever the moment: there is no manifest without all files, every file under a target name is whole,
and the same command, without --force, ends with MindSpore's bytes and nothing of its own left over.
Then the run that completes is killed in the same way. Needs strace.
"""

import argparse
import filecmp
import pathlib
import shutil
import subprocess
import sys
import tempfile

CALLS = "rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat,fsync"
CASE = pathlib.Path(__file__).parent.parent / "golden" / "data" / "convert" / "case_014"


def outputs(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*.ckpt")
                  if ".reshard" not in path.parts)


def check_whole(target, expected):
    """No output may be half there, and a manifest stands for all of them."""
    found = outputs(target)
    for name in found:
        assert filecmp.cmp(target / name, expected / name, shallow=False), f"{name} is not whole"
    if (target / "manifest.json").exists():
        assert found == outputs(expected), f"a manifest, but only {found}"


def run(command, kill_at=None):
    if kill_at is not None:
        command = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={CALLS}", "-e",
                   f"inject={CALLS}:signal=KILL:when={kill_at}"] + command
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                          check=False)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--reshard", required=True)
    arguments = parser.parse_args()
    if shutil.which("strace") is None:
        sys.exit("strace is missing: tools/deps.sh installs it")
    expected = CASE / "expected"
    kills = 0
    with tempfile.TemporaryDirectory() as scratch:
        target = pathlib.Path(scratch) / "target"
        command = [arguments.reshard, "convert", str(CASE / "src"), str(target), "--src-strategy",
                   str(CASE / "src_strategy.ckpt"), "--dst-strategy",
                   str(CASE / "dst_strategy.ckpt"), "--prefix", "out", "-q", "--jobs", "1"]
        interrupted = True
        first = 0
        while interrupted:
            first += 1
            shutil.rmtree(target, ignore_errors=True)
            interrupted = run(command, first).returncode not in (0, 6)
            if not interrupted:
                break
            kills += 1
            check_whole(target, expected)
            left = pathlib.Path(scratch) / "left"
            second = 0
            while True:  # the completing run, killed at each of its calls in turn
                second += 1
                shutil.rmtree(left, ignore_errors=True)
                if target.exists():
                    shutil.copytree(target, left)
                done = run(command, second)
                check_whole(target, expected)
                if done.returncode in (0, 6):
                    break
                kills += 1
                final = run(command)
                finished = final.returncode == 0 or (final.returncode == 6 and
                                                     (target / "manifest.json").exists())
                assert finished, f"after kills at {first} and {second}: {final.stderr}"
                assert outputs(target) == outputs(expected), f"after kills at {first}, {second}"
                assert (target / "manifest.json").exists()
                check_whole(target, expected)
                assert not (target / ".reshard").exists(), f"after kills at {first}, {second}"
                shutil.rmtree(target)
                if left.exists():
                    shutil.copytree(left, target)
                if first % 6 != 1:  # every sixth state is enough for kills of the second run
                    break
    assert kills > 20, f"only {kills} kills: has strace stopped working?"
    print(f"{kills} kills survived")


main()
