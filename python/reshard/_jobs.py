"""How many threads a call takes."""

from __future__ import annotations

import os

# The most that a call takes by itself, as the command line's.
_MOST = 4


def cores() -> int:
    return os.cpu_count() or 1


def default() -> int:
    """What `jobs=None` stands for."""
    return min(cores(), _MOST)
