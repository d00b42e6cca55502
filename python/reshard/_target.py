"""TargetView: the files that a conversion would write, readable without writing them."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, NoReturn

from . import _errors, _reshard
from ._fields import Findings, TargetFile
from ._paths import StrPath

if TYPE_CHECKING:
    from typing_extensions import Buffer


class TargetView:
    """The files of a conversion that was not made; `target` opens it. Any number of threads may
    read them."""

    def __init__(self, opened: _reshard.View) -> None:
        self._opened = opened
        self._files = opened.files()
        self._findings = opened.findings({})
        self._numbers = {file.path: number for number, file in enumerate(self._files)}

    @property
    def files(self) -> tuple[TargetFile, ...]:
        """Each with its `path`, as below the target folder of a conversion, `size`, `rank` and
        `kind`."""
        return self._files

    @property
    def findings(self) -> Findings:
        """The findings of opening: totals, `warnings` and `notes`."""
        return self._findings

    def open(
        self, path: StrPath | TargetFile, *, offset: int = 0, length: int | None = None
    ) -> TargetStream:
        """Opens one of `files`, or `length` bytes of the file from `offset` on."""
        name = path.path if isinstance(path, TargetFile) else os.fspath(path)
        number = self._numbers.get(name)
        if number is None:
            raise _errors.NotFoundError(f"{name}: no file of the target; `files` lists them")
        size = self._files[number].size
        end = size if length is None else offset + length
        if not 0 <= offset <= end <= size:
            raise _errors.InvalidArgumentError(
                f"{name}: has {size} bytes; found offset {offset}, length {length}"
            )
        return TargetStream(self._opened, number, name, offset, end)

    def verify_unchanged(self) -> None:
        """Raises ChangedError unless the sources still are the files that were opened. Bytes of
        earlier reads are valid only if they are."""
        _errors.call({}, self._opened.verify_unchanged)

    def __iter__(self) -> Iterator[TargetFile]:
        return iter(self._files)

    def __repr__(self) -> str:
        size = sum(file.size for file in self._files)
        return f"TargetView({len(self._files)} files, {size} bytes)"


class TargetStream(io.RawIOBase):
    """A file of a target, to read and to seek in. A read gathers its bytes at that moment. It
    returns as many bytes as requested, unless the file ends."""

    mode = "rb"

    def __init__(
        self, opened: _reshard.View, number: int, name: str, begin: int, end: int
    ) -> None:
        super().__init__()
        self.name = name
        self._opened = opened
        self._number = number
        self._begin = begin
        self._end = end
        self._place = begin
        self._ahead = _reshard.ReadAhead(begin, end)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        self._check_open()
        return self._place - self._begin

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        self._check_open()
        bases = {io.SEEK_SET: self._begin, io.SEEK_CUR: self._place, io.SEEK_END: self._end}
        if whence not in bases:
            raise ValueError(f"invalid whence ({whence}, should be 0, 1 or 2)")
        place = bases[whence] + offset
        if place < self._begin:
            raise ValueError(f"negative seek position {place - self._begin}")
        self._place = place
        return place - self._begin

    def readinto(self, buffer: Buffer, /) -> int:
        out = memoryview(buffer).cast("B")
        begin, count = self._next(len(out))
        if count:
            into = self._opened.read_into
            _errors.call({}, into, self._number, begin, out[:count], self._ahead)
            self._place = begin + count
        return count

    def read(self, size: int | None = -1, /) -> bytes:
        begin, count = self._next(-1 if size is None else size)
        if not count:
            return b""
        read = self._opened.read
        found = _errors.call({}, read, self._number, begin, count, self._ahead)
        self._place = begin + count
        return found

    def readall(self) -> bytes:
        return self.read()

    def write(self, data: Buffer, /) -> NoReturn:
        raise io.UnsupportedOperation("a file of a target is not written")

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError("I/O operation on closed file.")

    def _next(self, size: int) -> tuple[int, int]:
        """The begin of a read of this size, and its length."""
        self._check_open()
        rest = max(0, self._end - self._place)
        return self._place, rest if size < 0 else min(size, rest)
