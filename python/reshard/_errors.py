"""Exceptions: each also is of the class that a Python programmer would catch."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from . import _reshard

__all__ = [
    "AlreadyExistsError",
    "CancelledError",
    "ChangedError",
    "CorruptError",
    "Error",
    "InternalError",
    "InvalidArgumentError",
    "IoError",
    "MismatchError",
    "NotFoundError",
    "ResourceExhaustedError",
    "UnknownTensorError",
    "UnsupportedError",
]

T = TypeVar("T")


class Error(Exception):
    """Base of all errors of reshard. `code` is the name of the C++ library's code for it.

    `option` is the keyword that it is about, if the message names one. Subclasses of OSError
    have `errno` and `strerror` if the system refused an operation.
    """

    code = "internal error"
    option: str | None = None

    # OSError's and KeyError's own show something else than the message.
    __str__ = Exception.__str__

    def __reduce__(self) -> tuple[Any, ...]:
        return _made, (type(self), self.args, getattr(self, "errno", None)), self.__dict__ or None


class InvalidArgumentError(Error, ValueError):
    """The call itself is wrong."""

    code = "invalid argument"


class NotFoundError(Error, FileNotFoundError, ValueError):
    """A file, folder or rank that has to exist does not."""

    code = "not found"


class UnknownTensorError(Error, KeyError):
    """The checkpoint has no tensor of this name."""

    code = "not found"


class CorruptError(Error, ValueError):
    """A file holds bytes that no valid file of its format can hold."""

    code = "corrupt"


class UnsupportedError(Error, ValueError):
    """Valid, but reshard does not handle it."""

    code = "unsupported"


class MismatchError(Error, ValueError, RuntimeError):
    """Files and strategies do not fit each other."""

    code = "mismatch"


class ChangedError(Error, RuntimeError):
    """A file changed while it was read."""

    code = "changed"


class IoError(Error, OSError):
    """The system refused or failed an operation."""

    code = "I/O error"


class ResourceExhaustedError(Error, MemoryError):
    """More memory is needed than may be used."""

    code = "resource exhausted"


class AlreadyExistsError(Error, FileExistsError):
    """An output exists, or another run is writing it."""

    code = "already exists"


class InternalError(Error, RuntimeError):
    """A bug of reshard."""


class CancelledError(Error):
    """Stopped on request."""

    code = "cancelled"


_CLASSES = (
    InvalidArgumentError,
    NotFoundError,
    CorruptError,
    UnsupportedError,
    MismatchError,
    ChangedError,
    IoError,
    ResourceExhaustedError,
    AlreadyExistsError,
    InternalError,
    CancelledError,
)
_BY_CODE = {cls.code: cls for cls in _CLASSES}


def _made(cls: type[Error], arguments: tuple[Any, ...], system_error: int | None) -> Error:
    error = cls(*arguments)
    if system_error and isinstance(error, OSError):
        error.errno, error.strerror = system_error, os.strerror(system_error)
    return error


def of_code(code: str, message: str) -> Error:
    """The exception of a code, as a program prints both."""
    return _BY_CODE.get(code, InternalError)(message)


def in_words(message: str, own: Mapping[str, str]) -> str:
    """Names options as keywords. `own` has the call's other names, by the library's names."""
    return _reshard.in_words(message, dict(own))


def call(own: Mapping[str, str], function: Callable[..., T], *arguments: Any) -> T:
    """Calls a function of the module, and raises its errors as the classes above."""
    try:
        return function(*arguments)
    except _reshard.StatusError as error:
        code, message, system_error, option = error.args
    raised = _made(_BY_CODE[code], (in_words(message, own),), system_error)
    if option:
        raised.option = in_words(f"`{option}`", own)
    raise raised
