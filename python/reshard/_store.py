"""Store: the files of an opened checkpoint, as it and its tensors share them."""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Union

from numpy.typing import NDArray

from . import _errors, _keys, _modules, _reshard
from ._guards import is_mapping
from ._paths import SourceFormat, StrPath, encode
from ._reports import Strategy, read_strategy

# Keywords by the C++ library's names of their options.
WORDS = {"source.files": "path", "source.strategy": "strategy"}

# (path, bytes, mtime, digest) of each file; there is a digest only if the file is small and was
# read whole.
_Stamp = tuple[tuple[bytes, int, int, bytes], ...]
# The facts with which another process opens the same files; `again` takes them.
Recipe = tuple[Any, Union[str, None], dict[str, Any], _Stamp, bytes]

Source = Union[StrPath, Mapping[int, StrPath]]  # a path, or the file of each rank
Io = Literal["auto", "map", "pread"]


class Store:
    """The files of a checkpoint that was opened. Any number of threads may use it."""

    def __init__(
        self,
        path: Source,
        strategy: StrPath | None,
        *,
        suffix: str | None,
        src_format: SourceFormat | None,
        group_info: StrPath | Sequence[StrPath],
        key_file: StrPath | None,
        key_env: str | None,
        io: Io,
    ) -> None:
        if isinstance(path, Mapping):
            self.path: str | dict[int, str] = {n: os.fspath(p) for n, p in path.items()}
        else:
            self.path = os.fspath(path)
        self.strategy = None if strategy is None else os.fspath(strategy)
        some = [group_info] if isinstance(group_info, (str, os.PathLike)) else group_info
        infos = [os.fspath(info) for info in some]
        # As another process opens it again: a key goes there as the name of its place.
        self.how: dict[str, Any] = {
            "suffix": suffix,
            "src_format": src_format,
            "group_info": tuple(infos),
            "key_file": None if key_file is None else os.fspath(key_file),
            "key_env": key_env,
            "io": io,
        }
        keywords: dict[str, Any] = {
            "path": self.path,
            "strategy": self.strategy,
            "suffix": suffix,
            "src_format": src_format,
            "group_info": infos,
            "io": io,
            "key": _keys.read(key_file, key_env),
        }
        # encode reports a value that is not a path.
        encode(None if isinstance(self.path, dict) else self.path)
        self._given = {name: value for name, value in keywords.items() if value is not None}
        opened = _errors.call(WORDS, _reshard.Store.open_source, self._given)
        self._opened: _reshard.Store | None = opened
        self.tensors = opened.tensors()
        self.others = opened.others()
        self.unread = opened.unread()
        self.files = dict(opened.files())
        self.step = opened.step()
        self._strategy: Strategy | None = None  # read when it is asked for
        # A change of one of these means that the tensors are others.
        self._described = self._descriptions()
        # From now on the working folder may be another one.
        self._weights = [os.path.abspath(path) for path in self.files.values()]
        self._places: dict[str, Any] = {
            "path": _absolute(self.path),
            "strategy": _absolute(self.strategy),
            "group_info": tuple(map(_absolute, infos)),
            "key_file": _absolute(self.how["key_file"]),
        }
        self._maps: dict[int, NDArray[Any]] = {}

    @property
    def closed(self) -> bool:
        return self._opened is None

    def opened(self) -> _reshard.Store:
        store = self._opened
        if store is None:
            raise ValueError("checkpoint is closed")
        return self._again() if store.is_lost() else store

    def _again(self) -> _reshard.Store:
        """Opens the files anew: threads of the parent process were reading when it forked."""
        names = ("path", "strategy", "group_info")
        given = {name: value for name, value in self._places.items() if name in names and value}
        store = _errors.call(WORDS, _reshard.Store.open_source, {**self._given, **given})
        same = all(_times(path) == (size, mtime) for path, size, mtime in self._described)
        if not same or store.tensors() != self.tensors:
            raise _errors.ChangedError(f"{self.path}: other files than when it was opened")
        self._opened = store
        return store

    def map(self, rank: int, private: bool) -> NDArray[Any]:
        """The bytes of a file. Each private map is separate, so its owner may write to it."""
        store = self.opened()
        if private:
            return _errors.call(WORDS, store.map, rank, True)
        # Without a lock, which a child could find held. Of two maps one is kept.
        mapped = self._maps.get(rank)
        if mapped is None:
            mapped = self._maps.setdefault(rank, _errors.call(WORDS, store.map, rank, False))
        return mapped

    def layouts(self) -> Strategy | None:
        if self._strategy is None and self.strategy is not None:
            self._strategy = read_strategy(self.strategy)
        return self._strategy

    def close(self) -> None:
        self._opened = None
        self._maps.clear()

    def _descriptions(self) -> list[tuple[bytes, int, int]]:
        """The files that describe the tensors: strategies, groups and indexes, with their sizes and
        times."""
        found = [os.fsencode(info) for info in self.how["group_info"]]
        if self.strategy is not None:
            found += _files_of(self.strategy, (b".ckpt", b".json"))
        elif isinstance(self.path, str) and os.path.isdir(self.path):
            found += _files_of(self.path, (b".index.json", b"param_name_map.json"))
        return [(os.path.abspath(path), *_times(path)) for path in found]

    def stamp(self) -> _Stamp:
        """As the files were when they were opened, as far as that is known."""
        weights = [(path, *_times(path), b"") for path in self._weights]
        return (*weights, *((*entry, _digest(entry[0])) for entry in self._described))

    def contents(self) -> bytes:
        """A digest of the descriptions of all tensors."""
        text = repr(self.tensors).encode("utf-8", "replace")
        return bytes(_modules.load("hashlib").blake2b(text).digest())

    def recipe(self) -> Recipe:
        """The arguments with which `again` opens it in another process."""
        self.opened()
        how = {**self.how, **{name: self._places[name] for name in ("group_info", "key_file")}}
        path, strategy = self._places["path"], self._places["strategy"]
        return path, strategy, how, self.stamp(), self.contents()


def _files_of(path: str, ends: tuple[bytes, ...]) -> list[bytes]:
    """The file at `path`, or the files with these endings in the folder at `path`."""
    name = os.fsencode(path)
    if not os.path.isdir(name):
        return [name]
    return [os.path.join(name, each) for each in sorted(os.listdir(name)) if each.endswith(ends)]


def _times(path: bytes) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns


def _digest(path: bytes) -> bytes:
    """Of a file that is rewritten within a tick of the clock: its times do not tell."""
    with open(path, "rb") as file:
        return bytes(_modules.load("hashlib").blake2b(file.read(), digest_size=16).digest())


def _is_as_stamped(entry: tuple[bytes, int, int, bytes]) -> bool:
    path, size, mtime, digest = entry
    try:
        return _times(path) == (size, mtime) and (not digest or _digest(path) == digest)
    except OSError:
        return False


def _absolute(path: Any) -> Any:
    if is_mapping(path):
        return {rank: os.path.abspath(name) for rank, name in path.items()}
    return None if path is None else os.path.abspath(path)


# Stores that were unpickled in this process and are still in use.
_reopened: weakref.WeakValueDictionary[tuple[Any, ...], Store] = weakref.WeakValueDictionary()


def again(
    path: Any, strategy: str | None, how: dict[str, Any], stamp: _Stamp, contents: bytes
) -> Store:
    """Opens the store of `recipe`, once in a process; ChangedError if the files have changed."""
    key = (repr(path), strategy, tuple(how.values()), stamp, contents)
    store = _reopened.get(key)
    if store is None or store.closed:
        for entry in stamp:
            if not _is_as_stamped(entry):
                raise changed(path, f"{os.fsdecode(entry[0])} is another file")
        store = Store(path, strategy, **how)
        if store.stamp() != stamp or store.contents() != contents:
            raise changed(path, "it has other files or tensors")
        _reopened[key] = store
    return store


def changed(path: Any, how: str) -> _errors.ChangedError:
    return _errors.ChangedError(f"{path}: {how} than when it was pickled; open it anew")
