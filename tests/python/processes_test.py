"""Programs of many processes: those that docs/guide/python.md shows, and torchrun's variables."""

import os
import shutil
import subprocess
import sys

import pytest
import reshard
import shown_programs


@pytest.fixture
def here(samples, tmp_path):
    """A folder with ckpt_8."""
    shutil.copytree(samples / "ckpt_8", tmp_path / "ckpt_8")
    return tmp_path


def test_arrays_of_dask(here):
    pytest.importorskip("distributed")
    shown_programs.run(shown_programs.shown("python.md", "dask.array"), here)


def test_mpi4py(here):
    pytest.importorskip("mpi4py")
    if shutil.which("mpirun") is None:
        pytest.skip("no mpirun")
    program = shown_programs.shown("python.md", "mpi4py")
    shown_programs.run(program, here, "mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2")
    assert reshard.verify(here / "by_mpi").ok


def test_torchruns_variables_in_many_processes(samples, tmp_path):
    code = (
        "import reshard, sys; reshard.convert(sys.argv[1], sys.argv[2], "
        "src_strategy=sys.argv[1] + '/strategy', shard='auto', jobs=1)"
    )
    children = [
        subprocess.Popen(
            [sys.executable, "-c", code, samples / "ckpt_8", tmp_path / "out"],
            env=os.environ | {"TORCHELASTIC_RUN_ID": "none", "RANK": str(rank), "WORLD_SIZE": "3"},
        )
        for rank in range(3)
    ]
    assert [child.wait(timeout=250) for child in children] == [0, 0, 0]
    assert reshard.verify(tmp_path / "out").ok
