"""Keys of encrypted files. Calls take the places of keys, never the bytes."""

from __future__ import annotations

from collections.abc import Callable

from . import _errors, _reshard
from ._paths import StrPath, encode


def read(key_file: StrPath | None, key_env: str | None) -> _reshard.Key | None:
    """Reads a key from a file or an environment variable."""
    if key_file is not None and key_env is not None:
        raise _errors.InvalidArgumentError("key_file excludes key_env")
    make: Callable[[bytes], _reshard.Key] = _reshard.Key.from_file
    name, value = "key_file", key_file
    if key_file is None:
        name, value, make = "key_env", key_env, _reshard.Key.from_environment
    if value is None:
        return None
    try:
        encoded = encode(value)
    except ValueError:  # it would show the value, which may be the key itself
        raise ValueError(f"{name}: not shown, as it may be the key, but no name either") from None
    try:
        return _errors.call({}, make, encoded)
    except _errors.Error as error:
        raise type(error)(f"{name}: {error}") from None
