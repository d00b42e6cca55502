"""inspect: what the program's JSON says, of files, folders, strategies, and what cannot be read."""

import os
import pathlib
import shutil

import pytest
import reshard
from calls_test import comparable, of_the_program


RANKS = pathlib.Path(__file__).parents[1] / "golden" / "data" / "torch_files" / "ranks_2"


@pytest.fixture(scope="module")
def folders(samples, full, tmp_path_factory):
    """What can be inspected, by name."""
    tmp = tmp_path_factory.mktemp("inspected")
    flat = tmp / "flat"
    flat.mkdir()
    shutil.copy(full, flat / "b.ckpt")
    shutil.copy(next((samples / "ckpt_8" / "rank_3").glob("*.ckpt")), flat / "a.ckpt")
    hub = tmp / "hub"
    strategy = samples / "ckpt_8" / "strategy"
    reshard.convert(samples / "ckpt_8", hub, src_strategy=strategy, format="huggingface")
    return {
        "ranks": samples / "ckpt_8",
        "file": full,
        "pattern": samples / "ckpt_8" / "rank_{rank}",
        "flat": flat,
        "hub": hub,
        "part": RANKS / "model_world_size_2_rank_0.pt",
        "strategy": strategy,
        "stages": samples / "new" / "strategy",
    }


CASES = [
    (["file"], {}),
    (["ranks"], {}),
    (["pattern"], {}),
    (["flat"], {}),
    (["hub"], {}),
    (["part"], {}),
    (["strategy", "stages", "file"], {}),
    (["ranks"], {"include": ["*.layers.0.*", "lm_head*"], "exclude": "adam_*"}),
    (["file", "strategy"], {"include": "adam_m.*"}),
    (["file"], {"values": True}),
    (["hub"], {"values": True, "include": "*norm*", "jobs": 1}),
    (["ranks"], {"strategy": "strategy"}),
    (["ranks"], {"strategy": "strategy", "include": "lm_head*"}),
    (["ranks"], {"strategy": "strategy", "values": True}),
]


@pytest.mark.parametrize("names, choice", CASES)
def test_the_report_is_the_programs(folders, names, choice):
    paths = [str(folders[name]) for name in names]
    keywords = dict(choice)
    if "strategy" in keywords:
        keywords["strategy"] = str(folders[keywords["strategy"]])
    options = []
    for name, value in keywords.items():
        for one in value if isinstance(value, list) else [value]:
            options.append(f"--{name}" if one is True else f"--{name}={one}")
    ours = reshard.inspect(*paths, **keywords).to_dict()
    theirs = of_the_program("inspect", *paths, *options)
    assert comparable(ours) == comparable(theirs)
    assert sum(len(ours[part]) for part in ("checkpoints", "strategies")) + len(ours.get("sharded", ()))


def test_what_cannot_be_read_is_said_beside_the_rest(folders, tmp_path):
    bad = tmp_path / "bad.ckpt"
    bad.write_bytes(b"\xff" * 50)
    report = reshard.inspect(bad, folders["file"])
    assert [e.path for e in report.errors] == [str(bad)] and len(report.checkpoints) == 1
    theirs = of_the_program("inspect", str(bad), str(folders["file"]), exit_code=3)
    assert comparable(report.to_dict()) == comparable(theirs)
    with pytest.raises(reshard.CorruptError):
        reshard.inspect(bad)
    with pytest.raises(FileNotFoundError):
        reshard.inspect(tmp_path / "nowhere")
    # A folder of ranks without such a file is no strategy, though a manifest lies beside them.
    (tmp_path / "set" / "rank_0").mkdir(parents=True)
    (tmp_path / "set" / "rank_0" / "a.ckpt").write_bytes(b"")
    (tmp_path / "set" / "manifest.json").write_text("{}")
    with pytest.raises(FileNotFoundError):
        reshard.inspect(tmp_path / "set", suffix="_part0")
    with pytest.raises(ValueError, match="at least one path"):
        reshard.inspect()


def test_a_pattern_that_takes_nothing_is_a_warning(folders):
    report = reshard.inspect(folders["file"], include="head")
    [warning] = report.warnings
    assert warning.code == "unused patterns"
    assert warning.message.startswith('include matches no parameter: "head"; ')
    assert report.totals.parameters == 0


def test_a_strategy_is_read(folders):
    strategy = reshard.read_strategy(folders["stages"])
    assert (strategy.stages, strategy.devices_per_stage) == (2, 2)
    assert "2 stages" in strategy.meaning
    layout = next(p for p in strategy.parameters if p.name == "lm_head.weight")
    assert layout.device_matrix and layout.stage in (0, 1)
    with pytest.raises(FileNotFoundError):
        reshard.read_strategy(folders["file"].parent / "nowhere")


def test_an_unfinished_conversion_is_said(tmp_path):
    (tmp_path / ".reshard").mkdir()
    with pytest.raises(FileNotFoundError, match="is unfinished"):
        reshard.inspect(tmp_path)


@pytest.mark.parametrize("values", [False, True])
def test_a_call_can_be_cancelled(folders, values):
    class Event:
        def is_set(self):
            return True

    with pytest.raises(reshard.CancelledError):
        reshard.inspect(folders["ranks"], values=values, cancel=Event())


def test_paths_need_not_be_utf8(full, tmp_path):
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xfe.ckpt")
    shutil.copy(full, path)
    assert reshard.inspect(path).checkpoints[0].path == path


def test_a_part_of_a_tensor_is_listed_and_not_opened(folders):
    report = reshard.inspect(folders["part"])
    assert [warning.code for warning in report.warnings] == ["missing ranks"]
    with pytest.raises(reshard.MismatchError, match="part of a DTensor"):
        reshard.open(folders["part"])
