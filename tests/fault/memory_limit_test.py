#!/usr/bin/env python3
"""Conversions under --memory-limit, over a grid of limits and of shapes that take much memory.

Each run ends with exit code 0, or with 5 and nothing written; either way it stayed within its limit:
its anonymous memory (RssAnon), as it is looked at from outside all the time, and what the program
says that it held, pages of sources and targets included.
"""

import collections
import contextlib
import json
import os
import pathlib
import shutil
import struct
import subprocess
import tempfile
import time

import harness

MIB = 1 << 20
LIMITS = (64, 96, 128, 192, 256, 384, 512, 1024)  # MiB
# Of a sample the shapes have fewer names and files, so that smaller limits are near what they take.
SAMPLE_LIMITS = (28, 32, 40, 48, 64, 96, 128, 256)
SAMPLE_SCALE = 25
# Fast runs that no sample leaves out, since their pages of sources once exceeded these limits.
ALWAYS = {(f"large tensors by pread,{way}, to one file", limit)
          for way in ("direct", "buffered") for limit in (64, 96, 128)}
LOOK = 0.001  # seconds between two looks at a process
KEY = b"0123456789abcdef"

# A run: what it is called in messages, and its arguments behind the program's name, of which {out} is
# a folder or file that is not there yet.
Run = collections.namedtuple("Run", "name arguments")


def json_bytes(value):
    return json.dumps(value, separators=(",", ":")).encode()


def safetensors(names, shape=(2, 1)):
    """A file of Float32 tensors of this shape, all zeros."""
    size = 4 * shape[0] * shape[1]
    header = json_bytes({name: {"dtype": "F32", "shape": shape,
                                "data_offsets": [size * i, size * (i + 1)]}
                         for i, name in enumerate(names)})
    return struct.pack("<Q", len(header)) + header + bytes(size * len(names))


def varint(number):
    out = b""
    while number >= 0x80:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def field(number, value):
    return varint(number << 3 | 2) + varint(len(value)) + value


def checkpoint(names):
    """A .ckpt file of Float32 tensors of the shape (2, 1), all zeros."""
    tensor = field(2, bytes([0x08, 2, 0x08, 1]) + field(2, b"Float32") + field(3, bytes(8)))
    return b"".join(field(1, field(1, name.encode()) + tensor) for name in names)


def strategy(devices, cut, names=("x",)):
    """One that cuts rows in so many parts, or gives each rank all of them."""
    layout = {"dev_matrix": [devices], "tensor_map": [0 if cut else -1, -1],
              "opt_weight_shard_step": 0, "opt_weight_shard_size": 0}
    return json_bytes({"current_stage": 0, "parallel_strategy_item": {},
                       "parallel_layout_item": {name: layout for name in names}})


def expert(layer, number):
    projection = ("gate", "up", "down")[number % 3]
    return f"model.layers.{layer}.mlp.experts.{number // 3}.{projection}_proj.weight"


def hugging_face(folder, tensors, files):
    """A Hugging Face folder: so many tensors in so many files."""
    folder.mkdir()
    weights = {}
    for number in range(files):
        name = f"model-{number + 1:05d}-of-{files:05d}.safetensors"
        names = sorted(expert(number, i) for i in range(tensors // files))
        (folder / name).write_bytes(safetensors(names))
        weights.update(dict.fromkeys(names, name))
    (folder / "model.safetensors.index.json").write_bytes(json_bytes({"weight_map": weights}))


def rank_files(folder, names_of, ranks):
    """A folder of ranks, each with the names that names_of(rank) has."""
    for rank in range(ranks):
        place = folder / f"rank_{rank}"
        place.mkdir(parents=True)
        (place / "net-1_1.ckpt").write_bytes(checkpoint(names_of(rank)))


class Shapes:
    """What is converted, each made when it is first asked for."""

    def __init__(self, tools, work, scale):
        self.tools, self.work, self.scale = tools, work, scale
        self.key = work / "key"
        self.key.write_bytes(KEY)

    def place(self, name, make):
        place = self.work / name
        if not place.exists():
            make(place)
        return str(place)

    def strategy(self, name, *arguments):
        return self.place(name, lambda place: place.write_bytes(strategy(*arguments)))

    def run(self, *arguments):
        subprocess.run([self.tools.reshard, *map(str, arguments), "-q"], check=True)

    def hugging_face(self):
        """500,000 tensors in 50 files."""
        source = self.place("hf", lambda place: hugging_face(place, 500_000 // self.scale, 50))
        whole = ["--dst-strategy", self.strategy("whole.json", 2, False), "--unmatched", "copy"]
        return [
            Run("Hugging Face to itself", ["convert", source, "{out}", "--format", "huggingface"]),
            Run("Hugging Face to ranks", ["convert", source, "{out}", "--format", "ckpt", *whole]),
            Run("Hugging Face to safetensors ranks",
                ["convert", source, "{out}", "--format", "safetensors", *whole]),
            Run("Hugging Face to unified",
                ["convert", source, "{out}", "--format", "unified", "--part-size", "1M"]),
            Run("plan of Hugging Face", ["plan", source, "{out}", "--format", "ckpt", *whole]),
            Run("merge of many tensors", ["merge", "--segments", source, "{out}.safetensors"]),
            Run("Hugging Face by pread",
                ["convert", source, "{out}", "--format", "huggingface", "--io", "pread,buffered"]),
        ]

    def many_files(self):
        """20,000 files of one tensor each."""
        files = 20_000 // self.scale
        source = self.place("files", lambda place: hugging_face(place, files, files))
        return [
            Run("many files to one", ["convert", source, "{out}", "--format", "huggingface"]),
            Run("many files to many",
                ["convert", source, "{out}", "--format", "huggingface", "--shard-size", "8"]),
            Run("plan of many files",
                ["plan", source, "{out}", "--format", "huggingface", "--shard-size", "8"]),
        ]

    def many_ranks(self):
        """5,000 ranks, each with a row of one tensor."""
        ranks = 5000 // self.scale
        source = self.place("ranks", lambda place: rank_files(place, lambda _: ["x"], ranks))
        options = ["--src-strategy", self.strategy("ranks.json", ranks, True), "--dst-strategy",
                   self.strategy("others.json", ranks // 2, True)]
        return [Run("many ranks to half as many", ["convert", source, "{out}", *options]),
                Run("plan of many ranks", ["plan", source, "{out}", *options])]

    def names_differ(self):
        """400,000 names over 16 ranks, of which no two have one in common."""
        ranks, count = 16, 400_000 // 16 // self.scale
        names = [[expert(rank, i) for i in range(count)] for rank in range(ranks)]
        source = self.place("differ",
                            lambda place: rank_files(place, lambda rank: names[rank], ranks))
        every = [name for of_rank in names for name in of_rank]
        before = self.strategy("differ.json", ranks, False, every)
        after = self.strategy("together.json", 4, False, every)
        options = ["--src-strategy", before, "--dst-strategy", after]
        encrypted = self.place("differ_encrypted", lambda place: self.run(
            "convert", source, place, "--src-strategy", before, "--encrypt", "AES-GCM",
            "--encrypt-key-file", self.key, "--dst-strategy", after))
        back = ["--src-strategy", after, "--key-file", str(self.key)]
        return [
            Run("names that differ", ["convert", source, "{out}", *options]),
            Run("names that differ, to safetensors",
                ["convert", source, "{out}", *options, "--format", "safetensors"]),
            Run("names that differ, to one file",
                ["convert", source, "{out}", "--src-strategy", before, "--io", "pread"]),
            Run("names that differ, to Hugging Face",
                ["convert", source, "{out}", "--src-strategy", before, "--format", "huggingface"]),
            Run("plan of names that differ", ["plan", source, "{out}", *options]),
            Run("encrypted, many names", ["convert", encrypted, "{out}", *back]),
            Run("encrypted, many names, to safetensors",
                ["convert", encrypted, "{out}", *back, "--format", "safetensors"]),
        ]

    def large(self):
        """Tensors that are larger than the memory, by each way to files."""
        model = ["--layers", "2" if self.scale == 1 else "1", "--hidden", "1024", "--ffn", "2816",
                 "--vocab", "8192" if self.scale == 1 else "1024"]
        source = self.place("large", lambda place: harness.generate(
            self.tools.gen, place, *model, "--tp", "4"))
        target = self.place("large_to", lambda place: harness.generate(
            self.tools.gen, place, *model, "--tp", "2", "--cut", "columns", "--strategy-only"))
        options = ["--src-strategy", source + "/strategy", "--dst-strategy", target + "/strategy"]
        encrypted = self.place("large_encrypted", lambda place: self.run(
            "convert", source, place, *options, "--encrypt", "AES-GCM", "--encrypt-key-file",
            self.key))
        back = ["--src-strategy", target + "/strategy", "--key-file", str(self.key)]
        runs = []
        for way in ("map,direct", "pread,direct", "pread,buffered"):
            runs += [
                Run(f"large tensors by {way}", ["convert", source, "{out}", *options, "--io", way]),
                Run(f"large tensors by {way}, to one file",
                    ["convert", source, "{out}", *options[:2], "--io", way]),
                Run(f"encrypted by {way}", ["convert", encrypted, "{out}", *back, "--io", way]),
            ]
        for way in ("map", "pread"):  # encrypted blocks begin anywhere: no direct writes
            runs.append(Run(f"large tensors by {way}, encrypted",
                            ["convert", source, "{out}", *options, "--io", way,
                             "--encrypt", "AES-GCM", "--encrypt-key-file", str(self.key)]))
        return runs

    def all(self):
        return [self.hugging_face, self.many_files, self.many_ranks, self.names_differ, self.large]


def anonymous(process):
    """The anonymous bytes of a process, 0 once it has ended."""
    with contextlib.suppress(OSError):
        for line in pathlib.Path(f"/proc/{process.pid}/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) << 10
    return 0


def watch(command):
    """Runs a command; returns its exit code, what it printed, and the most anonymous memory."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        # Between fork and exec the memory is this process's: subprocess waits until that is over.
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors)
        most = 0
        while process.poll() is None:
            most = max(most, anonymous(process))
            time.sleep(LOOK)
        output.seek(0)
        errors.seek(0)
        return process.returncode, output.read().decode(), errors.read().decode(), most


def check(tools, folder, run, limit):
    """Returns the exit code of a run within so many MiB."""
    out = tempfile.mkdtemp(dir=folder)
    os.rmdir(out)
    arguments = [argument.replace("{out}", out) for argument in run.arguments]
    code, output, errors, most = watch([tools.reshard, *arguments, "--memory-limit", f"{limit}M",
                                        "--json"])
    where = f"{run.name}, {limit}M: exit {code}, {most / MIB:.1f} MiB: {errors[-500:]}"
    found = list(pathlib.Path(folder).glob(pathlib.Path(out).name + "*"))
    said = ""
    try:
        assert code in (0, 5), where
        assert most <= limit * MIB, where
        if code == 5:
            assert not found, f"{where}: {found}"
        elif run.arguments[0] == "convert":
            report = json.loads(output)
            said = (f", by itself {report['memory_peak'] / MIB:.1f} of "
                    f"{report['memory_planned'] / MIB:.1f} MiB")
            assert report["memory_peak"] <= limit * MIB, f"{where}{said}"
            assert report["memory_planned"] <= limit * MIB, f"{where}{said}"
    finally:
        for path in found:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    print(f"{run.name}, {limit}M: exit {code}, {most / MIB:.1f} MiB{said}", flush=True)
    return code


def main():
    tools = harness.arguments("reshard", "gen", every=True)
    whole = tools.every == 1
    with harness.scratch() as folder:
        folder = pathlib.Path(folder)
        shapes = Shapes(tools, folder, 1 if whole else SAMPLE_SCALE)
        cases = [(tools, folder, run, limit) for shape in shapes.all() for run in shape()
                 for limit in (LIMITS if whole else SAMPLE_LIMITS)]
        chosen = harness.sample(cases, tools)
        chosen += [case for case in cases
                   if case not in chosen and (case[2].name, case[3]) in ALWAYS]
        codes = harness.run_all(check, chosen)
    print(f"{sum(codes.values())} runs within their limits; exit codes {dict(sorted(codes.items()))}")


if __name__ == "__main__":
    main()
