"""Scripts as MindSpore's tutorials have them, by `python -m reshard.mindspore` without MindSpore, and
what the program makes of the same scenarios.
tests/differential/tutorial_scripts.py runs the same with it."""

import os
import pathlib
import shutil
import subprocess
import sys
import warnings

import numpy as np
import pytest

import reshard.mindspore as ms
from tutorials import runs

PROGRAMS = pathlib.Path(os.environ["RESHARD_BIN"])


def run(script_run, folder):
    """Returns what the calls of a script print."""
    script_run.prepare(folder)
    said = []
    for command, more in script_run.commands([sys.executable, "-B", "-m", "reshard.mindspore"]):
        done = subprocess.run(
            command, cwd=folder, env={**os.environ, **more}, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        said.append(done.stdout)
    return said


def of(script):
    return [each for each in runs.RUNS if each.script == script]


@pytest.mark.parametrize(
    "script_run",
    [each for each in runs.RUNS if each.golden and each.script != "convert_stages.py"],
    ids=lambda each: f"{each.script} {each.golden}",
)
def test_a_script_writes_mindspores_bytes(script_run, tmp_path):
    run(script_run, tmp_path)
    expected = list(script_run.expected())
    assert expected
    for path, file in expected:
        assert (tmp_path / path).read_bytes() == file.read_bytes(), path


def reshard(folder, *arguments):
    """Runs the program as a reader of the tutorials would."""
    command = [PROGRAMS / "reshard", *arguments, "-q"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


OF_SOURCE, OF_TARGET = (
    ["--src-strategy", "src_strategy.ckpt"],
    ["--dst-strategy", "dst_strategy.ckpt"],
)
CONVERT = ["convert", "src_checkpoints", "made"]
# The scenarios of the scripts as commands: (golden case, commands).
COMMANDS = {
    "retrain": ("case_025", [[*CONVERT, *OF_SOURCE, *OF_TARGET]]),
    "infer on one card": ("case_028", [[*CONVERT, *OF_SOURCE]]),
    "infer on fewer cards": ("infer_000", [[*CONVERT, *OF_SOURCE, *OF_TARGET]]),
    "integrated save": ("case_008", [[*CONVERT, *OF_TARGET]]),
    "to a pipeline": ("case_017", [[*CONVERT, *OF_SOURCE, *OF_TARGET]]),
    "by rank": (
        "case_006",
        [[*CONVERT, *OF_SOURCE, *OF_TARGET, "--rank", str(rank)] for rank in range(4)],
    ),
    "by shards": (
        "case_006",
        [[*CONVERT, *OF_SOURCE, *OF_TARGET, "--shard", f"{n}/4"] for n in range(4)],
    ),
    "pipeline": ("case_012", [[*CONVERT, "--src-strategy", "src_strategies", *OF_TARGET]]),
    "merged pipeline": (
        "case_000",
        [
            ["strategy", "merge", "src_strategies", "src_strategy.ckpt"],
            [*CONVERT, *OF_SOURCE, *OF_TARGET],
        ],
    ),
    "node folders": (
        "case_025",
        [["convert", "node{rank}/ckpt.ckpt", "made", *OF_SOURCE, *OF_TARGET]],
    ),
}


@pytest.mark.parametrize("scenario", COMMANDS)
def test_the_program_writes_mindspores_bytes(scenario, tmp_path):
    golden, commands = COMMANDS[scenario]
    script_run = next(each for each in runs.RUNS if each.golden == golden)
    script_run.prepare(tmp_path)
    if scenario == "node folders":
        for rank in (tmp_path / "src_checkpoints").iterdir():
            node = tmp_path / rank.name.replace("rank_", "node")
            node.mkdir()
            next(rank.iterdir()).rename(node / "ckpt.ckpt")
    for command in commands:
        reshard(tmp_path, *command)
    expected = list(script_run.expected())
    assert expected
    for path, file in expected:
        made = tmp_path / path.replace("dst_checkpoints", "made")
        assert made.read_bytes() == file.read_bytes(), path
    reshard(tmp_path, "verify", "made")


def test_the_program_joins_slices_as_the_script_does(tmp_path):
    [merge] = of("merge_slices.py")
    run(merge, tmp_path)
    files = [f"node{rank}/CKP_1-4_32.ckpt" for rank in range(runs.RANKS)]
    reshard(tmp_path, "merge", *files, "joined.ckpt", "--strategy", "strategy_train.ckpt")
    joined, made = (ms.load_checkpoint(tmp_path / name) for name in ("joined.ckpt", "made.ckpt"))
    assert sorted(joined) == sorted(made)
    for name, parameter in joined.items():
        assert parameter.get_bytes() == made[name].get_bytes()


def check_files(script_run, folder, target="dst_checkpoints"):
    expected = list(script_run.expected())
    assert expected
    for path, file in expected:
        made = folder / path.replace("dst_checkpoints", target)
        assert made.read_bytes() == file.read_bytes(), path


def test_a_training_becomes_an_inference_with_one_warning(tmp_path):
    # Its strategy has no optimizer states, which are two thirds of the bytes.
    script_run = next(each for each in runs.RUNS if each.golden == "infer_000")
    script_run.prepare(tmp_path)
    names = ["src_checkpoints", "dst_checkpoints", "src_strategy.ckpt", "dst_strategy.ckpt"]
    source, target, src_strategy, dst_strategy = (tmp_path / name for name in names)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ms.transform_checkpoints(source, target, "checkpoint_", src_strategy, dst_strategy)
    assert [each.filename for each in caught] == [__file__]
    check_files(script_run, tmp_path)
    done = subprocess.run(
        [PROGRAMS / "reshard", *CONVERT, *OF_SOURCE, *OF_TARGET],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    check_files(script_run, tmp_path, "made")
    of_program = [line for line in done.stderr.splitlines() if "warning" in line]
    for said, ways in (
        ([str(each.message) for each in caught], ["exclude='moment1.*'", "exclude='moment2.*'"]),
        (of_program, ["--exclude 'moment1.*'", "--exclude 'moment2.*'"]),
    ):
        [warning] = said
        for words in ["dst_strategy.ckpt", "12 optimizer states", *ways]:
            assert words in warning
    # What the warning names leaves them out, and nothing is left to be said.
    left_out = ["moment1.*", "moment2.*"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ms.transform_checkpoints(
            source, tmp_path / "weights", "w_", src_strategy, dst_strategy, exclude=left_out
        )
    for rank in range(2):
        expected = ms.load_checkpoint(target / f"rank_{rank}" / f"checkpoint_{rank}.ckpt")
        found = ms.load_checkpoint(tmp_path / "weights" / f"rank_{rank}" / f"w_{rank}.ckpt")
        assert list(found) == [name for name in expected if not name.startswith("moment")]
        for name, parameter in found.items():
            assert parameter.get_bytes() == expected[name].get_bytes()


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="no mpirun")
@pytest.mark.parametrize("golden", ["case_025", "infer_000"])
def test_ranks_that_mpirun_starts_convert_one_folder(golden, tmp_path):
    # Each rank calls transform_checkpoints for all ranks.
    script_run = next(each for each in of("convert_folder.py") if each.golden == golden)
    script_run.prepare(tmp_path)
    for _ in range(2):  # the second time on what the first one published
        mpirun(script_run, tmp_path)
        check_files(script_run, tmp_path)
        target = tmp_path / "dst_checkpoints"
        reshard(tmp_path, "verify", target)
        assert len((target / "origin.jsonl").read_text().splitlines()) == 1
        assert not (target / ".reshard").exists()


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="no mpirun")
def test_ranks_that_mpirun_starts_convert_each_its_own(tmp_path):
    [script_run] = of("convert_rank.py")
    script_run.prepare(tmp_path)
    mpirun(script_run, tmp_path)
    check_files(script_run, tmp_path)


def mpirun(script_run, folder):
    """Runs a script as 4 ranks, in the way that the tutorials start it."""
    script, arguments = runs.SCRIPTS / script_run.script, script_run.calls[0]
    clean = {name: value for name, value in os.environ.items() if "RANK" not in name}
    launcher = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "4"]
    python = [sys.executable, "-B", "-m", "reshard.mindspore"]
    done = subprocess.run(
        [*launcher, *python, script, *arguments],
        cwd=folder,
        env=clean,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_parts_of_stages_are_what_the_whole_pipeline_gives(tmp_path):
    [script_run] = of("convert_stages.py")
    [said] = run(script_run, tmp_path)
    for path, file in script_run.expected():
        folder = (tmp_path / path).parent
        names = sorted(part.name for part in folder.iterdir())
        assert names == [path.rsplit("/", 1)[1].replace(".", f"_part{stage}.") for stage in (0, 1)]
        expected, found = ms.load_checkpoint(file), ms.load_segmented_checkpoints(folder)
        assert sorted(found) == sorted(expected)
        for name, parameter in found.items():
            assert parameter.get_bytes() == expected[name].get_bytes()
            line = f"{folder.name} {name} {parameter.shape} {parameter.dtype}"
            assert line in said.splitlines()


def test_slices_are_joined_and_cut_again(tmp_path):
    [merge], [load] = of("merge_slices.py"), of("load_slices.py")
    run(merge, tmp_path)
    made = ms.load_checkpoint(tmp_path / "made.ckpt")
    whole = runs.whole_slices()
    assert list(made) == list(whole)
    for name, parameter in made.items():
        assert np.array_equal(parameter.asnumpy(), whole[name])
    (tmp_path / "again").mkdir()
    said = run(load, tmp_path / "again")
    assert said == [f"{rank} [(2, 8), (2, 8)]\n" for rank in range(runs.RANKS)]
    for rank in range(runs.RANKS):
        for name, parameter in ms.load_checkpoint(tmp_path / "again" / f"made_{rank}.ckpt").items():
            assert np.array_equal(parameter.asnumpy(), whole[name][2 * rank : 2 * rank + 2])


def test_launchers_say_the_rank(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("""
import mindspore.communication as D
from mindspore.communication import get_group_size, get_rank, init
init()
D.init()
print(D.get_rank(), get_rank(), get_group_size())
""")
    command = [sys.executable, "-B", "-m", "reshard.mindspore", script]
    clean = {name: value for name, value in os.environ.items() if "RANK" not in name}
    for more, expected in (
        ({}, "0 0 1\n"),
        ({"RANK_ID": "3", "RANK_SIZE": "8", "RANK": "1"}, "3 3 8\n"),
        ({"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4"}, "2 2 4\n"),
        ({"SLURM_PROCID": "1", "SLURM_NTASKS": "2"}, "1 1 2\n"),
        ({"RANK": "5", "WORLD_SIZE": "6"}, "5 5 6\n"),
    ):
        done = subprocess.run(command, env={**clean, **more}, capture_output=True, text=True)
        assert done.stdout == expected, done.stderr
    done = subprocess.run(command, env={**clean, "RANK_ID": "x"}, capture_output=True, text=True)
    assert "$RANK_ID: expected a number, found 'x'" in done.stderr
