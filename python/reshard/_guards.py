"""Checks of a value's type, for type checkers that would otherwise infer only its class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard


def is_mapping(value: Any) -> TypeGuard[Mapping[Any, Any]]:
    return isinstance(value, Mapping)


def is_slice(value: Any) -> TypeGuard[slice]:
    return isinstance(value, slice)


def is_tuple(value: Any) -> TypeGuard[tuple[Any, ...]]:
    return isinstance(value, tuple)
