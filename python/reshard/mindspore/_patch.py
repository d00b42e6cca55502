"""MindSpore's own functions, and ours in their places."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any


def original(name: str, mindspore: ModuleType) -> Callable[..., Any]:
    """MindSpore's function of this name."""
    found: Callable[..., Any] = getattr(mindspore, name)
    return found
