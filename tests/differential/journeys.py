"""How a training run is stored, what is asked of reshard, and what has to come
of it. The honest and the planted conversions are both made of these."""

import fnmatch
import json
import subprocess
from dataclasses import dataclass, field

import numpy as np

import ciphers
import readers
from layouts import box
from training import OPTIMIZERS, array_of, of_float
from writers import (checkpoint_bytes, group_info, huggingface_folder,
                     safetensors_bytes, strategy_json, strategy_protobuf,
                     unified_folder)

# Seconds that no run takes.
TIMEOUT = 300
# Names of a rank's file: all that training programs use.
STEMS = ("net-1_100", "llama_7b-3_40", "llama_7b_rank_{rank}-1_100",
         "rank{rank}-2_5", "mindformers_rank_{rank}-12_3",
         "CKP_rank_{rank}_1-4_32", "checkpoint_{rank}")
FOLDERS = ("rank_{rank}", "rank_{rank}", "rank_{rank}", "node{rank}",
           "run_{rank}/ckpt")
OLDER = {"-1_100": "-1_90", "-3_40": "-3_4", "-2_5": "-1_50",
         "-12_3": "-9_3", "-4_32": "-4_31"}


@dataclass
class Store:
    """How a training run lies in `folder`/src.

    container: ckpt, safetensors, unified, huggingface or lone (one file); key:
    of encrypted files, by `mode`; shuffled: each file has its tensors in an order
    of its own.
    """

    container: str = "ckpt"
    where: str = "rank_{rank}"
    stem: str = "net-1_100"
    mode: str = None
    key: bytes = None
    crc: bool = False
    metadata: dict = field(default_factory=lambda: {"format": "ms"})
    shuffled: bool = False
    as_sources: bool = False
    older: bool = False
    take_older: bool = False
    options: list = field(default_factory=list)

    @property
    def suffix(self):
        return ".ckpt" if self.container == "ckpt" else ".safetensors"

    @property
    def is_ranks(self):
        return self.container in ("ckpt", "safetensors")

    def path(self, rank):
        return f"{self.where}/{self.stem}{self.suffix}".format(rank=rank)


def random_store(rng, training):
    """Returns a way to store a training run that has a source strategy or
    lies in one file."""
    store = Store(rng.choice(("ckpt", "ckpt", "safetensors")))
    if not training.source:
        store.container = rng.choice(("ckpt", "safetensors", "lone", "unified",
                                      "huggingface"))
    if store.is_ranks:
        store.where, store.stem = rng.choice(FOLDERS), rng.choice(STEMS)
        store.older = rng.random() < 0.25
        store.as_sources = rng.random() < 0.1
    if store.container == "ckpt" and rng.random() < 0.25:
        store.mode = rng.choice(list(ciphers.MODES))
        store.key = rng.randbytes(rng.choice((16, 24, 32)))
    store.crc = store.is_ranks and not store.mode and rng.random() < 0.2
    if store.container == "safetensors":
        store.shuffled = rng.random() < 0.15
        store.metadata = rng.choice((
            {"format": "ms"}, {"format": "pt"}, {},
            {"format": "ms", "remove_redundancy": "False"},
            {"format": "ms", "author": "training", "step": "100"},
            {"format": "pt", training.parameters[0].name: '{"_type": "T"}'}))
    older = next((tail for tail in OLDER if store.stem.endswith(tail)), None)
    store.older = store.older and older is not None
    store.take_older = (store.older and not store.as_sources
                        and rng.random() < 0.3)
    return store


def file_bytes(rng, store, rows, limit):
    """Returns the file of one rank."""
    if store.container != "ckpt":
        metadata = dict(store.metadata)
        if store.crc:
            metadata["crc_num"] = str(readers.safetensors_crcs(
                {row[0]: (row[1], row[2] if row[2] != [0] else [], row[3])
                 for row in rows})[0])
        return safetensors_bytes(rows, metadata,
                                 rng if store.shuffled else None)
    data = checkpoint_bytes(rows, limit, store.crc)
    if store.mode:
        data = ciphers.encrypted(data, store.key, store.mode, rng, rng.choice(
            ((100,), (1000,), (1 << 16,), (1 << 26,), (100, 52, 1000))))
    return data


def write_store(rng, folder, store, training):
    """Writes the files; returns what names the source on a command line."""
    source = folder / "src"
    if not store.is_ranks:
        return _write_whole(rng, source, store, training)
    for rank, rows in training.files.items():
        path = source / store.path(rank)
        path.parent.mkdir(parents=True, exist_ok=True)
        older = _older_path(path) if store.older else None
        other = [(*row[:3], bytes(len(row[3]))) for row in rows]
        if store.take_older:
            path, older = older, path
        path.write_bytes(file_bytes(rng, store, rows, training.value_limit))
        if older:
            older.write_bytes(
                file_bytes(rng, store, other, training.value_limit))
    if store.key:
        (folder / "key").write_bytes(store.key)
    return source_arguments(folder, store, training)


def _older_path(path):
    for newer, older in OLDER.items():
        if path.stem.endswith(newer):
            return path.with_name(path.stem.removesuffix(newer) + older
                                  + path.suffix)
    raise AssertionError(path)


def source_arguments(folder, store, training, ranks=None):
    source = folder / "src"
    options = list(store.options)
    if store.key:
        options += ["--key-file", folder / "key"]
    if store.take_older:
        path = _older_path((source / store.path(0)))
        options += [f"--suffix=-{path.stem.rsplit('-', 1)[1]}"]
    if store.as_sources:
        for rank in training.files:
            options += ["--source", f"{rank}={source / store.path(rank)}"]
        return [], options
    if store.where == "rank_{rank}":
        return [source], options
    pattern = source / store.where
    return [pattern], options


def _write_whole(rng, source, store, training):
    rows = training.files[0]
    source.mkdir()
    if store.container == "lone":
        path = source / "llama.safetensors"
        path.write_bytes(safetensors_bytes(rows, store.metadata))
        return [rng.choice((path, source))], list(store.options)
    if store.container == "unified":
        cut = rng.randrange(len(rows) + 1)
        files = unified_folder(rows[:cut] or rows, rows[cut:] if cut else [],
                               rng.randrange(1, 4))
    else:
        files = huggingface_folder(rows, rng.choice((2000, 20000, 1 << 30)))
    for name, data in files.items():
        (source / name).write_bytes(data)
    return [source], list(store.options)


# Strategies.

def write_side(folder, case, side):
    """Writes a strategy and returns its path: a file, or a folder of stages."""
    write = strategy_json if side.form == "json" else strategy_protobuf
    folder.mkdir()
    path = folder
    for number, layouts in enumerate(side.stages):
        stage = number + side.first_stage
        nodes = [(f"MatMul-op{stage}", stage, [[side.devices, 1], [1]])]
        path = folder / f"strategy_{stage}.{side.form}"
        path.write_bytes(write(nodes, layouts, case.shapes))
    return folder if side.merged else path


def strategy_arguments(folder, case):
    options = []
    for label, side in (("src", case.source), ("dst", case.target)):
        if side:
            options += [f"--{label}-strategy",
                        write_side(folder / f"{label}_strategy", case, side)]
    return options


# What is asked for beside the layouts.

@dataclass
class Choice:
    include: list = field(default_factory=list)
    exclude: list = field(default_factory=list)
    rename: dict = field(default_factory=dict)
    dtypes: list = field(default_factory=list)  # (glob or None, type)

    def options(self, folder):
        out = []
        for label in ("include", "exclude"):
            for glob in getattr(self, label):
                out += [f"--{label}", glob]
        if self.rename:
            path = folder / "rename.json"
            path.write_text(json.dumps(self.rename))
            out += ["--rename", path]
        for glob, dtype in self.dtypes:
            out += ["--dtype", f"{glob}={dtype}" if glob else dtype]
        return out

    def takes(self, name):
        return (not self.include or _matches(name, self.include)) and not (
            _matches(name, self.exclude))

    def new_name(self, name):
        if name in self.rename:
            return self.rename[name]
        for old, new in self.rename.get("patterns", {}).items():
            head, _, tail = old.partition("*")
            if name.startswith(head) and name.endswith(tail) and (
                    len(name) >= len(head) + len(tail)):
                middle = name[len(head):len(name) - len(tail)]
                return new.replace("*", middle, 1)
        return name

    def dtype_of(self, name, dtype, elements):
        if dtype not in FLOATS:
            return dtype
        for glob, wanted in self.dtypes:
            if glob is None:
                if elements == 1 or name.startswith(STATES):
                    continue
            elif not fnmatch.fnmatchcase(name, glob):
                continue
            return TYPES[wanted]
        return dtype

    def applied(self, expected, training):
        """Returns what becomes of (dtype, arrays) by name."""
        out = {}
        for name, (dtype, arrays) in expected.items():
            if not self.takes(name):
                continue
            to = self.dtype_of(name, dtype, training.elements(name, arrays[0]))
            if to != dtype:
                arrays = [of_float(as_float(array, dtype), to)
                          for array in arrays]
            out[self.new_name(name)] = to, arrays
        return out


TYPES = {"float16": "Float16", "bfloat16": "BFloat16", "float32": "Float32",
         "float64": "Float64"}
FLOATS = tuple(TYPES.values())
STATES = tuple(sorted({prefix for states, _ in OPTIMIZERS.values()
                       for prefix in states} | {"accu_grads."}))


def _matches(name, globs):
    return any(fnmatch.fnmatchcase(name, glob) for glob in globs)


def as_float(array, dtype):
    if dtype == "BFloat16":
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float32)


def random_choice(rng, training):
    choice = Choice()
    names = [p.name for p in training.parameters]
    if rng.random() < 0.12:
        choice.exclude = [rng.choice(("adam_*", "accu_grads.*", "*_norm.*",
                                      "*.beta", rng.choice(names)))]
    if rng.random() < 0.08:
        choice.include = ["model.*", "*.weight", "*.gamma", rng.choice(names)]
    if rng.random() < 0.12:
        choice.rename = rng.choice((
            {rng.choice(names): "renamed.weight"},
            {"patterns": {"model.*": "decoder.*"}},
            {"patterns": {"*.weight": "*.w"}}))
    if rng.random() < 0.2:
        wanted = rng.choice(list(TYPES))
        choice.dtypes = rng.choice((
            [(None, wanted)], [("*.weight", wanted)],
            [("*norm*", "float32"), (None, wanted)]))
    if not any(choice.takes(name) for name in
               {row[0] for rows in training.files.values() for row in rows}):
        choice.include = choice.exclude = []
    return choice


# reshard, and what it wrote.

def run(reshard, *arguments):
    return subprocess.run([reshard, *map(str, arguments)],
                          capture_output=True, text=True, errors="replace",
                          timeout=TIMEOUT, check=False)


def said(done):
    """Returns the messages of a run that are no progress."""
    return [line for line in done.stderr.splitlines()
            if "warning:" in line or "error:" in line or "note:" in line]


def differences(expected, found, what):
    """Compares (dtype, dims, content) by name with (dtype, arrays)."""
    out = []
    if set(expected) != set(found):
        out.append(f"{what}: missing {sorted(set(expected) - set(found))}, "
                   f"not expected {sorted(set(found) - set(expected))}")
    for name in sorted(set(expected) & set(found)):
        dtype, arrays = expected[name]
        other, dims, content = found[name]
        if (dtype, list(arrays[0].shape)) != (other, list(dims)):
            out.append(f"{what}: {name} is {other} {list(dims)}, not {dtype} "
                       f"{list(arrays[0].shape)}")
            continue
        if any(array.tobytes() == content for array in arrays):
            continue
        values = array_of(dtype, dims, content)
        right = np.zeros(values.shape, bool)
        for array in arrays:
            right |= (np.ascontiguousarray(array).view(_bits(array))
                      == values.view(_bits(values))).reshape(values.shape)
        if not right.all():
            out.append(f"{what}: {name} {dtype} {list(dims)} has other values")
    return out


def _bits(array):
    return np.dtype(f"u{array.dtype.itemsize}")


def data_files(folder):
    """Returns the files of a set that are no records."""
    return {str(path.relative_to(folder)): path
            for path in folder.rglob("*")
            if path.suffix in (".ckpt", ".safetensors", ".json")
            and path.name != "manifest.json"}


def wrong_rank_files(folder, training, choice, key=None, names=None):
    """Returns what is wrong with a folder of target ranks."""
    out = []
    for rank in range(training.target_ranks):
        if names:
            paths = [folder / names.format(rank=rank)]
        else:
            paths = sorted(path for path in (folder / f"rank_{rank}").glob("*")
                           if path.suffix in (".ckpt", ".safetensors"))
        if len(paths) != 1 or not paths[0].exists():
            out.append(f"rank {rank} has {len(paths)} files")
            continue
        expected = choice.applied(training.expected(rank), training)
        try:
            found = readers.file(paths[0], key)
        except (ValueError, KeyError) as error:
            out.append(f"{paths[0].name}: {error}")
            continue
        out += differences(expected, found, f"rank {rank}")
    return out


def wrong_whole_folder(folder, training, choice, unified):
    expected = choice.applied(training.expected(0), training)
    if unified:
        expected = {name: entry for name, entry in expected.items()
                    if not name.startswith("accu_grads")}
    try:
        return differences(expected, readers.folder(folder), folder.name)
    except (ValueError, KeyError, OSError) as error:
        return [f"{folder.name}: {error!r}"]


def thin_out(rng, training):
    """Leaves each shard that a strategy cuts or repeats in one rank's file, as
    save_checkpoint(remove_redundancy=True) does."""
    for stage, layouts in enumerate(training.source.stages):
        ranks = training.ranks_of(stage)
        keepers = {}
        turn = rng.randrange(8)
        for name, layout in layouts.items():
            if name in training.alternatives or name not in training.full:
                continue
            groups = {}
            for local, rank in enumerate(ranks):
                groups.setdefault(box(layout, local), []).append(rank)
            turn += 1
            for group in groups.values():
                keepers.setdefault(name, set()).add(group[turn % len(group)])
        for rank in ranks:
            training.files[rank] = [
                row for row in training.files[rank]
                if rank in keepers.get(row[0], (rank,))]


def group_info_files(folder, groups):
    """Writes a group_info.pb for each list of ranks; returns the options."""
    options = []
    for number, ranks in enumerate(groups):
        path = folder / f"group_info_{number}.pb"
        path.write_bytes(group_info(ranks))
        options += ["--group-info", path]
    return options
