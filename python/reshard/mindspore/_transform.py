"""Conversions: transform_checkpoints and related functions."""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from .. import _calls, _errors
from .._calls import NameMap, Size, Texts
from .._paths import StrPath
from .._progress import Event, ProgressChoice
from . import _check, _turns
from ._check import Format
from ._warn import warn_of_report

_FORMATS: tuple[Format, ...] = ("ckpt", "safetensors")


def _formats_in(folder: str) -> set[Format]:
    """The formats of the files in its rank folders."""
    found: set[Format] = set()
    if not os.path.isdir(folder):
        return found
    for rank in os.scandir(folder):
        if rank.name.startswith("rank") and rank.is_dir():
            for name in os.listdir(rank.path):
                found.update(f for f in _FORMATS if name.endswith("." + f))
    return found


def _check_formats(source: str, output_format: str) -> Format:
    if output_format not in _FORMATS:
        raise _errors.InvalidArgumentError(
            f"transform_checkpoints: output_format: expected 'ckpt' or 'safetensors',"
            f" found {output_format!r}"
        )
    found = _formats_in(source)
    if len(found) > 1:
        raise _errors.MismatchError(
            f"transform_checkpoints: src_checkpoints_dir: {source} has .ckpt and .safetensors"
            " files; move the files of one format elsewhere"
        )
    if found == {"ckpt"} and output_format == "safetensors":
        raise _errors.InvalidArgumentError(
            f"transform_checkpoints: output_format='safetensors', but {source} has .ckpt files, of"
            " which MindSpore makes .ckpt; reshard.convert(..., format='safetensors') writes the"
            " other"
        )
    return "safetensors" if output_format == "safetensors" else "ckpt"


def transform_checkpoints(
    src_checkpoints_dir: StrPath,
    dst_checkpoints_dir: StrPath,
    ckpt_prefix: str,
    src_strategy_file: StrPath | None = None,
    dst_strategy_file: StrPath | None = None,
    process_num: Any = 1,
    output_format: str = "ckpt",
    *,
    include: Texts | None = None,
    exclude: Texts | None = None,
    rename: NameMap | None = None,
    unmatched: Literal["copy", "drop", "error"] | None = None,
    partial: bool | None = None,
    memory_limit: Size | None = None,
    no_checksum: bool | None = None,
    report: StrPath | None = None,
    jobs: int | None = None,
    progress: ProgressChoice = None,
    cancel: Event | None = None,
) -> None:
    """Converts all ranks, as MindSpore's function does: rank_N/PREFIXN.ckpt in the target folder.

    Strategies may be folders of stage files, too. Existing files with the same names are
    replaced. If several processes make the same call at once, one works and the others wait.
    `process_num` has no effect: `jobs` threads do the work. Further keywords are passed to
    reshard.convert.
    """
    call = "transform_checkpoints"
    source = _check.path(call, "src_checkpoints_dir", src_checkpoints_dir)
    target = _check.path(call, "dst_checkpoints_dir", dst_checkpoints_dir)
    _check.instance(call, "ckpt_prefix", ckpt_prefix, str, TypeError)
    if not ckpt_prefix.strip() or ".." in ckpt_prefix or "/" in ckpt_prefix:
        raise _errors.InvalidArgumentError(
            f"{call}: ckpt_prefix: expected the beginning of a file name, found {ckpt_prefix!r}"
        )
    if os.path.exists(target) and not os.path.isdir(target):
        raise _check.TargetError(f"{call}: dst_checkpoints_dir: {target} is a file")
    if os.path.isdir(target) and os.path.isdir(source) and os.path.samefile(source, target):
        raise _errors.InvalidArgumentError(
            f"{call}: dst_checkpoints_dir is src_checkpoints_dir, {source}: the new files would be"
            " taken for the newest of the source; give another folder"
        )
    src_strategy = _check.strategy(call, "src_strategy_file", src_strategy_file)
    dst_strategy = _check.strategy(call, "dst_strategy_file", dst_strategy_file)
    if src_strategy is None and dst_strategy is None:
        raise _errors.InvalidArgumentError(
            f"{call}: expected src_strategy_file, dst_strategy_file or both"
        )
    format = _check_formats(source, output_format)
    choice = _turns.values(
        {"include": include, "exclude": exclude, "rename": rename, "unmatched": unmatched}
    )
    arguments = {
        "src_checkpoints_dir": _turns.place(source),
        "ckpt_prefix": ckpt_prefix,
        "src_strategy_file": _turns.place(src_strategy),
        "dst_strategy_file": _turns.place(dst_strategy),
        "output_format": format,
        **choice,
        "partial": bool(partial),
        "no_checksum": bool(no_checksum),
        "report": None if report is None else _turns.place(os.fsdecode(report)),
    }
    with (
        _turns.turn(_turns.file_in(target), call, arguments, cancel=cancel) as mine,
        _check.of_strategies(src_strategy, dst_strategy),
    ):
        if mine:
            names = _names_beside_others(target, ckpt_prefix)
            made = _turns.resumed(
                target,
                lambda resume: _calls.convert(
                    source,
                    target,
                    src_strategy=src_strategy,
                    dst_strategy=dst_strategy,
                    format=format,
                    prefix=ckpt_prefix,
                    names=names,
                    **choice,
                    partial=partial,
                    memory_limit=memory_limit,
                    no_checksum=no_checksum,
                    report=report,
                    force=True,
                    resume=resume,
                    jobs=jobs,
                    progress=progress,
                    cancel=cancel,
                ),
            )
    if mine:
        warn_of_report(call, made.warnings)


def _names_beside_others(target: str, prefix: str) -> str | None:
    """The names of the new files if files of other prefixes lie in the rank folders: MindSpore
    keeps these, and its users load files by their names."""
    for path in glob.glob(os.path.join(glob.escape(target), "rank_*", "*")):
        name = os.path.basename(path)
        if name.endswith((".ckpt", ".safetensors")) and not name.startswith(prefix):
            return "rank_{rank}/{prefix}{rank}.{ext}"
    return None


def _needed(call: str, rank: int, src_strategy: str | None, dst_strategy: str | None) -> list[int]:
    """The source ranks that target rank `rank` needs, ascending."""
    if src_strategy is None:
        return [0]
    if rank < 0:
        raise _check.RankError(f"{call}: rank_id: expected a rank of the target, found {rank}")
    with _check.of_strategies(src_strategy, dst_strategy):
        if dst_strategy is None:
            return _calls.source_ranks(0, src_strategy=src_strategy)
        try:
            return _calls.source_ranks(rank, src_strategy=src_strategy, dst_strategy=dst_strategy)
        except _errors.InvalidArgumentError as error:
            raise _check.RankError(f"{call}: rank_id: {error}") from None


def rank_list_for_transform(
    rank_id: int,
    src_strategy_file: StrPath | None = None,
    dst_strategy_file: StrPath | None = None,
) -> list[int]:
    """Returns the source ranks that target rank `rank_id` needs, descending.

    [0] without a source strategy. One replica of each shard: the list is part of MindSpore's.
    """
    call = "rank_list_for_transform"
    rank = _check.rank(call, rank_id)
    src_strategy = _check.strategy(call, "src_strategy_file", src_strategy_file)
    dst_strategy = _check.strategy(call, "dst_strategy_file", dst_strategy_file)
    return _needed(call, rank, src_strategy, dst_strategy)[::-1]


def transform_checkpoint_by_rank(
    rank_id: int,
    checkpoint_files_map: Mapping[int, StrPath],
    save_checkpoint_file_name: StrPath,
    src_strategy_file: StrPath | None = None,
    dst_strategy_file: StrPath | None = None,
    *,
    include: Texts | None = None,
    exclude: Texts | None = None,
    rename: NameMap | None = None,
    unmatched: Literal["copy", "drop", "error"] | None = None,
    partial: bool | None = None,
    memory_limit: Size | None = None,
    jobs: int | None = None,
    progress: ProgressChoice = None,
    cancel: Event | None = None,
) -> None:
    """Writes the file of one target rank, from the files of the ranks that rank_list_for_transform
    names, by rank. The folder of the file is made if it does not exist."""
    call = "transform_checkpoint_by_rank"
    _check.instance(call, "checkpoint_files_map", checkpoint_files_map, dict, TypeError)
    rank = _check.rank(call, rank_id)
    output = _check.path(call, "save_checkpoint_file_name", save_checkpoint_file_name)
    if not output.endswith(".ckpt"):
        raise _errors.InvalidArgumentError(
            f"{call}: save_checkpoint_file_name: expected a name that ends in .ckpt, found {output}"
        )
    files: dict[int, str] = {}
    for key, value in checkpoint_files_map.items():
        name = _check.path(call, f"checkpoint_files_map[{key!r}]", value)
        if isinstance(key, str) or not os.path.isfile(name):
            raise _errors.NotFoundError(
                f"{call}: checkpoint_files_map: expected the file of each rank by its number,"
                f" found {name!r} for {key!r}"
            )
        files[_check.rank(call, key)] = name
    if os.path.isdir(output):
        raise IsADirectoryError(f"{call}: save_checkpoint_file_name: {output} is a folder")
    src_strategy = _check.strategy(call, "src_strategy_file", src_strategy_file)
    dst_strategy = _check.strategy(call, "dst_strategy_file", dst_strategy_file)
    if not files or (src_strategy is None and dst_strategy is None):
        raise _errors.InvalidArgumentError(
            f"{call}: expected files of ranks, and src_strategy_file, dst_strategy_file or both"
        )
    needed = _needed(call, rank, src_strategy, dst_strategy)
    missing = [source for source in needed if source not in files]
    if missing:
        raise _errors.NotFoundError(
            f"{call}: checkpoint_files_map: target rank {rank} needs source ranks"
            f" {needed}; the map has no file for {missing}"
        )
    choice = _turns.values(
        {"include": include, "exclude": exclude, "rename": rename, "unmatched": unmatched}
    )
    arguments = {
        "rank_id": rank,
        "checkpoint_files_map": {str(key): _turns.place(files[key]) for key in sorted(files)},
        "src_strategy_file": _turns.place(src_strategy),
        "dst_strategy_file": _turns.place(dst_strategy),
        **choice,
        "partial": bool(partial),
    }
    with _turns.turn(_turns.file_beside(output), call, arguments, cancel=cancel) as mine:
        if not mine:
            return
        with _staging(output, mine) as hidden, _check.of_strategies(src_strategy, dst_strategy):
            report = _calls.convert(
                files,
                os.path.join(hidden, "made"),
                src_strategy=src_strategy,
                dst_strategy=dst_strategy,
                format="ckpt",
                rank=None if dst_strategy is None else [rank],
                **choice,
                partial=partial,
                memory_limit=memory_limit,
                jobs=jobs,
                progress=progress,
                cancel=cancel,
            )
            [made] = report.files
            os.replace(os.path.join(hidden, "made", made.path), output)
    warn_of_report(call, report.warnings)


@contextlib.contextmanager
def _staging(output: str, turn: _turns.Turn) -> Iterator[str]:
    """A folder beside the future file, so that it can be renamed; durable if that was done.

    If no equal call works meanwhile, leftovers are of killed calls. They are removed.
    """
    folder, beginning = os.path.split(_turns.beside(output))
    os.makedirs(folder, exist_ok=True)
    prefix = beginning + "-"
    # With as many characters as mkdtemp adds: the name of another file may go on like the prefix.
    names = os.path.join(glob.escape(folder), glob.escape(prefix) + "????????")
    for left in glob.glob(names) if turn is _turns.Turn.OWN else ():
        shutil.rmtree(left, ignore_errors=True)
    hidden = tempfile.mkdtemp(prefix=prefix, dir=folder)
    try:
        yield hidden
        named = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(named)
        finally:
            os.close(named)
    finally:
        shutil.rmtree(hidden, ignore_errors=True)


def merge_pipeline_strategys(src_strategy_dirs: StrPath, dst_strategy_file: StrPath) -> None:
    """Merges the strategy files of all pipeline stages, which a folder has, into one file."""
    call = "merge_pipeline_strategys"
    if not isinstance(src_strategy_dirs, (str, os.PathLike)) or not os.path.isdir(
        src_strategy_dirs
    ):
        raise NotADirectoryError(
            f"{call}: src_strategy_dirs: expected a folder of strategy files,"
            f" found {src_strategy_dirs!r}"
        )
    output = _check.path(call, "dst_strategy_file", dst_strategy_file)
    folder = os.path.dirname(os.path.abspath(output))
    os.makedirs(folder, exist_ok=True)
    source = os.fspath(src_strategy_dirs)
    inside = os.path.samefile(folder, source)
    if not inside or not os.path.exists(output):
        _merge(source, output)
        return
    # A merged file of an earlier call is no stage.
    with tempfile.TemporaryDirectory(prefix=".reshard-", dir=folder) as stages:
        for entry in os.scandir(source):
            if entry.is_file() and not os.path.samefile(entry.path, output):
                os.symlink(os.path.abspath(entry.path), os.path.join(stages, entry.name))
        _merge(stages, output)


def _merge(folder: str, output: str) -> None:
    with _check.of_strategies(*(entry.path for entry in os.scandir(folder))):
        _calls.merge_strategies(folder, output, force=True)


# Their newer names, which MindSpore has in mindspore.parallel.
convert_checkpoints = transform_checkpoints
convert_checkpoint_by_rank = transform_checkpoint_by_rank
rank_list_for_convert = rank_list_for_transform
