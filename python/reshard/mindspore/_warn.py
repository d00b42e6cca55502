"""Warnings of conversions. Their calls return no report, as MindSpore's do not: Python's `warnings`
has them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from .._fields import WarningMessage


def warn(call: str, found: Iterable[WarningMessage], depth: int = 1) -> None:
    """Warns at the user's call: `depth` calls above the caller of this function."""
    for warning in found:
        warnings.warn(f"{call}: {warning.message}", stacklevel=depth + 2)
