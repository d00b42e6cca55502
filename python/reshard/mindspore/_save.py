"""save_checkpoint: Parameters into a file, whole or not at all."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _errors, _reshard
from .._paths import StrPath, encode
from . import _check, _communication, _parameter
from ._warn import warn

_CALL = "save_checkpoint"

_WORDS = {"encryption": "enc_mode", "encryption_key": "enc_key"}

# (name, array, name of its element type); a text is an array of its UTF-32 code points.
_Entry = tuple[str, NDArray[Any], str]


def _entry(name: str, value: Any) -> _Entry:
    if isinstance(value, str):
        return name, np.frombuffer((value or "\0").encode("utf-32-le"), np.uint8), "str"
    array, dtype_name = _parameter.parts_of(value)
    # Not ascontiguousarray, which adds an axis to a scalar.
    copy = None if np.__version__ >= "2" else False
    return name, np.array(array, order="C", copy=copy), dtype_name


def _is_parameter(value: Any) -> bool:
    return isinstance(value, (_parameter.Tensor, np.ndarray)) or (
        hasattr(value, "asnumpy") and hasattr(value, "dtype")
    )


def _pairs_of_list(items: list[Any]) -> Iterator[tuple[Any, Any]]:
    """Of Parameters, as trainable_params() returns them, or of dicts."""
    for item in items:
        if isinstance(items[0], dict):
            if not isinstance(item, dict) or not {"name", "data"} <= item.keys():
                raise TypeError(
                    f"{_CALL}: save_obj: expected dicts with 'name' and 'data', found {item!r:.80}"
                )
            yield item["name"], item["data"]
        elif _is_parameter(item) and isinstance(getattr(item, "name", None), str):
            yield item.name, item
        else:
            raise TypeError(
                f"{_CALL}: save_obj: expected Parameters, as the first one is, or dicts with 'name'"
                f" and 'data', found {type(item).__name__}"
            )


def _entries(save_obj: Any, choose: Callable[[str], Any] | None) -> Iterator[_Entry]:
    pairs: Iterable[tuple[Any, Any]]
    if isinstance(save_obj, dict):
        pairs = save_obj.items()
    elif isinstance(save_obj, list):
        pairs = _pairs_of_list(save_obj)
    elif hasattr(save_obj, "get_parameters"):
        pairs = [(parameter.name, parameter) for parameter in save_obj.get_parameters()]
    else:
        raise TypeError(
            f"{_CALL}: save_obj: expected a net, a list or a dict, found {type(save_obj).__name__}"
        )
    for name, value in pairs:
        if not isinstance(name, str):
            raise TypeError(
                f"{_CALL}: save_obj: expected a str for each name, found {type(name).__name__}"
                f" ({name!r:.80})"
            )
        if not isinstance(value, str) and not _is_parameter(value):
            raise TypeError(
                f"{_CALL}: save_obj: expected a Parameter, an array or a str as {name!r}, found"
                f" {type(value).__name__}"
            )
        if choose is None or choose(name):
            yield _entry(name, value)


def _appended(append_dict: dict[str, Any]) -> Iterator[_Entry]:
    for name, value in append_dict.items():
        if not isinstance(name, str):
            raise TypeError(
                f"{_CALL}: append_dict: expected a str for each name, found {type(name).__name__}"
            )
        if isinstance(value, bool):
            value = np.array(value)
        elif isinstance(value, int):
            value = np.array(value, np.int64)
        elif isinstance(value, float):
            value = np.array(value, np.float32)
        elif not isinstance(value, str) and not _is_parameter(value):
            raise TypeError(
                f"{_CALL}: append_dict: expected int, float, bool, str or a Parameter as {name!r},"
                f" found {type(value).__name__}"
            )
        yield _entry(name, value)


def _check_options(integrated_save: Any, async_save: Any, append_dict: Any) -> None:
    _check.instance(_CALL, "integrated_save", integrated_save, bool, TypeError)
    if not isinstance(async_save, (bool, str)):
        raise TypeError(
            f"{_CALL}: async_save: expected bool or str, found {type(async_save).__name__}"
        )
    if isinstance(async_save, str) and async_save not in ("process", "thread"):
        raise _errors.InvalidArgumentError(
            f"{_CALL}: async_save: expected 'process' or 'thread', found {async_save!r}"
        )
    if append_dict is not None:
        _check.instance(_CALL, "append_dict", append_dict, dict, TypeError)


def _check_encryption(enc_key: Any, enc_mode: Any, crc_check: Any, format: str) -> None:
    if enc_key is not None:
        _check.instance(_CALL, "enc_key", enc_key, bytes, ValueError)
    _check.instance(_CALL, "enc_mode", enc_mode, str, ValueError)
    _check.instance(_CALL, "crc_check", crc_check, bool, ValueError)
    if format == "safetensors" and enc_mode != "AES-GCM":
        raise _errors.InvalidArgumentError(
            f"{_CALL}: enc_mode: only .ckpt files are encrypted; leave it out with"
            f" format='safetensors', found {enc_mode!r}"
        )
    if enc_key is not None:
        lengths = (16,) if enc_mode == "SM4-CBC" else (16, 24, 32)
        if format == "safetensors" or len(enc_key) not in lengths:
            raise _errors.InvalidArgumentError(
                f"{_CALL}: enc_key: expected {' or '.join(map(str, lengths))} bytes, and"
                f" format='ckpt'; found {len(enc_key)} bytes and format={format!r}"
            )
        if enc_mode not in ("AES-GCM", "AES-CBC", "SM4-CBC"):
            raise _errors.InvalidArgumentError(
                f"{_CALL}: enc_mode: expected 'AES-GCM', 'AES-CBC' or 'SM4-CBC', found {enc_mode!r}"
            )
        if crc_check:
            raise _errors.InvalidArgumentError(
                f"{_CALL}: crc_check: an encrypted file states no CRC; leave it out"
            )


def save_checkpoint(
    save_obj: Any,
    ckpt_file_name: StrPath,
    integrated_save: bool = True,
    async_save: bool | str = False,
    append_dict: dict[str, Any] | None = None,
    enc_key: bytes | None = None,
    enc_mode: str = "AES-GCM",
    choice_func: Callable[[str], Any] | None = None,
    crc_check: bool = False,
    format: str = "ckpt",
    **kwargs: Any,
) -> None:
    """Writes Parameters, or arrays, into a file, which appears whole or not at all.

    `save_obj` is a dict of Parameters by name; a list of Parameters, such as the result of
    trainable_params(); a list of dicts with "name" and "data"; or a net. Parameters are left out
    if `choice_func` returns false. With format="safetensors", the header states
    `remove_redundancy`, True or False. The file is written when the call returns, for any
    `async_save`. With `enc_key` it is encrypted, and plain bytes never reach a file. MindSpore's
    own function saves a Cell.
    """
    path = _check.path(_CALL, "ckpt_file_name", ckpt_file_name)
    if format not in ("ckpt", "safetensors"):
        raise _errors.InvalidArgumentError(
            f"{_CALL}: format: expected 'ckpt' or 'safetensors', found {format!r}"
        )
    _check_options(integrated_save, async_save, append_dict)
    _check_encryption(enc_key, enc_mode, crc_check, format)
    remove_redundancy = kwargs.get("remove_redundancy")
    if remove_redundancy is not None:
        _check.instance(_CALL, "remove_redundancy", remove_redundancy, bool, ValueError)
    mindspore = _parameter.framework_of("auto")
    if mindspore is not None and isinstance(save_obj, mindspore.nn.Cell):
        from . import _patch

        _patch.original("save_checkpoint", mindspore)(
            save_obj,
            path,
            integrated_save,
            async_save,
            append_dict,
            enc_key,
            enc_mode,
            choice_func,
            crc_check,
            format,
            **kwargs,
        )
        return
    unused = [name for name in kwargs if name != "remove_redundancy"]
    if unused:
        warn(f"{_CALL}: without effect: {', '.join(unused)}")
    entries = [*_entries(save_obj, choice_func), *_appended(append_dict or {})]
    if os.path.isdir(path):
        raise IsADirectoryError(f"{_CALL}: ckpt_file_name: {path} is a folder")
    if not path.endswith(format):
        path += "." + format
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise _errors.NotFoundError(f"{_CALL}: ckpt_file_name: no such folder: {folder}")
    arrays = [
        (
            name.encode("utf-8", "surrogateescape"),
            dtype_name,
            list(array.shape) if dtype_name != "str" else [],
            array.reshape(-1).view(np.uint8),
        )
        for name, array, dtype_name in entries
    ]
    _errors.call(
        _WORDS,
        _reshard.write_checkpoint,
        encode(path),
        arrays,
        format == "safetensors",
        crc_check,
        remove_redundancy,
        (enc_key or b"", enc_mode),
    )


def async_ckpt_thread_status() -> bool:
    """Whether a save is under way: never, since save_checkpoint returns when it has saved."""
    return False


def get_ckpt_path_with_strategy(
    cur_ckpt_path: StrPath, cur_strategy_path: StrPath
) -> str | None:
    """Returns the checkpoint of this rank; without one, the checkpoint of a rank that holds the
    same, or None. The launcher's variables give the rank."""
    call = "get_ckpt_path_with_strategy"
    path = _check.path(call, "cur_ckpt_path", cur_ckpt_path)
    rank = _communication.get_rank()
    if f"rank_{rank}" in path and os.path.isfile(path):
        return path
    for other in _same(rank, _check.path(call, "cur_strategy_path", cur_strategy_path)):
        candidate = re.sub(r"rank_\d+", f"rank_{other}", path)
        if os.path.isfile(candidate):
            return candidate
    return None


def _same(rank: int, strategy: str) -> list[int]:
    """The ranks that hold the same parts as `rank` does, of all parameters with a layout."""
    from ._layouts import build_searched_strategy
    from ._merge import places_of

    layouts = build_searched_strategy(strategy) or {}
    left: set[int] | None = None
    for name, layout in layouts.items():
        if name.startswith(("accu_grads", "inputs")):
            continue
        places = places_of(layout)
        if rank >= len(places):
            continue
        equal = {each for each, place in enumerate(places) if place == places[rank]}
        left = equal if left is None else left & equal
    return sorted(left or {rank})
