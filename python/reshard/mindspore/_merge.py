"""merge_sliced_parameter: joins the slices of a parameter in memory."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _errors
from . import _check, _parameter

_CALL = "merge_sliced_parameter"


def _axes(layout: Any) -> list[list[int]]:
    """For each dimension the device axes, from the right, that split it, slowest first."""
    lists = [list(message.dim) for message in layout.tensor_map]
    lists = [dims for dims in lists if dims] or [[]]
    return [[axis] for axis in lists[0]] if len(lists) == 1 else lists


def places_of(layout: Any) -> list[int]:
    """For each device, the number of its part, in the row-major order of the parts."""
    devices = list(layout.dev_matrix[0].dim)
    axes = [[axis for axis in of_dim if axis != -1] for of_dim in _axes(layout)]
    places = []
    for device in range(math.prod(devices)):
        at = np.unravel_index(device, devices) if devices else ()
        index = 0
        for axis in (axis for of_dim in axes for axis in of_dim):
            place = len(devices) - 1 - axis
            index = index * devices[place] + int(at[place])
        places.append(index)
    return places


def _of_layout(name: str, slices: list[NDArray[Any]], layout: Any) -> NDArray[Any]:
    try:
        devices = list(layout.dev_matrix[0].dim)
        axes = [[axis for axis in of_dim if axis != -1] for of_dim in _axes(layout)]
        sizes = list(layout.param_split_shape[0].dim)
        field = int(layout.field)
        counts = [
            math.prod(devices[len(devices) - 1 - axis] for axis in of_dim) for of_dim in axes
        ]
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        raise _errors.InvalidArgumentError(
            f"{_CALL}: strategy[{name!r}]: expected a layout as build_searched_strategy returns"
            f" them: {error}"
        ) from None
    if len(slices) != math.prod(devices):
        raise _errors.MismatchError(
            f"{_CALL}: {name!r}: the strategy has {math.prod(devices)} devices; found"
            f" {len(slices)} slices"
        )
    if not sizes and any(each.shape != slices[0].shape for each in slices):
        raise _errors.MismatchError(
            f"{_CALL}: {name!r}: slices differ in size, and the strategy has no param_split_shape"
        )
    if field > 0 and not sizes:
        parts = [each.reshape(field, -1, *each.shape[1:]) for each in slices]
        joined: NDArray[Any] = np.concatenate(parts, axis=1)
        return joined.reshape((-1, *slices[0].shape[1:]))
    if sizes and len(sizes) != math.prod(counts):
        raise _errors.MismatchError(
            f"{_CALL}: {name!r}: the strategy cuts it into {math.prod(counts)} parts, and its"
            f" param_split_shape has {len(sizes)}"
        )
    # The parts in row-major order; of replicas the last counts.
    parts = [slices[0]] * math.prod(counts)
    for content, index in zip(slices, places_of(layout)):
        if sizes and content.shape[0] != sizes[index]:
            raise _errors.MismatchError(
                f"{_CALL}: {name!r}: part {index} has {sizes[index]} rows by the strategy; found"
                f" {content.shape[0]}"
            )
        parts[index] = content
    for axis in reversed(range(len(counts))):
        count = counts[axis]
        parts = [
            parts[at] if count == 1 else np.concatenate(parts[at : at + count], axis=axis)
            for at in range(0, len(parts), count)
        ]
    return parts[0]


def merge_sliced_parameter(
    sliced_parameters: list[Any], strategy: dict[str, Any] | None = None
) -> Any:
    """Returns a Parameter joined from the slices of the ranks, in their order.

    `strategy` is a result of build_searched_strategy; without it the slices are put one below
    the other. bfloat16 stays bfloat16. MindSpore's Parameters give a Parameter of MindSpore.
    """
    _check.instance(_CALL, "sliced_parameters", sliced_parameters, list, TypeError)
    if not sliced_parameters:
        raise _errors.InvalidArgumentError(f"{_CALL}: sliced_parameters is empty")
    if strategy:
        _check.instance(_CALL, "strategy", strategy, dict, TypeError)
    light = isinstance(sliced_parameters[0], _parameter.Parameter)
    mindspore = None if light else _parameter.framework_of("auto")
    kind = _parameter.Parameter if mindspore is None else mindspore.Parameter
    for index, parameter in enumerate(sliced_parameters):
        if not isinstance(parameter, kind):
            raise TypeError(
                f"{_CALL}: sliced_parameters: expected Parameters, found"
                f" {type(parameter).__name__} at index {index}"
            )
    first = sliced_parameters[0]
    name, shape = first.name, tuple(first.shape)
    found = [_parameter.parts_of(parameter) for parameter in sliced_parameters]
    dtype_name = found[0][1]
    for index, parameter in enumerate(sliced_parameters):
        if parameter.name != name or tuple(parameter.shape)[1:] != shape[1:]:
            raise _errors.MismatchError(
                f"{_CALL}: expected slices of {name!r} of shape (any, {str(shape[1:])[1:]}, found"
                f" {parameter.name!r} of shape {tuple(parameter.shape)} at index {index}"
            )
        if found[index][1] != dtype_name:
            raise _errors.MismatchError(
                f"{_CALL}: {name!r}: expected {dtype_name} as at index 0, found {found[index][1]}"
                f" at index {index}"
            )
    slices = [array for array, _ in found]
    if any(array.ndim != len(shape) for array in slices) or not shape:
        raise _errors.MismatchError(f"{_CALL}: {name!r}: scalars have no rows to be joined by")
    if not strategy:
        merged = np.concatenate(slices)
    elif name in strategy:
        merged = _of_layout(name, slices, strategy[name])
    else:
        raise _errors.UnknownTensorError(f"{_CALL}: strategy: no layout of {name!r}")
    return _parameter.make(
        mindspore,
        np.array(merged, order="C"),
        dtype_name,
        name,
        first.requires_grad,
        first.layerwise_parallel,
    )
