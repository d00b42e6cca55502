"""Keys of encrypted files. Calls take the places of keys, never the bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from . import _errors, _reshard
from ._paths import StrPath, encode


def check(given: Mapping[str, Any]) -> None:
    """Refuses a key with two places in the keywords `given`, and a place that cannot be one."""
    for key in ("key", "encrypt_key"):
        names = [name for name in (f"{key}_file", f"{key}_env") if given.get(name) is not None]
        if len(names) > 1:
            raise _errors.InvalidArgumentError(f"{key}_file excludes {key}_env")
        for name in names:
            try:
                encode(given[name])
            except TypeError as error:
                raise TypeError(f"{name}: {error}") from None
            except ValueError:  # it would show the value, which may be the key itself
                raise ValueError(
                    f"{name}: not shown, as it may be the key, but no name either"
                ) from None


def read(key_file: StrPath | None, key_env: str | None) -> _reshard.Key | None:
    """Reads a key from a file or an environment variable."""
    check({"key_file": key_file, "key_env": key_env})
    make: Callable[[bytes], _reshard.Key] = _reshard.Key.from_file
    name, value = "key_file", key_file
    if key_file is None:
        name, value, make = "key_env", key_env, _reshard.Key.from_environment
    if value is None:
        return None
    try:
        return _errors.call({}, make, encode(value))
    except _errors.Error as error:
        raise type(error)(f"{name}: {error}") from None
