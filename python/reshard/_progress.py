"""How a call reports its progress: a callable, a tqdm class, or a bar: tqdm's if it is
installed, else a line on stderr or a notebook's bar."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any, Protocol, Union

from . import _errors, _modules
from ._results import Result

# A shorter call draws no bar.
_BAR_AFTER_SECONDS = 0.5


class Progress(Result):
    """How far a call is: bytes of all phases but "plan" together, files, and seconds."""

    phase: str
    done: int
    total: int
    done_files: int
    total_files: int
    elapsed: float


class Event(Protocol):
    """The interface of `cancel`, such as a threading.Event."""

    def is_set(self) -> bool: ...


# None: a bar if stderr is a terminal, or in a notebook; False: no bar; True: always a bar; a
# callable; or a class with the interface of tqdm.
ProgressChoice = Union[None, bool, Callable[[Progress], object], type]


_CELLS = 20


def _percent(progress: Progress) -> int:
    return 100 * progress.done // progress.total if progress.total else 0


def _words(progress: Progress) -> str:
    done, total = progress.done / 2**20, progress.total / 2**20
    return f"{progress.phase}: {_percent(progress)} %, {done:.0f} of {total:.0f} MiB"


class _Line:
    """A line on stderr that is drawn over itself."""

    def __init__(self, after: float) -> None:
        self._after = after
        self._width = 0

    def __call__(self, progress: Progress) -> None:
        if progress.elapsed < self._after:
            return
        full = _CELLS * _percent(progress) // 100
        text = f"[{'#' * full}{'.' * (_CELLS - full)}] {_words(progress)}"
        sys.stderr.write("\r" + text.ljust(self._width))
        sys.stderr.flush()
        self._width = len(text)

    def close(self) -> None:
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()


class _Notebook:
    """A bar below the cell that is being run."""

    def __init__(self, after: float) -> None:
        self._after = after
        self._shown: Any = None

    def __call__(self, progress: Progress) -> None:
        if progress.elapsed < self._after:
            return
        display = _modules.load("IPython.display")
        bar = f'<progress value="{_percent(progress)}" max="100"></progress> {_words(progress)}'
        if self._shown is None:
            self._shown = display.display(display.HTML(bar), display_id=True)
        else:
            self._shown.update(display.HTML(bar))


class _Tqdm:
    """An object of a class that is used as tqdm's."""

    def __init__(self, cls: Callable[..., Any], **own: Any) -> None:
        self._bar = cls(total=0, unit="B", unit_scale=True, unit_divisor=1024, **own)

    def __call__(self, progress: Progress) -> None:
        self._bar.total = progress.total
        self._bar.update(progress.done - self._bar.n)

    def close(self) -> None:
        self._bar.close()


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython") and sys.modules["IPython"].get_ipython()
    return hasattr(shell, "kernel")


def _bar(after: float) -> _Tqdm | _Notebook | _Line:
    """tqdm's bar if it is installed, in a notebook with its widgets."""
    notebook = _in_notebook()
    try:
        tqdm = _modules.load("tqdm.notebook" if notebook else "tqdm")
    except ImportError:
        tqdm = None
    if tqdm is not None and (not notebook or tqdm.IProgress is not None):
        return _Tqdm(tqdm.tqdm, delay=after, leave=False)
    return _Notebook(after) if notebook else _Line(after)


def _is_wanted() -> bool:
    said = os.environ.get("RESHARD_PROGRESS")
    if said in ("0", "1"):
        return said == "1"
    return _in_notebook() or (sys.stderr is not None and sys.stderr.isatty())


class Watch:
    """The callback of the C++ module, called ten times a second and at the end, in the calling
    thread."""

    def __init__(self, progress: ProgressChoice, cancel: Event | None) -> None:
        self._cancel = cancel
        self._begin = time.monotonic()
        self._tell: Any = None
        if progress is True or (progress is None and _is_wanted()):
            self._tell = _bar(0 if progress else _BAR_AFTER_SECONDS)
        elif isinstance(progress, type):
            self._tell = _Tqdm(progress)
        elif callable(progress):
            self._tell = progress
        elif progress not in (None, False):
            raise TypeError(f"progress: expected a bool, a callable or a class, not {progress!r}")

    @property
    def is_shown(self) -> bool:
        return self._tell is not None

    def look(self) -> None:
        """Raises if the call should end."""
        if self._cancel is not None and self._cancel.is_set():
            raise _errors.CancelledError("cancelled by `cancel`")

    def __call__(
        self, phase: str, done: int, total: int, done_files: int, total_files: int
    ) -> None:
        self.look()
        if self._tell is not None:
            elapsed = time.monotonic() - self._begin
            self._tell(Progress(phase, done, total, done_files, total_files, elapsed))

    def close(self) -> None:
        if isinstance(self._tell, (_Line, _Tqdm)):
            self._tell.close()
