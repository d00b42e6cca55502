"""A conversion by Dask: the program of docs/guide/cluster.md, and a worker that is killed."""

import shutil

import pytest
import reshard
import shown_programs

pytest.importorskip("distributed")

# In place of `reshard.convert`: the worker that first does share 0 dies.
DYING = """
import os, pathlib, signal

def dying(*values, shard, **keywords):
    died = pathlib.Path("died").absolute()
    if shard[0] == 0 and not died.exists():
        died.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return reshard.convert(*values, shard=shard, **keywords)
"""


@pytest.mark.parametrize("dies", (False, True), ids=("as_shown", "with_a_death"))
def test_the_program_of_the_page(samples, tmp_path, dies):
    shutil.copytree(samples / "ckpt_8", tmp_path / "ckpt_8")
    program = shown_programs.shown("cluster.md", "dask")
    assert len([line for line in program.splitlines() if line]) <= 10
    if dies:
        assert program.count("reshard.convert(") == 1
        program = DYING + program.replace("reshard.convert(", "dying(")
    shown_programs.run(program, tmp_path)
    assert reshard.verify(tmp_path / "by_dask").ok
    assert (tmp_path / "died").exists() == dies
