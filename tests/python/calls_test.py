"""verify and source_ranks: what they find, and how callbacks end a call."""

import json
import os
import pathlib
import shutil
import subprocess
import threading

import pytest
import reshard


@pytest.fixture
def target(full, tmp_path):
    shutil.copytree(full.parents[1], tmp_path / "whole")
    return tmp_path / "whole"


def of_the_program(*arguments):
    program = pathlib.Path(os.environ["RESHARD_BIN"]) / "reshard"
    done = subprocess.run([program, *arguments, "--json"], capture_output=True, text=True)
    document = json.loads(done.stdout)
    for name in ("schema_version", "command", "target", "seconds", "warnings"):
        document.pop(name)
    return document


def test_verify_finds_what_the_program_finds(target):
    report = reshard.verify(target)
    assert report.ok and report.files == 1 and report.damages == ()
    assert report.to_dict() == of_the_program("verify", target)

    path = target / "rank_0" / "checkpoint_0.ckpt"
    path.chmod(0o600)
    content = bytearray(path.read_bytes())
    content[200] ^= 0xFF
    path.write_bytes(content)
    report = reshard.verify(target, jobs=1)
    assert not report.ok and [d.path for d in report.damages] == ["rank_0/checkpoint_0.ckpt"]
    assert report.damages[0].first_bad_block.index == 0
    assert report.to_dict() == of_the_program("verify", target)
    with pytest.raises(TypeError, match="ask its `ok`"):
        bool(report)


def test_progress_ends_at_the_total(target):
    seen = []
    reshard.verify(target, progress=seen.append)
    assert seen[-1].done == seen[-1].total > 0
    assert (seen[-1].phase, seen[-1].done_files, seen[-1].total_files) == ("read", 1, 1)


def test_what_progress_raises_is_raised(target):
    class Enough(Exception):
        pass

    def refuse(progress):
        raise Enough

    with pytest.raises(Enough):
        reshard.verify(target, progress=refuse)
    with pytest.raises(KeyboardInterrupt):
        reshard.verify(target, progress=lambda _: os.kill(os.getpid(), 2))


def test_cancel_ends_a_call(target):
    event = threading.Event()
    assert reshard.verify(target, cancel=event).ok
    event.set()
    with pytest.raises(reshard.CancelledError):
        reshard.verify(target, cancel=event)


def test_verify_says_what_is_wrong_with_the_call(tmp_path):
    with pytest.raises(FileNotFoundError):
        reshard.verify(tmp_path)
    with pytest.raises(ValueError, match="jobs"):
        reshard.verify(tmp_path, jobs=-1)


def test_source_ranks(samples):
    strategies = {
        "src_strategy": samples / "ckpt_8" / "strategy",
        "dst_strategy": samples / "new" / "strategy",
    }
    assert reshard.source_ranks(0, **strategies) == [0, 1]
    every = list(reshard.all_source_ranks(**strategies))
    assert every == [(rank, reshard.source_ranks(rank, **strategies)) for rank in range(4)]
    with pytest.raises(ValueError):
        reshard.source_ranks(4, **strategies)
    with pytest.raises(ValueError):
        reshard.source_ranks(0)
