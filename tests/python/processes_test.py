"""Programs of many processes: those that docs/guide/python.md shows, as it shows them."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
import reshard

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "guide" / "python.md"


def shown(mark):
    """The program on the page that begins with this comment."""
    text = PAGE.read_text(encoding="utf-8")
    [program] = re.findall(rf"```python\n(# with {mark}\n.*?)```", text, re.DOTALL)
    return program


@pytest.fixture
def here(samples, tmp_path):
    """A folder with ckpt_8, and how to run a program in it."""
    shutil.copytree(samples / "ckpt_8", tmp_path / "ckpt_8")
    script = tmp_path / "script.py"

    def run(mark, *launcher):
        script.write_text(shown(mark))
        done = subprocess.run(
            [*launcher, sys.executable, script],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=250,
            env=os.environ | {"RESHARD_PROGRESS": "0"},
        )
        assert done.returncode == 0, done.stdout + done.stderr
        [target] = [path for path in tmp_path.iterdir() if path.name.startswith("by_")]
        assert reshard.verify(target).ok
        assert [p.name for p in target.glob("rank_*")] == ["rank_0"]

    return run


def test_ray(here):
    pytest.importorskip("ray")
    here("ray")


def test_dask(here):
    pytest.importorskip("distributed")
    here("dask")


def test_mpi4py(here):
    pytest.importorskip("mpi4py")
    if shutil.which("mpirun") is None:
        pytest.skip("no mpirun")
    here("mpi4py", "mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2")


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
