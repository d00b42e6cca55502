#!/usr/bin/env python3
"""Compares reshard with the installed MindSpore on random conversions."""

import argparse
import collections
import itertools
import multiprocessing
import re
import secrets
import shutil
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import cases
import specials

# So many draws for one case; MindSpore refuses few of them.
MAX_DRAWS = 20
# So many failures of one case are printed.
MAX_LINES = 8
# Every so many random cases MindSpore loads all outputs as well.
LOAD_EVERY = 5
# For so many random cases there is one with a strategy that reshard makes.
CASES_OF_MADE = 5


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reshard", required=True, type=Path,
                        help="the binary to test")
    parser.add_argument("--cases", type=int, default=200,
                        help="how many random cases (default: %(default)s)")
    parser.add_argument("--formats", type=int, default=200,
                        help="how many random cases with safetensors files and "
                        "folders (default: %(default)s)")
    parser.add_argument("--seed", help="a seed printed by an earlier run")
    parser.add_argument("--jobs", type=int, default=2,
                        help="processes (default: %(default)s)")
    parser.add_argument("--keep", type=Path, metavar="DIR",
                        help="keep the files of each case in DIR")
    parser.add_argument("--only", metavar="NAME",
                        help="one case: a special one, case-N, made-N or "
                        "format-N")
    arguments = parser.parse_args()
    if arguments.only and not (arguments.only in specials.MAKERS
                               or re.fullmatch(r"(case|made|format)-\d+",
                                               arguments.only)):
        parser.error("--only takes case-N, made-N, format-N or one of "
                     + ", ".join(specials.MAKERS))
    return arguments


def _draw(name, seed, attempt):
    if name in specials.MAKERS:
        return specials.MAKERS[name]()
    case = cases.random_case(f"{seed}/{name}/{attempt}", name)
    case.load = int(name.removeprefix("case-")) % LOAD_EVERY == 0
    return case


def _draw_for_formats(seed, name, attempt):
    # Not at the top, as it imports MindSpore.
    import formats
    for draw in itertools.count():
        case = cases.random_case(f"{seed}/{name}/{attempt}/{draw}", name)
        if formats.is_for_formats(case):
            case.ranks = None
            return case


def check(name, seed, reshard, keep):
    """Runs one case; returns its name, failures, MindSpore's refusals, and how
    many tensors MindSpore got wrong."""
    # Not at the top: only the workers need MindSpore and the seconds it takes.
    import comparison
    import formats
    import made
    import mindspore_side
    refusals = []
    for attempt in range(MAX_DRAWS):
        folder = Path(keep) / name if keep else Path(tempfile.mkdtemp())
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        try:
            if name.startswith("made-"):
                run = made.Made(name, f"{seed}/{attempt}", folder, reshard)
            elif name.startswith("format-"):
                case = _draw_for_formats(seed, name, attempt)
                run = formats.FormatComparison(
                    case, folder, reshard, f"{seed}/{name}/{attempt}")
            else:
                case = _draw(name, seed, attempt)
                run = comparison.Comparison(case, folder, reshard)
            failures = run.run()
            wrong = getattr(run, "mindspore_wrong", 0)
            return name, failures, refusals, wrong
        except mindspore_side.Refused as refused:
            refusals.append(str(refused))
        finally:
            if not keep:
                shutil.rmtree(folder)
    failure = f"MindSpore refused {MAX_DRAWS} draws: {refusals}"
    return name, [failure], refusals, 0


def main():
    arguments = parse_arguments()
    reshard = arguments.reshard.resolve()
    seed = arguments.seed or secrets.token_hex(4)
    names = [f"case-{i}" for i in range(arguments.cases)]
    if arguments.cases:
        names = list(specials.MAKERS) + names
    names += [f"made-{i}" for i in range(arguments.cases // CASES_OF_MADE)]
    names += [f"format-{i}" for i in range(arguments.formats)]
    if arguments.only:
        names = [arguments.only]
    print(f"seed {seed}, {len(names)} cases", flush=True)
    failed, mindspore_wrong, refusals = 0, 0, collections.Counter()
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(arguments.jobs, mp_context=spawn) as pool:
        tasks = [pool.submit(check, name, seed, reshard, arguments.keep)
                 for name in names]
        for task in as_completed(tasks):
            name, failures, refused, wrong = task.result()
            mindspore_wrong += wrong
            refusals.update(refused)
            if failures:
                failed += 1
                print(f"FAILED {name}", *failures[:MAX_LINES], sep="\n  ")
                if len(failures) > MAX_LINES:
                    print(f"  and {len(failures) - MAX_LINES} more")
                print(f"  again: run.py --reshard {arguments.reshard} --seed "
                      f"{seed} --only {name} --keep DIR", flush=True)
    print(f"{refusals.total()} draws that MindSpore refused were drawn again")
    for text, count in refusals.most_common(10):
        print(f"  {count} x {text}")
    print(f"{mindspore_wrong} tensors that MindSpore got wrong, and reshard "
          "right")
    print(f"seed {seed}")
    print(f"{len(names) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
