"""Sharded MindSpore checkpoints: a mapping of lazily read tensors, however they are cut."""

from __future__ import annotations

from . import _calls, _errors, _fields, _reshard
from ._calls import *
from ._checkpoint import Checkpoint, MapTensor, Selection
from ._checkpoint import open as open  # type checkers take that for public; it is not in __all__
from ._errors import *
from ._fields import *
from ._mount import Mount
from ._progress import Progress
from ._reports import (
    ConvertReport,
    Layout,
    PageReport,
    PlanReport,
    Strategy,
    VerifyReport,
    read_strategy,
)
from ._target import TargetStream, TargetView
from ._tensor import Piece, Shard, Tensor
from . import ray as ray  # not in __all__, for a program's own import of Ray

__version__ = _reshard.__version__

# The names that each call had for its own.
ConvertedStrategyReport = StrategyReport
MadeStrategyReport = StrategyReport
MergedStrategyReport = StrategyReport

# Without `open`: a star import is not to hide the built-in.
__all__ = [
    "Checkpoint",
    "ConvertReport",
    "ConvertedStrategyReport",
    "Layout",
    "MadeStrategyReport",
    "MapTensor",
    "MergedStrategyReport",
    "Mount",
    "PageReport",
    "Piece",
    "PlanReport",
    "Progress",
    "Selection",
    "Shard",
    "Strategy",
    "TargetStream",
    "TargetView",
    "Tensor",
    "VerifyReport",
    "__version__",
    "read_strategy",
]
__all__ += _calls.__all__
__all__ += _errors.__all__
__all__ += _fields.__all__

# So that tracebacks, reprs and pickles have the public names.
for _name in __all__:
    if hasattr(globals()[_name], "__module__"):
        globals()[_name].__module__ = "reshard"
open.__module__ = "reshard"
