"""How many threads a call takes."""

from __future__ import annotations

import os

# The most that a call takes by itself, as the command line's.
MOST = 4


def cores() -> int:
    return os.cpu_count() or 1


def default() -> int:
    """The number of threads for `jobs=None`."""
    return min(cores(), MOST)


def threads(jobs: int | None) -> int:
    """The number for the C++ module; 0 is all cores."""
    if jobs is not None and jobs < 0:
        raise ValueError(f"jobs: expected 0 or more, found {jobs}")
    return default() if jobs is None else jobs
