"""reshard.mindspore without MindSpore: golden cases byte for byte, Parameters, CRCs, keys."""

import io
import json
import os
import pathlib
import subprocess
import threading
import warnings
import zlib

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


@pytest.mark.parametrize("jobs", (0, 1, 3))
def test_so_many_threads_load_the_same(full, monkeypatch, jobs):
    seen = []
    threads = reshard._jobs.threads
    monkeypatch.setattr(reshard._jobs, "threads", lambda n: seen.append(n) or threads(n))
    parameters = ms.load_checkpoint(full, framework="numpy", jobs=jobs)
    expected = ms.load_checkpoint(full, framework="numpy")
    assert seen == [jobs, None] and list(parameters) == list(expected)
    for name, parameter in parameters.items():
        assert parameter.get_bytes() == expected[name].get_bytes()


@pytest.mark.parametrize("dtype", (np.float32, ml_dtypes.bfloat16, np.bool_))
def test_a_large_parameter_has_writable_memory_of_its_own(dtype, tmp_path):
    values = np.arange(5 << 20).reshape(5, -1).astype(dtype)
    ms.save_checkpoint({"w": values}, tmp_path / "w.ckpt")
    found = [ms.load_checkpoint(tmp_path / "w.ckpt")["w"].asnumpy() for _ in range(2)]
    for array in found:
        assert array.dtype == values.dtype and np.array_equal(array, values)
        assert array.flags.writeable and array.flags.aligned and array.flags.c_contiguous
    found[0][...] = 0
    assert np.array_equal(found[1], values)


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


@pytest.mark.parametrize("mode", ("AES-GCM", "AES-CBC", "SM4-CBC"))
@pytest.mark.parametrize("size", (1, 1 << 24, (1 << 24) + 3))
def test_what_is_saved_with_a_key_loads_with_it_alone(mode, size, tmp_path):
    key = b"0123456789abcdef"
    # Of many blocks, of 512 KiB each, the last one whole or not.
    saved = {"w": np.arange(size, dtype=np.float32), "note": "plain words"}
    ms.save_checkpoint(saved, tmp_path / "w.ckpt", enc_key=key, enc_mode=mode)
    assert os.listdir(tmp_path) == ["w.ckpt"]
    content = (tmp_path / "w.ckpt").read_bytes()
    assert "plain words".encode("utf-32-le") not in content and b"Float32" not in content
    found = ms.load_checkpoint(tmp_path / "w.ckpt", dec_key=key, dec_mode=mode)
    assert np.array_equal(found["w"].asnumpy(), saved["w"]) and found["note"] == "plain words"
    with pytest.raises(ValueError):
        ms.load_checkpoint(tmp_path / "w.ckpt", dec_key=b"another key, of 16"[:16], dec_mode=mode)


@pytest.mark.parametrize(
    "options, words",
    (
        ({"enc_key": b"0123456789abcdef01234567", "enc_mode": "SM4-CBC"}, "expected 16 bytes"),
        ({"enc_key": b"0123456789abcdef", "enc_mode": "ROT13"}, "enc_mode: expected 'AES-GCM'"),
        ({"enc_key": b"0123456789abcdef", "crc_check": True}, "states no CRC"),
    ),
)
def test_a_key_that_does_not_fit_leaves_nothing(options, words, tmp_path):
    with pytest.raises(ValueError, match=words):
        ms.save_checkpoint({"w": np.ones(3)}, tmp_path / "w.ckpt", **options)
    assert not os.listdir(tmp_path)


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
    # In the order of the file.
    file.write_bytes(b"\x12\x04\x08\x04\x08\x00")
    assert ms.restore_group_info_list(file) == [4, 0]
    for content in (b"", b"{}", b"\x12\x04\x08"):
        file.write_bytes(content)
        with pytest.raises(reshard.CorruptError, match="expected a group_info file"):
            ms.restore_group_info_list(file)


def test_keywords_of_convert_are_taken(samples, tmp_path):
    ms.transform_checkpoints(
        samples / "ckpt_8",
        tmp_path,
        "p",
        samples / "ckpt_8" / "strategy",
        include="lm_head.weight",
        rename={"lm_head.weight": "head"},
        no_checksum=True,
        report=tmp_path / "page.html",
        jobs=1,
    )
    assert "Conversion report" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert not (tmp_path / "checksums.xxh128").exists() and (tmp_path / "manifest.json").exists()
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


def same_files(expected, found, extension):
    files = sorted(expected.glob(f"**/*.{extension}"))
    assert files
    for file in files:
        assert (found / file.relative_to(expected)).read_bytes() == file.read_bytes(), file


def test_safetensors_have_mindspores_bytes(tmp_path):
    folder = APIS / "safetensors"
    source, *strategies = (folder / name for name in ("src", "src_strategy.ckpt", "dst_strategy.ckpt"))
    prefix = next((folder / "expected_ckpt").glob("rank_0/*")).name[: -len("0.ckpt")]
    for format in ("ckpt", "safetensors"):
        ms.transform_checkpoints(
            source, tmp_path / format, prefix, *strategies, output_format=format
        )
        same_files(folder / f"expected_{format}", tmp_path / format, format)
    ms.unified_safetensors(source, strategies[0], tmp_path / "unified")
    same_files(folder / "expected_unified", tmp_path / "unified", "safetensors")


def test_unified_tensors_are_chosen_and_distributed(tmp_path, samples):
    ms.ckpt_to_safetensors(samples / "ckpt_8", tmp_path / "st")
    names = {"lm_head.weight": "head"}
    ms.unified_safetensors(
        tmp_path / "st",
        samples / "ckpt_8" / "strategy",
        tmp_path / "whole",
        choice_func=lambda name: names.get(name, not name.startswith("adam")),
    )
    chosen = list(reshard.open(tmp_path / "whole"))
    assert "head" in chosen and not any(name.startswith("adam") for name in chosen)

    ms.load_distributed_checkpoint(
        None,
        predict_strategy=samples / "new" / "strategy",
        format="safetensors",
        unified_safetensors_dir=tmp_path / "whole",
        dst_safetensors_dir=tmp_path / "cut",
        name_map={"lm_head.weight": "head"},
    )
    with reshard.open(tmp_path / "cut", samples / "new" / "strategy") as cut:
        expected = reshard.open(samples / "ckpt_8", samples / "ckpt_8" / "strategy")
        assert cut["lm_head.weight"].numpy().tobytes() == expected["lm_head.weight"].numpy().tobytes()

    # The same into a net, of one rank, and whole.
    for strategy in (samples / "new" / "strategy", None):
        shards = cut_of(expected["lm_head.weight"], strategy)
        net = Net(Parameter(np.zeros(shards.shape, shards.dtype), "lm_head.weight"))
        found = ms.load_distributed_checkpoint(
            net,
            predict_strategy=strategy,
            format="safetensors",
            unified_safetensors_dir=tmp_path / "whole",
            rank_id=3,
            name_map={"lm_head.weight": "head"},
            return_param_dict=True,
        )
        assert net.get_parameters()[0].get_bytes() == shards.tobytes()
        assert "lm_head.weight" in found


@pytest.fixture
def lone_part(samples, tmp_path):
    """A unified folder that has one file of the two that its name states, and a strategy."""
    source = tmp_path / "lone"
    source.mkdir()
    strategy = samples / "new" / "strategy"
    saved = {"lm_head.weight": np.arange(256 * 64, dtype=np.float32).reshape(256, 64)}
    ms.save_checkpoint(saved, source / "net-00001-of-00002.safetensors", format="safetensors")
    return source, strategy, saved["lm_head.weight"]


def test_a_lone_part_is_distributed_with_partial_alone(lone_part, tmp_path):
    source, strategy, whole = lone_part
    given = {
        "predict_strategy": strategy,
        "format": "safetensors",
        "unified_safetensors_dir": source,
    }
    cut = {"network": None, "dst_safetensors_dir": tmp_path / "cut", **given}
    joined = {**cut, "predict_strategy": None, "dst_safetensors_dir": tmp_path / "joined"}
    net = Net(Parameter(np.zeros((128, 64), np.float32), "lm_head.weight"))
    whole_net = Net(Parameter(np.zeros((256, 64), np.float32), "lm_head.weight"))
    lone = tmp_path / "net-00001-of-00002.ckpt"
    ms.save_checkpoint({"lm_head.weight": whole}, lone, append_dict={"note": "text"})
    for call in (
        lambda **more: reshard.convert(source, tmp_path / "out", dst_strategy=strategy, **more),
        lambda **more: ms.load_distributed_checkpoint(**cut, **more),
        lambda **more: ms.load_distributed_checkpoint(**joined, **more),
        lambda **more: ms.load_distributed_checkpoint(
            whole_net, **{**given, "predict_strategy": None}, **more
        ),
        lambda **more: ms.load_distributed_checkpoint(whole_net, [lone], **more),
        lambda **more: ms.load_distributed_checkpoint(net, rank_id=3, **given, **more),
    ):
        before = set(tmp_path.iterdir())
        with pytest.raises(reshard.MismatchError, match="one of 2 files"):
            call()
        assert set(tmp_path.iterdir()) == before
        call(partial=True)
    for folder, of_ranks in (("cut", strategy), ("out", strategy), ("joined/rank_0", None)):
        with reshard.open(tmp_path / folder, of_ranks) as found:
            assert np.array_equal(found["lm_head.weight"].numpy(), whole)
    assert np.array_equal(net.get_parameters()[0].asnumpy(), whole[128:])


def test_lone_parts_are_unified_with_partial_alone(samples, tmp_path):
    strategy = samples / "ckpt_8" / "strategy"
    ms.ckpt_to_safetensors(samples / "ckpt_8", tmp_path / "st")
    for rank in range(8):
        [file] = (tmp_path / "st" / f"rank_{rank}").glob("*.safetensors")
        file.rename(file.with_name("net-00001-of-00002.safetensors"))
    with pytest.raises(reshard.MismatchError, match="one of 2 files"):
        ms.unified_safetensors(tmp_path / "st", strategy, tmp_path / "whole")
    assert not (tmp_path / "whole").exists()
    ms.unified_safetensors(tmp_path / "st", strategy, tmp_path / "whole", partial=True)
    assert sorted(reshard.open(tmp_path / "whole")) == sorted(
        reshard.open(samples / "ckpt_8", strategy)
    )


def test_warnings_of_conversions_are_pythons(lone_part, tmp_path):
    # 2 of the 4 target ranks get no parameter, and the strategy has more than the file.
    source, strategy, _ = lone_part
    net = Net(Parameter(np.zeros((128, 64), np.float32), "lm_head.weight"))
    given = {
        "predict_strategy": strategy,
        "format": "safetensors",
        "unified_safetensors_dir": source,
        "partial": True,
    }
    for call, words in (
        (lambda: ms.load_distributed_checkpoint(net, rank_id=3, **given), "no source file holds"),
        (
            lambda: ms.load_distributed_checkpoint(
                None, dst_safetensors_dir=tmp_path / "cut", **given
            ),
            "2 empty target files",
        ),
    ):
        with pytest.warns(UserWarning, match=f"load_distributed_checkpoint: .*{words}") as told:
            call()
        assert {each.filename for each in told} == {__file__}


@pytest.mark.parametrize("is_patched", (False, True))
def test_a_warning_is_at_each_call_of_the_user(samples, tmp_path, is_patched):
    file = tmp_path / "source" / "rank_0" / "net.ckpt"
    file.parent.mkdir(parents=True)
    weights = {"lm_head.weight": np.zeros((256, 64), np.float32)}
    strategy = samples / "new" / "strategy"
    convert = tmp_path / "source", tmp_path / "out", "net_", None, strategy
    by_rank = 2, {0: file}, tmp_path / "made.ckpt", None, strategy
    for space, name, given, keywords in (
        (ms, "save_checkpoint", (weights, file), {"unknown": 1}),
        (ms, "transform_checkpoints", convert, {}),
        (ms.parallel, "convert_checkpoints", convert, {}),
        (ms.parallel, "convert_checkpoint_by_rank", by_rank, {}),
    ):
        call = getattr(space, name)
        if is_patched:
            call = ms._patch._in_place_of(name, call)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("default")
            call(*given, **keywords)
            call(*given, **keywords)
        assert {each.filename for each in told} == {__file__}, name
        assert len({each.lineno for each in told}) == 2, name


class Net:
    def __init__(self, *parameters):
        self._parameters = parameters

    def get_parameters(self):
        return self._parameters


def cut_of(tensor, strategy):
    """What rank 3 holds: of two stages of two ranks the lower half of the last, or all."""
    whole = tensor.numpy()
    return whole if strategy is None else whole[len(whole) // 2 :]


def test_slices_of_a_training_are_loaded_for_one_rank(samples):
    files = [next((samples / "ckpt_8" / f"rank_{rank}").glob("*.ckpt")) for rank in range(8)]
    whole = reshard.open(samples / "ckpt_8", samples / "ckpt_8" / "strategy")["lm_head.weight"]
    net = Net(Parameter(np.zeros(whole.shape, whole.dtype), "lm_head.weight"))
    assert ms.load_distributed_checkpoint(
        net, files, train_strategy_filename=samples / "ckpt_8" / "strategy"
    )
    assert net.get_parameters()[0].get_bytes() == whole.numpy().tobytes()


@pytest.mark.parametrize("count", (0, 2))
@pytest.mark.parametrize("is_cut", (False, True))
def test_files_of_ranks_need_their_strategy(samples, count, is_cut):
    files = sorted((samples / "ckpt_8").glob("rank_*/*.ckpt"))[:count]
    strategy = samples / "new" / "strategy" if is_cut else None
    with pytest.raises(ValueError, match=f"checkpoint_filenames: .* found {count}"):
        ms.load_distributed_checkpoint(Net(), files, strategy)


@pytest.mark.parametrize("extension", ("ckpt", "safetensors"))
def test_files_go_to_the_other_format_and_back(extension, samples, tmp_path):
    ms.ckpt_to_safetensors(samples / "ckpt_8", tmp_path / "st")
    ms.safetensors_to_ckpt(tmp_path / "st", tmp_path / "back")
    for file in sorted((samples / "ckpt_8").glob("rank_*/*.ckpt")):
        again = ms.load_checkpoint(tmp_path / "back" / file.relative_to(samples / "ckpt_8"))
        for name, parameter in ms.load_checkpoint(file).items():
            assert again[name].get_bytes() == parameter.get_bytes()


@pytest.mark.parametrize("format", ("ckpt", "safetensors"))
@pytest.mark.parametrize("crc_check", (False, True))
def test_what_is_saved_is_what_the_library_writes(format, crc_check, tmp_path):
    parameters = ms.load_checkpoint(APIS / "files" / "dtypes.ckpt")
    if format == "safetensors":
        parameters = {name: p for name, p in parameters.items() if isinstance(p, Tensor) and p.dtype != np.complex64}
    file = tmp_path / f"made.{format}"
    ms.save_checkpoint(parameters, file, crc_check=crc_check, format=format)
    again = ms.load_checkpoint(file, format=format)
    assert again.keys() == parameters.keys()
    for name, parameter in parameters.items():
        assert repr(again[name]) == repr(parameter)
        if isinstance(parameter, Tensor):
            assert again[name].get_bytes() == parameter.get_bytes()
    if format == "ckpt" and not crc_check:
        assert file.read_bytes() == (APIS / "files" / "dtypes.ckpt").read_bytes()
    if crc_check:
        content = bytearray(file.read_bytes())
        content[-40] ^= 1
        file.write_bytes(content)
        with pytest.raises(ValueError):
            ms.load_checkpoint(file, format=format)


@pytest.mark.parametrize(
    "choice, stated", [(None, None), (True, "True"), (False, "False")]
)
def test_a_safetensors_file_states_redundancy_as_mindspore_does(choice, stated, tmp_path):
    saved = {"w": parameter("w", 1, 2)}
    expected = {"format": "ms"} if stated is None else {"format": "ms", "remove_redundancy": stated}
    for crc_check in (False, True):
        file = tmp_path / "w.safetensors"
        ms.save_checkpoint(
            saved, file, format="safetensors", crc_check=crc_check, remove_redundancy=choice
        )
        metadata = header_of(file)["__metadata__"]
        assert (metadata.pop("crc_num", None) is not None) == crc_check
        assert metadata == expected
        assert list(ms.load_checkpoint(file, format="safetensors", crc_check=crc_check)) == ["w"]
    ms.save_checkpoint({}, file, format="safetensors", remove_redundancy=choice)
    assert "__metadata__" not in header_of(file)
    ms.save_checkpoint(saved, tmp_path / "with.ckpt", remove_redundancy=choice)
    ms.save_checkpoint(saved, tmp_path / "without.ckpt")
    assert (tmp_path / "with.ckpt").read_bytes() == (tmp_path / "without.ckpt").read_bytes()


def test_a_crc_is_mindspores(tmp_path):
    for extension in ("ckpt", "safetensors"):
        golden = APIS / "files" / f"crc.{extension}"
        parameters = ms.load_checkpoint(golden, format=extension)
        ms.save_checkpoint(parameters, tmp_path / golden.name, crc_check=True, format=extension)
        found = [(path / golden.name).read_bytes() for path in (tmp_path, golden.parent)]
        # MindSpore writes the metadata in a random order.
        metadata = [b'"crc_num":"626799729"', b'"format":"ms"']
        for entry in metadata:
            found = [content.replace(entry, b"") for content in found]
        assert found[0] == found[1]
        if extension == "safetensors":
            assert all(entry in golden.read_bytes() for entry in metadata)


def test_crcs_of_scalars_are_mindspores_or_of_the_content(tmp_path):
    # MindSpore takes the integer 3 for three zeros.
    file = tmp_path / "n.safetensors"
    ms.save_checkpoint({"n": np.array(3)}, file, crc_check=True, format="safetensors")
    content = file.read_bytes()
    stated = [zlib.crc32(b"n" + bytes_of) for bytes_of in (np.array(3).tobytes(), bytes(3), b"")]
    assert str(stated[0]).encode() in content
    for crc in stated[:2]:
        old, new = str(stated[0]).encode() + b'"', str(crc).encode() + b'"'
        changed = content.replace(old, new + b" " * (len(old) - len(new)))
        if len(changed) == len(content):
            file.write_bytes(changed)
            assert ms.load_checkpoint(file, format="safetensors")["n"].asnumpy() == 3
    file.write_bytes(content[:-1] + b"\1")
    with pytest.raises(ValueError):
        ms.load_checkpoint(file, format="safetensors")


def test_a_save_that_fails_leaves_the_old_file(tmp_path):
    file = tmp_path / "o.safetensors"
    ms.save_checkpoint({"w": np.ones(3)}, file, format="safetensors")
    before = file.read_bytes()
    with pytest.raises(reshard.UnsupportedError, match="Complex128"):
        ms.save_checkpoint({"w": np.ones(3, np.complex128)}, file, format="safetensors")
    assert file.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == [file.name]


def test_a_checkpoint_of_a_rank_that_holds_the_same(samples, tmp_path, monkeypatch):
    strategy = tmp_path / "s.ckpt"
    ms.merge_pipeline_strategys(samples / "ckpt_8" / "strategy", strategy)
    (tmp_path / "rank_4").mkdir()
    (tmp_path / "rank_4" / "net.ckpt").touch()
    monkeypatch.setenv("RANK_ID", "0")
    wanted = str(tmp_path / "rank_0" / "net.ckpt")
    assert ms.get_ckpt_path_with_strategy(wanted, strategy) == str(tmp_path / "rank_4" / "net.ckpt")
    monkeypatch.setenv("RANK_ID", "1")
    assert ms.get_ckpt_path_with_strategy(wanted, strategy) is None


def parameter(name, *values):
    return Parameter(np.array(values, np.float32), name)


def header_of(path):
    content = pathlib.Path(path).read_bytes()
    return json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])


def test_a_list_of_parameters_is_saved(tmp_path):
    # As trainable_params() returns it.
    saved = [parameter("conv1.w", 1), parameter("conv2.w", 2, 3), parameter("fc.b", 4)]
    file = tmp_path / "list.ckpt"
    ms.save_checkpoint(saved, file, choice_func=lambda name: name.startswith("conv"))
    found = ms.load_checkpoint(file)
    assert {name: list(value.asnumpy()) for name, value in found.items()} == {
        "conv1.w": [1],
        "conv2.w": [2, 3],
    }
    ms.save_checkpoint(saved, tmp_path / "all.safetensors", format="safetensors")
    assert {"conv1.w", "conv2.w", "fc.b"} < set(header_of(tmp_path / "all.safetensors"))


@pytest.mark.parametrize(
    "wrong",
    (
        (parameter("w", 1),),  # a tuple
        [Tensor(np.ones(3, np.float32))],
        [np.ones(3, np.float32)],
        [parameter("w", 1), {"name": "v", "data": parameter("v", 1)}],
        [{"name": "v", "data": parameter("v", 1)}, parameter("w", 1)],
        [parameter("w", 1), 3],
        [{"name": 12, "data": parameter("w", 1)}],
        [{"name": None, "data": parameter("w", 1)}],
        {12: parameter("w", 1)},
        {"w": 3},
    ),
    ids=str,
)
def test_what_is_no_object_to_save_is_a_type_error(wrong, tmp_path):
    with pytest.raises(TypeError, match="save_obj"):
        ms.save_checkpoint(wrong, tmp_path / "w.ckpt")
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize(
    "options, kind",
    (
        ({"integrated_save": 1}, TypeError),
        ({"integrated_save": None}, TypeError),
        ({"append_dict": {3: 1}}, TypeError),
        ({"append_dict": {"a": None}}, TypeError),
        ({"crc_check": 1}, ValueError),
        ({"enc_mode": 3}, ValueError),
        ({"remove_redundancy": 1}, ValueError),
        ({"format": "safetensors", "enc_mode": "AES-CBC"}, ValueError),
        ({"choice_func": 3}, TypeError),
        ({"choice_func": lambda name: 1 / 0}, ZeroDivisionError),
    ),
    ids=str,
)
def test_options_of_saving_fail_with_mindspores_class(options, kind, tmp_path):
    with pytest.raises(kind):
        ms.save_checkpoint({"w": parameter("w", 1)}, tmp_path / "w", **options)
    assert not os.listdir(tmp_path)


def test_what_choice_func_returns_is_no_name(tmp_path):
    for saved in ({"w": parameter("w", 1)}, [parameter("w", 1)]):
        ms.save_checkpoint(saved, tmp_path / "w.ckpt", choice_func=lambda name: "other")
        assert list(ms.load_checkpoint(tmp_path / "w.ckpt")) == ["w"]


def test_a_name_that_ends_in_the_format_is_taken_as_it_is(tmp_path):
    ms.save_checkpoint({"w": parameter("w", 1)}, tmp_path / "netckpt")
    assert os.listdir(tmp_path) == ["netckpt"] and list(ms.load_checkpoint(tmp_path / "netckpt"))


def test_a_safetensors_file_loads_in_another_thread(tmp_path):
    file = tmp_path / "w.safetensors"
    ms.save_checkpoint({"w": parameter("w", 1, 2)}, file, format="safetensors")
    for name in (file, str(file)):
        assert list(ms.load_checkpoint_async(name).result()["w"].asnumpy()) == [1, 2]
    with pytest.raises(ValueError, match="no such file"):
        ms.load_checkpoint_async(tmp_path / "no.safetensors").result()
    with pytest.raises(TypeError):
        ms.load_checkpoint_async(None)


def test_a_file_in_memory_loads(tmp_path):
    file = tmp_path / "w.safetensors"
    ms.save_checkpoint(
        {"w": parameter("w", 1, 2), "v": parameter("v", 3)}, file, format="safetensors"
    )
    held = io.BytesIO(file.read_bytes())
    found = ms.load_checkpoint(held, format="safetensors", choice_func=lambda name: name == "w")
    assert list(found) == ["w"] and list(found["w"].asnumpy()) == [1, 2]
    assert held.getvalue() == file.read_bytes() and held.tell() == 0
    net = Net(parameter("w", 0, 0))
    ms.load_checkpoint(held, net, format="safetensors", framework="numpy")
    assert list(net.get_parameters()[0].asnumpy()) == [1, 2]
    for garbage in (b"", b"garbage", file.read_bytes()[:-1]):
        with pytest.raises(ValueError):
            ms.load_checkpoint(io.BytesIO(garbage), format="safetensors")
    with pytest.raises(TypeError, match="safetensors"):
        ms.load_checkpoint(held)
    with pytest.raises(TypeError):
        ms.load_checkpoint(file.read_bytes(), format="safetensors")


def test_what_choice_func_raises_is_a_value_error_of_a_ckpt_file(tmp_path):
    saved = {"w": parameter("w", 1)}
    ms.save_checkpoint(saved, tmp_path / "w.ckpt")
    ms.save_checkpoint(saved, tmp_path / "w.safetensors", format="safetensors")
    for choose in (lambda name: 1 / 0, 3):
        with pytest.raises(ValueError, match=r"choice_func\('w'\)") as found:
            ms.load_checkpoint(tmp_path / "w.ckpt", choice_func=choose)
        assert isinstance(found.value.__cause__, (ZeroDivisionError, TypeError))
        with pytest.raises(ValueError):
            ms.load_segmented_checkpoints(tmp_path, choice_func=choose)
        with pytest.raises((ZeroDivisionError, TypeError)):
            ms.load_checkpoint(
                tmp_path / "w.safetensors", format="safetensors", choice_func=choose
            )
    # With a prefix it is not asked.
    assert ms.load_checkpoint(tmp_path / "w.ckpt", choice_func=3, specify_prefix="w")


def test_keys_belong_to_ckpt_files(tmp_path):
    file = tmp_path / "w.safetensors"
    ms.save_checkpoint({"w": parameter("w", 1)}, file, format="safetensors")
    for options in ({"dec_key": b"0123456789abcdef"}, {"dec_mode": "AES-CBC"}):
        with pytest.raises(ValueError, match="only .ckpt files"):
            ms.load_checkpoint(file, format="safetensors", **options)


def test_int4_loads_with_and_without_mindspore(tmp_path):
    content = np.arange(6, dtype=np.uint8).reshape(2, 3)
    for format in ("ckpt", "safetensors"):
        file = tmp_path / f"q.{format}"
        ms.save_checkpoint({"q": Tensor._of(content, "Int4")}, file, format=format)
        found = ms.load_checkpoint(file, format=format, framework="numpy")["q"]
        assert str(found.dtype) == "Int4" and found.get_bytes() == content.tobytes()
        if not reshard._exchange.is_installed("mindspore"):
            continue
        real = ms.load_checkpoint(file, format=format, framework="mindspore")["q"]
        assert (str(real.dtype), real.name, tuple(real.shape)) == ("Int4", "q", (2, 3))
        assert real.get_bytes() == content.tobytes()
        assert reshard.open(file)["q"].mindspore().get_bytes() == content.tobytes()
        ms.save_checkpoint([real], tmp_path / f"again.{format}", format=format)
        assert (tmp_path / f"again.{format}").read_bytes() == file.read_bytes()
