"""Sharded MindSpore checkpoints: a mapping of lazily read tensors, however they are cut."""

from __future__ import annotations

from . import _reshard
from ._calls import (
    Block,
    Damage,
    Progress,
    VerifyReport,
    all_source_ranks,
    source_ranks,
    verify,
)
from ._errors import (
    AlreadyExistsError,
    CancelledError,
    ChangedError,
    CorruptError,
    Error,
    InternalError,
    InvalidArgumentError,
    IoError,
    MismatchError,
    NotFoundError,
    ResourceExhaustedError,
    UnknownTensorError,
    UnsupportedError,
)
from ._store import Checkpoint, Selection, Shard, Tensor, open

__version__ = _reshard.__version__

# Without `open`: a star import is not to hide the built-in.
__all__ = [
    "AlreadyExistsError",
    "Block",
    "CancelledError",
    "ChangedError",
    "Checkpoint",
    "CorruptError",
    "Damage",
    "Error",
    "InternalError",
    "InvalidArgumentError",
    "IoError",
    "MismatchError",
    "NotFoundError",
    "Progress",
    "ResourceExhaustedError",
    "Selection",
    "Shard",
    "Tensor",
    "UnknownTensorError",
    "UnsupportedError",
    "VerifyReport",
    "__version__",
    "all_source_ranks",
    "source_ranks",
    "verify",
]

# So that tracebacks, reprs and pickles have the public names.
for _name in __all__:
    if hasattr(globals()[_name], "__module__"):
        globals()[_name].__module__ = "reshard"
open.__module__ = "reshard"
