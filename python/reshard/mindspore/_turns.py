"""Calls that several processes make at once, as the ranks of a job under mpirun do.

One call works on a target at a time. Equal calls wait for it. When it has ended, they have no
work; if its process was killed, one of them continues with its staged files. A different call is
refused, and told the difference.

The turn is a lock on a file, which ends with its process. The file holds the call and its
arguments as JSON, so that waiting processes can compare them with their own.
"""

from __future__ import annotations

import contextlib
import enum
import errno
import fcntl
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from .. import _errors
from .._guards import is_mapping
from .._progress import Event

R = TypeVar("R")

_STAGING = ".reshard"
_LOCKS = ("begin", "call", "commit", "lock")
_LONGEST_PAUSE = 0.1  # seconds
_ATTEMPTS = 100  # each that is lost means that another call has just ended
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)


class Turn(enum.Enum):
    """What `turn` gives; false if there is nothing to do."""

    OWN = "no equal call works meanwhile"
    UNGUARDED = "equal calls may work meanwhile: the file cannot be locked"
    DONE = "an equal call did it"

    def __bool__(self) -> bool:
        return self is not Turn.DONE


def place(path: str | None) -> str | None:
    """A path as all processes spell it."""
    return None if path is None else os.path.realpath(path)


def values(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as JSON has them: of an iterable, a list."""

    def plain(value: Any) -> Any:
        if is_mapping(value):
            return {str(key): plain(each) for key, each in value.items()}
        if isinstance(value, (str, int, float, type(None))):
            return value
        if isinstance(value, os.PathLike):
            return os.fsdecode(value)
        return [plain(each) for each in value]

    return {name: plain(value) for name, value in options.items()}


def file_in(folder: str) -> str:
    """The file of the turn to write to a target folder. The library removes it with its locks."""
    return os.path.join(folder, _STAGING, "call")


def beside(output: str) -> str:
    """The beginning of paths beside a file: of no other file, and not too long."""
    folder, name = os.path.split(os.path.abspath(output))
    if len(os.fsencode(name)) > 200:
        name = hashlib.blake2b(os.fsencode(name), digest_size=16).hexdigest()
    return os.path.join(folder, f".{name}.reshard")


def file_beside(output: str) -> str:
    """The file of the turn to write one file."""
    return beside(output) + "_call"


def _read(descriptor: int) -> dict[str, Any] | None:
    """The content of the file; None while it is being written."""
    try:
        text = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _write(descriptor: int, text: dict[str, Any]) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps(text).encode(), 0)


def _try(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        # The library reports the problem with this file system.
    return True


def _is_named(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return False


def _check_equal(own: dict[str, Any], other: dict[str, Any] | None, where: str) -> None:
    """Refuses to wait for a call that does something else."""
    if other is None:
        return
    advice = f"wait until it has ended, or write elsewhere than to {where}"
    if own["call"] != other.get("call"):
        raise _errors.AlreadyExistsError(
            f"{own['call']}: another call, {other.get('call')}, is writing there; {advice}"
        )
    arguments = other.get("arguments", {})
    for name, value in own["arguments"].items():
        if arguments.get(name) != value:
            raise _errors.AlreadyExistsError(
                f"{own['call']}: {name}: another call is writing there with"
                f" {arguments.get(name)!r}, and this one has {value!r}; {advice}"
            )


def _wait(path: str, own: dict[str, Any], where: str, cancel: Event | None) -> int | None:
    """The locked file, or None if an equal call has done all meanwhile."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        try:
            pause = 0.001
            while not _try(descriptor):
                _check_equal(own, _read(descriptor), where)
                if cancel is not None and cancel.is_set():
                    raise _errors.CancelledError(f"stopped while waiting for {path}")
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
            if _is_named(descriptor, path):
                _write(descriptor, own)
                return descriptor
            done = _read(descriptor) == {**own, "done": True}
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        if done:
            return None


def _make_folders(folder: str) -> list[str]:
    """Makes a folder and its parents; returns the made folders, innermost first."""
    made = []
    while not os.path.isdir(folder):
        made.append(folder)
        folder = os.path.dirname(folder)
    for missing in reversed(made):
        with contextlib.suppress(FileExistsError):
            os.mkdir(missing)
    return made


@contextlib.contextmanager
def turn(
    path: str,
    call: str,
    arguments: Mapping[str, Any],
    part: Any = None,
    cancel: Event | None = None,
) -> Iterator[Turn]:
    """The turn for the task of `path`.

    Calls with the same `arguments` and another `part` do not exclude each other: each waits for
    its turn. AlreadyExistsError for arguments that differ from those of the call that has the
    turn.
    """
    # As JSON gives it back: a tuple is a list there.
    own = json.loads(json.dumps({"call": call, "arguments": dict(arguments), "part": part}))
    path = os.path.abspath(path)
    folder = os.path.dirname(path)
    where = os.path.dirname(folder) if os.path.basename(folder) == _STAGING else folder
    made: list[str] = []
    descriptor: int | None = None
    alone = True
    for _ in range(_ATTEMPTS):
        try:
            made += _make_folders(folder)
            descriptor = _wait(path, own, where, cancel)
            alone = False
        except FileNotFoundError:  # the call before has removed the folder
            continue
        except _errors.Error:
            raise
        except OSError:  # the library reports the problem with this folder
            pass
        break
    if alone:
        yield Turn.UNGUARDED
        return
    if descriptor is None:
        yield Turn.DONE
        return
    try:
        yield Turn.OWN
        _write(descriptor, {**own, "done": True})
    finally:
        if _is_named(descriptor, path):
            with contextlib.suppress(OSError):
                os.unlink(path)
        os.close(descriptor)
        for each in made:
            with contextlib.suppress(OSError):  # it holds the result
                os.rmdir(each)


def resumed(target: str, run: Callable[[bool], R]) -> R:
    """Calls `run(resume)`: with the files that equal calls have left or published in the folder, or
    without them if they belong to another call."""
    staging = os.path.join(target, _STAGING)
    try:
        left = any(name not in _LOCKS for name in os.listdir(staging))
    except OSError:
        left = False
    try:
        published = any(name.startswith("manifest") for name in os.listdir(target))
    except OSError:
        published = False
    if not left:
        return run(published)
    try:
        return run(True)
    except (_errors.MismatchError, _errors.ChangedError):
        return run(False)
