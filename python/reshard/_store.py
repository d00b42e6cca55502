"""Checkpoint: a read-only mapping of names to tensors that are read when they are indexed."""

from __future__ import annotations

import difflib
import fnmatch
import math
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from . import _dtypes, _errors, _index, _jobs, _reshard
from ._paths import StrPath, encode

_WORDS = {"source.path": "path", "source.strategy": "strategy", "source.suffix": "suffix"}

_Stamp = tuple[tuple[bytes, int, int], ...]


class Shard(NamedTuple):
    """A part of a tensor: where it begins, its size, and the ranks that hold it, ascending."""

    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    ranks: tuple[int, ...]


class _Views:
    """What Tensor.mapped returns."""

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor

    def __getitem__(self, index: Any) -> NDArray[Any]:
        return self._tensor._view(index)


class Tensor:
    """A tensor of a checkpoint, whole however it is cut. Nothing is read until it is indexed."""

    __slots__ = ("_checkpoint", "_number", "_type", "name", "nbytes", "per_rank", "shape", "stage")

    def __init__(
        self,
        checkpoint: Checkpoint,
        number: int,
        described: tuple[str, str, int, tuple[int, ...], int, int, bool],
    ) -> None:
        self._checkpoint = checkpoint
        self._number = number
        name, dtype_name, item_bytes, shape, nbytes, stage, in_strategy = described
        self._type = (dtype_name, item_bytes)
        self.name = name
        self.shape = shape
        self.nbytes = nbytes
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
    def shards(self) -> list[Shard]:
        """The parts that the tensor is cut into."""
        store = self._checkpoint._store()
        return [Shard(*part) for part in _errors.call(_WORDS, store.shards, self._number)]

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
        return (self[row] for row in range(len(self)))

    def __contains__(self, value: object) -> bool:
        raise TypeError("a tensor is not searched before it is read: use `in t[...]`")

    def __getitem__(self, index: Any) -> Any:
        """Reads what numpy would select: a new array, or one element. Takes integers, slices,
        `...`, None, and a list or mask for one axis."""
        chosen = self._select(index)
        out = np.empty(chosen.shape, self.dtype)
        self._read(chosen, out)
        return out[()] if chosen.is_item else out

    def read(self, index: Any = ..., *, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Reads what `index` selects, into `out` where that is given, and returns the array.

        `out` is C-contiguous and writable, and has the dtype and shape of the result.
        """
        chosen = self._select(index)
        out = self._destination(chosen.shape, out)
        self._read(chosen, out)
        return out

    def _destination(
        self, shape: tuple[int, ...], out: NDArray[Any] | None, what: str = "out"
    ) -> NDArray[Any]:
        if out is None:
            return np.empty(shape, self.dtype)
        if out.dtype != self.dtype or out.shape != shape:
            raise ValueError(
                f"{what}: expected {self.dtype} of shape {shape}, "
                f"found {out.dtype} of shape {out.shape}"
            )
        if not out.flags.c_contiguous or not out.flags.writeable:
            raise ValueError(f"{what}: expected a C-contiguous array that can be written to")
        return out

    def _reads(self, out: NDArray[Any]) -> Iterator[Callable[[], object]]:
        """Calls that fill `out` together, on any threads."""
        if not self.shape:
            yield partial(self.read, out=out)
            return
        for begin, end in _jobs.rows(self.shape, self.nbytes):
            yield partial(self.read, slice(begin, end), out=out[begin:end])

    def numpy(self) -> NDArray[Any]:
        """Reads the whole tensor into a new array."""
        return self.read()

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        wanted = self.dtype if dtype is None else np.dtype(dtype)
        if copy is False:
            if wanted != self.dtype:
                raise ValueError(f"{self.name!r}: {wanted} instead of {self.dtype} needs a copy")
            return self._view(...)
        return self.numpy().astype(wanted, copy=False)

    @property
    def mapped(self) -> _Views:
        """`t.mapped[index]` is a read-only view of the file, copied nowhere; no lists and masks.

        What is selected has to lie in one file; ValueError otherwise. The view may be unaligned. It
        stays valid after close(). If another process truncates the file, touching the view ends the
        process by SIGBUS; what `t[index]` reads is guarded against that.
        """
        return _Views(self)

    def _select(self, index: Any) -> _index.Selection:
        return _index.select(index, self.shape, self.itemsize)

    def _read(self, chosen: _index.Selection, out: NDArray[Any]) -> None:
        store = self._checkpoint._store()
        if chosen.size == 0:
            return
        if chosen.is_box:
            [block] = chosen.blocks()
            self._read_box(store, block, out)
            return
        place = chosen.place(out)
        for block in chosen.blocks():
            box = np.empty(block.extent, self.dtype)
            self._read_box(store, block, box)
            # One axis after the other: numpy pairs the elements of two lists.
            for axis in reversed(range(len(block.taken))):
                box = box[(slice(None),) * axis + (block.taken[axis],)]
            place[block.place] = box

    def _read_box(self, store: _reshard.Store, block: _index.Block, out: NDArray[Any]) -> None:
        raw = out.reshape(-1).view(np.uint8)
        _errors.call(_WORDS, store.read, self._number, block.begin, block.extent, raw)

    def _view(self, index: Any) -> NDArray[Any]:
        begin, extent, inner = _index.box_of(index, self.shape)
        for shard in self.shards:
            inside = all(
                offset <= first and first + count <= offset + size
                for offset, size, first, count in zip(shard.offsets, shard.sizes, begin, extent)
            )
            if not inside:
                continue
            values = self._checkpoint._file(shard.ranks[0]).view(
                self.name.encode("utf-8", "surrogateescape")
            )
            if len(values) != 1 or values[0].size != math.prod(shard.sizes) * self.itemsize:
                raise ValueError(
                    f"{self.name!r}: the box is in several pieces of its file; read it with t[...]"
                )
            content = values[0].view(self.dtype).reshape(shard.sizes)
            box: tuple[Any, ...] = tuple(
                slice(first - offset, first - offset + count)
                for offset, first, count in zip(shard.offsets, begin, extent)
            )
            # With `...` numpy makes an array of an element, too.
            view: NDArray[Any] = content[box + (...,)][inner]
            return view
        raise ValueError(f"{self.name!r}: the box is in several files; read it with t[...]")

    def __reduce__(self) -> tuple[Any, ...]:
        return _tensor_again, (*self._checkpoint.__reduce__()[1], self.name)

    def __repr__(self) -> str:
        closed = self._checkpoint.closed
        shards = 1 if closed else len(self.shards)
        cut = f", shards={shards}" if shards > 1 else ""
        return f"Tensor({self.name!r}, shape={self.shape}, dtype={self.dtype_name}{cut})"


class Selection(Mapping[str, Tensor]):
    """Some tensors of a checkpoint, in its order."""

    def __init__(self, tensors: dict[str, Tensor]) -> None:
        self._tensors = tensors

    def __getitem__(self, name: str) -> Tensor:
        return self._tensors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def __repr__(self) -> str:
        return f"Selection({len(self)} tensors)"


class Checkpoint(Mapping[str, Tensor]):
    """The tensors of a checkpoint by name, in the order of its files. Opening reads headers only.

    Any number of threads may use it. It can be pickled: it travels as its paths, and is opened
    again, with ChangedError if the files are others by then.
    """

    def __init__(
        self, path: StrPath, strategy: StrPath | None = None, *, suffix: str | None = None
    ) -> None:
        self.path = os.fspath(path)
        self.strategy = None if strategy is None else os.fspath(strategy)
        self._suffix = suffix
        self._opened: _reshard.Store | None = _errors.call(
            _WORDS, _reshard.Store.open, encode(path), encode(strategy), encode(suffix), b""
        )
        self._described = self._opened.tensors()
        self._numbers = {entry[0]: number for number, entry in enumerate(self._described)}
        self._paths = dict(self._opened.files())
        self._mapped: dict[int, _reshard.File] = {}
        self._lock = threading.Lock()

    def _store(self) -> _reshard.Store:
        store = self._opened
        if store is None:
            raise ValueError("checkpoint is closed")
        return store

    def _file(self, rank: int) -> _reshard.File:
        self._store()
        with self._lock:
            file = self._mapped.get(rank)
            if file is None:
                file = _errors.call(_WORDS, _reshard.File.open, self._paths[rank], b"")
                self._mapped[rank] = file
            return file

    @property
    def closed(self) -> bool:
        return self._opened is None

    @property
    def ranks(self) -> list[int]:
        """The ranks whose files are read, ascending."""
        return list(self._paths)

    @property
    def warnings(self) -> list[str]:
        return [_errors.in_words(text, _WORDS) for text in self._store().warnings()]

    @property
    def nbytes(self) -> int:
        return sum(entry[4] for entry in self._described)

    def __getitem__(self, name: str) -> Tensor:
        self._store()
        number = self._numbers.get(name)
        if number is None:
            near = difflib.get_close_matches(str(name), self._numbers, 3)
            hint = f"; did you mean {', '.join(map(repr, near))}?" if near else ""
            raise _errors.UnknownTensorError(f"{name!r} is not in {self.path}{hint}")
        return Tensor(self, number, self._described[number])

    def __contains__(self, name: object) -> bool:
        return name in self._numbers

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def get_tensor(self, name: str) -> NDArray[Any]:
        """As safetensors' safe_open has it: `ckpt[name].numpy()`."""
        return self[name].numpy()

    def get_slice(self, name: str) -> Tensor:
        """As safetensors' safe_open has it: `ckpt[name]`."""
        return self[name]

    def select(self, *patterns: str) -> Selection:
        """The tensors whose names match one of the patterns, as fnmatch.fnmatchcase has them."""
        return Selection(
            {
                name: self[name]
                for name in self
                if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
            }
        )

    def read(
        self,
        names: Iterable[str] | None = None,
        *,
        out: Mapping[str, NDArray[Any]] | None = None,
        jobs: int | None = None,
    ) -> dict[str, NDArray[Any]]:
        """Reads whole tensors, several threads side by side, and returns them by name.

        `names` None: those of `out`, or all. `out` has arrays to be filled, as Tensor.read takes
        them, for some names or all; what it lacks gets a new one. Nothing is read before all of
        them fit. `jobs` threads; 0 is all cores, None the cores up to 4. After an error, or Ctrl-C,
        the contents of the arrays mean nothing.
        """
        given: Mapping[str, NDArray[Any]] = {} if out is None else out
        if names is None:
            names = self if out is None else given
        tensors = {name: self[name] for name in names}
        arrays = {
            name: tensor._destination(tensor.shape, given.get(name), f"out[{name!r}]")
            for name, tensor in tensors.items()
        }
        _jobs.run(
            (read for name, tensor in tensors.items() for read in tensor._reads(arrays[name])), jobs
        )
        return arrays

    def close(self) -> None:
        """Arrays and views that were handed out stay valid."""
        self._opened = None
        with self._lock:
            self._mapped.clear()

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _stamp(self) -> _Stamp:
        stats = ((path, os.stat(path)) for path in self._paths.values())
        return tuple((os.path.abspath(path), s.st_size, s.st_mtime_ns) for path, s in stats)

    def __reduce__(self) -> tuple[Any, ...]:
        self._store()
        strategy = None if self.strategy is None else os.path.abspath(self.strategy)
        return _again, (os.path.abspath(self.path), strategy, self._suffix, self._stamp())

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other

    def __repr__(self) -> str:
        if self.closed:
            return f"Checkpoint({self.path!r}, closed)"
        return f"Checkpoint({self.path!r}, {len(self)} tensors, {self.nbytes / 2**20:.1f} MiB)"


# What was unpickled in this process and is still in use.
_reopened: weakref.WeakValueDictionary[tuple[Any, ...], Checkpoint] = weakref.WeakValueDictionary()


def _again(path: str, strategy: str | None, suffix: str | None, stamp: _Stamp) -> Checkpoint:
    key = (path, strategy, suffix, stamp)
    checkpoint = _reopened.get(key)
    if checkpoint is None or checkpoint.closed:
        checkpoint = Checkpoint(path, strategy, suffix=suffix)
        if checkpoint._stamp() != stamp:
            raise _errors.ChangedError(f"{path}: other files than when the checkpoint was pickled")
        _reopened[key] = checkpoint
    return checkpoint


def _tensor_again(
    path: str, strategy: str | None, suffix: str | None, stamp: _Stamp, name: str
) -> Tensor:
    return _again(path, strategy, suffix, stamp)[name]


def open(
    path: StrPath, strategy: StrPath | None = None, *, suffix: str | None = None
) -> Checkpoint:
    """Opens a checkpoint as a mapping of tensors.

    `path` is a folder with rank folders, a pattern with {rank}, a file, or a folder of whole
    tensors; `strategy` the strategy file or folder that it was saved with; `suffix` the
    "-EPOCH_STEP" to take in each rank folder instead of the latest.
    """
    return Checkpoint(path, strategy, suffix=suffix)
