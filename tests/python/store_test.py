"""reshard.open: tensors are whole, whatever they are cut into, and are indexed as numpy's are."""

import errno
import gc
import inspect
import json
import multiprocessing
import operator
import os
import pathlib
import pickle
import random
import shutil
import subprocess
import sys
import threading

import numpy as np
import pytest
import reshard
import reshard.mindspore

GOLDEN_FILES = pathlib.Path(__file__).parents[1] / "golden" / "data" / "apis" / "files"


@pytest.fixture
def ckpt(samples):
    with reshard.open(samples / "ckpt_8", samples / "ckpt_8" / "strategy") as opened:
        yield opened


def test_is_a_mapping_in_the_order_of_the_files(ckpt, full):
    whole = reshard.open(full)
    assert list(ckpt) == list(whole)
    assert len(ckpt) == 65 and "lm_head.weight" in ckpt and "x" not in ckpt
    assert ckpt.get("x") is None and ckpt.ranks == list(range(8))
    assert ckpt.nbytes == sum(t.nbytes for t in ckpt.values())


def test_cut_tensors_equal_those_of_the_full_file(ckpt, full):
    whole = reshard.open(full)
    for name, tensor in ckpt.items():
        assert tensor.shape == whole[name].shape and tensor.dtype == whole[name].dtype
        assert tensor.numpy().tobytes() == whole[name].mapped[...].tobytes(), name


def test_an_unknown_name_says_what_is_near(ckpt):
    with pytest.raises(reshard.UnknownTensorError, match="did you mean 'lm_head.weight'") as found:
        ckpt["lm_head.wieght"]
    assert isinstance(found.value, KeyError) and not str(found.value).startswith('"')


def random_index(rng, shape):
    """An index, with at most one list, that numpy takes for an array of this shape."""
    items = []
    list_left = True
    for size in shape:
        kind = rng.choice(["int", "slice", "slice", "list", "mask"])
        if kind in ("list", "mask") and not list_left:
            kind = "slice"
        if kind == "int" and size:
            items.append(rng.randrange(-size, size))
        elif kind == "list" and size:
            list_left = False
            items.append([rng.randrange(-size, size) for _ in range(rng.randrange(4))])
        elif kind == "mask":
            list_left = False
            items.append(np.array([rng.random() < 0.3 for _ in range(size)], dtype=bool))
        else:
            edge = [None, *range(-size - 1, size + 2)]
            items.append(slice(rng.choice(edge), rng.choice(edge), rng.choice([None, 1, 2, -1, -3, 17])))
    items = items[: rng.randrange(len(items) + 1)]
    if rng.random() < 0.3:
        items.insert(rng.randrange(len(items) + 1), None)
    if rng.random() < 0.3:
        # What stands behind an ellipsis has to fit the last axes.
        items = [...] if rng.random() < 0.5 or not items else [*items, ...]
    return tuple(items)


def random_slice(rng, tensor):
    """Some part of the tensor, as slice_of and shard make them; full tensors stay what they are."""
    for axis, size in enumerate(tensor.shape):
        parts = rng.choice([n for n in (1, 2, 4) if size % n == 0])
        tensor = tensor.shard(rng.randrange(parts), parts, axis)
    return tensor


@pytest.mark.parametrize("longest_gap", [0, 64 << 10])
def test_random_indices_select_what_numpy_selects(ckpt, monkeypatch, longest_gap):
    monkeypatch.setattr(reshard._index, "_LONGEST_GAP", longest_gap)
    seed = int(os.environ.get("RESHARD_TEST_SEED", random.randrange(1 << 30)))
    rng = random.Random(seed)
    tensors = [t for t in ckpt.values() if t.size]
    arrays = {}
    for _ in range(400):
        tensor = rng.choice(tensors)
        array = arrays.setdefault(tensor.name, tensor.numpy())
        if rng.random() < 0.5:
            tensor = random_slice(rng, tensor)
            array = array[tuple(map(slice, tensor.offsets, np.add(tensor.offsets, tensor.shape)))]
        index = random_index(rng, tensor.shape)
        expected = array[index]
        found = tensor[index]
        said = f"seed {seed}: {tensor.name}{list(tensor.shape)}[{index}]"
        assert np.shape(found) == np.shape(expected), said
        assert np.asarray(found).tobytes() == expected.tobytes(), said
        if isinstance(found, np.ndarray):
            assert found.flags.owndata and found.flags.writeable and found.flags.c_contiguous, said
        into = np.empty(np.shape(expected), tensor.dtype)
        assert tensor.read(index, out=into) is into
        assert into.tobytes() == expected.tobytes(), said


def test_a_slice_is_what_a_rank_of_the_other_cluster_gets(ckpt, samples, tmp_path):
    new = samples / "new" / "strategy"
    out = tmp_path / "ckpt_4"
    reshard.convert(
        samples / "ckpt_8", out, src_strategy=samples / "ckpt_8" / "strategy", dst_strategy=new
    )
    strategy = reshard.read_strategy(new)
    converted = reshard.open(out, new)
    with_layout = 0
    for rank in range(4):
        own = converted.rank(rank)
        for name, tensor in own.items():
            part = ckpt[name].slice_of(rank, strategy)
            with_layout += strategy.layout(name, rank // 2) is not None
            assert part.shape == tensor.shape, (rank, name)
            assert part.numpy().tobytes() == tensor.numpy().tobytes(), (rank, name)
            assert part.nbytes == tensor.nbytes and part.name == name
    assert with_layout > 100
    name = "lm_head.weight"
    stage = next(n for n in (0, 1) if strategy.layout(name, n))
    with pytest.raises(reshard.MismatchError, match=f"in stage {stage}"):
        ckpt[name].slice_of(2 * (1 - stage), new)
    with pytest.raises(ValueError, match="rank: expected 0 to 3, found 4"):
        ckpt[name].slice_of(4, new)
    with pytest.raises(ValueError, match="slice of the tensor already"):
        ckpt[name].shard(0, 2).slice_of(2 * stage, new)
    with pytest.raises(FileNotFoundError, match="rank 8"):
        ckpt.rank(8)


def test_a_slice_is_a_tensor(ckpt, full):
    tensor = ckpt["lm_head.weight"]
    part = tensor.shard(1, 2).shard(3, 4, axis=-1)
    assert (part.offsets, part.shape, part.full_shape) == ((128, 48), (128, 16), (256, 64))
    assert repr(part).startswith("Tensor('lm_head.weight', shape=(128, 16), dtype=BFloat16, offsets=(128, 48)")
    expected = tensor[128:, 48:]
    assert part.shards == tensor.shards[2:]
    assert [piece.offsets for piece in part.locate()] == [(128, 0), (192, 0)]
    assert pickle.loads(pickle.dumps(part)).numpy().tobytes() == expected.tobytes()
    assert part.shard(1, 2)[:].tobytes() == expected[64:].tobytes()
    assert np.asarray(part).tobytes() == expected.tobytes() and len(part) == 128
    view = reshard.open(full)["lm_head.weight"].shard(1, 2).mapped[1:3, 5]
    assert view.tobytes() == tensor[129:131, 5].tobytes() and not view.flags.writeable
    for wrong in ({"i": 2, "n": 2}, {"i": 0, "n": 3}, {"i": 0, "n": 2, "axis": 2}, {"i": 0, "n": 0}):
        with pytest.raises(ValueError, match="^'lm_head.weight': "):
            tensor.shard(**wrong)


def test_a_tensor_has_the_layout_of_its_strategy(ckpt, full):
    layout = ckpt.layout("lm_head.weight")
    assert layout == ckpt["lm_head.weight"].layout
    assert layout.name == "lm_head.weight" and layout.box((256, 64), 1) == ((64, 0), (64, 64))
    assert ckpt["global_step"].layout is None or ckpt["global_step"].layout.box((), 0) == ((), ())
    assert reshard.open(full).layout("lm_head.weight") is None


@pytest.mark.parametrize(
    "index", [256, -257, (0, 64), (0, 0, 0), (..., ...), [0, 256], 1.5, "a", ([0], [0]), [[0]], True]
)
def test_wrong_indices_are_index_errors(ckpt, index):
    with pytest.raises(IndexError):
        ckpt["lm_head.weight"][index]


def test_far_rows_are_read_apart(ckpt):
    selection = reshard._index.select([31999, 0], (32000, 4096), 2)
    assert [(run.begin, run.extent) for run in selection.axes[0].runs] == [(0, 1), (31999, 1)]
    selection = reshard._index.select(np.s_[::1000], (32000, 4096), 2)
    assert [run.extent for run in selection.axes[0].runs] == [1] * 32
    selection = reshard._index.select([3, 1], (32000, 4096), 2)
    assert [(run.begin, run.extent) for run in selection.axes[0].runs] == [(1, 3)]


@pytest.mark.parametrize(
    "make",
    [
        lambda t: np.empty((3, 64), t.dtype),
        lambda t: np.empty((256, 64), np.float32),
        lambda t: np.empty((64, 256), t.dtype).T,
    ],
)
def test_out_has_to_fit(ckpt, make):
    tensor = ckpt["lm_head.weight"]
    with pytest.raises(ValueError, match="^out: "):
        tensor.read(out=make(tensor))
    closed_to_writes = np.empty(tensor.shape, tensor.dtype)
    closed_to_writes.flags.writeable = False
    with pytest.raises(ValueError, match="^out: "):
        tensor.read(out=closed_to_writes)


@pytest.mark.parametrize("bytes_at_a_time", [1, 128 * 7, 1 << 20])
def test_rows_are_iterated_over_some_at_a_time(ckpt, monkeypatch, bytes_at_a_time):
    monkeypatch.setattr(reshard._tensor, "_ITERATED_BYTES", bytes_at_a_time)
    tensor = ckpt["lm_head.weight"]
    array = tensor.numpy()
    rows = list(tensor)
    assert [row.tobytes() for row in rows] == [row.tobytes() for row in array]
    together = max(1, bytes_at_a_time // 128)
    assert len({id(row.base) for row in rows}) == -(-256 // together)
    norm = ckpt["model.norm_out.weight"]
    assert [x.tobytes() for x in norm] == [x.tobytes() for x in norm.numpy()]
    scalar = reshard.open(GOLDEN_FILES / "dtypes.ckpt")["flag"]
    with pytest.raises(TypeError, match="without dimensions"):
        iter(scalar)


@pytest.mark.parametrize("jobs", [0, 1, 3])
def test_one_is_read_by_several_threads(ckpt, jobs):
    tensor = ckpt["lm_head.weight"]
    assert tensor.read(jobs=jobs).tobytes() == tensor.numpy().tobytes()
    assert tensor.read([3, 250, 7], jobs=jobs).tobytes() == tensor.numpy()[[3, 250, 7]].tobytes()
    with pytest.raises(ValueError, match="jobs"):
        tensor.read(jobs=-1)


def test_a_tensor_is_not_computed_with_before_it_is_read(ckpt):
    tensor = ckpt["adam_m.lm_head.weight"]
    array = tensor.numpy()
    operators = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lt", "le", "gt", "ge")
    for name in operators:
        compute = getattr(operator, name)
        for sides in ((tensor, 2), (2, tensor), (tensor, array), (array, tensor)):
            with pytest.raises(TypeError, match=r"use t\[...\]"):
                compute(*sides)
    for name in ("neg", "pos", "abs", "invert"):
        with pytest.raises(TypeError, match=r"use t\[...\]"):
            getattr(operator, name)(tensor)
    with pytest.raises(TypeError, match=r"use t\[...\]"):
        array.T @ tensor
    with pytest.raises(TypeError, match=r"t\[...\]"):
        1 in tensor
    assert tensor and tensor == tensor and not tensor == array.tolist()


@pytest.mark.parametrize("jobs", [None, 0, 1, 3])
def test_many_are_read_at_once(ckpt, jobs):
    read = ckpt.read(jobs=jobs)
    assert list(read) == list(ckpt)
    for name, array in read.items():
        assert array.flags.writeable and array.tobytes() == ckpt[name].numpy().tobytes(), name


def test_many_are_read_into_what_is_there(ckpt):
    names = list(ckpt)[:3]
    buffers = {name: np.empty(ckpt[name].shape, ckpt[name].dtype) for name in names}
    read = ckpt.read(out=buffers)
    assert list(read) == names and all(read[name] is buffers[name] for name in names)
    assert all(buffers[name].tobytes() == ckpt[name].numpy().tobytes() for name in names)
    one_more = ckpt.read(["lm_head.weight", names[0]], out=buffers)
    assert one_more[names[0]] is buffers[names[0]] and "lm_head.weight" in one_more


def test_nothing_is_read_unless_all_fit(ckpt):
    first, second = list(ckpt)[:2]
    buffer = np.zeros(ckpt[first].shape, ckpt[first].dtype)
    with pytest.raises(ValueError, match=f"out\\['{second}'\\]: expected"):
        ckpt.read(out={first: buffer, second: np.zeros(1)})
    with pytest.raises(KeyError):
        ckpt.read([first, "none"], out={first: buffer})
    assert not buffer.view(np.uint8).any()
    with pytest.raises(ValueError, match="jobs"):
        ckpt.read(jobs=-1)


def test_views_are_read_only_and_equal_to_what_is_read(full):
    with reshard.open(full) as whole:
        for tensor in whole.values():
            view = tensor.mapped[...]
            assert not view.flags.writeable and view.tobytes() == tensor.numpy().tobytes()
            with pytest.raises(ValueError):
                view.flags.writeable = True
        weight = whole["lm_head.weight"]
        array = weight.numpy()
        for index in (5, np.s_[128:], np.s_[::-3, 1:9:2], (..., 3), np.s_[None, 4:5], np.s_[9:9]):
            assert weight.mapped[index].shape == array[index].shape
            assert weight.mapped[index].tobytes() == array[index].tobytes()
        for index in ([1, 2], np.zeros(256, bool)):
            with pytest.raises(TypeError):
                weight.mapped[index]


def test_a_view_of_a_part_that_one_file_holds(ckpt):
    weight = ckpt["lm_head.weight"]
    assert weight.mapped[64:100].tobytes() == weight[64:100].tobytes()
    with pytest.raises(ValueError, match="in several files"):
        weight.mapped[60:70]


def lines_of_maps(path):
    return sum(str(path) in line for line in open("/proc/self/maps", encoding="utf-8"))


def test_a_view_keeps_the_file_mapped_and_nothing_else_does(full, tmp_path):
    path = tmp_path / "view.ckpt"
    shutil.copy(full, path)
    opened = reshard.open(path)
    view = opened["lm_head.weight"].mapped[3:5]
    part = view[1]
    expected = opened["lm_head.weight"][4].tobytes()
    opened.close()
    del opened, view
    gc.collect()
    assert lines_of_maps(path) == 1 and part.tobytes() == expected
    del part
    gc.collect()
    assert lines_of_maps(path) == 0


def test_dtypes_are_numpys_or_of_ml_dtypes(ckpt):
    import ml_dtypes

    weight = ckpt["lm_head.weight"]
    assert weight.dtype == ml_dtypes.bfloat16 and weight.dtype_name == "BFloat16"
    assert weight[0, 0].dtype == ml_dtypes.bfloat16
    assert all(t.dtype != object and t.dtype.itemsize == t.itemsize for t in ckpt.values())
    assert np.asarray(weight).dtype == ml_dtypes.bfloat16
    assert np.asarray(weight, dtype=np.float32).dtype == np.float32


def test_closed_is_closed(samples):
    ckpt = reshard.open(samples / "ckpt_8", samples / "ckpt_8" / "strategy")
    weight = ckpt["lm_head.weight"]
    ckpt.close()
    for use in (lambda: ckpt["lm_head.weight"], lambda: weight[:], lambda: weight.mapped[:2]):
        with pytest.raises(ValueError, match="checkpoint is closed"):
            use()
    assert repr(ckpt).endswith("closed)") and "lm_head.weight" in repr(weight)


def test_errors_are_of_the_classes_that_people_catch(samples, tmp_path):
    with pytest.raises(FileNotFoundError) as found:
        reshard.open(tmp_path / "nowhere")
    assert type(found.value) is reshard.NotFoundError and found.value.code == "not found"
    assert str(tmp_path / "nowhere") in str(found.value)
    assert str(pickle.loads(pickle.dumps(found.value))) == str(found.value)
    assert found.value.errno == errno.ENOENT
    with pytest.raises(OSError) as found:
        reshard.open(samples / "ckpt_8", tmp_path / ("n" * 300))
    assert type(found.value) is reshard.IoError and ("n" * 300) in str(found.value)
    for error in (found.value, pickle.loads(pickle.dumps(found.value))):
        assert error.errno == errno.ENAMETOOLONG
        assert error.strerror == os.strerror(errno.ENAMETOOLONG) and error.strerror in str(error)
    (tmp_path / "bad.ckpt").write_bytes(b"\xff" * 99)
    with pytest.raises(ValueError) as found:
        reshard.open(tmp_path / "bad.ckpt")
    assert type(found.value) is reshard.CorruptError
    with pytest.raises(ValueError, match="null character"):
        reshard.open("a\0b")
    with pytest.raises(TypeError):
        reshard.open(3)
    with pytest.raises(reshard.MismatchError) as found:
        reshard.open(samples / "ckpt_8")
    assert "`" not in str(found.value)
    # Where one could be is said, too.
    assert str(found.value).endswith(f"; strategies are in {samples / 'ckpt_8' / 'strategy'}")


def test_options_are_named_as_keywords():
    words = {"source.strategy": "src_strategy"}
    text = "pass `source.strategy` or `force`, or `checks.replicas=none`"
    expected = "pass src_strategy or force, or check_replicas=none"
    assert reshard._errors.in_words(text, words) == expected


def test_paths_need_not_be_utf8(full, tmp_path):
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.ckpt")
    shutil.copy(full, path)
    assert len(reshard.open(path)) == 65
    with pytest.raises(reshard.NotFoundError) as found:
        reshard.open(path + "\udcfe")
    assert "\udcff" in str(found.value) or "xff" in str(found.value)


def test_a_file_that_is_cut_meanwhile_is_an_error_and_no_crash(full, tmp_path):
    path = tmp_path / "cut.ckpt"
    shutil.copy(full, path)
    opened = reshard.open(path)
    os.truncate(path, 4096)
    with pytest.raises(reshard.ChangedError):
        opened["lm_head.weight"][:]


def read_in_child(pickled, queue):
    queue.put(pickle.loads(pickled)[:4].tobytes())


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_tensor_travels_to_another_process(ckpt, method):
    weight = ckpt["lm_head.weight"]
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    child = context.Process(target=read_in_child, args=(pickle.dumps(weight), queue))
    child.start()
    assert queue.get(timeout=250) == weight[:4].tobytes()
    child.join()


def test_what_was_pickled_does_not_open_other_files(full, tmp_path):
    path = tmp_path / "again.ckpt"
    shutil.copy(full, path)
    opened = reshard.open(path)
    pickled = pickle.dumps(opened)
    assert len(pickle.loads(pickled)) == 65
    gc.collect()
    os.utime(path, (1, 1))
    with pytest.raises(reshard.ChangedError):
        pickle.loads(pickled)


def test_threads_read_side_by_side(ckpt):
    expected = {name: t.numpy().tobytes() for name, t in ckpt.items()}
    wrong = []

    def read():
        for name, tensor in ckpt.items():
            if tensor[...].tobytes() != expected[name]:
                wrong.append(name)

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_opening_again_and_again_keeps_nothing(samples, full):
    def once():
        with reshard.open(samples / "ckpt_8", samples / "ckpt_8" / "strategy") as opened:
            opened["lm_head.weight"][5:200].sum()
        whole = reshard.open(full)
        whole["lm_head.weight"].mapped[...].sum()
        whole["lm_head.weight"]._own(mmap=True)[...] = 1
        whole["lm_head.weight"].__dlpack__()
        whole.read(["lm_head.weight", "model.norm_out.weight"], jobs=2)
        whole["lm_head.weight"][[0, 200, 3]].sum()
        with pytest.raises(reshard.Error):
            reshard.open(full / "nowhere")

    def held():
        gc.collect()
        with open("/proc/self/maps", encoding="utf-8") as maps:
            files = sum(".ckpt" in line for line in maps)
        return len(os.listdir("/proc/self/fd")), files

    def resident():
        with open("/proc/self/statm", encoding="ascii") as sizes:
            return int(sizes.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    for _ in range(100):
        once()
    before, memory = held(), resident()
    for _ in range(300):
        once()
    assert held() == before
    assert resident() < memory + (2 << 20)


def test_importing_imports_nothing_heavy():
    code = "import sys, reshard; print([m for m in ('ml_dtypes','torch','mindspore','tqdm') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_versions_are_one():
    program = pathlib.Path(os.environ["RESHARD_BIN"]) / "reshard"
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    assert reshard.__version__ in said.split()


def test_what_lies_where(ckpt):
    weight = ckpt["lm_head.weight"]
    pieces = weight.locate(np.s_[60:70])
    assert [(p.offsets, p.sizes) for p in pieces] == [((0, 0), (64, 64)), ((64, 0), (64, 64))]
    expected = weight[:128].tobytes()
    found = b""
    for piece in pieces:
        with open(piece.path, "rb") as file:
            for offset, size in piece.content:
                file.seek(offset)
                found += file.read(size)
    assert found == expected
    with pytest.raises(TypeError):
        weight.locate([1, 2])


def test_far_rows_take_few_bytes(samples):
    # 64 rows far apart are one call for them all, and nothing between them is read.
    weight = reshard.open(samples / "ckpt_8", samples / "ckpt_8" / "strategy")["lm_head.weight"]
    selection = reshard._index.select([0, 255, 100], weight.shape, 1 << 20)
    blocks = list(selection.blocks())
    assert [b.extent for b in blocks] == [[1, 64]] * 3
    [batch] = reshard._tensor._batches(blocks, weight.itemsize)
    assert batch == blocks
    assert len(list(reshard._tensor._batches(blocks, 1 << 25))) == 3


def test_a_source_may_be_the_files_of_ranks_and_be_read_in_either_way(samples):
    files = {r: next((samples / "ckpt_8" / f"rank_{r}").glob("*.ckpt")) for r in range(8)}
    strategy = samples / "ckpt_8" / "strategy"
    expected = reshard.open(samples / "ckpt_8", strategy)["lm_head.weight"][...].tobytes()
    for how in ("auto", "map", "pread"):
        opened = reshard.open(files, strategy, io=how)
        assert opened["lm_head.weight"][...].tobytes() == expected
        assert opened.step == "1_100" and opened.metadata() == {"format": "ckpt", "step": "1_100"}
        again = pickle.loads(pickle.dumps(opened["lm_head.weight"]))
        assert again[...].tobytes() == expected
    with pytest.raises(ValueError, match="io"):
        reshard.open(files, strategy, io="fast")


@pytest.fixture
def encrypted(samples, tmp_path):
    (tmp_path / "key").write_bytes(b"0123456789abcdef")
    reshard.convert(
        samples / "ckpt_8", tmp_path / "secret", src_strategy=samples / "ckpt_8" / "strategy",
        encrypt="AES-GCM", encrypt_key_file=tmp_path / "key",
    )
    return tmp_path / "secret" / "rank_0" / "checkpoint_0.ckpt"


def test_encrypted_files_open_with_their_key(encrypted, ckpt, monkeypatch):
    key = encrypted.parents[2] / "key"
    monkeypatch.setenv("THE_KEY", "0123456789abcdef")
    expected = ckpt["lm_head.weight"][...].tobytes()
    for keywords in ({"key_file": key}, {"key_env": "THE_KEY"}):
        opened = reshard.open(encrypted, **keywords)
        weight = opened["lm_head.weight"]
        assert weight[...].tobytes() == expected == weight._own(mmap=True).tobytes()
        assert opened.read(["lm_head.weight"])["lm_head.weight"].tobytes() == expected
        # It travels as where the key is.
        pickled = pickle.dumps(weight)
        assert b"0123456789abcdef" not in pickled
        assert pickle.loads(pickled)[...].tobytes() == expected
        with pytest.raises(reshard.UnsupportedError, match="encrypted"):
            weight.mapped[...]
        assert reshard.inspect(encrypted, **keywords).totals.parameters == 65


def test_a_key_that_is_missing_or_wrong_is_an_error(encrypted, tmp_path, monkeypatch):
    with pytest.raises(reshard.UnsupportedError, match="key_file or key_env"):
        reshard.open(encrypted)
    with pytest.raises(ValueError, match="key_file excludes key_env"):
        reshard.open(encrypted, key_file=tmp_path / "key", key_env="X")
    with pytest.raises(FileNotFoundError, match="key_file"):
        reshard.open(encrypted, key_file=tmp_path / "nowhere")
    monkeypatch.setenv("THE_KEY", "short")
    with pytest.raises(ValueError, match="key_env"):
        reshard.open(encrypted, key_env="THE_KEY")
    (tmp_path / "other").write_bytes(b"another key 1234")
    with pytest.raises(reshard.CorruptError):
        reshard.open(encrypted, key_file=tmp_path / "other")


def calls_with_keys():
    """Each call with each keyword that names the place of a key."""
    for option in reshard._reshard.options():
        for call in (*option["calls"], "open", "inspect"):
            parameters = inspect.signature(getattr(reshard, call)).parameters
            if option["type"] in ("key_file", "key_variable") and option["word"] in parameters:
                yield call, option["word"]


@pytest.mark.parametrize(("call", "name"), list(calls_with_keys()))
def test_a_key_in_the_place_of_its_name_is_never_shown(call, name):
    function = getattr(reshard, call)
    paths = ["x" for p in inspect.signature(function).parameters.values() if p.default is p.empty]
    for secret in ("S3cret\0S3cretS3c", "S3cret\ud800", "S3cretS3cretS3cr"):
        if call == "mount" and secret.isalnum():  # the program reads it
            continue
        with pytest.raises((FileNotFoundError, ValueError), match=f"^{name}: .*not shown") as caught:
            function(*paths, **{name: secret})
        assert "S3c" not in str(caught.value)
        assert caught.value.__cause__ is None


def message(field, payload):
    """A field of length-delimited bytes of a protobuf message, or a number."""
    def varint(number):
        out = bytearray()
        while number > 127:
            out.append(number & 127 | 128)
            number >>= 7
        return bytes([*out, number])

    if isinstance(payload, int):
        return varint(field << 3) + varint(payload)
    return varint(field << 3 | 2) + varint(len(payload)) + payload


def stored(type, dims, content):
    return b"".join(message(1, d) for d in dims) + message(2, type.encode()) + message(3, content)


# What MindSpore's files hold, and NumPy's dtype, or that of ml_dtypes; bytes where neither has one.
DTYPES = {
    **{name: name.lower() for name in ("Int8", "UInt8", "Int16", "UInt16", "Int32", "UInt32")},
    **{name: name.lower() for name in ("Int64", "UInt64", "Float16", "Float32", "Float64", "Bool")},
    **{name: name.lower() for name in ("Complex64", "Complex128", "BFloat16")},
    "Float8E4M3FN": "float8_e4m3fn",
    "Float8E5M2": "float8_e5m2",
    "Int4": "uint8",
    "HiFloat8": "uint8",
}


@pytest.fixture(scope="module")
def typed(tmp_path_factory):
    """A file with a matrix, a scalar and an empty tensor of each element type, and their bytes."""
    import ml_dtypes

    rng = random.Random(7)
    entries, expected = [], {}
    for name, numpy_name in DTYPES.items():
        dtype = np.dtype(getattr(ml_dtypes, numpy_name, numpy_name))
        for shape in ((3, 4), (), (0, 2)):
            count = int(np.prod(shape))
            # Of a bool each byte is 0 or 1.
            content = bytes(rng.randrange(2) for _ in range(count * dtype.itemsize))
            entries.append((f"{name}{shape}", stored(name, shape, content)))
            expected[f"{name}{shape}"] = np.frombuffer(content, dtype).reshape(shape)
    path = tmp_path_factory.mktemp("typed") / "typed-1_1.ckpt"
    path.write_bytes(
        b"".join(
            message(1, message(1, name.encode()) + message(2, tensor)) for name, tensor in entries
        )
    )
    return path, expected


def test_every_element_type_keeps_its_bytes_and_says_what_may_be_written_to(typed):
    path, expected = typed
    checkpoint = reshard.open(path)
    assert list(checkpoint) == list(expected)
    together = checkpoint.read()
    for name, array in expected.items():
        tensor = checkpoint[name]
        assert name.startswith(tensor.dtype_name) and tensor.dtype == array.dtype != object
        assert tensor.shape == array.shape and tensor.nbytes == array.nbytes
        copies = [tensor[...], tensor.numpy(), tensor.read(), np.asarray(tensor), together[name]]
        views = [tensor.mapped[...]]
        if np.lib.NumpyVersion(np.__version__) >= "2.0.0":
            views.append(np.asarray(tensor, copy=False))
        for found in [*copies, *views]:
            assert found.dtype == array.dtype and found.shape == array.shape, name
            assert found.tobytes() == array.tobytes(), name
        assert all(found.flags.writeable and found.flags.c_contiguous for found in copies), name
        assert tensor.size == 0 or not any(view.flags.writeable for view in views), name


def test_scalars_and_empty_tensors_are_indexed_as_numpys_are(typed):
    path, expected = typed
    checkpoint = reshard.open(path)
    for name, array in expected.items():
        if array.ndim == 0:
            indices = [(), ..., None, (None, ...), (..., None)]
        elif array.size == 0:
            indices = [..., np.s_[:], np.s_[0:0], np.s_[:, 1], np.s_[::-1, None], [], (..., 0)]
        else:
            continue
        for index in indices:
            found, wanted = checkpoint[name][index], array[index]
            assert np.shape(found) == np.shape(wanted), (name, index)
            assert np.asarray(found).tobytes() == wanted.tobytes(), (name, index)
            assert isinstance(found, np.ndarray) == isinstance(wanted, np.ndarray), (name, index)
        for index in (0, np.s_[:, :, :], [3]):
            with pytest.raises(IndexError):
                array[index]
            with pytest.raises(IndexError):
                checkpoint[name][index]


def test_random_layouts_are_one_tensor(full, tmp_path):
    seed = int(os.environ.get("RESHARD_TEST_SEED", random.randrange(1 << 30)))
    rng = random.Random(seed)
    whole = reshard.open(full)
    for number in range(4):
        devices = rng.choice([2, 4, 8])
        parameters = []
        for name, tensor in whole.items():
            cuts, left = [], devices
            for size in tensor.shape:
                cuts.append(rng.choice([n for n in (1, 2, 4, 8) if left % n == 0 and size % n == 0]))
                left //= cuts[-1]
            parameters.append({"parameter": name, "cuts": cuts})
        strategy = tmp_path / f"{number}.json"
        spec = {"devices": devices, "parameters": parameters}
        reshard.make_strategy(spec, strategy, from_=full)
        reshard.convert(full, tmp_path / str(number), dst_strategy=strategy, progress=False)
        cut = reshard.open(tmp_path / str(number), strategy)
        assert cut.ranks == list(range(devices)) and list(cut) == list(whole)
        for name in rng.sample(list(whole), 20):
            array = whole[name].numpy()
            for index in [(...,), *(random_index(rng, array.shape) for _ in range(4))]:
                found = np.asarray(cut[name][index])
                said = f"seed {seed}: layout {number}: {name}{list(array.shape)}[{index}]"
                assert found.shape == np.shape(array[index]), said
                assert found.tobytes() == array[index].tobytes(), said


def test_many_files_are_opened_side_by_side_and_one_damaged_is_named(tmp_path):
    program = pathlib.Path(os.environ["RESHARD_BIN"])
    shape = ["--layers", "1", "--hidden", "128", "--ffn", "128", "--vocab", "128", "--tp", "128"]
    subprocess.run([program / "reshard-gen", "many", *shape], cwd=tmp_path, check=True)
    strategy = tmp_path / "many" / "strategy"
    opened = reshard.open(tmp_path / "many", strategy)
    reshard.convert(tmp_path / "many", tmp_path / "whole", src_strategy=strategy)
    whole = reshard.open(tmp_path / "whole" / "rank_0" / "checkpoint_0.ckpt")
    assert opened.ranks == list(range(128)) and list(opened) == list(whole)
    assert opened["lm_head.weight"][...].tobytes() == whole["lm_head.weight"][...].tobytes()
    for rank in (7, 90, 93):
        [file] = (tmp_path / "many" / f"rank_{rank}").glob("*.ckpt")
        file.chmod(0o600)
        file.write_bytes(b"\xff" * 50)
    said = set()
    for _ in range(10):
        with pytest.raises(reshard.CorruptError) as found:
            reshard.open(tmp_path / "many", strategy)
        said.add(str(found.value))
    [one] = said
    assert "/rank_93/" in one


def test_texts_and_map_tensors_are_beside_the_tensors(tmp_path):
    numbers = np.arange(6, dtype=np.float32)
    keys, status = np.array([7, 9], np.int32), np.array([1, 2], np.int32)
    table = b"".join(
        message(1, stored(name, array.shape, array.tobytes()))
        for name, array in (("int32", keys), ("float32", numbers.reshape(2, 3)), ("int32", status))
    )
    text = stored("str", [0], "grün".encode("utf-32-le"))
    entries = (
        message(1, b"w") + message(2, stored("Float32", [6], numbers.tobytes())),
        message(1, b"note") + message(2, text),
        message(1, b"table") + message(3, table),
    )
    path = tmp_path / "net-3_20.ckpt"
    path.write_bytes(b"".join(message(1, entry) for entry in entries))
    opened = reshard.open(path)
    assert list(opened) == ["w"] and opened.texts == {"note": "grün"}
    found = opened.map_tensors["table"]
    assert [a.tolist() for a in found.keys + found.status] == [[7, 9], [1, 2]]
    assert found.values[0].dtype == np.float32 and found.values[0].tolist() == [[0, 1, 2], [3, 4, 5]]


def test_metadata_and_inspection_are_of_the_files_that_are_read(ckpt, tmp_path):
    report = ckpt.inspect()
    assert [file.rank for file in report.checkpoints] == [None] * 8 and report.totals.files == 8
    for extension in ("ckpt", "safetensors"):
        path = GOLDEN_FILES / f"crc.{extension}"
        opened = reshard.open(path)
        [file] = opened.inspect().checkpoints
        assert opened.metadata() == {"format": extension, "crc": str(file.crc)} and file.crc
    opened.close()
    with pytest.raises(ValueError, match="closed"):
        opened.inspect()


def test_a_table_in_a_notebook_opens_nothing(samples, tmp_path):
    shutil.copytree(samples / "ckpt_8", tmp_path / "ckpt")
    opened = reshard.open(tmp_path / "ckpt", tmp_path / "ckpt" / "strategy")
    shutil.rmtree(tmp_path / "ckpt")
    assert opened._repr_html_().count("<tr>") == 21


def test_reprs_say_what_a_thing_is(ckpt, full):
    assert repr(ckpt["lm_head.weight"]).endswith("dtype=BFloat16, shards=4)")
    table = ckpt._repr_html_()
    assert table.count("<tr>") == 21 and "and 45 more" in table and "4 x 1" in table
    assert "<script" not in table and "Tensor(" not in table
    assert "65 tensors" in repr(reshard.open(full)) and repr(ckpt.select("*norm*")).startswith("Selection(")


def test_names_are_text_in_notebooks(tmp_path):
    path = tmp_path / "a<b>.safetensors"
    header = b'{"<img onerror=x>":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}'
    path.write_bytes(len(header).to_bytes(8, "little") + header + b"x")
    table = reshard.open(path)._repr_html_()
    assert "<img" not in table and "&lt;img" in table


def test_many_names_are_read_as_one_call(ckpt, full):
    whole = reshard.open(full).read(jobs=2, progress=False)
    assert {name: a.tobytes() for name, a in whole.items()} == {
        name: t[...].tobytes() for name, t in ckpt.items()
    }
    with pytest.raises(ValueError, match="jobs"):
        ckpt.read(jobs=-1)


def test_a_view_of_a_file_that_is_cut_is_a_signal(full, tmp_path):
    path = tmp_path / "cut.ckpt"
    shutil.copy(full, path)
    code = (
        "import os, sys, reshard; t = reshard.open(sys.argv[1])['lm_head.weight']; v = t.mapped[...];"
        "os.truncate(sys.argv[1], 1); v.tobytes()"
    )
    assert subprocess.run([sys.executable, "-c", code, path]).returncode == -7


def test_another_file_is_not_mapped(full, tmp_path):
    path = tmp_path / "other.ckpt"
    shutil.copy(full, path)
    opened = reshard.open(path)
    path.unlink()
    shutil.copy(full, path)
    with pytest.raises(reshard.ChangedError):
        opened["lm_head.weight"].mapped[...]


def test_closing_meanwhile_lets_reads_end(samples):
    opened = reshard.open(samples / "ckpt_8", samples / "ckpt_8" / "strategy")
    weight = opened["lm_head.weight"]
    expected = weight[...].tobytes()
    found = []

    def read():
        try:
            while True:
                found.append(weight[...].tobytes() == expected)
        except ValueError as error:
            found.append(str(error) == "checkpoint is closed")

    thread = threading.Thread(target=read)
    thread.start()
    while len(found) < 3:
        pass
    opened.close()
    thread.join(timeout=100)
    assert not thread.is_alive() and all(found)


SMALL = [np.dtype(name) for name in ("i1", "u1", "i2", "u2", "u4", "u8", ">i2")]


@pytest.mark.parametrize("dtype", SMALL, ids=str)
@pytest.mark.parametrize("rows", (100, 300, 70000))
def test_indexes_of_small_types_are_those_of_numpy(dtype, rows, tmp_path):
    array = np.arange(2 * rows, dtype=np.float32).reshape(rows, 2)
    reshard.mindspore.save_checkpoint({"w": array}, tmp_path / "w.ckpt")
    tensor = reshard.open(tmp_path / "w.ckpt")["w"]
    last = min(rows - 1, np.iinfo(dtype).max)
    indexes = [np.array([1, 0, last], dtype), np.array([], dtype), np.array(last, dtype)]
    indexes += [dtype.type(last), np.s_[dtype.type(1) : dtype.type(50) : dtype.type(7)]]
    indexes += [(np.array([1, 2], dtype), dtype.type(1)), (dtype.type(3), np.array([1], dtype))]
    if dtype.kind == "i":
        indexes += [np.array([-1, 5, -7], dtype), dtype.type(-2)]
    for index in indexes:
        found, expected = tensor[index], array[index]
        assert np.array_equal(found, expected) and found.shape == expected.shape, repr(index)
    if np.iinfo(dtype).max >= rows:
        with pytest.raises(IndexError, match=f"index {rows} is out of bounds"):
            tensor[np.array([0, rows], dtype)]
    part = tensor.shard(dtype.type(3), dtype.type(4), axis=dtype.type(0))
    assert part.offsets == (rows // 4 * 3, 0) and np.array_equal(part[...], array[rows // 4 * 3 :])


def write_strategy(folder, cuts):
    reshard.make_strategy(
        {"devices": 4, "parameters": [{"parameter": name, "cuts": cuts} for name in "ab"]},
        folder / "s.ckpt",
        force=True,
    )


def replace_index(folder):
    # Of equal size and with equal times: what it says has changed.
    index = folder / "model.safetensors.index.json"
    times = os.stat(index).st_atime_ns, os.stat(index).st_mtime_ns
    index.write_text(index.read_text().replace('"a"', '"c"'))
    os.utime(index, ns=times)


def add_index(folder):
    index = {"weight_map": {"b": "x.safetensors"}}
    (folder / "new.index.json").write_text(json.dumps(index))


def replace_strategy(folder):
    write_strategy(folder, [1, 4])


def remove_strategy(folder):
    (folder / "s.ckpt").unlink()


def replace_weights(folder):
    for file in folder.glob("*.safetensors"):
        content = file.read_bytes()
        file.unlink()
        file.write_bytes(content)


def group(folder):
    (folder / "group_info.pb").write_bytes(b"\x12\x02\x08\x00\x12\x02\x08\x01")


def folder_with_index(folder):
    tensors = {name: np.full((4, 4), value, np.float32) for value, name in enumerate("abc")}
    reshard.mindspore.save_checkpoint(tensors, folder / "x.safetensors", format="safetensors")
    index = {"weight_map": {"a": "x.safetensors", "b": "x.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return {"path": folder}


def folder_with_file(folder):
    tensors = {name: np.full((4, 4), value, np.float32) for value, name in enumerate("abc")}
    reshard.mindspore.save_checkpoint(tensors, folder / "x.safetensors", format="safetensors")
    return {"path": folder}


def folder_with_ranks(folder):
    for rank in range(4):
        (folder / f"rank_{rank}").mkdir()
        part = {name: np.full((4, 4), rank, np.float32) for name in "ab"}
        reshard.mindspore.save_checkpoint(part, folder / f"rank_{rank}" / "n-1_1.ckpt")
    write_strategy(folder, [4, 1])
    group(folder)
    return {"path": folder, "strategy": folder / "s.ckpt"}


def newer_checkpoint(folder):
    for rank in range(4):
        file = folder / f"rank_{rank}" / "n-1_1.ckpt"
        (file.parent / "n-1_2.ckpt").write_bytes(file.read_bytes())


@pytest.mark.parametrize(
    "make, change",
    (
        (folder_with_index, replace_index),
        (folder_with_index, replace_weights),
        (folder_with_file, add_index),
        (folder_with_ranks, replace_strategy),
        (folder_with_ranks, remove_strategy),
        (folder_with_ranks, newer_checkpoint),
    ),
    ids=lambda function: function.__name__,
)
def test_nothing_pickled_comes_back_as_another_tensor(make, change, tmp_path):
    opened = reshard.open(**make(tmp_path))
    pickled = [pickle.dumps(each) for each in (opened, opened["b"], opened["b"].shard(1, 2))]
    assert [pickle.loads(each)["b"].name for each in pickled[:1]] == ["b"]
    for each in pickled[1:]:
        assert pickle.loads(each).name == "b"
    reshard._store._reopened.clear()
    change(tmp_path)
    for each in pickled:
        with pytest.raises(reshard.ChangedError, match="than when it was pickled"):
            pickle.loads(each)
    # What was changed after it was opened is not vouched for either.
    if change in (replace_strategy, add_index):
        with pytest.raises(reshard.ChangedError):
            pickle.loads(pickle.dumps(opened["b"]))


def test_pickling_goes_by_the_folder_that_it_was_opened_in(tmp_path, monkeypatch):
    folder_with_ranks(tmp_path)
    monkeypatch.chdir(tmp_path)
    opened = reshard.open(".", "s.ckpt")
    monkeypatch.chdir("/")
    assert pickle.loads(pickle.dumps(opened))["a"].shape == (16, 4)


SHARDED = pathlib.Path(__file__).parents[1] / "golden" / "data" / "sharded"


@pytest.mark.parametrize("case", ["hf_sharded/case_000", "hf_sharded/case_004", "mindformers2/case_001"])
def test_shards_that_state_their_boxes_are_whole(case):
    made = json.loads((SHARDED / case / "case.json").read_text())
    content = (SHARDED / case / "expected.bin").read_bytes()
    with reshard.open(SHARDED / case / "input") as opened:
        assert set(opened) == set(made["tensors"])
        for name, expected in made["tensors"].items():
            tensor = opened[name]
            assert list(tensor.shape) == expected["shape"], name
            begin = expected["offset"]
            assert tensor.numpy().tobytes() == content[begin : begin + tensor.nbytes], name


def test_shards_with_holes_are_refused():
    with pytest.raises(reshard.MismatchError, match='"few.weight": 5 of 15 elements'):
        reshard.open(SHARDED / "hf_sharded" / "case_022" / "input")


def test_one_of_two_kinds_in_a_folder_is_chosen(tmp_path):
    folder = shutil.copytree(SHARDED / "torch_ranks" / "case_000" / "input", tmp_path / "mixed")
    (shard, *_) = sorted((SHARDED / "hf_sharded" / "case_000" / "input").iterdir())
    shutil.copy(shard, folder / "model.safetensors")
    for call in (reshard.open, reshard.inspect, reshard.digest):
        with pytest.raises(reshard.MismatchError, match=r"src_format \(fsdp or plain\)"):
            call(folder)
    with pytest.raises(reshard.MismatchError, match=r"a_format or b_format \(fsdp or plain\)"):
        reshard.diff(folder, folder)
    fsdp = reshard.open(folder, src_format="fsdp")
    assert list(fsdp) == ["u"] != list(reshard.open(folder, src_format="plain"))
    assert list(pickle.loads(pickle.dumps(fsdp))) == ["u"]
    for values in (False, True):
        report = reshard.inspect(folder, src_format="fsdp", values=values)
        assert [file.rank for file in report.checkpoints] == [0, 1]
    reshard.convert(folder, tmp_path / "whole", format="hf", src_format="fsdp")
    assert reshard.diff(folder, tmp_path / "whole", a_format="fsdp").equal
    with pytest.raises(reshard.NotFoundError, match="src_format"):
        reshard.open(folder, src_format="dcp")
    with pytest.raises(reshard.InvalidArgumentError, match="src_format"):
        reshard.open(folder, src_format="other")


TORCH_FILES = pathlib.Path(__file__).parents[1] / "golden" / "data" / "torch_files"


def test_a_tensor_that_cannot_be_read_is_named_and_the_others_are_read(tmp_path):
    path = shutil.copy(TORCH_FILES / "pytorch_model.bin", tmp_path / "model.ckpt")
    with reshard.open(path) as ckpt:
        assert list(ckpt.unread) == ["t"] and "strides" in ckpt.unread["t"]
        assert "t" not in ckpt and len(ckpt) == 7 and ckpt["v"].numpy().shape == (3, 4)
        assert any('"t"' in warning for warning in ckpt.warnings)
        for read in (lambda: ckpt["t"], lambda: ckpt.get("t"), ckpt.read,
                     lambda: ckpt.read(["v", "t"]), lambda: ckpt.get_tensor("t"),
                     lambda: ckpt.select("*")):
            with pytest.raises(reshard.UnsupportedError, match="'t' cannot be read: .*strides"):
                read()
        assert set(ckpt.read(list(ckpt))) == set(ckpt) == set(ckpt.select("[!t]*"))
    (file,) = reshard.inspect(path).checkpoints
    assert [(tensor.name, "strides" in tensor.reason) for tensor in file.unread] == [("t", True)]
    assert len(file.parameters) == 7
    assert reshard.inspect(path, exclude="t").checkpoints[0].unread == ()
    for load in (reshard.digest, reshard.mindspore.load_checkpoint):
        with pytest.raises(reshard.UnsupportedError, match='"t"'):
            load(path)
