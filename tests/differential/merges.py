#!/usr/bin/env python3
"""Compares `reshard merge` with the installed MindSpore on random slices.

MindSpore merges each parameter with merge_sliced_parameter, or loads a folder
of segments with load_segmented_checkpoints, and saves what came of it: the file
has to be that of reshard, byte for byte.
"""

import subprocess
import sys

import mindspore
import numpy as np
from mindspore.parallel import checkpoint_transform

import case_loop
import layouts
import writers

DTYPES = {"Float32": np.float32, "Float16": np.float16, "Int32": np.int32,
          "Int8": np.int8, "Float64": np.float64}


def tensor_of(rng, dtype, shape):
    size = int(np.prod(shape)) * np.dtype(DTYPES[dtype]).itemsize
    values = np.frombuffer(rng.randbytes(size), np.int8) // 4 * 4
    return np.nan_to_num(values.view(DTYPES[dtype])).reshape(shape)


def row_of(name, dtype, tensor):
    return name, dtype, tensor.shape, np.ascontiguousarray(tensor).tobytes()


def parts_of(total, count, rng):
    """Cuts a number into so many parts of 1 and more."""
    ends = sorted(rng.sample(range(1, total), count - 1)) + [total]
    return [end - begin for begin, end in zip([0] + ends, ends)]


class Slices:
    """Slices of a few parameters: by rank, rows of a checkpoint file."""

    def __init__(self, rng):
        self.with_strategy = rng.random() < 0.8
        self.devices = rng.choice([1, 2, 4, 6, 8])
        self.ranks = [[] for _ in range(self.devices)]
        self.layouts, self.splits, self.fields = {}, {}, {}
        for number in range(rng.randint(1, 4)):
            make = rng.choice([self.even, self.uneven, self.field]
                              if self.with_strategy else [self.rows])
            make(rng, f"net.p{number}", rng.choice(list(DTYPES)))

    def add(self, name, dtype, slices):
        for rank, tensor in zip(self.ranks, slices):
            rank.append(row_of(name, dtype, tensor))

    def rows(self, rng, name, dtype):
        columns = [rng.randint(1, 5) for _ in range(rng.randint(0, 2))]
        self.add(name, dtype, [
            tensor_of(rng, dtype, [rng.randint(1, 4)] + columns)
            for _ in self.ranks])

    def even(self, rng, name, dtype):
        while True:
            layout = layouts.random_layout(rng, self.devices,
                                           rng.randint(1, 3), flat_only=True)
            if layout.opt_parts() == 1 and not layout.nested:
                break
        shape = [cut * rng.randint(1, 3) for cut in layout.cuts()]
        tensor = tensor_of(rng, dtype, shape)
        self.layouts[name] = layout
        self.add(name, dtype, [layouts.shard(tensor, layout, rank)
                               for rank in range(self.devices)])

    def uneven(self, rng, name, dtype):
        """Rows over the first axis of two, the second for replicas."""
        cut = rng.choice([c for c in (1, 2, 3, 4, 6, 8)
                          if self.devices % c == 0])
        layout = layouts.Layout((cut, self.devices // cut), (1, -1))
        sizes = parts_of(rng.randint(cut, 3 * cut) + 1, cut, rng)
        tensor = tensor_of(rng, dtype, [sum(sizes), rng.randint(1, 4)])
        cuts = np.split(tensor, np.cumsum(sizes)[:-1])
        self.layouts[name], self.splits[name] = layout, sizes
        self.add(name, dtype, [cuts[rank // (self.devices // cut)]
                               for rank in range(self.devices)])

    def field(self, rng, name, dtype):
        self.fields[name] = rng.randint(1, 4)
        shape = [self.fields[name] * rng.randint(1, 3), rng.randint(1, 5)]
        self.layouts[name] = layouts.Layout((1, self.devices), (0, -1))
        self.add(name, dtype,
                 [tensor_of(rng, dtype, shape) for _ in self.ranks])

    def write(self, folder):
        """Writes the files; returns reshard's arguments and the strategy."""
        files = []
        for number, rows in enumerate(self.ranks):
            files.append(folder / f"rank_{number}.ckpt")
            writers.write_checkpoint(files[-1], rows)
        if not self.with_strategy:
            return files, None
        strategy = folder / "strategy.ckpt"
        strategy.write_bytes(writers.strategy_protobuf(
            [("MatMul-op0", 0, ((1, 1),))], self.layouts, self.splits,
            self.fields))
        return files, strategy


def merge_slices(files, strategy, out):
    """What MindSpore makes of them."""
    loaded = [mindspore.load_checkpoint(str(file)) for file in files]
    layout = (mindspore.build_searched_strategy(str(strategy))
              if strategy else None)
    merged = []
    for name in loaded[0]:
        parameter = mindspore.merge_sliced_parameter(
            [parameters[name] for parameters in loaded], layout)
        merged.append({"name": name, "data": parameter})
    mindspore.save_checkpoint(merged, str(out))


def merge_segments(rng, folder, out):
    """Writes segments, some with parameters of others, and merges them."""
    rows = [row_of(f"p{number}", "Float32",
                   tensor_of(rng, "Float32", [rng.randint(1, 9)]))
            for number in range(rng.randint(1, 9))]
    parts = folder / "parts"
    count = rng.randint(1, 12)
    for number in range(count):
        own = rows[number::count] + rng.sample(rows, rng.randint(0, 1))
        own = list(dict.fromkeys(own)) or rows[:1]
        writers.write_checkpoint(parts / f"net_part{number}.ckpt", own)
    names = [str(parts / f"net_part{number}.ckpt") for number in range(count)]
    listing = checkpoint_transform.glob.glob
    checkpoint_transform.glob.glob = lambda _: names
    try:
        loaded = mindspore.load_segmented_checkpoints(str(parts))
    finally:
        checkpoint_transform.glob.glob = listing
    mindspore.save_checkpoint([{"name": name, "data": parameter}
                               for name, parameter in loaded.items()],
                              str(out))
    return ["--segments", parts]


def check(rng, reshard, folder):
    """Runs one case; returns what is wrong with it, if anything."""
    expected, found = folder / "expected.ckpt", folder / "found.ckpt"
    if rng.random() < 0.2:
        arguments = merge_segments(rng, folder, expected)
    else:
        files, strategy = Slices(rng).write(folder)
        merge_slices(files, strategy, expected)
        arguments = files + (["--strategy", strategy] if strategy else [])
    done = subprocess.run([reshard, "merge", *arguments, found, "-q"],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return done.stderr
    if found.read_bytes() != expected.read_bytes():
        return "other bytes"
    return None


if __name__ == "__main__":
    sys.exit(case_loop.run(__doc__, check))
