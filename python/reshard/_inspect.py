"""inspect: the contents of checkpoints, folders of ranks and strategies, as they are."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

from . import _errors, _jobs, _keys, _reshard
from ._fields import (
    Box,
    CutParameter,
    Failure,
    FullParameter,
    FullValues,
    InspectedFile,
    InspectReport,
    MeasuredParameter,
    ShardedParameters,
    StoredParameter,
    Total,
    Totals,
    WarningMessage,
)
from ._paths import SourceFormat, StrPath, encode
from ._progress import Event, ProgressChoice, Watch
from ._reports import Strategy

_WORDS = {"source.strategy": "strategy"}

_Measured = tuple[tuple[WarningMessage, ...], tuple[FullValues, ...]]


def _patterns(value: str | Iterable[str] | None) -> list[str]:
    texts = [] if value is None else [value] if isinstance(value, str) else value
    split = [_errors.call(_WORDS, _reshard.split_patterns, _name(text)) for text in texts]
    return [text.decode("utf-8", "surrogateescape") for some in split for text in some]


def _name(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


class _Inspection:
    def __init__(
        self,
        include: list[str],
        exclude: list[str],
        strategy: StrPath | None,
        source: dict[str, Any],
        key: _reshard.Key | None,
        measure: Callable[[dict[str, Any]], _Measured] | None,
    ) -> None:
        self._include = include
        self._exclude = exclude
        self._strategy = strategy
        self._source = source  # what is said of the sources
        self._key = key
        self._measure = measure
        self._matched = False
        self.checkpoints: list[InspectedFile] = []
        self._groups: list[str] = []  # of their parameters
        self.strategies: list[Strategy] = []
        self.sharded: list[ShardedParameters] = []
        self.warnings: list[WarningMessage] = []
        self.errors: list[Failure] = []
        self.first_error: _errors.Error | None = None

    def _takes(self, name: str) -> bool:
        def matches(patterns: list[str]) -> bool:
            return any(_reshard.glob_match(_name(p), _name(name)) for p in patterns)

        return (not self._include or matches(self._include)) and not matches(self._exclude)

    def add(self, path: str) -> None:
        try:
            if self._strategy is not None:
                self._add_tensors(path)
            elif os.path.isdir(path) or "{rank}" in path:
                self._add_folder(path)
            else:
                self._add_file(path)
        except _errors.Error as error:
            self._fail(path, error)

    def _fail(self, path: str, error: _errors.Error) -> None:
        if isinstance(error, _errors.CancelledError):
            raise error
        self.first_error = self.first_error or error
        self.errors.append(Failure(path, error.code, str(error)))

    def _add_file(self, path: str) -> None:
        try:
            inspected = _errors.call(
                _WORDS, _reshard.inspect_file, encode(path), self._key, self._takes, _WORDS
            )
        except _errors.Error as error:
            try:
                self._add_strategy(path)
            except _errors.MismatchError:
                # A file that parses as a strategy is one, even if its layouts contradict each
                # other.
                raise
            except _errors.Error:
                raise error from None
            return
        self._add_checkpoint(*inspected)

    def _add_checkpoint(
        self, file: InspectedFile, groups: list[str], warnings: tuple[WarningMessage, ...]
    ) -> None:
        if self._measure is not None:
            _, measured = self._measure(
                {"path": file.path, "include": self._include, "exclude": self._exclude}
            )
            parameters = (
                MeasuredParameter(**vars(parameter), statistics=values.statistics)
                for parameter, values in zip(file.parameters, measured)
            )
            file = InspectedFile(
                file.path, file.rank, file.size, file.crc, tuple(parameters), file.unread
            )
        self._matched = self._matched or bool(file.parameters or file.unread)
        self.warnings += warnings
        self._groups += groups
        self.checkpoints.append(file)

    def _add_strategy(self, path: str) -> None:
        found = _read_strategy(path, self._takes)
        self._matched = self._matched or bool(found.parameters)
        self.strategies.append(found)

    def _add_folder(self, path: str) -> None:
        try:
            folder = _errors.call(_WORDS, _reshard.Folder.open, {"path": path, **self._source})
        except _errors.NotFoundError as not_ranks:
            self._add_files(path, not_ranks)
            return
        self.warnings += folder.warnings(_WORDS)
        for place, (_, file) in enumerate(folder.files()):
            try:
                self._add_checkpoint(
                    *_errors.call(_WORDS, folder.inspect, place, self._key, self._takes, _WORDS)
                )
            except _errors.Error as error:
                self._fail(os.fsdecode(file), error)

    def _add_files(self, path: str, not_ranks: _errors.Error) -> None:
        """A strategy of stage files, or the checkpoints in the folder itself."""
        try:
            self._add_strategy(path)
            return
        except _errors.Error as error:
            of_ranks = self._source.get("suffix") or isinstance(error, _errors.NotFoundError)
            why = not_ranks if of_ranks else error
        files = []
        if os.path.isdir(path):
            files = [
                os.path.join(path, name)
                for name in sorted(os.listdir(path), key=os.fsencode)
                if name.endswith((".ckpt", ".safetensors"))
            ]
        files = [file for file in files if not os.path.isdir(file)]
        if not files:
            raise why
        for file in files:
            try:
                self._add_file(file)
            except _errors.Error as error:
                self._fail(file, error)

    def _add_tensors(self, path: str) -> None:
        """The full tensors, and their cuts or values."""
        if self._measure is not None:
            keywords: dict[str, Any] = {
                "path": path,
                "strategy": self._strategy,
                "include": self._include,
                "exclude": self._exclude,
            }
            if os.path.isdir(path):
                keywords |= self._source
            warnings, measured = self._measure(keywords)
            self.warnings += warnings
            self._add_sharded(path, measured)
            return
        keywords = {"path": path, "strategy": self._strategy, "key": self._key, **self._source}
        store = _errors.call(
            _WORDS,
            _reshard.Store.open_source,
            {name: value for name, value in keywords.items() if value is not None},
        )
        self.warnings += store.warnings(_WORDS)
        parameters: list[CutParameter] = []
        for number, (name, dtype, _, shape, _, stage, in_strategy) in enumerate(store.tensors()):
            if not self._takes(name):
                continue
            shards = tuple(Box(*shard) for shard in _errors.call(_WORDS, store.shards, number))
            parameters.append(CutParameter(name, dtype, shape, stage, in_strategy, shards))
        self._add_sharded(path, tuple(parameters))

    def _add_sharded(self, path: str, parameters: tuple[FullParameter, ...]) -> None:
        self._matched = self._matched or bool(parameters)
        self.sharded.append(ShardedParameters(path, parameters))

    def report(self) -> InspectReport:
        if (self._include or self._exclude) and not self._matched and not self.errors:
            message = "include and exclude leave no parameter"
            if not self._exclude:
                message = "include matches no parameter"
            message += "; a pattern has to match a whole name, as *head* does"
            self.warnings.append(WarningMessage("unused patterns", message))
        return InspectReport(
            checkpoints=tuple(self.checkpoints),
            strategies=tuple(self.strategies),
            totals=self._totals(),
            warnings=tuple(self.warnings),
            errors=tuple(self.errors),
            sharded=None if self._strategy is None else tuple(self.sharded),
        )

    def _totals(self) -> Totals:
        parameters = [parameter for file in self.checkpoints for parameter in file.parameters]

        def total(of: list[StoredParameter]) -> Total:
            return Total(len(of), sum(parameter.bytes for parameter in of))

        def totals(keys: Iterable[str]) -> dict[str, Total]:
            groups: dict[str, list[StoredParameter]] = {}
            for key, parameter in zip(keys, parameters):
                groups.setdefault(key, []).append(parameter)
            return {name: total(groups[name]) for name in sorted(groups)}

        return Totals(
            files=len(self.checkpoints),
            **vars(total(parameters)),
            by_dtype=totals(parameter.dtype for parameter in parameters),
            by_prefix=totals(self._groups),
        )


def _read_strategy(path: StrPath, takes: Callable[[str], bool]) -> Strategy:
    return _errors.call(_WORDS, _reshard.inspect_strategy, encode(path), takes, _WORDS)


def read_strategy(path: StrPath) -> Strategy:
    """Reads a strategy file, or a folder of stage files."""
    return _read_strategy(path, lambda name: True)


def inspect(
    *paths: StrPath,
    include: str | Iterable[str] | None = None,
    exclude: str | Iterable[str] | None = None,
    suffix: str | None = None,
    src_format: SourceFormat | None = None,
    key_file: StrPath | None = None,
    key_env: str | None = None,
    strategy: StrPath | None = None,
    values: bool = False,
    jobs: int | None = None,
    progress: ProgressChoice = None,
    cancel: Event | None = None,
) -> InspectReport:
    """Lists the contents of checkpoint files, folders of ranks and strategies, as `reshard inspect`
    does.

    Reads only headers of checkpoints; with `values` all bytes, on `jobs` threads. With
    `strategy`, describes the checkpoint at the path: its full tensors and their cuts. `errors`
    of the report has the files that could not be read; if there are no others, the first error
    is raised.
    """
    if not paths:
        raise _errors.InvalidArgumentError("inspect: expected at least one path")
    key = _keys.read(key_file, key_env)
    threads = _jobs.threads(jobs)
    watch = Watch(progress, cancel)

    def measure(keywords: dict[str, Any]) -> _Measured:
        if key is not None:
            keywords["key"] = key
        return _errors.call(_WORDS, _reshard.measure_values, keywords, threads, watch, _WORDS)

    said = {"suffix": suffix, "src_format": src_format}
    source = {name: value for name, value in said.items() if value is not None}
    chosen = _Inspection(
        _patterns(include), _patterns(exclude), strategy, source, key, measure if values else None
    )
    try:
        for path in paths:
            encode(path)
            watch.look()
            chosen.add(os.fspath(path))
    finally:
        watch.close()
    found = chosen.report()
    if chosen.first_error and not (chosen.checkpoints or chosen.strategies or chosen.sharded):
        raise chosen.first_error
    return found
