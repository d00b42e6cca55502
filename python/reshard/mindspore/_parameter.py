"""Parameters: MindSpore's if it is installed, else light ones with the same interface."""

from __future__ import annotations

import types
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .. import _dtypes, _errors, _exchange, _modules

Framework = Literal["auto", "mindspore", "numpy"]


class DType:
    """An element type: prints as MindSpore's does, and equals numpy's."""

    __slots__ = ("name", "numpy")

    def __init__(self, name: str, numpy: np.dtype[Any]) -> None:
        self.name = name
        self.numpy = numpy

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DType):
            return self.name == other.name
        if isinstance(other, str) and other == self.name:
            return True
        try:
            return bool(self.numpy == np.dtype(other))  # type: ignore[call-overload]
        except TypeError:
            return False

    def __hash__(self) -> int:
        return hash(self.numpy)

    def __repr__(self) -> str:
        return self.name


def _name_of(dtype: np.dtype[Any]) -> str:
    for name in (*_dtypes._NUMPY, *_dtypes._ML_DTYPES):
        if name in _dtypes._NUMPY or dtype.kind == "V" or dtype.num > 23:
            if _dtypes.to_numpy(name, dtype.itemsize) == dtype:
                return name
    raise TypeError(f"no element type of a checkpoint: {dtype}")


class Tensor:
    """An array with the words that scripts use of mindspore.Tensor. Not for computing."""

    __slots__ = ("_array", "_dtype")

    def __init__(self, input_data: Any, dtype: DTypeLike | DType | None = None) -> None:
        if isinstance(input_data, Tensor):
            input_data = input_data.asnumpy()
        wanted = dtype.numpy if isinstance(dtype, DType) else dtype
        self._array: NDArray[Any] = np.asarray(input_data, dtype=wanted)
        name = dtype.name if isinstance(dtype, DType) else _name_of(self._array.dtype)
        self._dtype = DType(name, self._array.dtype)

    @classmethod
    def _of(cls, array: NDArray[Any], name: str) -> Tensor:
        return cls(array, DType(name, array.dtype))

    @staticmethod
    def from_numpy(array: NDArray[Any]) -> Tensor:
        return Tensor(array)

    @property
    def dtype(self) -> DType:
        return self._dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self._array.shape)

    @property
    def ndim(self) -> int:
        return self._array.ndim

    @property
    def size(self) -> int:
        return self._array.size

    @property
    def nbytes(self) -> int:
        return self._array.nbytes

    @property
    def itemsize(self) -> int:
        return self._array.itemsize

    def asnumpy(self) -> NDArray[Any]:
        """Returns the array itself: no copy."""
        return self._array

    def get_bytes(self) -> bytes:
        return self._array.tobytes()

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        if dtype is None:
            return self._array.copy() if copy else self._array
        return self._array.astype(dtype, copy=bool(copy))

    def __dlpack__(self, **keywords: Any) -> Any:
        return self._array.__dlpack__(**keywords)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, index: Any) -> Tensor:
        return Tensor._of(np.asarray(self._array[index]), self._dtype.name)

    def __repr__(self) -> str:
        return f"Tensor(shape={list(self.shape)}, dtype={self._dtype}, value={self._array})"


class Parameter(Tensor):
    """A tensor with a name."""

    __slots__ = ("layerwise_parallel", "name", "requires_grad")

    def __init__(
        self,
        default_input: Any,
        name: str | None = None,
        requires_grad: bool = True,
        layerwise_parallel: bool = False,
    ) -> None:
        dtype = default_input.dtype if isinstance(default_input, Tensor) else None
        super().__init__(default_input, dtype)
        self.name = "Parameter" if name is None else name
        self.requires_grad = requires_grad
        self.layerwise_parallel = layerwise_parallel

    @property
    def data(self) -> Tensor:
        return Tensor._of(self._array, self._dtype.name)

    def set_data(self, data: Any, slice_shape: bool = False) -> Parameter:
        """Puts `data` in place of the values: of the same shape, or of any with `slice_shape`."""
        found = data if isinstance(data, Tensor) else Tensor(data, self._dtype)
        if found.shape != self.shape and not slice_shape:
            raise ValueError(
                f"{self.name}: set_data: expected shape {self.shape}, found {found.shape}"
            )
        if found.dtype != self.dtype:
            floats = [_is_float(each.dtype) for each in (found, self)]
            if floats != [True, True]:
                raise TypeError(
                    f"{self.name}: set_data: expected {self.dtype}, found {found.dtype}"
                )
            found = Tensor(found.asnumpy().astype(self._array.dtype), self._dtype)
        self._array = found.asnumpy()
        return self

    def __repr__(self) -> str:
        return (
            f"Parameter (name={self.name}, shape={self.shape}, dtype={self.dtype},"
            f" requires_grad={self.requires_grad})"
        )


def _is_float(dtype: DType) -> bool:
    return "Float" in dtype.name


def framework_of(framework: Framework) -> types.ModuleType | None:
    """Returns the module mindspore, or None for light Parameters."""
    if framework not in ("auto", "mindspore", "numpy"):
        raise _errors.InvalidArgumentError(
            f"framework: expected 'auto', 'mindspore' or 'numpy', found {framework!r}"
        )
    if framework == "numpy":
        return None
    if _exchange.is_installed("mindspore"):
        mindspore: types.ModuleType = _modules.load("mindspore")
        return mindspore
    if framework == "mindspore":
        raise _errors.UnsupportedError("framework='mindspore': mindspore is not installed")
    return None


def make(
    mindspore: types.ModuleType | None,
    array: NDArray[Any],
    dtype_name: str,
    name: str,
    requires_grad: bool = True,
    layerwise_parallel: bool = False,
) -> Any:
    """A Parameter that has the array for its memory. Other code must not write to it.

    Element types that from_numpy does not know are copied.
    """
    if mindspore is None:
        return Parameter(Tensor._of(array, dtype_name), name, requires_grad, layerwise_parallel)
    return mindspore.Parameter(
        _exchange.to_mindspore(array, dtype_name), name, requires_grad, layerwise_parallel
    )


def parts_of(parameter: Any) -> tuple[NDArray[Any], str]:
    """(array, name of its element type) of a Parameter, light or MindSpore's, or of an array."""
    if isinstance(parameter, Tensor):
        return parameter.asnumpy(), parameter.dtype.name
    if isinstance(parameter, np.ndarray):
        return parameter, _name_of(parameter.dtype)
    name = str(parameter.dtype)
    if name in _dtypes._NUMPY:
        return np.asarray(parameter.asnumpy()), name
    # asnumpy() of MindSpore uses its own bfloat16.
    dtype = _dtypes.to_numpy(name, 1)
    raw = np.frombuffer(bytearray(parameter.get_bytes()), dtype=dtype)
    return raw.reshape(tuple(parameter.shape)), name
