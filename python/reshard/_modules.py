"""Modules that are imported when they are first needed."""

from __future__ import annotations

import importlib
import os
import threading
from typing import Any

# While a thread imports, other threads do not fork: the child would wait for the import for ever.
_importing = threading.RLock()
os.register_at_fork(
    before=_importing.acquire,
    after_in_parent=_importing.release,
    after_in_child=_importing.release,
)


def load(name: str) -> Any:
    """Returns the module, imported by now."""
    with _importing:
        return importlib.import_module(name)
