"""python -m reshard: the program `reshard` of this package."""

from __future__ import annotations

import importlib.metadata
import os
import sys


def main() -> None:
    for file in importlib.metadata.files("reshard") or ():
        if file.name == "reshard" and file.parent.name == "bin":
            program = str(file.locate())
            os.execv(program, [program, *sys.argv[1:]])
    sys.exit("python -m reshard: the program is not installed; `pip install` reshard again")


if __name__ == "__main__":
    main()
