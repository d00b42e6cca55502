"""load_checkpoint and its kin: Parameters out of files."""

from __future__ import annotations

import concurrent.futures
import io
import os
import re
import tempfile
import zlib
from collections.abc import Callable, Iterable
from typing import Any, Union

import numpy as np
from numpy.typing import NDArray

from .. import _dtypes, _errors, _jobs, _memory, _reshard
from .._paths import StrPath, encode
from .._progress import Watch
from . import _check, _parameter
from ._parameter import Framework

Prefix = Union[str, Iterable[str], None]

_FORMATS = ("ckpt", "safetensors")
_MODES = {
    b"\xd8\x5e\x3a\x7f": "AES-GCM",
    b"\xd9\x5e\x3a\x7f": "AES-CBC",
    b"\xda\x5e\x3a\x7f": "SM4-CBC",
}

# Of a .ckpt file that states its CRC: "crc_num" and ten bytes.
_TRAILER = 17
_CHUNK = 8 << 20


def _prefixes(name: str, value: Prefix) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, (str, list, tuple)):
        raise TypeError(
            f"load_checkpoint: {name}: expected a str or a list of str,"
            f" found {type(value).__name__}"
        )
    prefixes = (value,) if isinstance(value, str) else tuple(value)
    for prefix in prefixes:
        _check.instance("load_checkpoint", name, prefix, str, TypeError)
    if not prefixes or "" in prefixes:
        raise _errors.InvalidArgumentError(
            f"load_checkpoint: {name}: expected prefixes that are not empty, found {value!r}"
        )
    return prefixes


def _check_file(file: Any, format: str) -> str:
    call = "load_checkpoint"
    path = _check.path(call, "ckpt_file_name", file)
    if not path.endswith(format):
        raise _errors.InvalidArgumentError(
            f"{call}: ckpt_file_name: expected a name that ends in {format}, as format={format!r}"
            f" has it, found {path}"
        )
    if not os.path.isfile(path):
        raise _errors.NotFoundError(f"{call}: ckpt_file_name: no such file: {path}")
    return path


def _check_key(path: str, key: bytes | None, mode: str, format: str) -> bytes:
    call = "load_checkpoint"
    if key is not None:
        _check.instance(call, "dec_key", key, bytes, ValueError)
    _check.instance(call, "dec_mode", mode, str, ValueError)
    if format == "safetensors" and (key is not None or mode != "AES-GCM"):
        raise _errors.InvalidArgumentError(
            f"{call}: dec_key and dec_mode: only .ckpt files are encrypted; leave them out with"
            " format='safetensors'"
        )
    with open(path, "rb") as file:
        found = _MODES.get(file.read(4))
    if key is None or found is None:
        return key or b""
    if mode != found:
        raise _errors.MismatchError(
            f"{call}: {path}: dec_mode: expected {found}, which the file is encrypted in,"
            f" found {mode!r}"
        )
    return key


def _ckpt_crc(path: str) -> int:
    crc = 0
    left = os.path.getsize(path) - _TRAILER
    with open(path, "rb", buffering=0) as file:
        while left > 0:
            chunk = file.read(min(_CHUNK, left))
            if not chunk:
                break
            crc = zlib.crc32(chunk, crc)
            left -= len(chunk)
    return crc


# MindSpore takes bytes(array) for the content: of an integer as many zeros as it says.
_INTEGERS = ("Int8", "UInt8", "Int16", "UInt16", "Int32", "UInt32", "Int64", "UInt64")
_MOST_ZEROS = 1 << 30


def _safetensors_crc(file: _reshard.File, described: list[Any], of_mindspore: bool) -> int | None:
    """The CRC over names and contents, as they are or as MindSpore takes them, or None."""
    crc = 0
    for name, _, dtype_name, item_bytes, shape, _ in sorted(
        described, key=lambda entry: os.fsencode(entry[0])
    ):
        encoded = name.encode("utf-8", "surrogateescape")
        crc = zlib.crc32(encoded, crc)
        for content in _errors.call({}, file.view, encoded):
            if of_mindspore and shape == () and dtype_name in _INTEGERS:
                value = int(content.view(_dtypes.to_numpy(dtype_name, item_bytes))[0])
                if not 0 <= value <= _MOST_ZEROS:
                    return None
                crc = zlib.crc32(bytes(value), crc)
            else:
                crc = zlib.crc32(content.data, crc)
    return crc


def _verify(path: str, format: str, file: _reshard.File, described: list[Any]) -> None:
    """Compares the file with its stated CRC, if it has one."""
    stated = file.crc()
    # MindSpore leaves MapTensors out of the CRC in a special way.
    if stated is None or any(kind == "map" for _, kind, *_ in described):
        return
    if format == "ckpt":
        found: int | None = _ckpt_crc(path)
    else:
        found = _safetensors_crc(file, described, of_mindspore=False)
        if found != stated and _safetensors_crc(file, described, of_mindspore=True) == stated:
            return
    if found != stated:
        raise _errors.CorruptError(
            f"load_checkpoint: {path}: its CRC-32 is {found}, and it says {stated}: the file was"
            " damaged (verify=False loads it nevertheless)"
        )


def load_checkpoint(
    ckpt_file_name: StrPath | io.BytesIO,
    net: Any = None,
    strict_load: bool = False,
    filter_prefix: Prefix = None,
    dec_key: bytes | None = None,
    dec_mode: str = "AES-GCM",
    specify_prefix: Prefix = None,
    choice_func: Callable[[str], Any] | None = None,
    crc_check: bool = False,
    remove_redundancy: bool = False,
    format: str = "ckpt",
    *,
    framework: Framework = "auto",
    verify: bool = True,
    jobs: int | None = None,
) -> dict[str, Any]:
    """Returns the Parameters of a file by name, in its order; texts as str. A file of
    format="safetensors" may be in a BytesIO.

    With MindSpore they are its own and share the memory that the file was read into; without it
    they are light ones (`framework`). A stated CRC is checked for any `crc_check`;
    `verify=False` leaves that out. `jobs` threads read, as for reshard.verify.
    """
    call = "load_checkpoint"
    specified = _prefixes("specify_prefix", specify_prefix)
    filtered = _prefixes("filter_prefix", filter_prefix)
    _check.instance(call, "crc_check", crc_check, bool, ValueError)
    _check.instance(call, "remove_redundancy", remove_redundancy, bool, ValueError)
    if format not in _FORMATS:
        raise _errors.InvalidArgumentError(
            f"{call}: format: expected 'ckpt' or 'safetensors', found {format!r}"
        )
    if isinstance(ckpt_file_name, io.BytesIO):
        if format == "ckpt":
            raise TypeError(
                f"{call}: ckpt_file_name: a BytesIO holds a file of format='safetensors'; expected"
                " the name of a .ckpt file"
            )
        with tempfile.TemporaryDirectory(prefix="reshard-") as folder:
            held = os.path.join(folder, "BytesIO.safetensors")
            with open(held, "wb") as written:
                written.write(ckpt_file_name.getbuffer())
            return load_checkpoint(
                held,
                net,
                strict_load,
                filter_prefix,
                dec_key,
                dec_mode,
                specify_prefix,
                choice_func,
                crc_check,
                remove_redundancy,
                format,
                framework=framework,
                verify=verify,
                jobs=jobs,
            )
    path = _check_file(ckpt_file_name, format)
    key = _check_key(path, dec_key, dec_mode, format)

    def chosen(name: str) -> bool:
        if specified or filtered:
            return (not specified or name.startswith(specified)) and not name.startswith(filtered)
        if choice_func is None:
            return True
        try:
            return bool(choice_func(name))
        except Exception as error:
            # As MindSpore has it, of .ckpt files alone.
            if format != "ckpt":
                raise
            raise _errors.InvalidArgumentError(
                f"{call}: {path}: choice_func({name!r}) raised {error!r}"
            ) from error

    mindspore = _parameter.framework_of(framework)
    file = _errors.call({}, _reshard.File.open, encode(path), key)
    described = file.parameters()
    kinds = {name: kind for name, kind, *_ in described}
    if not described:
        raise _errors.CorruptError(f"{call}: {path}: the file has no parameters")
    if verify and not key:
        _verify(path, format, file, described)
    names = list(kinds) if format == "ckpt" else sorted(kinds)
    names = [name for name in names if chosen(name)]
    if not names:
        raise _errors.InvalidArgumentError(
            f"{call}: {path}: filter_prefix, specify_prefix or choice_func leave none of its"
            f" {len(kinds)} parameters"
        )
    store = None
    numbers: dict[str, tuple[int, Any]] = {}
    if any(kinds[name] in ("tensor", "packed") for name in names):
        store = _errors.call({}, _reshard.Store.open, encode(path), b"", b"", key)
        numbers = {entry[0]: (number, entry) for number, entry in enumerate(store.tensors())}
    parameters: dict[str, Any] = {}
    reads: list[tuple[int, list[int], list[int], NDArray[Any]]] = []
    dtype_names: dict[str, str] = {}
    for name in names:
        kind = kinds[name]
        if kind == "text":
            [content] = _errors.call({}, file.view, name.encode("utf-8", "surrogateescape"))
            parameters[name] = bytes(content).decode("utf-32-le")
            continue
        if store is None or name not in numbers:
            raise _errors.UnsupportedError(
                f"{call}: {path}: {name!r} is a MapTensor; leave it out by choice_func"
            )
        number, (_, dtype_name, item_bytes, shape, *_) = numbers[name]
        array = _memory.empty(shape, _dtypes.to_numpy(dtype_name, item_bytes))
        reads.append((number, [0] * array.ndim, list(shape), array.reshape(-1).view(np.uint8)))
        parameters[name] = array
        dtype_names[name] = dtype_name
    if store is not None:
        _errors.call({}, store.read_many, reads, _jobs.threads(jobs), Watch(False, None))
    reads.clear()
    for name, dtype_name in dtype_names.items():
        parameters[name] = _parameter.make(mindspore, parameters[name], dtype_name, name)
    if net is not None:
        load_param_into_net(net, parameters, bool(strict_load), remove_redundancy)
    return parameters


class ParamDictFuture:
    """The result of load_checkpoint_async: `result()` waits for the Parameters."""

    def __init__(self, executor: Any, param_dict_future: Any) -> None:
        self.executor = executor
        self.param_dict_future = param_dict_future

    def result(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = self.param_dict_future.result()
            return found
        finally:
            self.executor.shutdown()


def load_checkpoint_async(
    ckpt_file_name: StrPath,
    net: Any = None,
    strict_load: bool = False,
    filter_prefix: Prefix = None,
    dec_key: bytes | None = None,
    dec_mode: str = "AES-GCM",
    specify_prefix: Prefix = None,
    choice_func: Callable[[str], Any] | None = None,
) -> ParamDictFuture:
    """load_checkpoint in a thread, for .safetensors and .ckpt files. `result()` of the returned
    object raises its exceptions."""
    path = _check.path("load_checkpoint_async", "ckpt_file_name", ckpt_file_name)
    format = "safetensors" if path.endswith(".safetensors") else "ckpt"
    executor = concurrent.futures.ThreadPoolExecutor(max_workers=1)
    future = executor.submit(
        load_checkpoint,
        path,
        net,
        strict_load,
        filter_prefix,
        dec_key,
        dec_mode,
        specify_prefix,
        choice_func,
        format=format,
    )
    return ParamDictFuture(executor, future)


def _natural(name: str) -> list[Any]:
    return [int(part) if part.isdecimal() else part for part in re.split("([0-9]+)", name)]


def load_segmented_checkpoints(
    ckpt_file_dir: StrPath,
    net: Any = None,
    strict_load: bool = False,
    filter_prefix: Prefix = None,
    dec_key: bytes | None = None,
    dec_mode: str = "AES-GCM",
    specify_prefix: Prefix = None,
    choice_func: Callable[[str], Any] | None = None,
    *,
    framework: Framework = "auto",
    verify: bool = True,
    jobs: int | None = None,
) -> dict[str, Any]:
    """Returns the Parameters of all .ckpt files in a folder, part2 before part10."""
    call = "load_segmented_checkpoints"
    folder = _check.path(call, "ckpt_file_dir", ckpt_file_dir)
    if not os.path.isdir(folder):
        raise _errors.NotFoundError(f"{call}: ckpt_file_dir: no such folder: {folder}")
    parameters: dict[str, Any] = {}
    names = [name for name in os.listdir(folder) if name.endswith(".ckpt") and name[0] != "."]
    for name in sorted(names, key=_natural):
        parameters.update(
            load_checkpoint(
                os.path.join(folder, name),
                net,
                strict_load,
                filter_prefix,
                dec_key,
                dec_mode,
                specify_prefix,
                choice_func,
                framework=framework,
                verify=verify,
                jobs=jobs,
            )
        )
    return parameters


def _parameters_of(net: Any) -> list[Any]:
    if hasattr(net, "parameters_and_names"):
        return [parameter for _, parameter in net.parameters_and_names()]
    if hasattr(net, "get_parameters"):
        return list(net.get_parameters())
    raise TypeError(
        f"load_param_into_net: net: expected a Cell, or an object with get_parameters(),"
        f" found {type(net).__name__}"
    )


def load_param_into_net(
    net: Any,
    parameter_dict: dict[str, Any],
    strict_load: bool = False,
    remove_redundancy: bool = False,
) -> tuple[list[str], list[str]]:
    """Puts Parameters into a net. Returns the net's names that are not in the dict, and the dict's
    names that are not in the net.

    With MindSpore its own function does it; without, any object with get_parameters() of light
    Parameters is a net.
    """
    call = "load_param_into_net"
    mindspore = _parameter.framework_of("auto")
    if mindspore is not None and isinstance(net, mindspore.nn.Cell):
        found: tuple[list[str], list[str]] = _original(mindspore)(
            net, parameter_dict, strict_load, remove_redundancy
        )
        return found
    own = _parameters_of(net)
    _check.instance(call, "parameter_dict", parameter_dict, dict, TypeError)
    _check.instance(call, "strict_load", strict_load, bool, TypeError)
    for name, value in parameter_dict.items():
        if not isinstance(name, str) or not isinstance(value, (_parameter.Parameter, str, list)):
            raise TypeError(
                f"{call}: parameter_dict: expected a Parameter for each name, found"
                f" {type(value).__name__} for {name!r}"
            )
    left = list(parameter_dict)
    missing = []
    for parameter in own:
        new = parameter_dict.get(parameter.name)
        if new is None:
            missing.append(parameter.name)
            continue
        if not isinstance(new, _parameter.Parameter):
            continue
        if new.shape != tuple(parameter.shape):
            raise _errors.MismatchError(
                f"{call}: {parameter.name}: the net's shape is {tuple(parameter.shape)},"
                f" parameter_dict's {new.shape}"
            )
        if new.dtype != parameter.dtype and (
            strict_load or "Float" not in str(new.dtype) or "Float" not in str(parameter.dtype)
        ):
            raise _errors.MismatchError(
                f"{call}: {parameter.name}: the net's dtype is {parameter.dtype},"
                f" parameter_dict's {new.dtype}"
            )
        copy = np.array(new.asnumpy())
        parameter.set_data(_parameter.Tensor(copy, new.dtype))
        left.remove(parameter.name)
    return missing, left


def _original(mindspore: Any) -> Callable[..., Any]:
    from . import _patch

    found: Callable[..., Any] = _patch.original("load_param_into_net", mindspore)
    return found
