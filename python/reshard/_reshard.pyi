# The module in C++ (python/src). Paths and names of parameters are bytes, as the system has them.
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__version__: str

class StatusError(Exception):
    """(code, message)"""

class File:
    @staticmethod
    def open(path: bytes) -> File: ...
    def view(self, name: bytes) -> list[NDArray[np.uint8]]: ...

class Store:
    @staticmethod
    def open(path: bytes, strategy: bytes, suffix: bytes) -> Store: ...
    def tensors(self) -> list[tuple[str, str, int, tuple[int, ...], int, int, bool]]: ...
    def warnings(self) -> list[str]: ...
    def files(self) -> list[tuple[int, bytes]]: ...
    def shards(
        self, tensor: int
    ) -> list[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]]: ...
    def read(
        self, tensor: int, begin: list[int], extent: list[int], out: NDArray[np.uint8]
    ) -> None: ...

def verify(
    target: bytes, jobs: int, watch: Callable[[str, int, int, int, int], None]
) -> dict[str, Any]: ...
def source_ranks(rank: int, src_strategy: bytes, dst_strategy: bytes) -> list[int]: ...
def all_source_ranks(
    src_strategy: bytes, dst_strategy: bytes
) -> list[tuple[int, list[int]]]: ...
