"""Checkpoint: a read-only mapping of names to tensors that are read when they are indexed."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, cast, overload

import numpy as np
from numpy.typing import NDArray

from . import _errors, _exchange, _jobs, _modules
from ._calls import inspect
from ._exchange import Framework
from ._paths import SourceFormat, StrPath
from ._progress import Event, ProgressChoice, Watch
from ._fields import InspectReport
from ._reports import Layout, size_in_words
from ._store import WORDS, Io, Source, Store, again
from ._tensor import Piece, Tensor

# The result of get_tensor and read: an array of NumPy unless `framework` says otherwise.
if TYPE_CHECKING:
    from typing_extensions import TypeVar

    Array = TypeVar("Array", default=NDArray[Any])
else:
    from typing import TypeVar

    Array = TypeVar("Array")


class MapTensor(NamedTuple):
    """A MapTensor as its file holds it, one array of each for every Value."""

    keys: tuple[NDArray[Any], ...]
    values: tuple[NDArray[Any], ...]
    status: tuple[NDArray[Any], ...]


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


class Checkpoint(Mapping[str, Tensor], Generic[Array]):
    """The tensors of a checkpoint by name, in the order of its files, as reshard.open returns them.

    Any number of threads may use it. It can be pickled: it travels as its paths, and is opened
    again, with ChangedError if the files are others by then.
    """

    def __init__(self, store: Store, framework: Framework) -> None:
        self._store = store
        self.framework: Framework = framework
        self.path = store.path
        self.strategy = store.strategy
        self._numbers = {entry[0]: number for number, entry in enumerate(store.tensors)}

    @property
    def closed(self) -> bool:
        return self._store.closed

    @property
    def ranks(self) -> list[int]:
        """The ranks with files that are read, ascending."""
        return list(self._store.files)

    @property
    def warnings(self) -> list[str]:
        return [warning.message for warning in self._store.opened().warnings(WORDS)]

    @property
    def step(self) -> str | None:
        """The step, "EPOCH_STEP", if the names of all files have it."""
        return self._store.step or None

    @property
    def unread(self) -> dict[str, str]:
        """The tensors that are known to be unreadable, which the mapping lacks: the reason of each,
        by name. A file of torch.save may have some, such as transposed tensors."""
        return dict(self._store.unread)

    @property
    def texts(self) -> dict[str, str]:
        """The texts of the checkpoint, which are no tensors, by name; read now."""
        return {
            name: self._parts(number)[0][2].decode("utf-32-le", "surrogatepass")
            for number, (name, kind, _) in enumerate(self._store.others)
            if kind == "text"
        }

    @property
    def map_tensors(self) -> dict[str, MapTensor]:
        """The MapTensors by name, as the first rank that has them holds them; read now."""
        found: dict[str, MapTensor] = {}
        for number, (name, kind, _) in enumerate(self._store.others):
            if kind != "map":
                continue
            arrays = [
                np.frombuffer(bytearray(content), np.dtype(type)).reshape(shape)
                for type, shape, content in self._parts(number)
            ]
            found[name] = MapTensor(tuple(arrays[0::3]), tuple(arrays[1::3]), tuple(arrays[2::3]))
        return found

    def _parts(self, number: int) -> list[tuple[str, tuple[int, ...], bytes]]:
        return _errors.call(WORDS, self._store.opened().read_other, number)

    def metadata(self) -> dict[str, str]:
        """As safetensors' safe_open has it: the known facts besides the tensors. These are
        "format", "step", and the "crc" that a single file states. Unknown facts are left out."""
        found: dict[str, str] = {}
        formats = {os.path.splitext(path)[1] for path in self._store.files.values()}
        if formats in ({b".ckpt"}, {b".safetensors"}):
            found["format"] = formats.pop()[1:].decode()
        if self._store.step:
            found["step"] = self._store.step
        if len(self._store.files) == 1:
            crc = self.inspect().checkpoints[0].crc
            if crc is not None:
                found["crc"] = str(crc)
        return found

    def inspect(self) -> InspectReport:
        """As reshard.inspect of the files that are read."""
        self._store.opened()
        how = self._store.how
        paths = map(os.fsdecode, self._store.files.values())
        return inspect(*paths, key_file=how["key_file"], key_env=how["key_env"])

    @property
    def nbytes(self) -> int:
        return sum(entry[4] for entry in self._store.tensors)

    def __getitem__(self, name: str) -> Tensor:
        self._store.opened()
        number = self._numbers.get(name)
        if number is None:
            self._check_read([name])
            near = _modules.load("difflib").get_close_matches(str(name), self._numbers, 3)
            hint = f"; did you mean {', '.join(map(repr, near))}?" if near else ""
            raise _errors.UnknownTensorError(f"{name!r} is not in {self.path}{hint}")
        return Tensor(self._store, number)

    def _check_read(self, names: Iterable[str]) -> None:
        for name in names:
            reason = self._store.unread.get(name)
            if reason is not None:
                raise _errors.UnsupportedError(
                    f"{self.path}: tensor {name!r} cannot be read: {reason}"
                )

    def __contains__(self, name: object) -> bool:
        return name in self._numbers

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def get_tensor(self, name: str) -> Array:
        """As safetensors' safe_open has it: the full tensor, read into new memory."""
        tensor = self[name]
        made: Array = _exchange.made_of(self.framework, tensor.numpy(), tensor.dtype_name)
        return made

    def get_slice(self, name: str) -> Tensor:
        """As safetensors' safe_open has it: `ckpt[name]`."""
        return self[name]

    def layout(self, name: str) -> Layout | None:
        """As Tensor.layout."""
        return self[name].layout

    def rank(self, n: int) -> Checkpoint[Array]:
        """Opens the file of a rank by itself: the tensors as this file holds them.

        A file of torch.save that holds parts of DTensors is refused.
        """
        path = self._store.files.get(n)
        if path is None:
            raise _errors.NotFoundError(f"{self.path}: rank {n} has no file that is read")
        how = self._store.how
        alone = open(
            os.fsdecode(path),
            key_file=how["key_file"],
            key_env=how["key_env"],
            io=how["io"],
            framework=self.framework,
        )
        return cast("Checkpoint[Array]", alone)

    def select(self, *patterns: str) -> Selection:
        """The tensors with names that match one of the patterns, as in fnmatch.fnmatchcase.

        A match in `unread` is an error.
        """

        def matching(names: Iterable[str]) -> list[str]:
            return [n for n in names if any(fnmatch.fnmatchcase(n, p) for p in patterns)]

        self._check_read(matching(self._store.unread))
        return Selection({name: self[name] for name in matching(self)})

    def read(
        self,
        names: Iterable[str] | None = None,
        *,
        out: Mapping[str, NDArray[Any]] | None = None,
        jobs: int | None = None,
        progress: ProgressChoice = None,
        cancel: Event | None = None,
    ) -> dict[str, Array]:
        """Reads full tensors, several threads side by side, and returns them by name.

        `names` None: the names in `out`, or all, which is an error if `unread` has some. `out` has
        NumPy arrays to be filled, as Tensor.read takes them, for some names or all; other names
        get a new array. The arrays are checked before the first read. `jobs` threads; 0 is all
        cores, None the cores up to 4. `progress` and `cancel` are as for reshard.verify. After an
        error, or Ctrl-C, the contents of the arrays have no meaning.
        """
        given: Mapping[str, NDArray[Any]] = {} if out is None else out
        if names is None:
            names = self if out is None else given
            if out is None:
                self._check_read(self._store.unread)
        tensors = {name: self[name] for name in names}
        arrays = {
            name: tensor.destination(tensor.shape, given.get(name), f"out[{name!r}]")
            for name, tensor in tensors.items()
        }
        requests = [tensor.request(arrays[name]) for name, tensor in tensors.items()]
        watch = Watch(progress, cancel)
        try:
            read_many = self._store.opened().read_many
            _errors.call(WORDS, read_many, requests, _jobs.threads(jobs), watch)
        finally:
            watch.close()
        return {
            name: _exchange.made_of(self.framework, array, tensors[name].dtype_name)
            for name, array in arrays.items()
        }

    def close(self) -> None:
        """Arrays and views that were handed out stay valid."""
        self._store.close()

    def __enter__(self) -> Checkpoint[Array]:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.framework, *self._store.recipe())

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __repr__(self) -> str:
        if self.closed:
            return f"Checkpoint({self.path!r}, closed)"
        return f"Checkpoint({self.path!r}, {len(self)} tensors, {size_in_words(self.nbytes)})"

    def _repr_html_(self) -> str:
        """A table of the first tensors, for notebooks. Opens no files."""
        screen = _modules.load("reshard._screen")
        head = f"<p>{_modules.load('html').escape(repr(self))}</p>"
        if self.closed:
            return head
        rows = [
            [
                name,
                self[name].dtype_name,
                str(list(self[name].shape)),
                _cut(self[name].shape, self[name].locate()),
                size_in_words(self[name].nbytes),
            ]
            for name in list(self)[: screen.MOST_ROWS]
        ]
        table: str = screen.table(["name", "dtype", "shape", "cut", "size"], rows, len(self))
        return head + table


def _cut(shape: tuple[int, ...], pieces: list[Piece]) -> str:
    if len(pieces) <= 1:
        return "not cut"
    parts = (len({piece.offsets[axis] for piece in pieces}) for axis in range(len(shape)))
    return " x ".join(map(str, parts))


def _again(framework: Framework, *recipe: Any) -> Checkpoint[Any]:
    return Checkpoint(again(*recipe), framework)


@overload
def open(
    path: Source,
    strategy: StrPath | None = None,
    *,
    suffix: str | None = None,
    src_format: SourceFormat | None = None,
    group_info: StrPath | Sequence[StrPath] = (),
    key_file: StrPath | None = None,
    key_env: str | None = None,
    io: Io = "auto",
    framework: Literal["numpy"] = "numpy",
) -> Checkpoint[NDArray[Any]]: ...
@overload
def open(
    path: Source,
    strategy: StrPath | None = None,
    *,
    suffix: str | None = None,
    src_format: SourceFormat | None = None,
    group_info: StrPath | Sequence[StrPath] = (),
    key_file: StrPath | None = None,
    key_env: str | None = None,
    io: Io = "auto",
    framework: Literal["torch", "mindspore"],
) -> Checkpoint[Any]: ...
def open(
    path: Source,
    strategy: StrPath | None = None,
    *,
    suffix: str | None = None,
    src_format: SourceFormat | None = None,
    group_info: StrPath | Sequence[StrPath] = (),
    key_file: StrPath | None = None,
    key_env: str | None = None,
    io: Io = "auto",
    framework: Framework = "numpy",
) -> Checkpoint[Any]:
    """Opens a checkpoint as a mapping of tensors.

    `path` is a folder with rank folders, a pattern with {rank}, a file, a folder of whole
    tensors, or {rank: file}. `strategy` is the strategy file or folder that it was saved with.
    `suffix` is the "-EPOCH_STEP" to take in each rank folder instead of the latest. `src_format`
    and `group_info` are as for reshard.convert. `key_file` or `key_env` name the key of encrypted
    files, a file or an environment variable. `io`: "map" or "pread" decide how files are read;
    "auto" maps them, except on network file systems.

    `framework` chooses the results of `get_tensor` and `read`: NumPy's arrays, or torch's or
    MindSpore's tensors, each with its own memory. UnsupportedError if that framework is not
    installed.
    """
    _exchange.check(framework)
    store = Store(
        path,
        strategy,
        suffix=suffix,
        src_format=src_format,
        group_info=group_info,
        key_file=key_file,
        key_env=key_env,
        io=io,
    )
    return Checkpoint(store, framework)
