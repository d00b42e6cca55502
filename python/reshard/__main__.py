"""python -m reshard: the program `reshard`."""

import os
import sys

from . import _reshard

if __name__ == "__main__":
    sys.exit(_reshard.run_program([b"reshard", *map(os.fsencode, sys.argv[1:])]))
