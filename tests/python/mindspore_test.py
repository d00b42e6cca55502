"""reshard.mindspore without MindSpore: golden cases byte for byte, Parameters, CRCs, keys."""

import json
import os
import pathlib
import subprocess
import threading

import ml_dtypes
import numpy as np
import pytest

import reshard
import reshard.mindspore as ms
import reshard.mindspore.parallel
from reshard.mindspore._parameter import Parameter, Tensor

GOLDEN = pathlib.Path(__file__).parents[1] / "golden" / "data"
APIS = GOLDEN / "apis"


def case_of(folder):
    case = json.loads((folder / "case.json").read_text())
    return case, *(
        str(folder / case[side]) if case[side] else None for side in ("src_strategy", "dst_strategy")
    )


@pytest.mark.parametrize("number", (0, 5, 6, 13, 25, 31))
def test_transform_checkpoints_writes_mindspores_bytes(number, tmp_path):
    folder = GOLDEN / "convert" / f"case_{number:03}"
    case, src_strategy, dst_strategy = case_of(folder)
    ms.transform_checkpoints(
        folder / "src", tmp_path, case["prefix"], src_strategy, dst_strategy
    )
    expected = sorted((folder / "expected").glob("rank_*/*.ckpt"))
    assert expected
    for file in expected:
        written = tmp_path / file.relative_to(folder / "expected")
        assert written.read_bytes() == file.read_bytes(), file


@pytest.mark.parametrize("rank", range(4))
def test_by_rank_writes_mindspores_bytes(rank, tmp_path):
    folder = APIS / "by_rank"
    strategies = folder / "src_strategy.ckpt", folder / "dst_strategy.ckpt"
    ranks = ms.rank_list_for_transform(rank, *strategies)
    listed = json.loads((folder / "case.json").read_text())["mindspore_rank_lists"]
    assert set(ranks) <= set(listed[str(rank)]) and ranks == sorted(ranks, reverse=True)
    output = tmp_path / "new" / "made.ckpt"
    files = {source: folder / f"origin_rank{source}.ckpt" for source in ranks}
    ms.transform_checkpoint_by_rank(rank, files, output, *strategies)
    assert output.read_bytes() == (folder / f"expected_rank{rank}.ckpt").read_bytes()
    assert [path.name for path in output.parent.iterdir()] == ["made.ckpt"]
    assert reshard.mindspore.parallel.rank_list_for_convert(rank, *strategies) == ranks


@pytest.mark.parametrize(
    "case", json.loads((APIS / "merge_sliced" / "cases.json").read_text()), ids=lambda c: c["name"]
)
def test_slices_are_merged_as_mindspore_merges_them(case):
    folder = APIS / "merge_sliced"
    strategy = case["strategy"] and ms.build_searched_strategy(folder / case["strategy"])
    name = next(iter(strategy)) if strategy else "w"
    slices = [
        Parameter(np.load(folder / f"{case['name']}_slice{rank}.npy"), name)
        for rank in range(case["slices"])
    ]
    merged = ms.merge_sliced_parameter(slices, strategy)
    assert np.array_equal(merged.asnumpy(), np.load(folder / f"{case['name']}_expected.npy"))


def test_strategies_are_merged_and_a_merged_one_is_no_stage(tmp_path):
    source = GOLDEN / "convert" / "case_013"
    for stage in (source / "src_stages").iterdir():
        (tmp_path / stage.name).write_bytes(stage.read_bytes())
    for _ in range(2):
        ms.merge_pipeline_strategys(tmp_path, tmp_path / "merged.ckpt")
        merged = ms.build_searched_strategy(tmp_path / "merged.ckpt")
        assert merged == ms.build_searched_strategy(source / "src_strategy.ckpt")


def test_a_strategy_is_the_same_in_json(tmp_path, samples):
    subprocess.run(
        [
            pathlib.Path(os.environ["RESHARD_BIN"]) / "reshard",
            *("strategy", "convert", samples / "new" / "strategy", tmp_path / "s.json"),
        ],
        check=True,
        capture_output=True,
    )
    ms.merge_pipeline_strategys(samples / "new" / "strategy", tmp_path / "s.ckpt")
    of_json = ms.build_searched_strategy(tmp_path / "s.json")
    assert of_json and of_json == ms.build_searched_strategy(tmp_path / "s.ckpt")
    assert {"0", "1"} == {name[0] for name in of_json}


def test_parameters_have_the_values_of_the_file(full):
    parameters = ms.load_checkpoint(full, framework="numpy")
    checkpoint = reshard.open(full)
    assert list(parameters) == list(checkpoint)
    for name, parameter in parameters.items():
        assert parameter.name == name and str(parameter.dtype) == checkpoint[name].dtype_name
        assert parameter.get_bytes() == checkpoint[name].numpy().tobytes()


def test_all_dtypes_and_texts_load():
    parameters = ms.load_checkpoint(str(APIS / "files" / "dtypes.ckpt"))
    assert parameters["note"] == "héllo"
    assert parameters["bfloat16"].asnumpy().dtype == ml_dtypes.bfloat16
    assert parameters["complex64"].dtype == np.complex64
    assert parameters["flag"].shape == ()


def test_a_light_parameter_takes_data():
    parameter = Parameter(Tensor(np.zeros((4, 2), np.float32)), "w")
    half = Tensor(np.ones((2, 2), np.float16))
    with pytest.raises(ValueError, match=r"expected shape \(4, 2\), found \(2, 2\)"):
        parameter.set_data(half)
    parameter.set_data(half, True)
    assert parameter.shape == (2, 2) and parameter.dtype == np.float32
    assert np.array_equal(np.asarray(parameter), np.ones((2, 2)))
    with pytest.raises(TypeError, match="Int32"):
        parameter.set_data(Tensor(np.ones((2, 2), np.int32)))


def test_values_that_a_crc_does_not_fit_are_refused(tmp_path):
    for extension, at in (("ckpt", -30), ("safetensors", -1)):
        content = bytearray((APIS / "files" / f"crc.{extension}").read_bytes())
        sound = tmp_path / f"sound.{extension}"
        sound.write_bytes(content)
        assert ms.load_checkpoint(sound, format=extension)
        content[at] ^= 1
        damaged = tmp_path / f"damaged.{extension}"
        damaged.write_bytes(content)
        with pytest.raises(reshard.CorruptError, match="CRC-32"):
            ms.load_checkpoint(damaged, format=extension)
        assert ms.load_checkpoint(damaged, format=extension, verify=False)


@pytest.mark.parametrize("mode", ("AES-GCM", "AES-CBC", "SM4-CBC"))
def test_encrypted_files_load(mode):
    key = json.loads((APIS / "files" / "case.json").read_text())["key_ascii"].encode()
    file = APIS / "files" / f"encrypted_{mode}.ckpt"
    found = ms.load_checkpoint(file, dec_key=key, dec_mode=mode)
    plain = ms.load_checkpoint(APIS / "files" / "plain.ckpt")
    assert found["w"].get_bytes() == plain["w"].get_bytes()
    with pytest.raises(ValueError, match=f"expected {mode}"):
        other = "AES-CBC" if mode == "AES-GCM" else "AES-GCM"
        ms.load_checkpoint(file, dec_key=key, dec_mode=other)


def test_result_waits_for_another_thread():
    seen = []

    def choose(name):
        seen.append(threading.current_thread())
        return True

    found = ms.load_checkpoint_async(APIS / "files" / "plain.ckpt", choice_func=choose)
    assert list(found.result()) == ["w"]
    assert seen and seen[0] is not threading.current_thread()


def test_ranks_of_group_info(tmp_path):
    file = tmp_path / "group_info.pb"
    # As MindSpore writes them, and packed.
    file.write_bytes(b"\x12\x04\x08\x00\x08\x04")
    assert ms.restore_group_info_list(file) == [0, 4]
    file.write_bytes(b"\x12\x05\x0a\x03\x00\x80\x02")
    assert ms.restore_group_info_list(file) == [0, 256]


def test_keywords_of_convert_are_taken(samples, tmp_path):
    ms.transform_checkpoints(
        samples / "ckpt_8",
        tmp_path,
        "p",
        samples / "ckpt_8" / "strategy",
        include="lm_head.weight",
        rename={"lm_head.weight": "head"},
        jobs=1,
    )
    assert list(ms.load_checkpoint(tmp_path / "rank_0" / "p0.ckpt")) == ["head"]


def test_exceptions_name_the_argument(samples, tmp_path):
    with pytest.raises(ms.StrategyError, match="expected a strategy"):
        ms.build_searched_strategy(APIS / "files" / "plain.ckpt")
    with pytest.raises(ms.RankError, match="rank_id: "):
        ms.rank_list_for_transform(99, samples / "ckpt_8/strategy", samples / "new/strategy")
    with pytest.raises(ms.TargetError, match="is a file"):
        (tmp_path / "f").touch()
        ms.transform_checkpoints(samples / "ckpt_8", tmp_path / "f", "p")
    with pytest.raises(reshard.NotFoundError, match=r"needs source ranks \[.*no file for"):
        ms.transform_checkpoint_by_rank(
            0,
            {7: next((samples / "ckpt_8" / "rank_7").glob("*.ckpt"))},
            tmp_path / "o.ckpt",
            samples / "ckpt_8/strategy",
            samples / "new/strategy",
        )
