"""Arguments of MindSpore's calls: refused with the class of exception that MindSpore raises."""

from __future__ import annotations

import contextlib
import operator
import os
from collections.abc import Iterator
from typing import Any, Literal

from .. import _errors
from .._paths import StrPath

Format = Literal["ckpt", "safetensors"]  # that MindSpore's functions write


class StrategyError(_errors.CorruptError, TypeError):
    """A file that is given as a strategy holds none."""


class RankError(_errors.InvalidArgumentError, IndexError):
    """The strategy has no such rank."""


class TargetError(_errors.AlreadyExistsError, NotADirectoryError):
    """A file is in the place of a folder."""


for _class in (StrategyError, RankError, TargetError):
    _class.__module__ = "reshard.mindspore"


def path(call: str, name: str, value: Any) -> str:
    """Returns the path as a str; TypeError for other values."""
    found = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(found, str):
        raise TypeError(
            f"{call}: {name}: expected str or os.PathLike, found {type(value).__name__}"
        )
    return found


def instance(call: str, name: str, value: Any, wanted: type, kind: type[Exception]) -> None:
    if not isinstance(value, wanted):
        raise kind(f"{call}: {name}: expected {wanted.__name__}, found {type(value).__name__}")


def rank(call: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{call}: rank_id: expected int, found {type(value).__name__}") from None


def strategy(call: str, name: str, value: Any) -> str | None:
    """Returns the path of a strategy, which exists and is not empty, or None."""
    if value is None:
        return None
    found = path(call, name, value)
    if not os.path.exists(found):
        raise _errors.NotFoundError(f"{call}: {name}: no such strategy file or folder: {found}")
    if os.path.isfile(found) and os.path.getsize(found) == 0:
        raise StrategyError(f"{call}: {name}: {found} is empty; expected a strategy")
    return found


@contextlib.contextmanager
def of_strategies(*paths: StrPath | None) -> Iterator[None]:
    """Raises corruption of these files as StrategyError."""
    try:
        yield
    except _errors.CorruptError as error:
        if any(name is not None and str(error).startswith(os.fspath(name)) for name in paths):
            raise StrategyError(str(error)) from None
        raise
