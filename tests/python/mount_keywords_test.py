"""reshard.mount: what its keywords become, and files by the real /dev/fuse where that is."""

import os
import pathlib
import signal
import subprocess
import sys

import pytest
import reshard

PROGRAMS = pathlib.Path(os.environ["RESHARD_BIN"])
STRATEGIES = {"src_strategy": "ckpt_8/strategy", "dst_strategy": "new/strategy"}
serves = pytest.mark.skipif(
    not os.access("/dev/fuse", os.R_OK | os.W_OK) or not (PROGRAMS / "reshard-mount").exists(),
    reason="needs /dev/fuse and a build with libfuse 3.12",
)


@pytest.fixture(autouse=True)
def here(samples, monkeypatch):
    monkeypatch.chdir(samples)
    monkeypatch.setenv("PATH", f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}")
    return samples


def files_of(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in pathlib.Path(folder).rglob("*.*t*")
            if path.is_file() and path.name != ".reshard-status"}


@serves
@pytest.mark.parametrize(
    "keywords",
    (
        {},
        {"format": "safetensors", "crc": True, "check_replicas": True, "cache": True},
        {"dtype": {"model.*": "float32", "": "float16"}, "rename": {"patterns": {"model.*": "*"}}, "rank": [1, "2-3"]},
        {"include": ["*norm*", "*lm_head*"], "exclude": "adam_*", "check_replicas": "none", "jobs": 1},
        {"dst_strategy": None, "format": "hf", "name_rules": "llama:mindformers-to-hf"},
        {"dst_strategy": None, "format": "huggingface", "shard_size": 100_000, "memory_limit": "64M"},
        {"dst_strategy": None, "tp": 2, "dp": 2, "optimizer_sharding": True},
        {"dst_strategy": None, "pp": 2, "stage_layers": [1, 1], "optimizer_sharding": False, "no_checksum": True},
        {"dst_strategy": None, "tp": 2, "dp": 2, "optimizer_sharding": 2, "crc": True},
    ),
)
def test_a_folder_has_the_files_of_a_target(keywords):
    given = {**STRATEGIES, **keywords}
    own = {name: given.pop(name) for name in ("cache",) if name in given}
    view = reshard.target("ckpt_8", **given)
    expected = {file.path: view.open(file).read() for file in view.files}
    with reshard.mount("ckpt_8", **given, **own) as folder:
        assert os.path.ismount(folder)
        assert files_of(folder) == expected
    assert not os.path.exists(folder)


@serves
def test_a_folder_of_the_callers(tmp_path):
    files = {rank: f"ckpt_8/rank_{rank}/llama-1_100.ckpt" for rank in range(8)}
    mount = reshard.mount(files, tmp_path, **STRATEGIES)
    for _ in range(2):
        with mount as folder:
            assert folder == str(tmp_path) and len(files_of(folder)) == 4
            with pytest.raises(ValueError, match="mounted already"):
                mount.__enter__()
        assert not os.path.ismount(tmp_path) and not os.listdir(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(reshard.AlreadyExistsError, match="is not empty"):
        mount.__enter__()


@serves
def test_errors_are_those_of_the_program():
    with pytest.raises(reshard.NotFoundError, match="nowhere"):
        reshard.mount("nowhere", **STRATEGIES).__enter__()
    with pytest.raises(reshard.InvalidArgumentError, match="--src-strategy"):
        reshard.mount("ckpt_8").__enter__()


@serves
def test_it_ends_with_the_process(tmp_path):
    code = f"import reshard, time\nwith reshard.mount('ckpt_8', {str(tmp_path)!r}, **{STRATEGIES!r}):\n print(1, flush=True)\n time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"1\n"
        assert os.path.ismount(tmp_path)
        process.send_signal(signal.SIGKILL)
    # The mount sees the end of its input, and ends in an orderly way.
    subprocess.run(
        ["timeout", "60", "sh", "-c", f"while mountpoint -q {tmp_path}; do sleep 0.05; done"], check=True
    )


def test_without_the_program(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(reshard.UnsupportedError, match="install the package reshard-mount"):
        reshard.mount("ckpt_8", **STRATEGIES).__enter__()
