"""Keys of encrypted files: named by where they are, so that no call takes the bytes."""

from __future__ import annotations

from . import _errors, _reshard
from ._paths import StrPath, encode


def read(key_file: StrPath | None, key_env: str | None) -> _reshard.Key | None:
    """Reads a key from a file or an environment variable."""
    if key_file is not None and key_env is not None:
        raise _errors.InvalidArgumentError("key_file excludes key_env")
    try:
        if key_file is not None:
            return _errors.call({}, _reshard.Key.from_file, encode(key_file))
        if key_env is not None:
            return _errors.call({}, _reshard.Key.from_environment, encode(key_env))
    except _errors.Error as error:
        name = "key_file" if key_env is None else "key_env"
        raise type(error)(f"{name}: {error}") from None
    return None
