"""How many threads a call takes, and how they share reads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator

from . import _modules

# The most that a call takes by itself, as the command line's.
MOST = 4
# Larger arrays are read in parts by several threads.
_PIECE_BYTES = 32 << 20


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


def rows(shape: tuple[int, ...], nbytes: int) -> Iterator[tuple[int, int]]:
    """The begins and ends of pieces of an array of this size, in rows."""
    if nbytes <= _PIECE_BYTES:
        yield 0, shape[0]
        return
    step = max(1, shape[0] * _PIECE_BYTES // nbytes)
    for begin in range(0, shape[0], step):
        yield begin, min(shape[0], begin + step)


def run(tasks: Iterable[Callable[[], object]], jobs: int | None) -> None:
    """Makes the calls on so many threads; after one that raises, none is begun."""
    executor = _modules.load("concurrent.futures.thread").ThreadPoolExecutor
    pool = executor(threads(jobs) or cores())
    try:
        for done in [pool.submit(task) for task in tasks]:
            done.result()
    finally:
        pool.shutdown(cancel_futures=True)
