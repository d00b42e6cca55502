"""A conversion by a Ray cluster, a task for each share. `pip install reshard[ray]` installs Ray.

Ray starts and places the tasks, and runs a task again if its worker dies. The shares coordinate as
those of any launcher do, by locks and files in the target folder.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from typing import Any, Literal, cast

from . import _calls, _errors, _jobs, _modules, _reshard
from ._calls import Casts, NameMap, Ranks, Size, Source, Texts
from ._guards import is_mapping
from ._paths import StrPath
from ._progress import Event, Progress, ProgressChoice, Watch
from ._reports import ConvertReport

__all__ = ["convert"]

# How often a task tells its progress, and the driver looks.
_LOOK_SECONDS = 0.5
# How long a network file system may keep the locks of a node that died, and how often to try again.
_LEASE_SECONDS = 120
_TRY_SECONDS = 2
# How long tasks may end by themselves after one has failed.
_GRACE_SECONDS = 1
# How long cancelled tasks may clear up before their processes are killed.
_STOP_SECONDS = 10
_PHASES = ("check", "write", "publish")
_PATH_TYPES = ("file", "files", "key_file", "renames", "switch_or_file")


def _started_ray() -> Any:
    try:
        ray = _modules.load("ray")
    except ModuleNotFoundError as error:
        raise ImportError("reshard.ray needs Ray: pip install reshard[ray]") from error
    if not ray.is_initialized():
        ray.init()
    return ray


class _Board:
    """An actor with the latest progress of each share."""

    def __init__(self) -> None:
        self._latest: dict[int, Progress] = {}

    def tell(self, index: int, progress: Progress) -> None:
        self._latest[index] = progress

    def latest(self) -> dict[int, Progress]:
        return self._latest


def _share(index: int, count: int, board: Any, keywords: dict[str, Any]) -> ConvertReport:
    """The task."""
    told = -_LOOK_SECONDS

    def tell(progress: Progress) -> None:
        nonlocal told
        if progress.elapsed - told >= _LOOK_SECONDS:
            told = progress.elapsed
            board.tell.remote(index, progress)

    progress = False if board is None else tell
    begin = time.monotonic()
    while True:
        try:
            return _calls.convert(**keywords, shard=(index, count), progress=progress)
        except _errors.AlreadyExistsError as error:
            # Of `shard`: a process has the share's lock, perhaps one that has died on another node.
            if error.option != "shard" or time.monotonic() - begin > _LEASE_SECONDS:
                raise
            time.sleep(_TRY_SECONDS)


def _commit(target: StrPath, wait: int | None) -> None:
    _calls.commit(target, wait=wait)


def _absolute(path: Any) -> Any:
    """The path for processes with other working folders."""
    if is_mapping(path):
        return {rank: _absolute(file) for rank, file in path.items()}
    if not isinstance(path, (str, os.PathLike)):
        return path
    text: str = os.fspath(path)
    # An address such as s3://bucket/x is refused as what it is.
    return text if "://" in text else os.path.join(os.getcwd(), text)


def _absolute_option(value: Any) -> Any:
    """The value of an option: a path, several, or something else. A mapping is a file's content."""
    if is_mapping(value):
        return dict(value)
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [_absolute(member) for member in cast("Iterable[object]", value)]
    return _absolute(value)


def _for_tasks(given: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords of a call as tasks can use them."""
    paths = {option["word"] for option in _reshard.options() if option["type"] in _PATH_TYPES}
    keywords = {name: value for name, value in given.items() if value is not None}
    for name in keywords:
        if name in ("source", "target", "report"):
            keywords[name] = _absolute(keywords[name])
        elif name in paths:
            keywords[name] = _absolute_option(keywords[name])
    return keywords


def _nodes(ray: Any, wanted: Mapping[str, float]) -> list[Mapping[str, float]]:
    """The resources of each node that has those of a task."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    return [node for node in nodes if all(node.get(name, 0) >= wanted[name] for name in wanted)]


def _processors(jobs: int | None, nodes: list[Mapping[str, float]]) -> int:
    """How many a task with so many threads reserves; for 0 threads, all of a node."""
    fewest = min((int(node["CPU"]) for node in nodes), default=_jobs.MOST)
    return fewest if jobs == 0 else max(jobs or min(_jobs.MOST, fewest), 1)


def _together(seen: Mapping[int, Progress], count: int) -> tuple[str, int, int, int, int]:
    """The progress of all shares, from what those have told that have planned. The shares have
    about as many bytes each."""
    if not seen:
        return "plan", 0, 0, 0, 0
    phases = [progress.phase for progress in seen.values()]
    if len(seen) < count:
        phases.append("write")  # what the others have before them
    phase = min(phases, key=_PHASES.index)
    done, total, done_files, total_files = (
        sum(getattr(progress, name) for progress in seen.values())
        for name in ("done", "total", "done_files", "total_files")
    )
    total, total_files = (number * count // len(seen) for number in (total, total_files))
    return phase, done, total, done_files, total_files


class _Overview:
    """The progress of a call in the driver."""

    def __init__(self, ray: Any, watch: Watch, count: int) -> None:
        self._ray = ray
        self._watch = watch
        self._count = count
        self._seen: dict[int, Progress] = {}
        self._ended: set[int] = set()
        self.board: Any = None  # if the progress is shown
        self._asked: Any = None
        if watch.is_shown:
            self.board = ray.remote(_Board).options(num_cpus=0, max_restarts=-1).remote()
            self._asked = self.board.latest.remote()

    def look(self) -> None:
        """Takes what the tasks have told, and shows it. Raises if the call should end."""
        if self._asked is not None and self._ray.wait([self._asked], timeout=0)[0]:
            told: dict[int, Progress]
            try:
                told = self._ray.get(self._asked)
            except self._ray.exceptions.RayError:  # its node died; Ray starts it again
                told = {}
            self._asked = self.board.latest.remote()
            for index, progress in told.items():
                # A share that runs again has to reach its earlier progress first.
                earlier = self._seen.get(index)
                is_news = earlier is None or progress.done >= earlier.done
                if is_news and index not in self._ended and progress.phase in _PHASES:
                    self._seen[index] = progress
        self._watch(*_together(self._seen, self._count))

    def end(self, index: int, report: ConvertReport) -> None:
        """Takes that a share has ended."""
        last = self._seen.get(index)
        total = last.total if last else report.bytes_written
        files = last.total_files if last else len(report.files)
        self._seen[index] = Progress("publish", total, total, files, files, 0.0)
        self._ended.add(index)


def _result(ray: Any, task: Any) -> Any:
    try:
        return ray.get(task)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from error


def _running(ray: Any, tasks: list[Any], seconds: float) -> list[Any]:
    """The tasks that have not ended after this time, if any."""
    if not tasks:
        return []
    _, running = ray.wait(tasks, num_returns=len(tasks), timeout=seconds)
    return list(running)


def _gather(ray: Any, tasks: list[Any], overview: _Overview) -> list[ConvertReport]:
    """The reports of the tasks, in their order. Raises the first error."""
    reports: dict[Any, ConvertReport] = {}
    running = tasks
    while running:
        ended, running = ray.wait(running, num_returns=len(running), timeout=_LOOK_SECONDS)
        for task in ended:
            try:
                reports[task] = _result(ray, task)
            except Exception:
                # Wrong input ends all tasks at about the same time. Ray aborts the driver if it
                # cancels a task that is just ending (as of 2.60, "Tried to complete task that was
                # not pending").
                _running(ray, running, _GRACE_SECONDS)
                raise
            overview.end(tasks.index(task), reports[task])
        overview.look()
    return [reports[task] for task in tasks]


def _stop(ray: Any, tasks: list[Any]) -> None:
    """Ends the tasks, as Ctrl-C would, so that they clear up."""
    running = _running(ray, tasks, 0)
    for task in running:
        ray.cancel(task)
    for task in _running(ray, running, _STOP_SECONDS):
        ray.cancel(task, force=True)


def convert(
    source: Source,
    target: StrPath,
    *,
    # Options of convert, written by tests/python/keywords_test.py --bless.
    src_strategy: StrPath | None = None,
    dst_strategy: StrPath | None = None,
    rank: Ranks | None = None,
    force: bool | None = None,
    resume: bool | Literal["verify"] | None = None,
    format: Literal["ckpt", "safetensors", "unified", "huggingface", "hf"] | None = None,
    src_format: Literal["plain", "huggingface-shards", "mindformers", "dcp", "fsdp"] | None = None,
    suffix: str | None = None,
    name_map: NameMap | None = None,
    group_info: StrPath | Iterable[StrPath] | None = None,
    key_file: StrPath | None = None,
    key_env: str | None = None,
    prefix: str | None = None,
    part_size: Size | None = None,
    shard_size: Size | None = None,
    names: str | None = None,
    prune: bool | None = None,
    encrypt: Literal["AES-GCM", "AES-CBC", "SM4-CBC"] | None = None,
    encrypt_key_file: StrPath | None = None,
    encrypt_key_env: str | None = None,
    crc: bool | None = None,
    companions: bool | StrPath | None = None,
    remove_redundancy: bool | None = None,
    tp: int | None = None,
    dp: int | None = None,
    pp: int | None = None,
    optimizer_sharding: bool | int | None = None,
    stage_layers: Iterable[int] | None = None,
    include: Texts | None = None,
    exclude: Texts | None = None,
    weights_only: bool | None = None,
    rename: NameMap | None = None,
    name_rules: str | None = None,
    dtype: Casts | None = None,
    dtype_overflow: Literal["warn", "error"] | None = None,
    unmatched: Literal["copy", "drop", "error"] | None = None,
    check_replicas: bool | Literal["none", "sample", "all"] | None = None,
    reference: StrPath | None = None,
    expect_parameters: str | None = None,
    partial: bool | None = None,
    no_checksum: bool | None = None,
    memory_limit: Size | None = None,
    io: str | None = None,
    retries: int | None = None,
    wait: int | None = None,
    # Its own.
    report: StrPath | None = None,
    jobs: int | None = None,
    progress: ProgressChoice = None,
    cancel: Event | None = None,
    workers: int | None = None,
    num_cpus: float | None = None,
    resources: Mapping[str, float] | None = None,
    max_retries: int = 3,
) -> ConvertReport:
    """Converts as `reshard.convert` does, in tasks of Ray, and returns one report.

    `workers` is the number of shares; None is one for each node. Each task reserves `num_cpus`
    (None: as many as `jobs`) and `resources`. Ray runs a share again, up to `max_retries` times, if
    its worker dies or the system refuses an operation. Any other error ends all shares.
    """
    given = dict(locals())
    for name in ("progress", "cancel", "workers", "num_cpus", "resources", "max_retries"):
        del given[name]
    begin = time.monotonic()
    ray = _started_ray()
    wanted = {"CPU": num_cpus or 1, **(resources or {})}
    nodes = _nodes(ray, wanted)
    if workers is None and not nodes:
        raise _errors.InvalidArgumentError(
            f"no node has {wanted}, which a task reserves: give other num_cpus, other resources,"
            " or workers, to wait for nodes to come"
        )
    count = len(nodes) if workers is None else workers
    if count < 1:
        raise _errors.InvalidArgumentError(f"workers: expected 1 or more, found {count}")
    if num_cpus is None:
        num_cpus = _processors(jobs, nodes)
    keywords = {**_for_tasks(given), "jobs": max(1, int(num_cpus)) if jobs is None else jobs}
    page = keywords.pop("report", None)
    options = {
        "num_cpus": num_cpus,
        "resources": resources,
        "max_retries": max_retries,
        "retry_exceptions": [_errors.IoError],
        "scheduling_strategy": "SPREAD",
    }
    watch = Watch(progress, cancel)
    tasks: list[Any] = []
    try:
        overview = _Overview(ray, watch, count)
        share = ray.remote(_share)
        for index in range(count):
            own = {**keywords, "report": page} if page and index == 0 else keywords
            task = share.options(name=f"reshard {index}/{count}", **options)
            tasks.append(task.remote(index, count, overview.board, own))
        whole = ConvertReport.of_shares(_gather(ray, tasks, overview))
        if not whole.published:
            commit = ray.remote(_commit).options(num_cpus=0)
            tasks.append(commit.remote(keywords["target"], wait))
            _result(ray, tasks[-1])
    except BaseException:
        _stop(ray, tasks)
        raise
    finally:
        watch.close()
    published: ConvertReport = whole.__replace__(shard=None, seconds=time.monotonic() - begin)
    return published
