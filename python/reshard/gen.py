"""python -m reshard.gen: the program `reshard-gen`, which makes sample checkpoints."""

import os
import sys

from . import _reshard

if __name__ == "__main__":
    sys.exit(_reshard.run_program([b"reshard-gen", *map(os.fsencode, sys.argv[1:])]))
