"""`python -m reshard` and `python -m reshard.gen`: what the programs do, by the module."""

import os
import pathlib
import signal
import subprocess
import sys

PROGRAMS = pathlib.Path(os.environ["RESHARD_BIN"])
RESHARD = [sys.executable, "-m", "reshard"]
MODEL = ["--layers", "1", "--hidden", "64", "--ffn", "128", "--vocab", "64", "--tp", "2"]


def test_commands_print_and_return_what_the_program_does(samples):
    for command in (
        ["inspect", "ckpt_8", "--json"],
        ["verify", "ckpt_8"],
        ["convert", "ckpt_8"],
        ["nope"],
        ["--version"],
    ):
        ours, theirs = (
            subprocess.run([*program, *command], cwd=samples, capture_output=True)
            for program in (RESHARD, [PROGRAMS / "reshard"])
        )
        assert ours.returncode == theirs.returncode, ours.stderr
        assert ours.stdout == theirs.stdout
        assert ours.stderr == theirs.stderr


def test_a_name_that_is_no_text_is_passed_on(tmp_path):
    name = b"no\xfftext"
    done = subprocess.run([*RESHARD, "inspect", name], cwd=tmp_path, capture_output=True)
    assert done.returncode == 3, done.stderr
    theirs = subprocess.run([PROGRAMS / "reshard", "inspect", name], cwd=tmp_path, capture_output=True)
    assert done.stderr == theirs.stderr


def test_gen_makes_the_same_files(tmp_path):
    subprocess.run([sys.executable, "-m", "reshard.gen", "ours", *MODEL], cwd=tmp_path, check=True)
    subprocess.run([PROGRAMS / "reshard-gen", "theirs", *MODEL], cwd=tmp_path, check=True)
    files = [path.relative_to(tmp_path / "theirs") for path in (tmp_path / "theirs").rglob("*.ckpt")]
    assert len(files) == 3
    for file in files:
        assert (tmp_path / "ours" / file).read_bytes() == (tmp_path / "theirs" / file).read_bytes()


def test_a_closed_pipe_ends_it_as_it_ends_programs(samples):
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([*RESHARD, "inspect", "ckpt_8", "--json"], cwd=samples, stdout=write)
    os.close(write)
    assert done.returncode == -signal.SIGPIPE
