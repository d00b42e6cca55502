"""transform_checkpoint_by_rank: the file appears whole where it was asked for, or not at all, and
nothing else is left."""

import os
import pathlib
import subprocess
import sys
import threading
import time

import pytest
import reshard
import reshard.mindspore as ms
from reshard.mindspore import _turns

CALL = """if True:
    import os, resource, sys, reshard, reshard.mindspore as ms
    def by_rank(source, output, **keywords):
        files = {rank: f"{source}/rank_{rank}/llama-1_100.ckpt" for rank in range(8)}
        ms.transform_checkpoint_by_rank(0, files, output, source + "/strategy", **keywords)
"""


@pytest.fixture
def source(samples):
    return samples / "ckpt_8"


def by_rank(source, output):
    files = {rank: source / f"rank_{rank}" / "llama-1_100.ckpt" for rank in range(8)}
    ms.transform_checkpoint_by_rank(0, files, output, source / "strategy")


def names_in(folder):
    return sorted(os.listdir(folder))


def staged_in(folder):
    return [name for name in names_in(folder) if ".reshard-" in name]


def start(code, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", CALL + code, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_what_a_killed_call_left_goes_and_what_a_running_one_has_stays(source, full, tmp_path):
    output = tmp_path / "[whole].ckpt"
    output.write_bytes(b"old")
    # Told at the latest when all is written and the file not yet in its place.
    waits = """
    def tell(progress):
        print("told", flush=True)
        sys.stdin.read()
    by_rank(sys.argv[1], sys.argv[2], progress=tell)
    """
    child = start(waits.replace("sys.stdin.read()", "os.kill(os.getpid(), 9)"), source, output)
    child.communicate(timeout=250)
    assert child.returncode == -9
    assert output.read_bytes() == b"old"
    [left] = staged_in(tmp_path)

    running = subprocess.Popen(
        [sys.executable, "-c", CALL + waits, source, output],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert running.stdout.readline() == "told\n"
    [its_own] = staged_in(tmp_path)
    assert its_own != left
    waiting = start("by_rank(sys.argv[1], sys.argv[2])", source, output)
    time.sleep(0.5)
    assert waiting.poll() is None and staged_in(tmp_path) == [its_own]
    running.communicate("\n", timeout=250)
    waiting.communicate(timeout=250)
    assert running.returncode == 0 and waiting.returncode == 0
    assert names_in(tmp_path) == [output.name]
    assert output.read_bytes() == full.read_bytes()


def test_without_a_turn_what_other_calls_have_stays(source, full, tmp_path):
    output = tmp_path / "whole.ckpt"
    os.mkdir(_turns.file_beside(str(output)))  # cannot be locked
    other = tmp_path / ".whole.ckpt.reshard-abcdefgh"
    other.mkdir()
    by_rank(source, output)
    assert staged_in(tmp_path) == [other.name]
    assert output.read_bytes() == full.read_bytes()


def test_where_there_is_no_space_the_old_file_stays(source, tmp_path):
    output = tmp_path / "whole.ckpt"
    output.write_bytes(b"old")
    # A file of more than 64 KiB is refused as a full disk refuses it.
    code = """
    resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
    try:
        by_rank(sys.argv[1], sys.argv[2])
    except reshard.IoError as error:
        print(error.errno)
    """
    said, error = start(code, source, output).communicate(timeout=250)
    assert said.strip() and int(said) > 0, error
    assert names_in(tmp_path) == ["whole.ckpt"] and output.read_bytes() == b"old"


def test_the_file_may_be_one_of_the_source(source, full, tmp_path):
    ranks = tmp_path / "ckpt_8"
    subprocess.run(["cp", "-r", source, ranks], check=True)
    for output in (ranks / "whole.ckpt", ranks / "rank_3" / "llama-1_100.ckpt"):
        before = names_in(output.parent)
        by_rank(ranks, output)
        assert output.read_bytes() == full.read_bytes()
        assert names_in(output.parent) == sorted({*before, output.name})


def test_the_file_may_be_in_another_file_system(source, full, tmp_path):
    other = pathlib.Path("/dev/shm")
    if not other.is_dir() or other.stat().st_dev == source.stat().st_dev:
        pytest.skip("/dev/shm is no other file system")
    folder = other / tmp_path.name
    try:
        by_rank(source, folder / "new" / "whole.ckpt")
        assert (folder / "new" / "whole.ckpt").read_bytes() == full.read_bytes()
        assert names_in(folder / "new") == ["whole.ckpt"]
    finally:
        subprocess.run(["rm", "-rf", folder], check=True)


def test_the_umask_decides_about_permissions(source, tmp_path):
    output = tmp_path / "whole.ckpt"
    code = """
    os.umask(0o027)
    by_rank(sys.argv[1], sys.argv[2])
    """
    child = start(code, source, output)
    assert child.wait(timeout=250) == 0
    assert output.stat().st_mode & 0o777 == 0o640


def test_calls_for_one_file_at_a_time_each_write_it_whole(source, full, tmp_path):
    output = tmp_path / "whole.ckpt"
    threads = [threading.Thread(target=by_rank, args=(source, output)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert names_in(tmp_path) == ["whole.ckpt"] and output.read_bytes() == full.read_bytes()


def test_long_names_that_begin_alike_are_of_two_files(source, full, tmp_path):
    outputs = [tmp_path / f"{'é' * 120}{n}.ckpt" for n in range(2)]
    assert len({_turns.file_beside(str(output)) for output in outputs}) == 2
    for output in outputs:
        by_rank(source, output)
        assert output.read_bytes() == full.read_bytes()
    assert names_in(tmp_path) == [output.name for output in outputs]


def test_what_ends_a_call_leaves_nothing(source, tmp_path):
    event = threading.Event()
    event.set()
    files = {rank: source / f"rank_{rank}" / "llama-1_100.ckpt" for rank in range(8)}
    with pytest.raises(reshard.CancelledError):
        ms.transform_checkpoint_by_rank(
            0, files, tmp_path / "whole.ckpt", source / "strategy", cancel=event
        )
    assert names_in(tmp_path) == []


def test_the_new_name_is_durable_when_the_call_returns(source, tmp_path, monkeypatch):
    seen = []
    replace, fsync = os.replace, os.fsync
    monkeypatch.setattr(os, "replace", lambda *paths: (seen.append(paths[1]), replace(*paths)))
    monkeypatch.setattr(
        os, "fsync", lambda file: (seen.append(os.readlink(f"/proc/self/fd/{file}")), fsync(file))
    )
    by_rank(source, str(tmp_path / "whole.ckpt"))
    assert seen == [str(tmp_path / "whole.ckpt"), str(tmp_path)]
