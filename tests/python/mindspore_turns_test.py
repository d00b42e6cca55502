"""MindSpore's calls made by several processes at once, as by the ranks of a job under mpirun."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time

import pytest
import reshard
from reshard import mindspore
from reshard.mindspore import _turns, parallel

# Each process makes the call that the arguments describe. With KILL, the first one that has
# finished a file, and not all, ends itself as kill -9 does; with HOLD, one that begins to write
# waits for the file HOLD.go.
PROGRAM = """
import json, os, pathlib, signal, sys, time
from reshard import mindspore

name, arguments = sys.argv[1], json.loads(sys.argv[2])
if "checkpoint_files_map" in arguments:
    files = arguments["checkpoint_files_map"]
    arguments["checkpoint_files_map"] = {int(rank): path for rank, path in files.items()}

def watch(progress):
    kill, hold = os.environ.get("KILL"), os.environ.get("HOLD")
    if kill and 0 < progress.done_files < progress.total_files:
        try:
            os.close(os.open(kill, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        staged = {}
        for folder in pathlib.Path(arguments["dst_checkpoints_dir"]).glob(".reshard/*/files"):
            for record in (folder / "part_records").rglob("*.jsonl"):
                path = str(record.relative_to(folder / "part_records"))[: -len(".jsonl")]
                staged[path] = (folder / path).stat().st_ino
        pathlib.Path(kill).write_text(json.dumps(staged))
        os.kill(os.getpid(), signal.SIGKILL)
    if hold and progress.done_files < progress.total_files:
        pathlib.Path(hold).touch()
        while not os.path.exists(hold + ".go"):
            time.sleep(0.01)

if os.environ.get("KILL") or os.environ.get("HOLD"):
    arguments.update(progress=watch, jobs=1)
getattr(mindspore, name)(**arguments)
"""
# So that a kill finds some files finished and others not.
SLOW = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync",
        "-e", "inject=fsync:delay_enter=200000"]  # fmt: skip
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "4"]


@pytest.fixture
def here(samples, tmp_path):
    shutil.copytree(samples / "ckpt_8", tmp_path / "ckpt_8")
    shutil.copytree(samples / "new" / "strategy", tmp_path / "new")
    (tmp_path / "program.py").write_text(PROGRAM)
    return tmp_path


def transform(here, **others):
    return {
        "src_checkpoints_dir": str(here / "ckpt_8"),
        "dst_checkpoints_dir": str(here / "out"),
        "ckpt_prefix": "net_",
        "src_strategy_file": str(here / "ckpt_8" / "strategy"),
        "dst_strategy_file": str(here / "new"),
        **others,
    }


def command(here, arguments, name="transform_checkpoints", before=()):
    return [*before, sys.executable, here / "program.py", name, json.dumps(arguments)]


def begin(*given, variables=None, **named):
    return subprocess.Popen(
        command(*given, **named),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "RESHARD_PROGRESS": "0", **(variables or {})},
    )


def ends(process):
    said = process.communicate(timeout=250)[0]
    return process.returncode, said


def needs(*programs):
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"no {program}")


def check_whole(here, expected, out="out"):
    """The set is whole, as one process writes it, and nothing is left beside it."""
    target = here / out
    assert reshard.verify(target).ok
    found = {
        str(path.relative_to(target)): path.read_bytes()
        for path in target.rglob("*")
        if path.is_file() and path.name != "origin.jsonl"
    }
    assert found == expected
    assert not (target / ".reshard").exists()


@pytest.fixture
def expected(here):
    """What one process writes."""
    mindspore.transform_checkpoints(**transform(here, dst_checkpoints_dir=str(here / "one")))
    return {
        str(path.relative_to(here / "one")): path.read_bytes()
        for path in (here / "one").rglob("*")
        if path.is_file() and path.name != "origin.jsonl"
    }


def test_each_rank_of_mpirun_calls(here, expected):
    needs("mpirun")
    for _ in range(3):
        code, said = ends(begin(here, transform(here), before=MPIRUN))
        assert code == 0, said
        check_whole(here, expected)
        assert len((here / "out" / "origin.jsonl").read_text().splitlines()) == 1
        shutil.rmtree(here / "out")


def test_mpirun_ends_all_and_the_same_command_goes_on(here, expected):
    needs("mpirun", "strace")
    kill = here / "killed"
    code, said = ends(
        begin(here, transform(here), before=[*MPIRUN, *SLOW], variables={"KILL": str(kill)})
    )
    assert code != 0, said
    assert not (here / "out" / "manifest.json").exists()
    staged = json.loads(kill.read_text())
    assert staged
    code, said = ends(begin(here, transform(here), before=MPIRUN))
    assert code == 0, said
    check_whole(here, expected)
    for path, inode in staged.items():
        assert (here / "out" / path).stat().st_ino == inode, "it was written anew"


def test_another_process_goes_on_with_what_a_killed_one_staged(here, expected):
    needs("strace")
    kill = here / "killed"
    processes = [
        begin(here, transform(here), before=SLOW, variables={"KILL": str(kill)}) for _ in range(4)
    ]
    codes = [ends(process) for process in processes]
    assert sorted(code for code, _ in codes)[1:] == [0, 0, 0], codes
    assert codes.count((0, "")) == 3, codes
    check_whole(here, expected)
    staged = json.loads(kill.read_text())
    assert staged
    for path, inode in staged.items():
        assert (here / "out" / path).stat().st_ino == inode, "it was written anew"


def test_one_works_and_others_have_nothing_to_do(here, expected):
    processes = [begin(here, transform(here)) for _ in range(4)]
    assert [ends(process) for process in processes] == [(0, "")] * 4
    check_whole(here, expected)
    files = {path: path.stat().st_ino for path in (here / "out").rglob("*") if path.is_file()}
    # After publication, too, by another name and other spellings.
    os.symlink(here / "ckpt_8", here / "link")
    parallel.convert_checkpoints(
        here / "link", os.path.relpath(here / "out"), "net_", here / "link/strategy", here / "new"
    )
    assert files == {
        path: path.stat().st_ino for path in (here / "out").rglob("*") if path.is_file()
    }


@pytest.fixture
def held(here):
    """A process that has begun to write, and stands still until it is released."""
    hold = here / "held"
    needs("strace")
    process = begin(here, transform(here), before=SLOW, variables={"HOLD": str(hold)})
    end = time.monotonic() + 120
    while not hold.exists():
        assert process.poll() is None and time.monotonic() < end, ends(process)
        time.sleep(0.01)

    def release():
        (here / "held.go").touch()
        assert ends(process) == (0, "")

    yield release
    (here / "held.go").touch()
    process.wait()


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("ckpt_prefix", "other_", ["ckpt_prefix", "'net_'", "'other_'"]),
        ("dst_strategy_file", None, ["dst_strategy_file", "/new'", "None"]),
        ("exclude", "adam_*", ["exclude", "None", "'adam_*'"]),
        ("rename", {"a": "b"}, ["rename", "None", "{'a': 'b'}"]),
        ("no_checksum", True, ["no_checksum", "False", "True"]),
    ],
)
def test_a_call_that_differs_is_refused_while_another_works(
    here, held, expected, name, value, words
):
    with pytest.raises(reshard.AlreadyExistsError) as refused:
        mindspore.transform_checkpoints(**transform(here, **{name: value}))
    for word in words:
        assert word in str(refused.value)
    assert str(here / "out") in str(refused.value)
    held()
    check_whole(here, expected)
    # Afterwards it replaces what is there.
    if name == "ckpt_prefix":
        mindspore.transform_checkpoints(**transform(here, ckpt_prefix=value))
        assert (here / "out/rank_0/other_0.ckpt").exists()


def test_another_function_is_refused_while_one_works(here, held):
    with pytest.raises(reshard.AlreadyExistsError, match="transform_checkpoints, is writing"):
        mindspore.ckpt_to_safetensors(str(here / "ckpt_8"), str(here / "out"))
    held()


def test_one_that_waits_can_be_cancelled(here, held):
    cancel = threading.Event()
    threading.Timer(0.3, cancel.set).start()
    with pytest.raises(reshard.CancelledError):
        mindspore.transform_checkpoints(**transform(here), cancel=cancel)
    held()


def test_what_another_call_left_is_replaced(here, expected):
    needs("strace")
    other = transform(here, ckpt_prefix="other_")
    code, _ = ends(begin(here, other, before=SLOW, variables={"KILL": str(here / "killed")}))
    assert code != 0
    assert (here / "out" / ".reshard").exists()
    mindspore.transform_checkpoints(**transform(here))
    check_whole(here, expected)


def test_a_source_that_changed_is_converted_again(here):
    mindspore.transform_checkpoints(**transform(here))
    before = (here / "out/rank_0/net_0.ckpt").read_bytes()
    shutil.rmtree(here / "ckpt_8")
    subprocess.run(
        [pathlib.Path(os.environ["RESHARD_BIN"]) / "reshard-gen", "ckpt_8", "--layers", "2",
         "--hidden", "64", "--ffn", "128", "--vocab", "256", "--tp", "4", "--dp", "2", "--no-optimizer"],
        cwd=here, check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    mindspore.transform_checkpoints(**transform(here))
    assert reshard.verify(here / "out").ok
    assert (here / "out/rank_0/net_0.ckpt").read_bytes() != before


def by_rank(here):
    files = {rank: str(here / f"ckpt_8/rank_{rank}/llama-1_100.ckpt") for rank in range(8)}
    return {
        "rank_id": 1,
        "checkpoint_files_map": files,
        "save_checkpoint_file_name": str(here / "made" / "net_1.ckpt"),
        "src_strategy_file": str(here / "ckpt_8" / "strategy"),
        "dst_strategy_file": str(here / "new"),
    }


def test_by_rank(here, expected):
    processes = [begin(here, by_rank(here), name="transform_checkpoint_by_rank") for _ in range(3)]
    assert [ends(process) for process in processes] == [(0, "")] * 3
    assert [path.name for path in (here / "made").iterdir()] == ["net_1.ckpt"]
    assert (here / "made/net_1.ckpt").read_bytes() == expected["rank_1/net_1.ckpt"]


def test_by_rank_is_refused_if_it_differs(here):
    hold = here / "held"
    needs("strace")
    process = begin(
        here,
        by_rank(here),
        name="transform_checkpoint_by_rank",
        before=SLOW,
        variables={"HOLD": str(hold)},
    )
    while not hold.exists():
        assert process.poll() is None, ends(process)
        time.sleep(0.01)
    with pytest.raises(reshard.AlreadyExistsError, match="rank_id: .* with 1, and this one has 0"):
        mindspore.transform_checkpoint_by_rank(**{**by_rank(here), "rank_id": 0})
    (here / "held.go").touch()
    assert ends(process) == (0, "")


def test_the_functions_about_safetensors(here):
    source = here / "ckpt_8"
    recode = {"file_path": str(source), "save_path": str(here / "st")}
    unify = {
        "src_dir": str(here / "st"),
        "src_strategy_file": str(source / "strategy"),
        "dst_dir": str(here / "unified"),
    }
    distribute = {
        "network": None,
        "format": "safetensors",
        "unified_safetensors_dir": str(here / "unified"),
        "dst_safetensors_dir": str(here / "cut"),
        "predict_strategy": str(here / "new"),
    }
    for name, arguments, out in (
        ("ckpt_to_safetensors", recode, "st"),
        ("unified_safetensors", unify, "unified"),
        ("load_distributed_checkpoint", distribute, "cut"),
    ):
        processes = [begin(here, arguments, name=name) for _ in range(3)]
        assert [ends(process) for process in processes] == [(0, "")] * 3, name
        assert reshard.verify(here / out).ok
        assert not (here / out / ".reshard").exists()
    # Each rank its own file of one set.
    shutil.rmtree(here / "cut")
    processes = [
        begin(here, {**distribute, "rank_id": rank}, name="load_distributed_checkpoint")
        for rank in range(4)
    ]
    assert [ends(process) for process in processes] == [(0, "")] * 4
    assert reshard.verify(here / "cut").files == 4


def test_a_failure_leaves_nothing(here):
    with pytest.raises(reshard.Error):
        mindspore.transform_checkpoints(**transform(here, src_strategy_file=str(here / "new")))
    assert not (here / "out").exists()


def test_the_turn_of_one_that_fails_goes_to_the_next(tmp_path):
    path = _turns.file_in(str(tmp_path / "a" / "out"))
    begun, done = threading.Event(), []

    def second():
        begun.wait()
        with _turns.turn(path, "call", {"x": 1}) as mine:
            done.append(mine)

    thread = threading.Thread(target=second)
    thread.start()
    with pytest.raises(KeyError):
        with _turns.turn(path, "call", {"x": 1}) as mine:
            assert mine
            begun.set()
            time.sleep(0.3)
            raise KeyError
    thread.join()
    assert done == [_turns.Turn.OWN]
    assert not list(tmp_path.iterdir())


def test_equal_calls_and_calls_for_other_parts_wait(tmp_path):
    path = _turns.file_in(str(tmp_path))
    begun, done = threading.Event(), {}

    def other(part):
        begun.wait()
        with _turns.turn(path, "call", {"x": (1, 2)}, part=part) as mine:
            done[part] = mine

    threads = [threading.Thread(target=other, args=(part,)) for part in (0, 1)]
    for thread in threads:
        thread.start()
    with _turns.turn(path, "call", {"x": (1, 2)}, part=0) as mine:
        assert mine
        begun.set()
        time.sleep(0.3)
    for thread in threads:
        thread.join()
    assert done[1] is _turns.Turn.OWN


def test_a_signal_ends_one_that_waits(here, held):
    process = begin(here, transform(here))
    time.sleep(1)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    code, said = ends(process)
    assert code != 0
    assert "KeyboardInterrupt" in said
    held()
