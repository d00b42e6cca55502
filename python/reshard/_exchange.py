"""Arrays on their way to torch, MindSpore and users of DLPack. All is CPU memory."""

from __future__ import annotations

import importlib.util
import sys
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from . import _dtypes, _errors, _modules, _reshard

Framework = Literal["numpy", "torch", "mindspore"]

# DLPack's (device type, device number).
CPU = (1, 0)

# DLPack's codes of the element types that NumPy has not.
_CODES = {
    "BFloat16": 4,
    "Float8E4M3FN": 10,
    "Float8E4M3FNUZ": 11,
    "Float8E5M2": 12,
    "Float8E5M2FNUZ": 13,
    "Float8E8M0": 14,
}
# And by NumPy's kinds.
_KINDS = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}

_TORCH = {
    "BFloat16": "bfloat16",
    "Float8E4M3FN": "float8_e4m3fn",
    "Float8E4M3FNUZ": "float8_e4m3fnuz",
    "Float8E5M2": "float8_e5m2",
    "Float8E5M2FNUZ": "float8_e5m2fnuz",
    "Float8E8M0": "float8_e8m0fnu",
}


def is_installed(framework: str) -> bool:
    """Whether it can be imported, which is not done yet."""
    loaded = sys.modules.get(framework)
    if loaded is not None:
        return not hasattr(loaded, "_stand_in_of_reshard")
    return importlib.util.find_spec(framework) is not None


def check(framework: Framework) -> None:
    """An array that cannot be made is reported before the first read."""
    if framework not in ("numpy", "torch", "mindspore"):
        raise _errors.InvalidArgumentError(
            f"framework: expected 'numpy', 'torch' or 'mindspore', found {framework!r}"
        )
    if framework != "numpy" and not is_installed(framework):
        raise _errors.UnsupportedError(
            f"framework={framework!r}: {framework} is not installed; install it, or leave"
            " framework out and take NumPy's arrays"
        )


def made_of(framework: Framework, array: NDArray[Any], dtype_name: str) -> Any:
    """The array as the `framework`'s type for it, in the same memory if possible."""
    if framework == "torch":
        return to_torch(array, dtype_name)
    return to_mindspore(array, dtype_name) if framework == "mindspore" else array


def capsule(
    array: NDArray[Any],
    dtype_name: str,
    stream: Any = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
) -> Any:
    """A DLPack capsule of the array. Its taker may write to it."""
    if stream is not None:
        raise BufferError("memory of the CPU has no stream")
    if dl_device is not None and tuple(dl_device) != CPU:
        raise BufferError(f"the memory is the CPU's {CPU}, not the memory of {tuple(dl_device)}")
    code = _CODES.get(dtype_name)
    if code is None:
        code = _KINDS.get(array.dtype.kind)
    if code is None:
        raise BufferError(f"DLPack has no element type for {dtype_name}")
    raw = array.reshape(-1).view(np.uint8)
    versioned = max_version is not None and max_version[0] >= 1
    return _reshard.dlpack(raw, list(array.shape), code, 8 * array.itemsize, versioned)


def to_torch(array: NDArray[Any], dtype_name: str) -> Any:
    """A torch.Tensor that has the array, which can be written to, for its memory."""
    torch = _modules.load("torch")
    name = _TORCH.get(dtype_name)
    if name is None:
        return torch.from_numpy(array)
    kind = getattr(torch, name, None)
    if kind is None:
        raise _errors.UnsupportedError(
            f"{dtype_name}: this torch has no such element type; as a NumPy array it can be read:"
            " framework='numpy', or t[...]"
        )
    same_size = np.int16 if array.itemsize == 2 else np.uint8
    return torch.from_numpy(array.view(same_size)).view(kind)


def to_mindspore(array: NDArray[Any], dtype_name: str) -> Any:
    """A mindspore.Tensor that has the array for its memory; a copy if MindSpore makes one.

    It has no other references: Parameters share the memory only of such tensors.
    """
    mindspore = _modules.load("mindspore")
    if array.size and (dtype_name in _dtypes._NUMPY or dtype_name == "BFloat16"):
        return mindspore.Tensor.from_numpy(array)
    types = _modules.load("mindspore.train.serialization")
    kind = types.tensor_to_ms_type.get(dtype_name)
    if kind is None:
        raise _errors.UnsupportedError(
            f"{dtype_name}: this MindSpore has no such element type; as a NumPy array it can be"
            " read: framework='numpy', or t[...]"
        )
    if array.size == 0:
        zero = mindspore.common.initializer.Zero()
        return mindspore.Tensor(shape=array.shape, dtype=kind, init=zero).init_data()
    convert = mindspore.Tensor.convert_bytes_to_tensor
    return mindspore.Tensor(convert(array.tobytes(), array.shape, kind))
