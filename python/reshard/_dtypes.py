"""The numpy dtype of each element type of a checkpoint."""

from __future__ import annotations

import functools
from typing import Any, cast

import numpy as np

from . import _modules

_NUMPY = {
    "Int8": "i1",
    "UInt8": "u1",
    "Int16": "<i2",
    "UInt16": "<u2",
    "Int32": "<i4",
    "UInt32": "<u4",
    "Int64": "<i8",
    "UInt64": "<u8",
    "Float16": "<f2",
    "Float32": "<f4",
    "Float64": "<f8",
    "Bool": "?",
    "Complex64": "<c8",
    "Complex128": "<c16",
}

_ML_DTYPES = {
    "BFloat16": "bfloat16",
    "Float8E4M3FN": "float8_e4m3fn",
    "Float8E5M2": "float8_e5m2",
    "Float8E4M3FNUZ": "float8_e4m3fnuz",
    "Float8E5M2FNUZ": "float8_e5m2fnuz",
    "Float8E8M0": "float8_e8m0fnu",  # not in all versions
}


@functools.lru_cache(maxsize=None)
def to_numpy(name: str, item_bytes: int) -> np.dtype[Any]:
    """Returns the dtype for the element type `name`; bytes if neither library has one."""
    if name in _NUMPY:
        return np.dtype(_NUMPY[name])
    if name in _ML_DTYPES:
        # On first use, so that importing reshard stays quick for programs that do not need it.
        scalar: Any = getattr(_modules.load("ml_dtypes"), _ML_DTYPES[name], None)
        if scalar is not None:
            return cast("np.dtype[Any]", np.dtype(scalar))
    return np.dtype(np.uint8) if item_bytes == 1 else np.dtype((np.void, item_bytes))
