"""Sample checkpoints, made by reshard-gen, and a folder of its own for each test."""

import os
import pathlib
import subprocess

import pytest

PROGRAMS = pathlib.Path(os.environ["RESHARD_BIN"])


@pytest.fixture(scope="session")
def samples(tmp_path_factory):
    """A folder with ckpt_8, of 8 ranks, and the strategy new/strategy, of 4."""
    folder = tmp_path_factory.mktemp("samples")
    model = ["--layers", "2", "--hidden", "64", "--ffn", "128", "--vocab", "256"]
    for cuts in (["ckpt_8", "--tp", "4", "--dp", "2"], ["new", "--tp", "2", "--pp", "2", "--strategy-only"]):
        subprocess.run(
            [PROGRAMS / "reshard-gen", cuts[0], *model, *cuts[1:]],
            cwd=folder,
            check=True,
            stdout=subprocess.DEVNULL,
        )
    return folder


@pytest.fixture(scope="session")
def full(samples):
    """The file of full tensors that ckpt_8 converts to."""
    subprocess.run(
        [PROGRAMS / "reshard", "convert", "ckpt_8", "whole", "--src-strategy", "ckpt_8/strategy"],
        cwd=samples,
        check=True,
        capture_output=True,
    )
    return samples / "whole" / "rank_0" / "checkpoint_0.ckpt"
