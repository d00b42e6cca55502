"""The conversions that bench/suite.py measures, and how reshard-gen makes their samples."""

import dataclasses
import shutil
import subprocess
import pathlib

from measure import GIB, Failure, files_of, total_bytes

# Bytes of a parameter of the Llama-like model: BFloat16, and two Float32 states of Adam.
LLAMA_ITEM = 10


@dataclasses.dataclass(frozen=True)
class Case:
    """A conversion. `model` takes the size of the sample in GiB and returns options of reshard-gen;
    `source` and `target` are the options that cut it. None: full tensors, without a strategy.
    """
    name: str
    title: str
    model: callable
    source: list
    target: list
    gib: float = 1.0
    only_named: bool = False  # takes very long: not among those that are run by themselves
    source_format: str = "ckpt"  # or another value of --format
    target_format: str = None  # the source's, where it is None


def _matrices(count, columns, rows_at_one_gib):
    def options(size):
        rows = max(8, int(rows_at_one_gib * size) // 8 * 8)
        return ["--matrices", count, "--rows", rows, "--columns", columns, "--dtype", "Float32",
                "--no-optimizer"]
    return options


def _float_matrices(count, columns):
    return _matrices(count, columns, GIB // (count * columns * 4))


def llama(size):
    hidden = 1024 if size >= 0.5 else 128
    ffn, vocab = 4 * hidden, 16 * hidden
    layer = (4 * hidden * hidden + 3 * hidden * ffn) * LLAMA_ITEM
    layers = max(4, round((size * GIB - 2 * vocab * hidden * LLAMA_ITEM) / layer))
    return ["--layers", layers, "--hidden", hidden, "--ffn", ffn, "--vocab", vocab]


def _tiny(size):
    # Parameters of 32 KiB: some 10,000 of them, fewer when a small sample is asked for.
    return ["--matrices", max(8, int(10000 * min(1, size / TINY_GIB))), "--rows",
            max(128, int(128 * size / TINY_GIB) // 8 * 8), "--columns", 64, "--dtype", "Float32",
            "--no-optimizer"]


def _experts(size):
    # 60 layers of 256 experts: 138,240 matrices with Adam's states, of 2 and 4 KiB.
    return ["--layers", 60, "--experts", max(1, int(256 * min(1, size / EXPERTS_GIB))),
            "--hidden", 32, "--ffn", 32, "--vocab", 1024]


EXPERTS_GIB = 60 * 256 * 3 * 32 * 32 * LLAMA_ITEM / GIB
TINY_GIB = 10000 * 128 * 64 * 4 / GIB


def _cut(kind, parts):
    return ["--cut", kind, "--tp", parts]


def _column_cut(run, title):
    # 4 source ranks of Float32: a run is as many bytes as the matrix has columns.
    return Case(f"columns_{title.replace(' ', '').lower()}", f"column cut, runs of {title}",
                _float_matrices(8, run), _cut("columns", 4), _cut("columns", 2))


FULL = ("unified", "huggingface")  # formats of folders of full tensors


def _formats(source, target):
    """Eight ranks, or a folder of full tensors, into another format."""
    cuts = [None if name in FULL else ["--tp", 8] for name in (source, target)]
    return Case(f"{source}_to_{target}", f"{source} to {target}", llama, *cuts, only_named=True,
                source_format=source, target_format=target)


CASES = [
    Case("rows", "row cut", _float_matrices(8, 2048), _cut("rows", 4), _cut("rows", 2)),
    _column_cut(256, "256 B"),
    _column_cut(1024, "1 KiB"),
    _column_cut(4096, "4 KiB"),
    _column_cut(65536, "64 KiB"),
    Case("optimizer_merge", "optimizer shards merged", llama,
         ["--tp", 2, "--dp", 4, "--optimizer-sharding"], ["--tp", 2]),
    Case("pipeline_split", "pipeline split", llama, ["--tp", 2], ["--tp", 2, "--pp", 4]),
    Case("pipeline_merge", "pipeline merge", llama, ["--tp", 2, "--pp", 4], ["--tp", 2]),
    Case("full_to_8", "full to 8 ranks", llama, None, ["--tp", 8]),
    Case("8_to_full", "8 ranks to full", llama, ["--tp", 8], None),
    Case("tiny", "10,000 tiny parameters", _tiny, _cut("rows", 4), _cut("rows", 2), gib=TINY_GIB),
    Case("experts", "138,240 matrices of experts", _experts, ["--tp", 8], ["--tp", 16],
         gib=EXPERTS_GIB, only_named=True),
    Case("giant", "one 8 GiB tensor", _matrices(1, 8192, 32768), _cut("columns", 2),
         _cut("columns", 1), gib=8.0),
    _formats("ckpt", "safetensors"),
    _formats("ckpt", "unified"),
    _formats("ckpt", "huggingface"),
    _formats("safetensors", "ckpt"),
    _formats("unified", "ckpt"),
    _formats("huggingface", "ckpt"),
    _formats("safetensors", "safetensors"),
    _formats("safetensors", "unified"),
]

# In memory, where nothing but the processor limits: two target files, and one.
JOBS_CASES = [
    Case("jobs_files", "two target files", _float_matrices(8, 4096), _cut("columns", 4),
         _cut("columns", 2)),
    Case("jobs_one_file", "one target file", _float_matrices(8, 4096), _cut("columns", 4),
         _cut("columns", 1)),
]


class Sample:
    """The files of a case in a folder of their own. A strategy is a file, or None."""

    def __init__(self, folder, checkpoint, strategies, case):
        self.folder = folder
        self.checkpoint = checkpoint  # with rank_N, or full tensors
        self.source_strategy, self.target_strategy = strategies
        self.source_format, self.target_format = case.source_format, case.target_format
        self.files = [file for file in files_of(checkpoint)
                      if file.suffix in (".ckpt", ".safetensors")]
        self.bytes = total_bytes(checkpoint)

    @property
    def source(self):
        """What reshard takes: the file itself where it holds full tensors."""
        is_folder = self.source_strategy or self.source_format in FULL
        return self.checkpoint if is_folder else self.files[0]


def make_sample(case, size, binaries, folder):
    """Makes the source of a case and both its strategies. Raises Failure."""
    def call(program, *options):
        done = subprocess.run([str(part) for part in (binaries / program, *options)], check=False,
                              capture_output=True, text=True)
        if done.returncode != 0:
            raise Failure(f"{case.name}: {done.stderr.strip()}")

    def make(name, cut, *options):
        call("reshard-gen", folder / name, *case.model(case.gib * size), *(cut or []), *options)
        made = folder / name / "strategy"
        strategy = folder / f"{name}_strategy.ckpt"
        if len(files_of(made)) > 1:
            call("reshard", "strategy", "merge", made, strategy)
        else:
            shutil.copy(made / "strategy_0.ckpt", strategy)
        shutil.rmtree(made)
        return strategy if cut else None

    def write_anew():
        """Writes the source in its format."""
        (folder / "source").rename(folder / "ranks")
        strategy = folder / "source_strategy.ckpt"
        options = ["--src-strategy", strategy, "--format", case.source_format]
        if case.source_format not in FULL:
            options += ["--dst-strategy", strategy]
        call("reshard", "convert", folder / "ranks", folder / "source", "--no-checksum", *options)
        shutil.rmtree(folder / "ranks")
        (folder / "source" / "manifest.json").unlink()
        shutil.rmtree(folder / "source" / "part_records", ignore_errors=True)

    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    strategies = make("source", case.source), make("target", case.target, "--strategy-only")
    shutil.rmtree(folder / "target")
    if case.source_format != "ckpt":
        write_anew()
    return Sample(folder, pathlib.Path(folder / "source"), strategies, case)
