"""The contents of small files of MindSpore: strategies as ParallelLayouts, groups of ranks."""

from __future__ import annotations

import os

from .. import _errors, _reshard
from .._paths import StrPath
from . import _check

_MESSAGES = ("dev_matrix", "tensor_map", "param_split_shape", "indices_offset")
_NUMBERS = ("field", "opt_weight_shard_step", "opt_weight_shard_size")


class Dims:
    """`dim`: the numbers of a message."""

    __slots__ = ("dim",)

    def __init__(self, dim: list[int]) -> None:
        self.dim = dim

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dims) and self.dim == other.dim

    def __repr__(self) -> str:
        return "".join(f"dim: {number}\n" for number in self.dim)


class ParallelLayouts:
    """The layout of a parameter, with the fields of MindSpore's message of this name."""

    __slots__ = (*_MESSAGES, *_NUMBERS)

    dev_matrix: list[Dims]
    tensor_map: list[Dims]
    param_split_shape: list[Dims]
    indices_offset: list[Dims]
    field: int
    opt_weight_shard_step: int
    opt_weight_shard_size: int

    def __init__(self, messages: dict[str, list[Dims]], numbers: dict[str, int]) -> None:
        for name in _MESSAGES:
            # MindSpore's functions take the first of each, even if it is empty.
            setattr(self, name, messages.get(name) or [Dims([])])
        for name in _NUMBERS:
            setattr(self, name, numbers.get(name, 0))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ParallelLayouts) and repr(self) == repr(other)

    def __repr__(self) -> str:
        lines = []
        for name in _MESSAGES:
            for message in getattr(self, name):
                dims = "".join(f"  dim: {number}\n" for number in message.dim)
                lines.append(f"{name} {{\n{dims}}}\n")
        lines.extend(f"{name}: {getattr(self, name)}\n" for name in _NUMBERS)
        return "".join(lines)


def build_searched_strategy(
    strategy_filename: StrPath | None,
) -> dict[str, ParallelLayouts] | None:
    """Returns the layouts that a strategy file has, by the names of parameters; of None, None."""
    call = "build_searched_strategy"
    if strategy_filename is None:
        return None
    path = _check.path(call, "strategy_filename", strategy_filename)
    if not os.path.isfile(path):
        raise _errors.NotFoundError(f"{call}: strategy_filename: no such strategy file: {path}")
    with _check.of_strategies(path):
        layouts = _errors.call({}, _reshard.layouts_of, os.fsencode(path))
    return {
        name: ParallelLayouts(
            {key: [Dims(dim) for dim in lists] for key, lists in messages.items()}, numbers
        )
        for name, messages, numbers in layouts
    }


def restore_group_info_list(group_info_file_name: StrPath) -> list[int]:
    """Returns the ranks that, by a group_info file, hold the same weights."""
    call = "restore_group_info_list"
    path = _check.path(call, "group_info_file_name", group_info_file_name)
    if not os.path.isfile(path):
        raise _errors.NotFoundError(f"{call}: no such group_info file: {path}")
    return _errors.call({}, _reshard.ranks_of_group, os.fsencode(path))
