"""Store: the files of an opened checkpoint, as it and its tensors share them."""

from __future__ import annotations

import glob
import os
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Union, cast

from numpy.typing import NDArray

from . import _errors, _keys, _reshard
from ._inspect import read_strategy
from ._paths import StrPath, encode
from ._reports import Strategy

# Keywords by what the C++ library calls their options.
WORDS = {
    "key": "key_file or key_env",
    "source.files": "path",
    "source.path": "path",
    "source.strategy": "strategy",
    "source.suffix": "suffix",
}

_Stamp = tuple[tuple[bytes, int, int], ...]
# What another process opens the same files with.
Recipe = tuple[Any, Union[str, None], dict[str, Any], _Stamp]

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
        self._given = {name: value for name, value in keywords.items() if value is not None}
        try:
            opened = _errors.call(WORDS, _reshard.Store.open_source, self._given)
        except _errors.MismatchError as error:
            there = [] if self.strategy else _strategies_at(self.path)
            if not there:
                raise
            raise _errors.MismatchError(f"{error}; there is {', '.join(there)}") from None
        self._opened: _reshard.Store | None = opened
        self.tensors = opened.tensors()
        self.others = opened.others()
        self.files = dict(opened.files())
        self.step = opened.step()
        self._strategy: Strategy | None = None  # read when it is asked for
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
        store = _errors.call(WORDS, _reshard.Store.open_source, self._given)
        self._opened = store
        return store

    def map(self, rank: int, private: bool) -> NDArray[Any]:
        """The bytes of a file. A private map is one of its own each time: whoever gets it may write
        to it."""
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

    def stamp(self) -> _Stamp:
        stats = ((path, os.stat(path)) for path in self.files.values())
        return tuple((os.path.abspath(path), s.st_size, s.st_mtime_ns) for path, s in stats)

    def recipe(self) -> Recipe:
        """The arguments with which `again` opens it in another process."""
        self.opened()
        how = dict(self.how)
        how["group_info"] = tuple(map(_absolute, self.how["group_info"] or ()))
        how["key_file"] = _absolute(self.how["key_file"])
        path: Any = self.path
        if isinstance(path, dict):
            files = cast("dict[int, str]", path)
            path = {rank: os.path.abspath(name) for rank, name in files.items()}
        else:
            path = os.path.abspath(path)
        return path, _absolute(self.strategy), how, self.stamp()


def _strategies_at(path: str | dict[int, str]) -> list[str]:
    """What is called strategy in the folder and beside it."""
    if isinstance(path, dict):
        return []
    folders = (path, os.path.dirname(os.path.abspath(path)))
    return [
        found
        for folder in folders
        for found in sorted(glob.glob(os.path.join(glob.escape(folder), "strategy*")))
    ]


def _absolute(path: Any) -> Any:
    return None if path is None else os.path.abspath(path)


# What was unpickled in this process and is still in use.
_reopened: weakref.WeakValueDictionary[tuple[Any, ...], Store] = weakref.WeakValueDictionary()


def again(path: Any, strategy: str | None, how: dict[str, Any], stamp: _Stamp) -> Store:
    """Opens what `recipe` says, once in a process; ChangedError if the files are others."""
    key = (repr(path), strategy, tuple(how.values()), stamp)
    store = _reopened.get(key)
    if store is None or store.closed:
        store = Store(path, strategy, **how)
        if store.stamp() != stamp:
            raise _errors.ChangedError(f"{path}: other files than when the checkpoint was pickled")
        _reopened[key] = store
    return store
