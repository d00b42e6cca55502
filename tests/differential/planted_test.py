#!/usr/bin/env python3
"""Plants faults in honest conversions: each has to be refused or warned about,
as the table of kinds says, and nothing wrong may be written with exit code 0
and no warning. MindSpore is not needed."""

import collections
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import case_loop
import planted_sources as sources
import planted_targets as targets
from planted import Planted, Wrong

# What is expected of each is in its function's description and calls.
REFUSED = (
    sources.component_of_source, sources.component_of_target,
    sources.prefix_of_source, sources.prefix_of_target,
    sources.unmatched_matrices, sources.swapped_folders, sources.lone_shard,
    sources.lone_segments, sources.dcp_shard, targets.destroyed_input,
    targets.destroyed_output, targets.left_over, targets.left_over_set,
    targets.unlisted, targets.stale_complete)
WARNED = (
    sources.counters, sources.unnamed_file, sources.wrong_total,
    sources.unconfirmed, sources.inference_target, sources.one_plain,
    sources.not_for_checkpoints, targets.stale_listed,
    targets.repeated_weights, targets.cast_to_zero)
TAKEN = (
    sources.another_order, sources.missing_but_excluded,
    sources.metadata_of_tensors, sources.small_floats, targets.shard_again,
    targets.empty_ranks, targets.cast_states)
KINDS = {kind.__name__: kind for kind in (*REFUSED, *WARNED, *TAKEN)}
# So many failures of a kind are printed.
MAX_FAILURES = 5


def check(task):
    """Returns the kind, the number, and what is wrong, if anything."""
    kind, number, seed, reshard = task
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "case"
        folder.mkdir()
        return kind, number, plant(kind, number, seed, reshard, folder)


def plant(kind, number, seed, reshard, folder):
    try:
        KINDS[kind](Planted(f"{seed}/{kind}/{number}", folder, reshard))
    except Wrong as wrong:
        return str(wrong)
    return None


def main():
    options = case_loop.parser(__doc__, cases=20)  # of each kind
    options.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS,
                         metavar="KIND", help="some of " + ", ".join(KINDS))
    arguments = case_loop.parse_repeatable(options)
    reshard, seed = arguments.reshard, arguments.seed
    numbers = arguments.numbers
    print(f"seed {seed}, {len(numbers)} of each of {len(arguments.kinds)} "
          "kinds", flush=True)
    if arguments.keep:
        for kind in arguments.kinds:
            folder = arguments.keep.resolve() / kind
            folder.mkdir(parents=True)
            print(kind, plant(kind, arguments.only, seed, reshard, folder))
        return 0
    tasks = [(kind, number, seed, reshard)
             for kind in arguments.kinds for number in numbers]
    failures = collections.Counter()
    with ProcessPoolExecutor(arguments.jobs) as pool:
        for kind, number, wrong in pool.map(check, tasks, chunksize=4):
            if not wrong:
                continue
            failures[kind] += 1
            if failures[kind] <= MAX_FAILURES:
                print(f"FAILED {kind}, --only {number}: {wrong}", flush=True)
    for kind in arguments.kinds:
        print(f"{kind}: {len(numbers) - failures[kind]} passed, "
              f"{failures[kind]} failed")
    print(f"seed {seed}: {len(tasks) - failures.total()} passed, "
          f"{failures.total()} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
