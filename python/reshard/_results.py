"""The base of all results: frozen dataclasses, for which no code is made when they are imported."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import _modules
from ._guards import is_mapping, is_tuple

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Any:
        return lambda cls: cls


@functools.lru_cache(maxsize=None)
def _dataclass_of(cls: Any) -> Any:
    """A dataclass with the same fields."""
    dataclasses = _modules.load("dataclasses")
    fields = [
        (name, kind, dataclasses.field(default=None)) if hasattr(cls, name) else (name, kind)
        for name, kind in cls._types.items()
    ]
    return dataclasses.make_dataclass(cls.__name__, fields, frozen=True)


class _Made:
    """An attribute that dataclasses have, such as `dataclasses.fields` reads. To make 60
    dataclasses takes longer than to import the rest of the package, so one is made if somebody
    asks."""

    def __init__(self, make: Callable[[Any], Any]) -> None:
        self._make = make

    def __get__(self, instance: Any, owner: Any) -> Any:
        return self._make(_dataclass_of(owner))


@dataclass_transform(frozen_default=True)
class Result:
    """Base of all results and their parts."""

    _types: dict[str, str] = {}  # the fields with their types
    __match_args__: tuple[str, ...] = ()
    if not TYPE_CHECKING:
        __dataclass_fields__ = _Made(lambda made: made.__dataclass_fields__)
        __dataclass_params__ = _Made(lambda made: made.__dataclass_params__)
        __signature__ = _Made(lambda made: _modules.load("inspect").signature(made))

    def __init_subclass__(cls) -> None:
        cls._types = {**cls._types, **cls.__annotations__}
        setattr(cls, "__match_args__", tuple(cls._types))  # mypy knows it as fixed

    def __init__(self, *values: Any, **named: Any) -> None:
        names = self.__match_args__
        fields = dict(zip(names, values), **named)
        lacking = [name for name in names if name not in fields and not hasattr(type(self), name)]
        unknown = [name for name in fields if name not in names]
        if lacking or unknown or len(fields) != len(values) + len(named):
            what = f"lacks {lacking}" if lacking else f"takes {list(names)}, once each"
            raise TypeError(f"{type(self).__name__}() {what}")
        self.__dict__.update(fields)

    def __setattr__(self, name: str, value: Any) -> None:
        raise _modules.load("dataclasses").FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise _modules.load("dataclasses").FrozenInstanceError(f"cannot delete field {name!r}")

    def __replace__(self, **changes: Any) -> Any:
        return type(self)(**{**dict(zip(self.__match_args__, self._values())), **changes})

    def _values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self.__match_args__)

    def __repr__(self) -> str:
        text: str = _modules.load("reshard._screen").line(self)
        return text

    def __str__(self) -> str:
        text: str = _modules.load("reshard._screen").screen(self)
        return text

    def _repr_html_(self) -> str:
        text: str = _modules.load("reshard._screen").page(self)
        return text

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def to_dict(self) -> dict[str, Any]:
        """As the command line's JSON document, but for `schema_version` and `command`."""
        return {
            name: _plain(value)
            for name, value in zip(self.__match_args__, self._values())
            # A field with a default is left out if it has no information.
            if value is not None or not hasattr(type(self), name)
        }


class Report(Result):
    """The result of a call."""

    def __bool__(self) -> bool:
        raise TypeError("a report has no truth value: use its `ok` or `equal`")


def _plain(value: Any) -> Any:
    if isinstance(value, Result):
        return value.to_dict()
    if is_mapping(value):
        return {name: _plain(member) for name, member in value.items()}
    return [_plain(member) for member in value] if is_tuple(value) else value
