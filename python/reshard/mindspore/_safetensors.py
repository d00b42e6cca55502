"""The functions about safetensors: unified folders, their distribution, and conversions between
formats, file by file."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

from .. import _calls, _errors
from .._checkpoint import open as open_checkpoint
from .._fields import WarningMessage
from .._paths import StrPath
from . import _check, _communication, _load, _parameter, _save, _turns
from ._check import Format
from ._warn import warn_of_report


def _literal(name: str) -> str:
    """The pattern that only this name matches."""
    return re.sub(r"([*?\[\\])", r"\\\1", name)


def unified_safetensors(
    src_dir: StrPath,
    src_strategy_file: StrPath,
    dst_dir: StrPath,
    merge_with_redundancy: bool = True,
    file_suffix: str | None = None,
    max_process_num: int = 64,
    choice_func: Callable[[str], Any] | None = None,
    split_dst_file: Sequence[int] = (),
    *,
    partial: bool | None = None,
) -> None:
    """Makes one folder of full tensors from the safetensors files of all ranks.

    Accepts files with and without redundancy, for any `merge_with_redundancy`. `choice_func`
    gets each name: False leaves it out, a str is its new name. Threads do the work:
    `max_process_num` has no effect. `partial` is as in reshard.convert.
    """
    call = "unified_safetensors"
    source = _check.path(call, "src_dir", src_dir)
    target = _check.path(call, "dst_dir", dst_dir)
    if src_strategy_file is None:
        raise TypeError(f"{call}: src_strategy_file: expected a strategy, found None")
    if os.path.isfile(source):
        raise _errors.InvalidArgumentError(f"{call}: src_dir: {source} is a file")
    strategy = _check.strategy(call, "src_strategy_file", src_strategy_file)
    if isinstance(max_process_num, int) and max_process_num < 1:
        raise _errors.InvalidArgumentError(
            f"{call}: max_process_num: expected 1 or more, found {max_process_num}"
        )
    if split_dst_file:
        raise _errors.UnsupportedError(
            f"{call}: split_dst_file: not supported; reshard.convert(..., format='unified',"
            " shard=(i, n)) shares the work among processes"
        )
    if not any(
        file.endswith(".safetensors") for _, _, files in os.walk(source) for file in files
    ):
        raise _errors.NotFoundError(f"{call}: src_dir: {source} has no safetensors files")
    include = rename = None
    if choice_func is not None:
        chosen = {}
        with open_checkpoint(source, strategy, suffix=file_suffix) as checkpoint:
            for name in checkpoint:
                choice = choice_func(name)
                if choice:
                    chosen[name] = choice if isinstance(choice, str) else name
        if not chosen:
            raise _errors.InvalidArgumentError(f"{call}: choice_func chooses no parameter")
        include = [_literal(name) for name in chosen]
        rename = {name: new for name, new in chosen.items() if name != new}
    arguments = {
        "src_dir": _turns.place(source),
        "src_strategy_file": _turns.place(strategy),
        "file_suffix": file_suffix,
        "choice_func": {"include": include, "rename": rename},  # its results
        "partial": bool(partial),
    }
    with (
        _turns.turn(_turns.file_in(target), call, arguments) as mine,
        _check.of_strategies(strategy),
    ):
        if mine:
            report = _turns.resumed(
                target,
                lambda resume: _calls.convert(
                    source,
                    target,
                    src_strategy=strategy,
                    suffix=file_suffix,
                    format="unified",
                    include=include,
                    rename=rename or None,
                    partial=partial,
                    force=True,
                    resume=resume,
                ),
            )
    if mine:
        warn_of_report(call, report.warnings)


def load_distributed_checkpoint(
    network: Any,
    checkpoint_filenames: Sequence[StrPath] | None = None,
    predict_strategy: StrPath | None = None,
    train_strategy_filename: StrPath | None = None,
    strict_load: bool = False,
    dec_key: bytes | None = None,
    dec_mode: str = "AES-GCM",
    format: str = "ckpt",
    unified_safetensors_dir: StrPath | None = None,
    dst_safetensors_dir: StrPath | None = None,
    rank_id: int | None = None,
    output_format: str = "safetensors",
    name_map: dict[str, str] | None = None,
    max_process_num: int = 64,
    return_param_dict: bool = False,
    *,
    partial: bool | None = None,
) -> Any:
    """Distributes full tensors to ranks, or loads the tensors of a rank into a net.

    With format="safetensors" `unified_safetensors_dir` holds them. Without a network they go to
    dst_safetensors_dir/rank_N/net.safetensors. With a network, the tensors of `rank_id`, by
    default this process's, are loaded. With format="ckpt" `checkpoint_filenames` are the files
    of all ranks, in their order, cut by `train_strategy_filename`. Strategies are files or
    folders. `partial` is as in reshard.convert. Returns True, or with `return_param_dict` the
    loaded Parameters.
    """
    call = "load_distributed_checkpoint"
    if format not in ("ckpt", "safetensors") or output_format not in ("ckpt", "safetensors"):
        raise _errors.InvalidArgumentError(
            f"{call}: format and output_format: expected 'ckpt' or 'safetensors', found"
            f" {format!r} and {output_format!r}"
        )
    if isinstance(predict_strategy, dict):
        raise _errors.UnsupportedError(
            f"{call}: predict_strategy: a dict is not supported; give the strategy file"
        )
    cut = _check.strategy(call, "predict_strategy", predict_strategy)
    written: Format = "safetensors" if output_format == "safetensors" else "ckpt"
    if format == "ckpt":
        if network is None:
            raise _errors.InvalidArgumentError(f"{call}: network: expected a net, found None")
        if checkpoint_filenames is None:
            raise TypeError(f"{call}: checkpoint_filenames: expected files, found None")
        files = {
            rank: _check.path(call, f"checkpoint_filenames[{rank}]", path)
            for rank, path in enumerate(checkpoint_filenames)
        }
        if dec_key is not None:
            raise _errors.UnsupportedError(f"{call}: dec_key: not supported; convert with key_file")
        train = _check.strategy(call, "train_strategy_filename", train_strategy_filename)
        if not files or (train is None and len(files) > 1):
            raise _errors.InvalidArgumentError(
                f"{call}: checkpoint_filenames: expected the files of all ranks, or one file if"
                f" train_strategy_filename is None; found {len(files)}"
            )
        parameters = _of_rank(network, files, train, cut, rank_id, None, strict_load, partial)
        return parameters if return_param_dict else True
    if unified_safetensors_dir is None:
        raise _errors.InvalidArgumentError(
            f"{call}: unified_safetensors_dir: expected a folder of full tensors, found None"
        )
    source = _check.path(call, "unified_safetensors_dir", unified_safetensors_dir)
    if network is not None:
        parameters = _of_rank(network, source, None, cut, rank_id, name_map, strict_load, partial)
        return parameters if return_param_dict else True
    if dst_safetensors_dir is None:
        raise _errors.InvalidArgumentError(
            f"{call}: dst_safetensors_dir: expected a folder, as network is None; found None"
        )
    target = _check.path(call, "dst_safetensors_dir", dst_safetensors_dir)
    ranks = None if cut is None or rank_id is None else [_check.rank(call, rank_id)]
    arguments = {
        "unified_safetensors_dir": _turns.place(source),
        "predict_strategy": _turns.place(cut),
        "output_format": written,
        "name_map": name_map,
        "partial": bool(partial),
    }
    with (
        _turns.turn(_turns.file_in(target), call, arguments, part=ranks) as mine,
        _check.of_strategies(cut),
    ):
        if mine and cut is None:
            if not partial:
                _check_complete(source)
            folder = os.path.join(target, "rank_0")
            os.makedirs(folder, exist_ok=True)
            _save.save_checkpoint(
                _whole(source, name_map), os.path.join(folder, "net." + written), format=written
            )
        elif mine:
            report = _turns.resumed(
                target,
                lambda resume: _calls.convert(
                    source,
                    target,
                    dst_strategy=cut,
                    format=written,
                    names="rank_{rank}/net.{ext}",
                    name_map=name_map,
                    rank=ranks,
                    partial=partial,
                    force=True,
                    resume=resume,
                ),
            )
    if mine and cut is not None:
        warn_of_report(call, report.warnings)
    return True


def _check_complete(source: str) -> None:
    """Refuses files that state that they are some of several, as a conversion does."""
    _calls.target(source, format="unified")


def _whole(path: str, name_map: dict[str, str] | None) -> dict[str, _parameter.Tensor]:
    """The full tensors of a folder, or of a file, in memory."""
    names = {old: new for new, old in (name_map or {}).items()}
    with open_checkpoint(path) as checkpoint:
        return {
            names.get(name, name): _parameter.Tensor._of(tensor.numpy(), tensor.dtype_name)
            for name, tensor in checkpoint.items()
        }


def _of_rank(
    network: Any,
    source: str | dict[int, str],
    train: str | None,
    cut: str | None,
    rank_id: int | None,
    name_map: dict[str, str] | None,
    strict_load: bool,
    partial: bool | None,
) -> dict[str, Any]:
    """Loads the tensors of a rank under the strategy `cut` into `network`."""
    rank = _communication.get_rank() if rank_id is None else rank_id
    mindspore = _parameter.framework_of("auto")
    if train is None and cut is None:
        [path] = [source] if isinstance(source, str) else source.values()
        if not partial:
            # What a unified folder cannot hold, such as a text, may be beside the tensors.
            with contextlib.suppress(_errors.UnsupportedError):
                _check_complete(path)
        parameters = {
            name: _parameter.make(mindspore, tensor.asnumpy(), tensor.dtype.name, name)
            for name, tensor in _whole(path, name_map).items()
        }
        _load.load_param_into_net(network, parameters, strict_load)
        return parameters
    with tempfile.TemporaryDirectory(prefix="reshard-") as folder:
        with _check.of_strategies(train, cut):
            report = _calls.convert(
                source,
                folder,
                src_strategy=train,
                dst_strategy=cut,
                format="ckpt",
                name_map=name_map,
                rank=None if cut is None else [rank],
                partial=partial,
            )
        [made] = report.files
        parameters = _load.load_checkpoint(
            os.path.join(folder, made.path), framework="numpy" if mindspore is None else "mindspore"
        )
    _load.load_param_into_net(network, parameters, strict_load)
    warn_of_report("load_distributed_checkpoint", report.warnings)
    return parameters


def _recode(
    call: str,
    wanted: Format,
    file_path: StrPath,
    save_path: StrPath | None,
    name_map: dict[str, str] | None,
    file_name_regex: str | None,
    processes_num: int,
) -> None:
    given = "ckpt" if wanted == "safetensors" else "safetensors"
    source = _check.path(call, "file_path", file_path)
    if not os.path.isdir(source) and not source.endswith("." + given):
        raise _errors.InvalidArgumentError(
            f"{call}: file_path: expected a folder or a .{given} file, found {source}"
        )
    if not os.path.exists(source):
        raise _errors.NotFoundError(f"{call}: file_path: no such file or folder: {source}")
    if os.path.isdir(source):
        folders = [
            entry.path
            for entry in os.scandir(source)
            if entry.name.startswith("rank") and entry.is_dir()
        ]
        if not folders:
            raise _errors.NotFoundError(f"{call}: file_path: {source} has no folders rank_N")
        # The library would take .ckpt files to .ckpt files with other names.
        if not any(
            name.endswith("." + given) for folder in folders for name in os.listdir(folder)
        ):
            raise _errors.NotFoundError(f"{call}: file_path: {source} has no .{given} files")
    if name_map is not None:
        _check.instance(call, "name_map", name_map, dict, ValueError)
    if processes_num < 1:
        raise _errors.InvalidArgumentError(
            f"{call}: processes_num: expected 1 or more, found {processes_num}"
        )
    folder = source if os.path.isdir(source) else os.path.dirname(source) or "."
    if save_path is not None:
        folder = _check.path(call, "save_path", save_path)
        if folder.endswith((".ckpt", ".safetensors")):
            raise _errors.InvalidArgumentError(
                f"{call}: save_path: expected a folder, found {folder}"
            )
    rename = name_map or None
    arguments = {
        "file_path": _turns.place(source),
        "name_map": rename,
        "file_name_regex": file_name_regex,
    }

    def recode(resume: bool) -> tuple[WarningMessage, ...]:
        try:
            found = _calls.recode(
                source,
                folder,
                format=wanted,
                rename=rename,
                files=file_name_regex,
                force=True,
                resume=resume,
            )
        except _errors.NotFoundError:
            # As in MindSpore: without a matching file there is no work.
            if file_name_regex is None:
                raise
            return ()
        return found.warnings

    with _turns.turn(_turns.file_in(folder), call, arguments) as mine:
        if mine:
            warnings = _turns.resumed(folder, recode)
    if mine:
        warn_of_report(call, warnings)


def ckpt_to_safetensors(
    file_path: StrPath,
    save_path: StrPath | None = None,
    name_map: dict[str, str] | None = None,
    file_name_regex: str | None = None,
    processes_num: int = 1,
) -> None:
    """Makes safetensors files from a .ckpt file, or from the files in the rank folders of a folder.

    They go to `save_path`, or beside the sources. Threads do the work.
    """
    _recode(
        "ckpt_to_safetensors",
        "safetensors",
        file_path,
        save_path,
        name_map,
        file_name_regex,
        processes_num,
    )


def safetensors_to_ckpt(
    file_path: StrPath,
    save_path: StrPath | None = None,
    name_map: dict[str, str] | None = None,
    file_name_regex: str | None = None,
    processes_num: int = 1,
) -> None:
    """Makes .ckpt files of safetensors files, as ckpt_to_safetensors does the reverse."""
    _recode(
        "safetensors_to_ckpt",
        "ckpt",
        file_path,
        save_path,
        name_map,
        file_name_regex,
        processes_num,
    )
