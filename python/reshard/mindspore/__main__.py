"""python -m reshard.mindspore SCRIPT [ARGUMENTS]: a script that calls MindSpore's functions."""

from __future__ import annotations

import os
import runpy
import sys
import types

import reshard.mindspore
from reshard.mindspore import _communication, _parameter, _patch


def _stand_in(name: str, source: types.ModuleType) -> types.ModuleType:
    """A module with the functions of `source` under MindSpore's name."""
    module = types.ModuleType(name, source.__doc__)
    for public in source.__all__:
        setattr(module, public, getattr(source, public))

    def missing(attribute: str) -> object:
        raise AttributeError(
            "mindspore is not installed; reshard stands in for its checkpoint functions only,"
            f" not for {attribute!r}"
        )

    module.__dict__.update(__getattr__=missing, __path__=[], _stand_in_of_reshard=True)
    sys.modules[name] = module
    return module


def main() -> None:
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        print("usage: python -m reshard.mindspore SCRIPT [ARGUMENTS]", file=sys.stderr)
        sys.exit(2)
    script, sys.argv = sys.argv[1], sys.argv[1:]
    if _parameter.framework_of("auto") is not None:
        _patch.patch()
    else:
        whole = _stand_in("mindspore", reshard.mindspore)
        vars(whole).update(Parameter=_parameter.Parameter, Tensor=_parameter.Tensor)
        parts = {
            "communication": _communication,
            "parallel": reshard.mindspore.parallel,
            "train": reshard.mindspore.train,
        }
        for name, source in parts.items():
            setattr(whole, name, _stand_in(f"mindspore.{name}", source))
    # As python itself has it.
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main()
