"""patch() puts this package's functions in the places of MindSpore's, unpatch() takes them out."""

from __future__ import annotations

import functools
import importlib
import sys
import types
from collections.abc import Callable
from typing import Any

from .. import _errors, _modules
from ._warn import warn

# Without functions that MindSpore's callbacks hold and call in threads, and without functions that
# ask its communication for the rank: these only by name.
DEFAULT = (
    "build_searched_strategy",
    "ckpt_to_safetensors",
    "convert_checkpoint_by_rank",
    "convert_checkpoints",
    "load_segmented_checkpoints",
    "merge_pipeline_strategys",
    "merge_sliced_parameter",
    "rank_list_for_convert",
    "rank_list_for_transform",
    "restore_group_info_list",
    "safetensors_to_ckpt",
    "transform_checkpoint_by_rank",
    "transform_checkpoints",
    "unified_safetensors",
)
BY_NAME = (
    "async_ckpt_thread_status",
    "get_ckpt_path_with_strategy",
    "load_checkpoint",
    "load_checkpoint_async",
    "load_distributed_checkpoint",
    "load_param_into_net",
    "save_checkpoint",
)

_SPACES = ("mindspore", "mindspore.parallel", "mindspore.train")

_Function = Callable[..., Any]

# MindSpore's functions by name, each with ours, which is in its place. One name may have two.
_replaced: dict[str, list[tuple[_Function, _Function]]] = {}
# (namespace, name in it, MindSpore's function), in the order of replacement.
_Binding = tuple[dict[str, Any], str, _Function]
_bindings: list[_Binding] = []


class Patched(int):
    """The number of bindings that patch() replaced; as a context manager it puts these back."""

    bindings: list[_Binding]

    def __enter__(self) -> Patched:
        return self

    def __exit__(self, *error: object) -> None:
        _put_back(self.bindings)


def _put_back(bindings: list[_Binding]) -> int:
    """Puts MindSpore's functions back in the places that still have ours. Returns their number."""
    count = 0
    for namespace, key, theirs in reversed(bindings):
        for place, (known, name, _) in enumerate(_bindings):
            if known is namespace and name == key:
                del _bindings[place]
                namespace[key] = theirs
                count += 1
                break
    if not _bindings:
        _replaced.clear()
    return count


def _ours(name: str) -> _Function:
    for space in ("reshard.mindspore", "reshard.mindspore.parallel"):
        found: _Function | None = getattr(importlib.import_module(space), name, None)
        if found is not None:
            return found
    raise AssertionError(name)


def _in_place_of(name: str, theirs: _Function) -> _Function:
    """Our function; it calls MindSpore's for unsupported arguments."""
    ours = _ours(name)
    told = False

    @functools.wraps(ours)
    def call(*arguments: Any, **keywords: Any) -> Any:
        nonlocal told
        try:
            return ours(*arguments, **keywords)
        except _errors.UnsupportedError as error:
            if not told:
                told = True
                warn(f"{name}: MindSpore's own function does it: {error}")
            return theirs(*arguments, **keywords)

    return call


def patch(*names: str) -> Patched:
    """Replaces MindSpore's functions by this package's, in all modules that have been imported.

    Without names: all but load_checkpoint, load_checkpoint_async, load_param_into_net,
    save_checkpoint, load_distributed_checkpoint, get_ckpt_path_with_strategy and
    async_ckpt_thread_status. Returns the number of replaced bindings; in a `with` statement
    these are put back at its end. Other references, such as a functools.partial or a default
    argument, keep MindSpore's functions, and so do spawned processes.
    """
    for name in names:
        if name not in (*DEFAULT, *BY_NAME):
            raise _errors.InvalidArgumentError(
                f"patch: {name!r}: expected names of {', '.join((*DEFAULT, *BY_NAME))}"
            )
    from . import _parameter

    if _parameter.framework_of("auto") is None:
        raise _errors.UnsupportedError("patch: mindspore is not installed")
    spaces = [_modules.load(space) for space in _SPACES]
    for name in names or DEFAULT:
        known = _replaced.setdefault(name, [])
        ours = {id(mine) for _, mine in known}
        for space in spaces:
            theirs = getattr(space, name, None)
            if theirs is None or id(theirs) in ours or any(t is theirs for t, _ in known):
                continue
            known.append((theirs, _in_place_of(name, theirs)))
            ours.add(id(known[-1][1]))
    wanted = {
        id(pair[0]): pair for name in names or DEFAULT for pair in _replaced.get(name, [])
    }
    replaced: list[_Binding] = []
    for module in list(sys.modules.values()):
        if not isinstance(module, types.ModuleType) or module.__name__.startswith("reshard."):
            continue
        namespace = vars(module)
        for key, value in list(namespace.items()):
            found = wanted.get(id(value))
            if found is not None:
                namespace[key] = found[1]
                replaced.append((namespace, key, found[0]))
    _bindings.extend(replaced)
    patched = Patched(len(replaced))
    patched.bindings = replaced
    return patched


def unpatch() -> int:
    """Puts back MindSpore's functions that patch() replaced. Returns the number of bindings."""
    return _put_back(list(_bindings))


def original(name: str, mindspore: types.ModuleType) -> _Function:
    """MindSpore's function of this name, also while ours is in its place."""
    known = _replaced.get(name)
    if known:
        return known[0][0]
    found: _Function = getattr(mindspore, name)
    return found
