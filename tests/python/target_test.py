"""reshard.target: files that are read before they are there."""

import io
import os
import random
import shutil
import sys
import threading

import pytest
import reshard

STRATEGIES = {"src_strategy": "ckpt_8/strategy", "dst_strategy": "new/strategy"}


@pytest.fixture(scope="module")
def folder(samples):
    before = os.getcwd()
    os.chdir(samples)
    yield samples
    os.chdir(before)


@pytest.fixture(scope="module")
def converted(folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("converted")
    reshard.convert("ckpt_8", out, **STRATEGIES)
    return out


@pytest.fixture(scope="module")
def view(folder):
    return reshard.target("ckpt_8", **STRATEGIES)


def test_files_are_those_of_a_conversion(view, converted):
    assert len(view.files) == 4 and list(view) == list(view.files)
    for file in view.files:
        expected = (converted / file.path).read_bytes()
        assert file.size == len(expected)
        assert view.open(file.path).read() == expected
        assert view.open(file).readall() == expected
    view.verify_unchanged()


def test_findings_are_those_of_a_plan(view, tmp_path):
    plan = reshard.plan("ckpt_8", tmp_path / "none", **STRATEGIES)
    assert view.files == plan.targets
    assert view.findings.parameters == plan.parameters == 65
    assert view.findings.largest == plan.largest and view.findings.step == plan.step
    assert view.findings.source_parameters == plan.source_parameters
    assert (view.findings.warnings, view.findings.notes) == (plan.warnings, plan.notes)
    assert not (tmp_path / "none").exists()
    assert repr(view).startswith("TargetView(4 files, ")


def test_keywords_choose_what_the_files_are(folder, tmp_path):
    for number, keywords in enumerate((
        {"format": "safetensors", "crc": True, "rank": 1},
        {"format": "huggingface", "shard_size": 100_000, "dst_strategy": None},
        {"dtype": {"*": "float32"}, "rename": {"patterns": {"model.*": "*"}}, "exclude": "adam_*"},
        {"dst_strategy": None, "tp": 2, "pp": 2, "stage_layers": [1, 1], "rename": {"patterns": {"model.*": "*"}}},
    )):
        given = {**STRATEGIES, **keywords}
        out = tmp_path / str(number)
        reshard.convert("ckpt_8", out, **given)
        found = reshard.target("ckpt_8", **given)
        assert found.files
        for file in found.files:
            assert found.open(file).read() == (out / file.path).read_bytes()


def test_a_stream_is_read_and_moved_as_files_are(view, converted):
    path = view.files[1].path
    rng = random.Random(7)
    with open(converted / path, "rb", buffering=0) as file, view.open(path) as stream:
        assert isinstance(stream, io.RawIOBase)
        assert stream.readable() and stream.seekable() and not stream.writable()
        assert (stream.name, stream.mode) == (path, "rb")
        for _ in range(300):
            whence = rng.choice((io.SEEK_SET, io.SEEK_CUR, io.SEEK_END))
            offset = rng.randrange(-1000, 300_000)
            outcomes = []
            for each in (file, stream):
                try:
                    outcomes.append(each.seek(offset, whence))
                except (OSError, ValueError):
                    outcomes.append("refused")
            assert outcomes[0] == outcomes[1] and file.tell() == stream.tell()
            size = rng.choice((0, 1, 77, 70_000))
            if rng.random() < 0.5:
                assert stream.read(size) == file.read(size)
            else:
                ours, theirs = bytearray(size), bytearray(size)
                assert stream.readinto(ours) == file.readinto(theirs)
                assert ours == theirs
        with pytest.raises(ValueError):
            stream.seek(0, 7)
        with pytest.raises(io.UnsupportedOperation):
            stream.write(b"x")
        with pytest.raises(io.UnsupportedOperation):
            stream.truncate()
        with pytest.raises(OSError):
            stream.fileno()
    assert stream.closed
    for call in (stream.read, stream.tell, lambda: stream.seek(0), lambda: stream.readinto(bytearray(1))):
        with pytest.raises(ValueError):
            call()


def test_buffers_of_any_kind_are_filled(view, converted):
    path = view.files[0].path
    expected = (converted / path).read_bytes()
    np = pytest.importorskip("numpy")
    for out in (bytearray(800), memoryview(bytearray(800)), np.zeros(100, "f8"), np.zeros((10, 10), "f8")):
        with view.open(path) as stream:
            stream.seek(3)
            assert stream.readinto(out) == 800
        assert memoryview(out).cast("B") == expected[3:803]
    with view.open(path) as stream:
        for refused in (b"abc", memoryview(bytearray(8))[::2], np.zeros((4, 4), "f8").T[1:]):
            with pytest.raises((TypeError, ValueError, BufferError)):
                stream.readinto(refused)
        assert stream.tell() == 0
        assert stream.readinto(bytearray()) == 0
        buffered = io.BufferedReader(stream, 1000)
        assert buffered.read(10) + buffered.read() == expected


def test_parts_of_files(view, converted):
    file = view.files[2]
    expected = (converted / file.path).read_bytes()
    part = view.open(file, offset=1000, length=5000)
    assert part.seek(0, io.SEEK_END) == 5000 and part.read() == b""
    assert part.seek(0) == 0 and part.read() == expected[1000:6000]
    assert part.seek(-10, io.SEEK_END) == 4990 and part.read(100) == expected[5990:6000]
    assert view.open(file, offset=file.size).read() == b""
    assert view.open(file, offset=file.size - 3).read() == expected[-3:]
    for words in ({"offset": -1}, {"offset": file.size + 1}, {"length": file.size + 1}, {"length": -1}):
        with pytest.raises(reshard.InvalidArgumentError, match="bytes; found offset"):
            view.open(file, **words)
    with pytest.raises(reshard.NotFoundError, match="no file of the target"):
        view.open("rank_9/checkpoint_9.ckpt")


def test_threads_read_at_the_same_time(view, converted):
    expected = {file.path: (converted / file.path).read_bytes() for file in view.files}
    wrong = []

    def read(seed):
        rng = random.Random(seed)
        for _ in range(60):
            path = rng.choice(list(expected))
            begin = rng.randrange(len(expected[path]))
            with view.open(path) as stream:
                stream.seek(begin)
                if stream.read(9000) != expected[path][begin:begin + 9000]:
                    wrong.append((path, begin))

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("into", (False, True))
def test_a_read_lets_other_threads_run(view, into):
    seen, entered = threading.Event(), threading.Event()
    reads = 0
    most = 50_000

    def read():
        nonlocal reads
        out = bytearray(1 << 16)
        with view.open(view.files[0]) as stream:
            entered.set()
            while not seen.is_set() and reads < most:
                stream.seek(0)
                stream.readinto(out) if into else stream.read(1 << 16)
                reads += 1

    before = sys.getswitchinterval()
    sys.setswitchinterval(1000)  # a thread is not interrupted, so another one runs only while it reads
    try:
        thread = threading.Thread(target=read)
        thread.start()
        entered.wait()
        seen.set()
        thread.join()
    finally:
        sys.setswitchinterval(before)
    assert reads < most


def test_sources_that_change_are_told(folder, tmp_path):
    shutil.copytree("ckpt_8", tmp_path / "ckpt_8")
    view = reshard.target(tmp_path / "ckpt_8", **STRATEGIES)
    with open(tmp_path / "ckpt_8" / "rank_0" / "llama-1_100.ckpt", "ab") as file:
        file.write(b"more")
    with pytest.raises(reshard.ChangedError, match="rank_0"):
        view.verify_unchanged()


def test_what_cannot_be_opened_is_refused(folder, tmp_path):
    with pytest.raises(reshard.NotFoundError):
        reshard.target(tmp_path / "nowhere", **STRATEGIES)
    with pytest.raises(TypeError, match="encrypt"):
        reshard.target("ckpt_8", **STRATEGIES, encrypt="AES-GCM")
    with pytest.raises(reshard.InvalidArgumentError, match="src_strategy"):
        reshard.target("ckpt_8")
    cancel = threading.Event()
    cancel.set()
    with pytest.raises(reshard.CancelledError):
        reshard.target("ckpt_8", **STRATEGIES, cancel=cancel)


def test_a_child_reads_too(view, converted):
    child = os.fork()
    if child == 0:
        path = view.files[0].path
        os._exit(0 if view.open(path).read() == (converted / path).read_bytes() else 1)
    assert os.waitpid(child, 0)[1] == 0
