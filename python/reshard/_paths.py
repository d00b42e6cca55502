"""Paths on their way to the C++ library."""

from __future__ import annotations

import os
from typing import Literal, Union

StrPath = Union[str, "os.PathLike[str]"]
SourceFormat = Literal["plain", "huggingface-shards", "mindformers", "dcp", "fsdp"]


def encode(path: StrPath | None) -> bytes:
    """Returns the path in the system's form; empty for None."""
    if path is None:
        return b""
    name = os.fspath(path)
    if not isinstance(name, str):
        raise TypeError(f"expected a str or os.PathLike[str], not {type(path).__name__}")
    if "\0" in name:
        raise ValueError(f"a path with a null character: {name!r}")
    return os.fsencode(name)
