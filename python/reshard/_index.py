"""The selection of a tensor's index, by numpy's rules: the boxes to read, and their places."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ._guards import is_slice, is_tuple

# Two elements of an axis with more bytes between them are read apart.
_LONGEST_GAP = 64 << 10


class Run(NamedTuple):
    """Indices of an axis that are read together: [begin, begin + extent)."""

    begin: int
    extent: int
    taken: Any  # of the extent: an int, a slice or an array
    place: Any  # in the result's axis; None if the index removes the axis

    @property
    def is_whole(self) -> bool:
        """Whether all of the extent is taken, in its order."""
        taken: Any = self.taken
        return isinstance(taken, int) or (type(taken) is slice and taken.step is None)


class Axis(NamedTuple):
    runs: list[Run]
    length: int | None  # None: an int, which removes the axis


class Block(NamedTuple):
    """A box to read, the part to take from it, and its place in the result."""

    begin: list[int]
    extent: list[int]
    taken: tuple[Any, ...]
    place: tuple[Any, ...]


class Selection(NamedTuple):
    axes: list[Axis]
    shape: tuple[int, ...]  # of the result
    kept: tuple[int, ...]  # of the result without axes from None, with its list's axis in place
    list_first: int | None  # the axis in `kept` that numpy puts first, or None
    is_item: bool  # an element rather than an array

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def is_box(self) -> bool:
        """Whether the result is one box as it is, in its order."""
        return self.list_first is None and all(
            len(axis.runs) == 1 and axis.runs[0].is_whole for axis in self.axes
        )

    def blocks(self) -> Iterator[Block]:
        for runs in itertools.product(*(axis.runs for axis in self.axes)):
            yield Block(
                [run.begin for run in runs],
                [run.extent for run in runs],
                tuple(run.taken for run in runs),
                tuple(run.place for run in runs if run.place is not None),
            )

    def place(self, out: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Returns the view of `out`, which has the result's shape, that blocks go to."""
        if self.list_first is None:
            return out.reshape(self.kept)
        kept = list(self.kept)
        kept.insert(0, kept.pop(self.list_first))
        return np.moveaxis(out.reshape(kept), 0, self.list_first)


def _of_int(index: int, axis: int, size: int) -> Axis:
    if not -size <= index < size:
        raise IndexError(f"index {index} is out of bounds for axis {axis} with size {size}")
    return Axis([Run(index % size, 1, 0, None)], None)


def _of_slice(index: slice, size: int, stride: int) -> Axis:
    picked = range(*index.indices(size))
    length = len(picked)
    if length == 0:
        return Axis([Run(0, 0, slice(None), slice(None))], 0)
    step = picked.step
    if (abs(step) - 1) * stride > _LONGEST_GAP:
        runs = [Run(at, 1, slice(None), slice(i, i + 1)) for i, at in enumerate(picked)]
        return Axis(runs, length)
    begin, last = min(picked[0], picked[-1]), max(picked[0], picked[-1])
    taken = slice(None) if step == 1 or length == 1 else slice(None, None, step)
    return Axis([Run(begin, last - begin + 1, taken, slice(None))], length)


def _of_list(index: Any, axis: int, size: int, stride: int) -> Axis:
    given = np.asarray(index)
    if given.size == 0 and not isinstance(index, np.ndarray):
        given = given.astype(np.int64)
    if given.ndim != 1:
        raise IndexError(f"the list for axis {axis} has {given.ndim} dimensions; expected 1")
    if given.dtype == np.bool_:
        if given.shape[0] != size:
            raise IndexError(
                f"boolean index did not match indexed array along axis {axis}; size of axis is "
                f"{size} but size of corresponding boolean axis is {given.shape[0]}"
            )
        given = np.flatnonzero(given)
    if given.dtype.kind not in "iu":
        raise IndexError("arrays used as indices must be of integer (or boolean) type")
    given = given.astype(np.int64)  # a type of few bits has no room for the size
    outside = (given < -size) | (given >= size)
    if outside.any():
        first = given[outside][0]
        raise IndexError(f"index {first} is out of bounds for axis {axis} with size {size}")
    at = np.where(given < 0, given + size, given)
    if at.size == 0:
        return Axis([Run(0, 0, slice(None), slice(None))], 0)
    order = np.argsort(at, kind="stable")
    ordered = at[order]
    breaks = np.flatnonzero((np.diff(ordered) - 1) * stride > _LONGEST_GAP) + 1
    runs: list[Run] = []
    for places, indices in zip(np.split(order, breaks), np.split(ordered, breaks)):
        begin = int(indices[0])
        runs.append(Run(begin, int(indices[-1]) - begin + 1, indices - begin, places))
    return Axis(runs, len(at))


def _is_int(item: Any) -> bool:
    if isinstance(item, (bool, np.bool_)):
        return False
    try:
        operator.index(item)
    except TypeError:
        return False
    return True


def _items(index: Any) -> tuple[Any, ...]:
    return index if is_tuple(index) else (index,)


def select(index: Any, shape: tuple[int, ...], item_bytes: int) -> Selection:
    """Returns the selection of `index` in this shape. Raises IndexError as numpy does."""
    items = _items(index)
    ellipses = sum(item is Ellipsis for item in items)
    if ellipses > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    used = sum(item is not None and item is not Ellipsis for item in items)
    if used > len(shape):
        raise IndexError(
            f"too many indices: the tensor is {len(shape)}-dimensional, but {used} were indexed"
        )
    rest = [slice(None)] * (len(shape) - used)
    full: list[Any] = []
    for item in items:
        full.extend(rest if item is Ellipsis else [item])
    if not ellipses:
        full.extend(rest)

    axes: list[Axis] = []
    result: list[int] = []
    kept: list[int] = []
    list_at: int | None = None
    advanced: list[int] = []  # places in `full` of ints and of the list
    for place, item in enumerate(full):
        if item is None:
            result.append(1)
            continue
        number = len(axes)
        size = shape[number]
        stride = math.prod(shape[number + 1 :]) * item_bytes
        if is_slice(item):
            axis = _of_slice(item, size, stride)
        elif _is_int(item):
            axis = _of_int(operator.index(item), number, size)
            advanced.append(place)
        elif isinstance(item, (list, range, np.ndarray)):
            if list_at is not None:
                raise IndexError("only one axis can be indexed by a list or mask")
            axis = _of_list(list(item) if isinstance(item, range) else item, number, size, stride)
            list_at = len(kept)
            advanced.append(place)
        else:
            raise IndexError(
                "only integers, slices (`:`), ellipsis (`...`), None and lists or arrays of "
                f"integers or booleans are valid indices, not {type(item).__name__}"
            )
        axes.append(axis)
        if axis.length is not None:
            result.append(axis.length)
            kept.append(axis.length)
    # numpy puts the axis of a list first if the advanced indices are not adjacent.
    apart = list_at is not None and advanced[-1] - advanced[0] >= len(advanced)
    if apart:
        assert list_at is not None
        length = kept[list_at]
        real = [i for i in range(len(result)) if not _is_new(full, i)]
        result.pop(real[list_at])
        result.insert(0, length)
    return Selection(
        axes,
        tuple(result),
        tuple(kept),
        list_at if apart else None,
        not result and not ellipses,
    )


def _is_new(full: list[Any], place: int) -> bool:
    """Whether the result's axis number `place` is one that None put in."""
    axes = [item for item in full if item is None or not _is_int(item)]
    return axes[place] is None


def box_of(index: Any, shape: tuple[int, ...]) -> tuple[list[int], list[int], tuple[Any, ...]]:
    """Returns the box with the selection of `index`, and the index of the result in it."""
    items = _items(index)
    for item in items:
        if not (item is None or item is Ellipsis or isinstance(item, slice) or _is_int(item)):
            raise TypeError("a view takes integers, slices, ... and None; read lists with t[...]")
    # No stride, as there is no read: a single run is enough for each axis.
    chosen = select(index, shape, 0)
    begin = [axis.runs[0].begin for axis in chosen.axes]
    extent = [axis.runs[0].extent for axis in chosen.axes]
    taken = iter([axis.runs[0].taken for axis in chosen.axes])
    rest = len(shape) - sum(item is not None and item is not Ellipsis for item in items)
    inner: list[Any] = []
    for item in items:
        if item is None:
            inner.append(None)
        elif item is Ellipsis:
            inner.extend(next(taken) for _ in range(rest))
        else:
            inner.append(next(taken))
    inner.extend(taken)
    return begin, extent, (*inner, Ellipsis)
