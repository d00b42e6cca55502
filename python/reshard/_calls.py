"""The library's calls: typed, frozen results with the names of the command line's JSON."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from . import _errors, _reshard
from ._paths import StrPath, encode

# The most threads that a call takes by itself, as the command line's.
_MOST_JOBS = 4

_WORDS = {
    "source.strategy": "src_strategy",
    "target.strategy": "dst_strategy",
    "Verify": "reshard.verify",
}


@dataclass(frozen=True)
class Progress:
    """How far a call is: bytes of all phases but "plan" together, files, and seconds."""

    phase: str
    done: int
    total: int
    done_files: int
    total_files: int
    elapsed: float


class Event(Protocol):
    """What `cancel` is asked, such as a threading.Event."""

    def is_set(self) -> bool: ...


@dataclass(frozen=True)
class Block:
    """A stretch of a file that has a digest of its own."""

    index: int
    offset: int
    length: int


@dataclass(frozen=True)
class Damage:
    """A file of a target folder that is not as it was written."""

    path: str  # relative to the target folder
    kind: str
    detail: str
    first_bad_block: Block | None
    bad_blocks: int
    parameters: tuple[str, ...]  # the first 20 that are touched
    parameter_count: int


@dataclass(frozen=True)
class VerifyReport:
    """What verify found. Damage is a result: ask `ok`."""

    manifests: tuple[str, ...]
    files: int
    files_without_digest: int  # only their sizes are known
    bytes: int
    damages: tuple[Damage, ...]
    notes: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return not self.damages

    def __bool__(self) -> bool:
        raise TypeError("a report is neither true nor false: ask its `ok`")

    def to_dict(self) -> dict[str, Any]:
        """As JSON: lists for tuples, and `equal`, as the command line's document has it."""
        plain: dict[str, Any] = _plain(dataclasses.asdict(self))
        return {"equal": self.ok, **plain}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(member) for name, member in value.items()}
    if isinstance(value, tuple):
        return [_plain(member) for member in value]
    return value


def _jobs(jobs: int | None) -> int:
    return min(os.cpu_count() or 1, _MOST_JOBS) if jobs is None else jobs


def _watch(
    progress: Callable[[Progress], object] | None, cancel: Event | None
) -> Callable[[str, int, int, int, int], None]:
    begin = time.monotonic()

    def watch(phase: str, done: int, total: int, done_files: int, total_files: int) -> None:
        if cancel is not None and cancel.is_set():
            raise _errors.CancelledError("cancelled by `cancel`")
        if progress is not None:
            elapsed = time.monotonic() - begin
            progress(Progress(phase, done, total, done_files, total_files, elapsed))

    return watch


def verify(
    target: StrPath,
    *,
    jobs: int | None = None,
    progress: Callable[[Progress], object] | None = None,
    cancel: Event | None = None,
) -> VerifyReport:
    """Reads a finished target folder and compares it with its manifests.

    `jobs` threads read; 0 is all cores, None the cores up to 4. `progress` is called ten times a
    second and at the end; what it raises, or Ctrl-C, ends the call, and so does `cancel` once its
    is_set() is true, with CancelledError.
    """
    found = _errors.call(
        _WORDS, _reshard.verify, encode(target), _jobs(jobs), _watch(progress, cancel)
    )
    damages = []
    for damage in found["damages"]:
        block = damage["first_bad_block"]
        damage["first_bad_block"] = None if block is None else Block(*block)
        damage["parameters"] = tuple(damage["parameters"])
        damages.append(Damage(**damage))
    return VerifyReport(
        manifests=tuple(found["manifests"]),
        files=found["files"],
        files_without_digest=found["files_without_digest"],
        bytes=found["bytes"],
        damages=tuple(damages),
        notes=tuple(found["notes"]),
    )


def source_ranks(
    rank: int, *, src_strategy: StrPath | None = None, dst_strategy: StrPath | None = None
) -> list[int]:
    """Returns the source ranks that target rank `rank` needs, ascending. None: no strategy."""
    return _errors.call(
        _WORDS, _reshard.source_ranks, rank, encode(src_strategy), encode(dst_strategy)
    )


def all_source_ranks(
    *, src_strategy: StrPath | None = None, dst_strategy: StrPath | None = None
) -> Iterator[tuple[int, list[int]]]:
    """Returns each target rank, ascending, with the source ranks that it needs."""
    return iter(
        _errors.call(
            _WORDS, _reshard.all_source_ranks, encode(src_strategy), encode(dst_strategy)
        )
    )
