"""Tensor: a tensor of a checkpoint, or a slice of a tensor, that is read when it is indexed."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import DTypeLike, NDArray

from . import _dtypes, _errors, _exchange, _index, _jobs, _memory, _modules
from ._paths import StrPath
from ._reports import Layout, Strategy, read_strategy
from ._store import WORDS, Recipe, Store, again, changed

_Box = tuple[tuple[int, ...], tuple[int, ...]]  # offsets, sizes
Request = tuple[int, list[int], list[int], NDArray[Any]]

# The limit of bytes that are read before they are put in place, for many boxes.
_BATCH_BYTES = 32 << 20
_BATCH_BOXES = 4096

# The bytes that are read at a time while iterating over rows.
_ITERATED_BYTES = 4 << 20


class Shard(NamedTuple):
    """A part of a tensor: its offsets, its size, and the ranks that hold it, ascending."""

    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    ranks: tuple[int, ...]


class Piece(NamedTuple):
    """A part of a tensor in the file that it is read from."""

    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    rank: int
    path: str
    content: tuple[tuple[int, int], ...]  # (offset, bytes) in the file, in the part's order


class _Views:
    """The result of Tensor.mapped."""

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor

    def __getitem__(self, index: Any) -> NDArray[Any]:
        return self._tensor._view(index)


class Tensor:
    """A tensor of a checkpoint, whole for any cuts, or a slice of a tensor, which begins at
    `offsets`. It is read when it is indexed.

    Any number of threads may use it.
    """

    __slots__ = (
        "_number",
        "_store",
        "_type",
        "full_shape",
        "name",
        "nbytes",
        "offsets",
        "per_rank",
        "shape",
        "stage",
    )

    def __init__(self, store: Store, number: int, box: _Box | None = None) -> None:
        self._store = store
        self._number = number
        described = store.tensors[number]
        name, dtype_name, item_bytes, shape, nbytes, stage, in_strategy = described
        self._type = (dtype_name, item_bytes)
        self.name = name
        self.full_shape = shape
        self.offsets, self.shape = box or ((0,) * len(shape), shape)
        self.nbytes = math.prod(self.shape) * item_bytes if box else nbytes
        self.stage = stage
        self.per_rank = not in_strategy

    @property
    def dtype(self) -> np.dtype[Any]:
        return _dtypes.to_numpy(*self._type)

    @property
    def dtype_name(self) -> str:
        """The name of the element type in MindSpore's words, such as "BFloat16"."""
        return self._type[0]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        return self._type[1]

    @property
    def layout(self) -> Layout | None:
        """How the strategy that the checkpoint was opened with cuts the tensor."""
        strategy = self._store.layouts()
        return None if strategy is None else strategy.layout(self.name, self.stage)

    @property
    def shards(self) -> list[Shard]:
        """The parts that the tensor is cut into; for a slice, the parts that have its elements.
        Offsets count in the full tensor."""
        store = self._store.opened()
        found = [Shard(*part) for part in _errors.call(WORDS, store.shards, self._number)]
        return [part for part in found if self._meets(part)] if self._is_slice else found

    @property
    def _is_slice(self) -> bool:
        return self.shape != self.full_shape

    def _meets(self, part: Shard) -> bool:
        return all(
            begin < first + size and first < begin + extent
            for begin, extent, first, size in zip(
                self.offsets, self.shape, part.offsets, part.sizes
            )
        )

    def _slice(self, offsets: Sequence[int], sizes: Sequence[int]) -> Tensor:
        begin = tuple(first + more for first, more in zip(self.offsets, offsets))
        return Tensor(self._store, self._number, (begin, tuple(sizes)))

    def shard(self, i: int, n: int, axis: int = 0) -> Tensor:
        """Returns part `i` of `n` equal ones along an axis, as a tensor that is read when it is
        indexed."""
        i, n, axis = map(operator.index, (i, n, axis))  # NumPy's integers of few bits overflow
        if not -self.ndim <= axis < self.ndim:
            raise _errors.InvalidArgumentError(
                f"{self.name!r}: axis: expected one of {self.ndim}, found {axis}"
            )
        if not 0 <= i < n:
            raise _errors.InvalidArgumentError(
                f"{self.name!r}: i: expected 0 to {n - 1} of n={n} parts, found {i}"
            )
        axis %= self.ndim
        if self.shape[axis] % n:
            raise _errors.InvalidArgumentError(
                f"{self.name!r}: n: {self.shape[axis]} along axis {axis} are not a multiple of {n}"
            )
        sizes = list(self.shape)
        sizes[axis] //= n
        offsets = [0] * self.ndim
        offsets[axis] = i * sizes[axis]
        return self._slice(offsets, sizes)

    def slice_of(self, rank: int, strategy: StrPath | Strategy) -> Tensor:
        """Returns the part of the tensor that rank `rank` of another cluster holds, as a tensor
        that is read when it is indexed. It is the full tensor if the strategy has no layout for
        it.

        `strategy` is that cluster's: a file, a folder of stage files, or a result of
        reshard.read_strategy, which is quicker for many tensors. MismatchError for a rank whose
        stage does not have the tensor.
        """
        if self._is_slice:
            raise _errors.InvalidArgumentError(
                f"{self.name!r}: it is a slice of the tensor already"
            )
        read = strategy if isinstance(strategy, Strategy) else read_strategy(strategy)
        rank = operator.index(rank)
        stage, local = divmod(rank, read.devices_per_stage)
        if not 0 <= stage < read.stages:
            raise _errors.InvalidArgumentError(
                f"rank: expected 0 to {read.stages * read.devices_per_stage - 1}, found {rank}"
            )
        layout = read.layout(self.name, stage)
        if layout is not None:
            return self._slice(*layout.box(self.full_shape, local))
        homes = [n for n in range(read.stages) if read.layout(self.name, n) is not None]
        if homes:
            raise _errors.MismatchError(
                f"{self.name!r}: {read.path} has it in stage {homes[0]}, rank {rank} in {stage}"
            )
        return self

    def locate(self, index: Any = ...) -> list[Piece]:
        """Returns the parts that have the selection of `index`: ints, slices, ... and None. Offsets
        count in the full tensor."""
        begin, extent, _ = self._box_of(index)
        return [
            Piece(part_begin, part_extent, rank, os.fsdecode(path), tuple(content))
            for part_begin, part_extent, rank, path, content in _errors.call(
                WORDS, self._store.opened().locate, self._number, begin, extent
            )
        ]

    def get_shape(self) -> list[int]:
        return list(self.shape)

    def get_dtype(self) -> str:
        return self.dtype_name

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a tensor without dimensions")
        return self.shape[0]

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Any]:
        """Rows that are read in groups: each row is a view of the array of its group."""
        rows = len(self)
        step = max(1, _ITERATED_BYTES * rows // max(1, self.nbytes))
        return (row for begin in range(0, rows, step) for row in self[begin : begin + step])

    def __contains__(self, value: object) -> bool:
        raise TypeError("a tensor is not searched before it is read: use `in t[...]`")

    # Before NumPy's arrays, which would read it.
    __array_priority__ = 1000.0

    def _not_read(self, *others: object) -> NoReturn:
        raise TypeError(f"{self.name!r} is computed with once it is read: use t[...]")

    __neg__ = __pos__ = __abs__ = __invert__ = _not_read
    __lt__ = __le__ = __gt__ = __ge__ = _not_read
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _not_read
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _not_read
    __pow__ = __rpow__ = __matmul__ = __rmatmul__ = _not_read

    def __getitem__(self, index: Any) -> Any:
        """Reads a selection by numpy's rules: a new array, or a single element. Takes integers,
        slices, `...`, None, and a list or mask for one axis."""
        chosen = self._select(index)
        out = np.empty(chosen.shape, self.dtype)
        self._read(chosen, out)
        return out[()] if chosen.is_item else out

    def read(
        self, index: Any = ..., *, out: NDArray[Any] | None = None, jobs: int = 1
    ) -> NDArray[Any]:
        """Reads the selection of `index`, into `out` if given, and returns the array.

        `out` is C-contiguous and writable, and has the dtype and shape of the result. `jobs`
        threads read; 0 is all cores.
        """
        chosen = self._select(index)
        out = self.destination(chosen.shape, out)
        self._read(chosen, out, _jobs.threads(jobs))
        return out

    def destination(
        self, shape: tuple[int, ...], out: NDArray[Any] | None, what: str = "out"
    ) -> NDArray[Any]:
        if out is None:
            return _memory.empty(shape, self.dtype)
        if out.dtype != self.dtype or out.shape != shape:
            raise ValueError(
                f"{what}: expected {self.dtype} of shape {shape}, "
                f"found {out.dtype} of shape {out.shape}"
            )
        if not out.flags.c_contiguous or not out.flags.writeable:
            raise ValueError(f"{what}: expected a C-contiguous array that can be written to")
        return out

    def request(self, out: NDArray[Any]) -> Request:
        """The store's requests to fill `out` with the full tensor."""
        return self._number, list(self.offsets), list(self.shape), _bytes_of(out)

    def numpy(self) -> NDArray[Any]:
        """Reads the full tensor into a new array."""
        return self.read()

    def torch(self, *, mmap: bool = False) -> Any:
        """Returns the tensor as a torch.Tensor with its own memory, read into it.

        `mmap`: if one file holds all of it, aligned, its pages are read when they are touched.
        Writes to them stay in this process. Otherwise it is read now.
        """
        return _exchange.to_torch(self._own(mmap), self.dtype_name)

    def mindspore(self, *, mmap: bool = False) -> Any:
        """Returns the tensor as a mindspore.Tensor with its own memory; `mmap` as for `torch`."""
        return _exchange.to_mindspore(self._own(mmap), self.dtype_name)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Reads the tensor and hands its memory over; BufferError for `copy=False`."""
        if copy is False:
            raise BufferError(f"{self.name!r}: it is read from files; that is a copy")
        return _exchange.capsule(self.numpy(), self.dtype_name, stream, max_version, dl_device)

    def __dlpack_device__(self) -> tuple[int, int]:
        return _exchange.CPU

    def _own(self, mmap: bool) -> NDArray[Any]:
        """The tensor in writable memory, as its receivers write to it."""
        if mmap:
            try:
                view = self._view(..., private=True)
            except (ValueError, _errors.UnsupportedError):
                return self.numpy()
            if view.flags.aligned and view.flags.c_contiguous:
                return view
        return self.numpy()

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        wanted = self.dtype if dtype is None else np.dtype(dtype)
        if copy is False:
            if wanted != self.dtype:
                raise ValueError(f"{self.name!r}: {wanted} instead of {self.dtype} needs a copy")
            return self._view(...)
        return self.numpy().astype(wanted, copy=False)

    @property
    def mapped(self) -> _Views:
        """`t.mapped[index]` is a read-only view of the file, without a copy; no lists and masks.

        The selection has to be in one file; ValueError otherwise. The view may be unaligned. It
        stays valid after close(). If another process truncates the file, touching the view ends
        the process by SIGBUS. `t[index]` guards against that.
        """
        return _Views(self)

    def _select(self, index: Any) -> _index.Selection:
        return _index.select(index, self.shape, self.itemsize)

    def _box_of(self, index: Any) -> tuple[list[int], list[int], tuple[Any, ...]]:
        """The selection of `index` in the full tensor: as _index.box_of."""
        begin, extent, inner = _index.box_of(index, self.shape)
        return self._in_whole(begin), extent, inner

    def _in_whole(self, begin: list[int]) -> list[int]:
        return [at + first for at, first in zip(begin, self.offsets)]

    def _read(self, chosen: _index.Selection, out: NDArray[Any], jobs: int = 1) -> None:
        store = self._store.opened()
        if chosen.size == 0:
            return
        blocks = list(chosen.blocks())
        if chosen.is_box:
            [block] = blocks
            request = (self._number, self._in_whole(block.begin), block.extent, _bytes_of(out))
            if jobs == 1:
                _errors.call(WORDS, store.read, *request)
            else:
                _errors.call(WORDS, store.read_many, [request], jobs, None)
            return
        place = chosen.place(out)
        for some in _batches(blocks, self.itemsize):
            boxes = [np.empty(block.extent, self.dtype) for block in some]
            requests = [
                (self._number, self._in_whole(block.begin), block.extent, _bytes_of(box))
                for block, box in zip(some, boxes)
            ]
            _errors.call(WORDS, store.read_many, requests, jobs, None)
            for block, box in zip(some, boxes):
                # One axis after the other: numpy pairs the elements of two lists.
                for axis in reversed(range(len(block.taken))):
                    box = box[(slice(None),) * axis + (block.taken[axis],)]
                place[block.place] = box

    def _view(self, index: Any, private: bool = False) -> NDArray[Any]:
        begin, extent, inner = self._box_of(index)
        store = self._store.opened()
        parts = _errors.call(WORDS, store.locate, self._number, begin, extent)
        if len(parts) != 1:
            if 0 in extent:
                return np.empty(extent, self.dtype)[inner]  # type: ignore[no-any-return]
            raise ValueError(
                f"{self.name!r}: the box is in several files; read it with t[...]"
            )
        [(offsets, sizes, rank, _, content)] = parts
        if len(content) != 1:
            raise ValueError(
                f"{self.name!r}: the box is in several pieces of its file; read it with t[...]"
            )
        [(offset, nbytes)] = content
        mapped = self._store.map(rank, private)[offset : offset + nbytes]
        box: tuple[Any, ...] = tuple(
            slice(first - start, first - start + count)
            for start, first, count in zip(offsets, begin, extent)
        )
        # With `...` numpy makes an array of an element, too.
        view: NDArray[Any] = mapped.view(self.dtype).reshape(sizes)[box + (...,)][inner]
        return view

    def __reduce__(self) -> tuple[Any, ...]:
        box = (self.offsets, self.shape) if self._is_slice else None
        recipe = self._store.recipe()
        return _tensor_again, (recipe, self._number, box, self._described(), self._places())

    def _described(self) -> tuple[str, str, tuple[int, ...]]:
        return self.name, self.dtype_name, self.full_shape

    def _places(self) -> bytes:
        """A digest of the places of its bytes, without the names of files."""
        pieces = [(p.offsets, p.sizes, p.rank, p.content) for p in self.locate()]
        text = repr(pieces).encode()
        return bytes(_modules.load("hashlib").blake2b(text, digest_size=16).digest())

    def __repr__(self) -> str:
        closed = self._store.closed
        shards = 1 if closed else len(self.locate())  # it opens no file, while `shards` may
        cut = f", shards={shards}" if shards > 1 else ""
        begin = f", offsets={self.offsets}" if self._is_slice else ""
        return f"Tensor({self.name!r}, shape={self.shape}, dtype={self.dtype_name}{begin}{cut})"


def _bytes_of(array: NDArray[Any]) -> NDArray[Any]:
    return array.reshape(-1).view(np.uint8)


def _batches(blocks: list[_index.Block], item_bytes: int) -> Iterator[list[_index.Block]]:
    some: list[_index.Block] = []
    held = 0
    for block in blocks:
        some.append(block)
        held += math.prod(block.extent) * item_bytes
        if held >= _BATCH_BYTES or len(some) == _BATCH_BOXES:
            yield some
            some, held = [], 0
    if some:
        yield some


def _tensor_again(
    recipe: Recipe,
    number: int,
    box: _Box | None,
    described: tuple[str, str, tuple[int, ...]],
    places: bytes,
) -> Tensor:
    tensor = Tensor(again(*recipe), number, box)
    if tensor._described() != described or tensor._places() != places:
        raise changed(recipe[0], f"{described[0]!r} is another tensor")
    return tensor
