"""Checkpoint: a read-only mapping of names to tensors that are read when they are indexed."""

from __future__ import annotations

import difflib
import fnmatch
import html
import math
import os
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, NamedTuple, Union, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from . import _dtypes, _errors, _exchange, _index, _jobs, _keys, _memory, _reshard
from ._inspect import read_strategy
from ._paths import StrPath, encode
from ._progress import Event, ProgressChoice, Watch
from ._reports import Layout, Strategy

_WORDS = {
    "key": "key_file or key_env",
    "source.files": "path",
    "source.path": "path",
    "source.strategy": "strategy",
    "source.suffix": "suffix",
}

_Stamp = tuple[tuple[bytes, int, int], ...]

Source = Union[StrPath, Mapping[int, StrPath]]  # a path, or the file of each rank
Io = Literal["auto", "map", "pread"]


class Shard(NamedTuple):
    """A part of a tensor: where it begins, its size, and the ranks that hold it, ascending."""

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


class MapTensor(NamedTuple):
    """A MapTensor as its file holds it, one array of each for every Value."""

    keys: tuple[NDArray[Any], ...]
    values: tuple[NDArray[Any], ...]
    status: tuple[NDArray[Any], ...]


class _Views:
    """What Tensor.mapped returns."""

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor

    def __getitem__(self, index: Any) -> NDArray[Any]:
        return self._tensor._view(index)


class Tensor:
    """A tensor of a checkpoint, whole however it is cut, or a slice of one, which begins at
    `offsets`. Nothing is read until it is indexed.

    Any number of threads may use it.
    """

    __slots__ = (
        "_checkpoint",
        "_number",
        "_type",
        "full_shape",
        "name",
        "nbytes",
        "offsets",
        "per_rank",
        "shape",
        "stage",
    )

    def __init__(
        self,
        checkpoint: Checkpoint,
        number: int,
        described: tuple[str, str, int, tuple[int, ...], int, int, bool],
        box: _Box | None = None,
    ) -> None:
        self._checkpoint = checkpoint
        self._number = number
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
        strategy = self._checkpoint._layouts()
        return None if strategy is None else strategy.layout(self.name, self.stage)

    @property
    def shards(self) -> list[Shard]:
        """The parts that the tensor is cut into; of a slice, those that it has elements of. Their
        offsets count in the whole tensor."""
        store = self._checkpoint._store()
        found = [Shard(*part) for part in _errors.call(_WORDS, store.shards, self._number)]
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
        described = self._checkpoint._described[self._number]
        begin = tuple(first + more for first, more in zip(self.offsets, offsets))
        return Tensor(self._checkpoint, self._number, described, (begin, tuple(sizes)))

    def shard(self, i: int, n: int, axis: int = 0) -> Tensor:
        """Returns part `i` of `n` equal ones along an axis, as a tensor that is read when it is
        indexed."""
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
        """Returns what rank `rank` of another cluster holds of the tensor, as a tensor that is read
        when it is indexed; all of it where the strategy has no layout for it.

        `strategy` is that cluster's: a file, a folder of stage files, or what
        reshard.read_strategy returned, which is quicker for many tensors. MismatchError for a rank
        whose stage does not have the tensor.
        """
        if self._is_slice:
            raise _errors.InvalidArgumentError(f"{self.name!r}: it is a slice of the tensor already")
        read = strategy if isinstance(strategy, Strategy) else read_strategy(strategy)
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
        """Returns the parts that what `index` selects is read from: ints, slices, ... and None.
        Their offsets count in the whole tensor."""
        begin, extent, _ = self._box_of(index)
        return [
            Piece(part_begin, part_extent, rank, os.fsdecode(path), tuple(content))
            for part_begin, part_extent, rank, path, content in _errors.call(
                _WORDS, self._checkpoint._store().locate, self._number, begin, extent
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
            return _memory.empty(shape, self.dtype)
        if out.dtype != self.dtype or out.shape != shape:
            raise ValueError(
                f"{what}: expected {self.dtype} of shape {shape}, "
                f"found {out.dtype} of shape {out.shape}"
            )
        if not out.flags.c_contiguous or not out.flags.writeable:
            raise ValueError(f"{what}: expected a C-contiguous array that can be written to")
        return out

    def _request(self, out: NDArray[Any]) -> _Request:
        """What the store takes to fill `out` with all of the tensor."""
        return self._number, list(self.offsets), list(self.shape), _bytes_of(out)

    def numpy(self) -> NDArray[Any]:
        """Reads the whole tensor into a new array."""
        return self.read()

    def torch(self, *, mmap: bool = False) -> Any:
        """Returns the tensor as a torch.Tensor of its own memory, read into it.

        `mmap`: where one file holds all of it, and aligned, its pages are read as they are touched;
        what is written to them stays in this process. Else it is read now.
        """
        return _exchange.to_torch(self._own(mmap), self.dtype_name)

    def mindspore(self, *, mmap: bool = False) -> Any:
        """Returns the tensor as a mindspore.Tensor of its own memory; `mmap` as for `torch`."""
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
        """The tensor in memory that may be written to, as those who get it do."""
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
        """`t.mapped[index]` is a read-only view of the file, copied nowhere; no lists and masks.

        What is selected has to lie in one file; ValueError otherwise. The view may be unaligned. It
        stays valid after close(). If another process truncates the file, touching the view ends the
        process by SIGBUS; what `t[index]` reads is guarded against that.
        """
        return _Views(self)

    def _select(self, index: Any) -> _index.Selection:
        return _index.select(index, self.shape, self.itemsize)

    def _box_of(self, index: Any) -> tuple[list[int], list[int], tuple[Any, ...]]:
        """What `index` selects of the whole tensor: as _index.box_of."""
        begin, extent, inner = _index.box_of(index, self.shape)
        return self._in_whole(begin), extent, inner

    def _in_whole(self, begin: list[int]) -> list[int]:
        return [at + first for at, first in zip(begin, self.offsets)]

    def _read(self, chosen: _index.Selection, out: NDArray[Any]) -> None:
        store = self._checkpoint._store()
        if chosen.size == 0:
            return
        blocks = list(chosen.blocks())
        if chosen.is_box:
            [block] = blocks
            begin = self._in_whole(block.begin)
            _errors.call(_WORDS, store.read, self._number, begin, block.extent, _bytes_of(out))
            return
        place = chosen.place(out)
        for some in _batches(blocks, self.itemsize):
            boxes = [np.empty(block.extent, self.dtype) for block in some]
            requests = [
                (self._number, self._in_whole(block.begin), block.extent, _bytes_of(box))
                for block, box in zip(some, boxes)
            ]
            _errors.call(_WORDS, store.read_many, requests, 1, None)
            for block, box in zip(some, boxes):
                # One axis after the other: numpy pairs the elements of two lists.
                for axis in reversed(range(len(block.taken))):
                    box = box[(slice(None),) * axis + (block.taken[axis],)]
                place[block.place] = box

    def _view(self, index: Any, private: bool = False) -> NDArray[Any]:
        begin, extent, inner = self._box_of(index)
        store = self._checkpoint._store()
        parts = _errors.call(_WORDS, store.locate, self._number, begin, extent)
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
        mapped = self._checkpoint._map(rank, private)[offset : offset + nbytes]
        box: tuple[Any, ...] = tuple(
            slice(first - start, first - start + count)
            for start, first, count in zip(offsets, begin, extent)
        )
        # With `...` numpy makes an array of an element, too.
        view: NDArray[Any] = mapped.view(self.dtype).reshape(sizes)[box + (...,)][inner]
        return view

    def __reduce__(self) -> tuple[Any, ...]:
        box = (self.offsets, self.shape) if self._is_slice else None
        return _tensor_again, (*self._checkpoint.__reduce__()[1], self.name, box)

    def __repr__(self) -> str:
        closed = self._checkpoint.closed
        shards = 1 if closed else len(self.shards)
        cut = f", shards={shards}" if shards > 1 else ""
        begin = f", offsets={self.offsets}" if self._is_slice else ""
        return f"Tensor({self.name!r}, shape={self.shape}, dtype={self.dtype_name}{begin}{cut})"


_Box = tuple[tuple[int, ...], tuple[int, ...]]  # offsets, sizes
_Request = tuple[int, list[int], list[int], NDArray[Any]]

# Of many boxes, what is read before it is put in place.
_BATCH_BYTES = 32 << 20
_BATCH_BOXES = 4096


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
        self,
        path: Source,
        strategy: StrPath | None = None,
        *,
        suffix: str | None = None,
        group_info: StrPath | Sequence[StrPath] = (),
        key_file: StrPath | None = None,
        key_env: str | None = None,
        io: Io = "auto",
    ) -> None:
        if isinstance(path, Mapping):
            self.path: str | dict[int, str] = {n: os.fspath(p) for n, p in path.items()}
        else:
            self.path = os.fspath(path)
        self.strategy = None if strategy is None else os.fspath(strategy)
        given = [group_info] if isinstance(group_info, (str, os.PathLike)) else group_info
        infos = [os.fspath(info) for info in given]
        # As another process opens it again: a key goes there as the name of its place.
        self._how: dict[str, Any] = {
            "suffix": suffix,
            "group_info": tuple(infos),
            "key_file": None if key_file is None else os.fspath(key_file),
            "key_env": key_env,
            "io": io,
        }
        keywords: dict[str, Any] = {
            "path": self.path,
            "strategy": self.strategy,
            "suffix": suffix,
            "group_info": infos,
            "io": io,
            "key": _keys.read(key_file, key_env),
        }
        # What is no path is said by encode.
        encode(None if isinstance(self.path, dict) else self.path)
        self._opened: _reshard.Store | None = _errors.call(
            _WORDS,
            _reshard.Store.open_source,
            {name: value for name, value in keywords.items() if value is not None},
        )
        self._described = self._opened.tensors()
        self._numbers = {entry[0]: number for number, entry in enumerate(self._described)}
        self._others = {entry[0]: (n, *entry[1:]) for n, entry in enumerate(self._opened.others())}
        self._paths = dict(self._opened.files())
        self._step = self._opened.step()
        self._strategy: Strategy | None = None  # read when it is asked for
        self._maps: dict[int, NDArray[Any]] = {}
        self._lock = threading.Lock()

    def _store(self) -> _reshard.Store:
        store = self._opened
        if store is None:
            raise ValueError("checkpoint is closed")
        return store

    def _map(self, rank: int, private: bool) -> NDArray[Any]:
        """The bytes of a file. A private map is one of its own each time: whoever gets it may write
        to it."""
        store = self._store()
        if private:
            return _errors.call(_WORDS, store.map, rank, True)
        with self._lock:
            mapped = self._maps.get(rank)
            if mapped is None:
                mapped = _errors.call(_WORDS, store.map, rank, False)
                self._maps[rank] = mapped
            return mapped

    def _layouts(self) -> Strategy | None:
        if self._strategy is None and self.strategy is not None:
            self._strategy = read_strategy(self.strategy)
        return self._strategy

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
    def step(self) -> str | None:
        """ "EPOCH_STEP", where the names of all files tell it."""
        return self._step or None

    @property
    def texts(self) -> dict[str, str]:
        """The texts of the checkpoint, which are no tensors, by name; read now."""
        return {
            name: self._parts(number)[0][2].decode("utf-32-le", "surrogatepass")
            for name, (number, kind, _) in self._others.items()
            if kind == "text"
        }

    @property
    def map_tensors(self) -> dict[str, MapTensor]:
        """The MapTensors by name, as the first rank that has them holds them; read now."""
        found: dict[str, MapTensor] = {}
        for name, (number, kind, _) in self._others.items():
            if kind != "map":
                continue
            arrays = [
                np.frombuffer(bytearray(content), np.dtype(type)).reshape(shape)
                for type, shape, content in self._parts(number)
            ]
            found[name] = MapTensor(tuple(arrays[0::3]), tuple(arrays[1::3]), tuple(arrays[2::3]))
        return found

    def _parts(self, number: int) -> list[tuple[str, tuple[int, ...], bytes]]:
        return _errors.call(_WORDS, self._store().read_other, number)

    def metadata(self) -> dict[str, str]:
        """As safetensors' safe_open has it: what is known besides the tensors."""
        return {"step": self._step} if self._step else {}

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

    def layout(self, name: str) -> Layout | None:
        """As Tensor.layout."""
        return self[name].layout

    def rank(self, n: int) -> Checkpoint:
        """Opens the file of a rank by itself: the tensors as this file holds them."""
        path = self._paths.get(n)
        if path is None:
            raise _errors.NotFoundError(f"{self.path}: rank {n} has no file that is read")
        return Checkpoint(
            os.fsdecode(path),
            key_file=self._how["key_file"],
            key_env=self._how["key_env"],
            io=self._how["io"],
        )

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
        progress: ProgressChoice = None,
        cancel: Event | None = None,
    ) -> dict[str, NDArray[Any]]:
        """Reads whole tensors, several threads side by side, and returns them by name.

        `names` None: those of `out`, or all. `out` has arrays to be filled, as Tensor.read takes
        them, for some names or all; what it lacks gets a new one. Nothing is read before all of
        them fit. `jobs` threads; 0 is all cores, None the cores up to 4. `progress` and `cancel`
        are as for reshard.verify. After an error, or Ctrl-C, the contents of the arrays mean
        nothing.
        """
        given: Mapping[str, NDArray[Any]] = {} if out is None else out
        if names is None:
            names = self if out is None else given
        tensors = {name: self[name] for name in names}
        arrays = {
            name: tensor._destination(tensor.shape, given.get(name), f"out[{name!r}]")
            for name, tensor in tensors.items()
        }
        requests = [tensor._request(arrays[name]) for name, tensor in tensors.items()]
        watch = Watch(progress, cancel)
        try:
            _errors.call(_WORDS, self._store().read_many, requests, _jobs.threads(jobs), watch)
        finally:
            watch.close()
        return arrays

    def close(self) -> None:
        """Arrays and views that were handed out stay valid."""
        self._opened = None
        with self._lock:
            self._maps.clear()

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
        how = dict(self._how)
        how["group_info"] = tuple(map(_absolute, self._how["group_info"] or ()))
        how["key_file"] = _absolute(self._how["key_file"])
        path: Any = self.path
        if isinstance(path, dict):
            files = cast("dict[int, str]", path)
            path = {rank: os.path.abspath(name) for rank, name in files.items()}
        else:
            path = os.path.abspath(path)
        return _again, (path, _absolute(self.strategy), how, self._stamp())

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __repr__(self) -> str:
        if self.closed:
            return f"Checkpoint({self.path!r}, closed)"
        return f"Checkpoint({self.path!r}, {len(self)} tensors, {_size(self.nbytes)})"

    def _repr_html_(self) -> str:
        """A table of the first tensors, for notebooks. Opens no more files than those it needs."""
        head = f"<p>{html.escape(repr(self))}</p>"
        if self.closed:
            return head
        names = list(self)[:_MOST_ROWS]
        rows = "".join(
            "<tr>"
            + "".join(
                f"<td>{html.escape(cell)}</td>"
                for cell in (
                    name,
                    self[name].dtype_name,
                    str(list(self[name].shape)),
                    _cut(self[name].shape, self[name].shards),
                    _size(self[name].nbytes),
                )
            )
            + "</tr>"
            for name in names
        )
        more = len(self) - len(names)
        rest = f"<p>and {more} more</p>" if more else ""
        return (
            f"{head}<table><thead><tr><th>name</th><th>dtype</th><th>shape</th><th>cut</th>"
            f"<th>size</th></tr></thead><tbody>{rows}</tbody></table>{rest}"
        )


# Rows of a table in a notebook.
_MOST_ROWS = 20


def _size(nbytes: int) -> str:
    return f"{nbytes / 2**20:.1f} MiB" if nbytes >= 2**20 / 20 else f"{nbytes / 2**10:.1f} KiB"


def _cut(shape: tuple[int, ...], shards: list[Shard]) -> str:
    if len(shards) <= 1:
        return "not cut"
    return " x ".join(str(len({shard.offsets[axis] for shard in shards})) for axis in range(len(shape)))


def _absolute(path: Any) -> Any:
    return None if path is None else os.path.abspath(path)


# What was unpickled in this process and is still in use.
_reopened: weakref.WeakValueDictionary[tuple[Any, ...], Checkpoint] = weakref.WeakValueDictionary()


def _again(path: Any, strategy: str | None, how: dict[str, Any], stamp: _Stamp) -> Checkpoint:
    key = (repr(path), strategy, tuple(how.values()), stamp)
    checkpoint = _reopened.get(key)
    if checkpoint is None or checkpoint.closed:
        checkpoint = Checkpoint(path, strategy, **how)
        if checkpoint._stamp() != stamp:
            raise _errors.ChangedError(f"{path}: other files than when the checkpoint was pickled")
        _reopened[key] = checkpoint
    return checkpoint


def _tensor_again(
    path: Any,
    strategy: str | None,
    how: dict[str, Any],
    stamp: _Stamp,
    name: str,
    box: _Box | None,
) -> Tensor:
    tensor = _again(path, strategy, how, stamp)[name]
    return tensor if box is None else tensor._slice(*box)


def open(
    path: Source,
    strategy: StrPath | None = None,
    *,
    suffix: str | None = None,
    group_info: StrPath | Sequence[StrPath] = (),
    key_file: StrPath | None = None,
    key_env: str | None = None,
    io: Io = "auto",
) -> Checkpoint:
    """Opens a checkpoint as a mapping of tensors.

    `path` is a folder with rank folders, a pattern with {rank}, a file, a folder of whole tensors,
    or {rank: file}; `strategy` the strategy file or folder that it was saved with; `suffix` the
    "-EPOCH_STEP" to take in each rank folder instead of the latest; `group_info` as for
    reshard.convert. `key_file` or `key_env` name the key of encrypted files, a file or an
    environment variable. `io`: "map" or "pread" decide how files are read; "auto" maps them, but
    for those on network file systems.
    """
    return Checkpoint(
        path,
        strategy,
        suffix=suffix,
        group_info=group_info,
        key_file=key_file,
        key_env=key_env,
        io=io,
    )
