"""Layouts: what a rank holds of a full tensor, and random ones."""

import functools
import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Layout:
    """How one parameter is cut over the ranks of a stage.

    tensor_map has one entry for each tensor dimension: a device axis counted
    from the right, or -1; in a nested map each entry is a tuple of these.
    """

    dev_matrix: tuple
    tensor_map: tuple
    opt_step: int = 0
    opt_size: int = 0

    @property
    def nested(self):
        return any(isinstance(entry, tuple) for entry in self.tensor_map)

    @property
    def devices(self):
        return math.prod(self.dev_matrix)

    def axes(self):
        """Returns, for each tensor dimension, the device axes that split it,
        counted from the left, the slowest first."""
        entries = [entry if isinstance(entry, tuple) else (entry,)
                   for entry in self.tensor_map]
        last = len(self.dev_matrix) - 1
        return [[last - axis for axis in entry if axis >= 0]
                for entry in entries]

    def free_axes(self):
        used = {axis for axes in self.axes() for axis in axes}
        return [axis for axis, size in enumerate(self.dev_matrix)
                if size > 1 and axis not in used]

    def opt_parts(self):
        """Returns how many parts optimizer sharding makes of the rows."""
        if not self.opt_step or not self.opt_size:
            return 1
        if self.opt_size > 0:
            return self.opt_size
        return math.prod(self.dev_matrix[axis] for axis in self.free_axes())

    def cuts(self):
        """Returns into how many parts each tensor dimension is cut."""
        out = [math.prod(self.dev_matrix[axis] for axis in axes)
               for axes in self.axes()]
        if out:
            out[0] *= self.opt_parts()
        return out


def _takes(layout):
    """Places optimizer sharding on the free axes, from the right.

    Returns rows of (axis, parts), or None where the parts do not fit the axes.
    """
    left = layout.opt_parts()
    rows = []
    for axis in reversed(layout.free_axes()):
        size = layout.dev_matrix[axis]
        parts = min(left, size)
        if size % parts or left % parts:
            return None
        rows.append((axis, parts))
        left //= parts
        if left == 1:
            return rows
    return None if left > 1 else rows


def _opt_index(layout, rank, coordinates):
    rows = _takes(layout)
    if rows is None:
        return rank % layout.opt_parts()
    index, weight = 0, 1
    for axis, parts in rows:
        index += int(coordinates[axis]) % parts * weight
        weight *= parts
    return index


@functools.lru_cache(maxsize=4096)
def box(layout, rank):
    """Returns, for each dimension, which of how many parts a local rank holds:
    the same for all ranks that hold the same."""
    coordinates = np.unravel_index(rank, layout.dev_matrix)
    out = []
    for axes in layout.axes():
        index, parts = 0, 1
        for axis in axes:
            size = layout.dev_matrix[axis]
            index, parts = index * size + int(coordinates[axis]), parts * size
        out.append((index, parts))
    if out:
        index, parts = out[0]
        more = layout.opt_parts()
        out[0] = (index * more + _opt_index(layout, rank, coordinates),
                  parts * more)
    return tuple(out)


def shard(tensor, layout, rank):
    """Returns the part of a full tensor that a local rank holds."""
    if tensor.ndim == 0:
        return tensor
    slices = []
    for size, (index, parts) in zip(tensor.shape, box(layout, rank)):
        assert size % parts == 0, (tensor.shape, layout)
        slices.append(slice(size // parts * index, size // parts * (index + 1)))
    return tensor[tuple(slices)]


def device_matrix(rng, devices):
    """Returns a random ordered factorization, now and then with ones in it."""
    factors = []
    for prime in (2, 3, 5, 7):
        while devices % prime == 0:
            factors.append(prime)
            devices //= prime
    rng.shuffle(factors)
    out = []
    for factor in factors:
        if out and rng.random() < 0.4:
            out[-1] *= factor
        else:
            out.append(factor)
    while not out or rng.random() < 0.15:
        out.insert(rng.randrange(len(out) + 1), 1)
    return tuple(out)


def _tensor_map(rng, dev_matrix, dimensions, nested):
    last = len(dev_matrix) - 1
    entries = [[] for _ in range(dimensions)]
    for axis in rng.sample(range(last + 1), last + 1):
        entry = rng.choice(entries)
        if rng.random() < 0.6 and (nested or not entry):
            entry.append(last - axis)
    if nested:
        return tuple(tuple(entry) or (-1,) for entry in entries)
    return tuple(entry[0] if entry else -1 for entry in entries)


def _mindspore_errs(layout):
    """Semantics, "Where MindSpore errs", 1: wrong weights without a word."""
    split = [axis for axes in layout.axes() for axis in axes
             if layout.dev_matrix[axis] > 1]
    return (not layout.nested and layout.free_axes() == [0]
            and split != sorted(split))


def with_opt_shards(rng, layout):
    """Returns the layout with optimizer shards, or as it is if none fit."""
    free = layout.free_axes()
    if not free or not layout.tensor_map or _mindspore_errs(layout):
        return layout
    replicas = math.prod(layout.dev_matrix[axis] for axis in free)
    # With one free axis the step is the product of the axes right of it;
    # with every axis free MindSpore reads a greater step as more devices.
    step = math.prod(layout.dev_matrix[free[0] + 1:])
    all_free = len(free) == len(layout.dev_matrix)
    if layout.nested or len(free) > 1:
        step = 1 if all_free else rng.choice((1, 2, 5))
    sizes = [size for size in range(1, replicas + 1) if replicas % size == 0]
    rng.shuffle(sizes)
    for size in [-1] * rng.choice((0, 0, 1)) + sizes:
        found = Layout(layout.dev_matrix, layout.tensor_map, step, size)
        if all_free and not layout.nested or _takes(found) is not None:
            return found
    return layout


def random_layout(rng, devices, dimensions, flat_only):
    """Returns a layout that MindSpore converts from and to rightly."""
    if dimensions == 0:
        return Layout(device_matrix(rng, devices), ())
    dev_matrix = device_matrix(rng, devices)
    # MindSpore has no nested map for one dimension.
    nested = dimensions > 1 and not flat_only and rng.random() < 0.35
    layout = Layout(dev_matrix,
                    _tensor_map(rng, dev_matrix, dimensions, nested))
    if rng.random() < 0.4:
        return with_opt_shards(rng, layout)
    if rng.random() < 0.1:
        # A size without a step, or a step without a size, shards nothing.
        step, size = rng.choice(((0, 1), (1, 0), (2, 0)))
        return Layout(layout.dev_matrix, layout.tensor_map, step, size)
    return layout
