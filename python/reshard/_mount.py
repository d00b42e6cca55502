"""Mount: a conversion's files in a folder, served by the program reshard-mount."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from . import _errors, _modules, _reshard
from ._guards import is_mapping
from ._paths import StrPath

_PROGRAM = "reshard-mount"
_ERROR = re.compile(r"^reshard: error: ([\w/ ]+?): (.*)", re.DOTALL)


def _listed(value: Any) -> list[Any]:
    return [value] if isinstance(value, (str, int, os.PathLike)) else list(value)


def _text(value: StrPath | int | float) -> str:
    return os.fspath(value) if isinstance(value, (str, os.PathLike)) else str(value)


def _word(name: str) -> str:
    return "--" + name.replace("_", "-")


def _values(name: str, kind: str, value: Any, folder: str) -> list[str]:
    """The command-line words for a keyword. A mapping of names becomes a file in `folder`."""
    if isinstance(value, bool):
        return [_word(name)] if value else []
    if kind == "renames" and is_mapping(value):
        path = os.path.join(folder, f"{name}.json")
        with open(path, "w", encoding="utf-8") as file:
            _modules.load("json").dump(dict(value), file)
        value = path
    if kind == "counts":
        value = ",".join(map(str, value))
    if kind == "casts" and is_mapping(value):
        value = [f"{glob}={dtype}" if glob else dtype for glob, dtype in value.items()]
    return [f"{_word(name)}={_text(each)}" for each in _listed(value)]


class Mount:
    """The files of a conversion that was not made, in a folder; `mount` makes it. They are there
    while a `with` block lasts, and no longer than this process."""

    def __init__(self, source: Any, folder: StrPath | None, keywords: Mapping[str, Any]) -> None:
        self._source = source
        self._given = folder
        self._keywords = keywords
        self._process: Any = None
        self._scratch: Any = None

    def __enter__(self) -> str:
        """Returns the folder, once all files are there."""
        if self._process is not None:
            raise ValueError("it is mounted already")
        program = _modules.load("shutil").which(_PROGRAM)
        if program is None:
            raise _errors.UnsupportedError(
                f"mounting takes the program {_PROGRAM}, which is not on PATH; install the package"
                f" {_PROGRAM}"
            )
        self._scratch = _modules.load("tempfile").TemporaryDirectory(prefix="reshard-mount-")
        try:
            return self._start(program, self._scratch.name)
        except BaseException:
            self._end()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end()

    def _start(self, program: str, scratch: str) -> str:
        if self._given is None:
            folder = os.path.join(scratch, "target")
            os.mkdir(folder)
        else:
            folder = os.fspath(self._given)
        subprocess = _modules.load("subprocess")
        # It ends when the pipe does, so with this process, however that ends.
        self._process = subprocess.Popen(
            [program, "mount", *self._words(scratch), "--", *self._sources(), folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="surrogateescape",
        )
        said = ""
        for line in self._process.stderr:
            if line.endswith(", ready\n"):
                # Later it says which sources have changed, as .reshard-status does.
                drain = self._process.stderr.read
                _modules.load("threading").Thread(target=drain, daemon=True).start()
                return folder
            said += line
        raise _failure(said)

    def _words(self, scratch: str) -> list[str]:
        kinds = {option["word"]: option["type"] for option in _reshard.options()}
        own = {"cache": "switch", "allow_other": "switch", "jobs": "text"}
        words: list[str] = []
        for name, value in self._keywords.items():
            if value is not None:
                words += _values(name, own.get(name) or kinds[name], value, scratch)
        if is_mapping(self._source):
            words += [f"--source={rank}={os.fspath(path)}" for rank, path in self._source.items()]
        return words

    def _sources(self) -> list[str]:
        return [] if is_mapping(self._source) else [os.fspath(self._source)]

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.stdin.close()
            process.wait()
        scratch, self._scratch = self._scratch, None
        if scratch is not None:
            scratch.cleanup()


def _failure(said: str) -> _errors.Error:
    """The error that the program ended with."""
    starts = [match.start() for match in re.finditer(r"^reshard: error: ", said, re.M)]
    for start in reversed(starts):
        found = _ERROR.match(said[start:])
        if found:
            return _errors.of_code(found[1], found[2].strip())
    return _errors.IoError(f"{_PROGRAM} ended: {said.strip()}")
