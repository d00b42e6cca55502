"""Warnings of conversions. Their calls return no report, as MindSpore's do not: Python's `warnings`
has them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from .._fields import WarningMessage


def warn(call: str, found: Iterable[WarningMessage], depth: int = 1) -> None:
    """Warns where the user called: `depth` calls above the one that calls this."""
    for warning in found:
        warnings.warn(f"{call}: {warning.message}", stacklevel=depth + 2)
