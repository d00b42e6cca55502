"""Warnings of calls that return no report, as MindSpore's do not: Python's `warnings` has them."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable

from .._fields import WarningMessage


def warn(text: str) -> None:
    """Warns at the user's call, the nearest one that is not in this package. Python shows a text
    once for each place."""
    frame, depth = sys._getframe(), 1
    while frame.f_back and str(frame.f_globals.get("__name__")).startswith("reshard."):
        frame, depth = frame.f_back, depth + 1
    warnings.warn(text, stacklevel=depth)


def warn_of_report(call: str, found: Iterable[WarningMessage]) -> None:
    for warning in found:
        warn(f"{call}: {warning.message}")
