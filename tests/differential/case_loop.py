"""The command lines and loops of scripts that check random cases."""

import argparse
import random
import secrets
import tempfile
from pathlib import Path


def parser(description, cases):
    """Returns a parser of the options that all such scripts have."""
    options = argparse.ArgumentParser(description=description)
    options.add_argument("--reshard", required=True, type=Path)
    options.add_argument("--cases", type=int, default=cases, help="default: %(default)s")
    options.add_argument("--seed", help="a seed printed by an earlier run")
    return options


def parse(options):
    """Parses the command line; the program's path is absolute, and the seed is there."""
    arguments = options.parse_args()
    arguments.reshard = arguments.reshard.resolve()
    arguments.seed = arguments.seed or secrets.token_hex(4)
    return arguments


def parse_repeatable(options):
    """Parses also which one case to repeat; `numbers` are those of the cases to run."""
    options.add_argument("--only", type=int, metavar="N", help="the case of this number alone")
    options.add_argument("--keep", type=Path, metavar="DIR", help="with --only, keep its files")
    options.add_argument("--jobs", type=int, default=2)
    arguments = parse(options)
    if arguments.keep and arguments.only is None:
        options.error("--keep needs --only")
    arguments.numbers = range(arguments.cases) if arguments.only is None else [arguments.only]
    return arguments


def run(description, check):
    """Calls check(rng, reshard, folder), which returns what is wrong, if anything, for each case.

    Returns the exit code.
    """
    arguments = parse(parser(description, 200))
    failed = 0
    for number in range(arguments.cases):
        with tempfile.TemporaryDirectory() as name:
            wrong = check(random.Random(f"{arguments.seed}/{number}"), arguments.reshard,
                          Path(name))
        if wrong:
            failed += 1
            print(f"FAILED case {number}: {wrong}", flush=True)
    print(f"seed {arguments.seed}: {arguments.cases - failed} passed, {failed} failed")
    return 1 if failed else 0
