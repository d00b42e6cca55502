"""Memory that much is read into."""

from __future__ import annotations

import math
import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

# From so many bytes on NumPy asks for huge pages.
_LARGE = 4 << 20


def empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """An array without contents yet.

    NumPy asks for huge pages. A virtual machine may have to get these from its host anew, which
    takes several times as long as reading (bench/results/performance_notes.md). Here the
    system's policy decides.
    """
    size = math.prod(shape) * dtype.itemsize
    if size < _LARGE:
        return np.empty(shape, dtype)
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return np.frombuffer(memory, np.uint8).view(dtype).reshape(shape)
