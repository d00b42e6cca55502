"""The main program of a script that checks random cases, each with a folder of its own."""

import argparse
import random
import secrets
import tempfile
from pathlib import Path


def run(description, check):
    """Calls check(rng, reshard, folder), which returns what is wrong, if anything, for each case.

    Returns the exit code.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--reshard", required=True, type=Path)
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--seed", help="a seed printed by an earlier run")
    arguments = parser.parse_args()
    seed = arguments.seed or secrets.token_hex(4)
    failed = 0
    for number in range(arguments.cases):
        with tempfile.TemporaryDirectory() as name:
            wrong = check(random.Random(f"{seed}/{number}"), arguments.reshard.resolve(),
                          Path(name))
        if wrong:
            failed += 1
            print(f"FAILED case {number}: {wrong}", flush=True)
    print(f"seed {seed}: {arguments.cases - failed} passed, {failed} failed")
    return 1 if failed else 0
