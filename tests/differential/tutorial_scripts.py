#!/usr/bin/env python3
"""Runs scripts as MindSpore's tutorials have them by MindSpore alone and by
`python -m reshard.mindspore`: both have to print the same and to write the same
files, byte for byte. The scripts are in tests/python/tutorials."""

import argparse
import difflib
import filecmp
import os
import pathlib
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "python"))

from tutorials import runs  # pylint: disable=wrong-import-position

# A merged strategy has its stages in the order of the folder.
LEFT_OUT = {"src_strategy.ckpt"}


def run(script_run, folder, python, environment):
    """Returns what the calls of a script print, or raises RuntimeError."""
    folder.mkdir()
    script_run.prepare(folder)
    said = []
    for command, more in script_run.commands(python):
        done = subprocess.run(command, cwd=folder, env={**environment, **more},
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(python)}: {done.stderr[-2000:]}")
        said.append(done.stdout)
    return said


def checkpoints(folder):
    # MindSpore keeps a lock beside each file that it saves.
    return {path.relative_to(folder) for path in folder.rglob("*.ckpt")
            if path.name not in LEFT_OUT}


def check(script_run, environment):
    """Returns what is wrong with a script, if anything."""
    with tempfile.TemporaryDirectory() as name:
        folders = [pathlib.Path(name) / side for side in ("mindspore", "reshard")]
        pythons = ([sys.executable], [sys.executable, "-m", "reshard.mindspore"])
        try:
            said = [run(script_run, folder, python, environment)
                    for folder, python in zip(folders, pythons)]
        except RuntimeError as error:
            return [str(error)]
        wrong = []
        if said[0] != said[1]:
            wrong += difflib.unified_diff("".join(said[0]).splitlines(),
                                          "".join(said[1]).splitlines(), *map(str, pythons))
        files, others = map(checkpoints, folders)
        wrong += [f"only one wrote {path}" for path in files ^ others]
        return wrong + [f"{path} differs" for path in files & others
                        if not filecmp.cmp(folders[0] / path, folders[1] / path, shallow=False)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--package", required=True, type=pathlib.Path,
                        help="the folder that has the package reshard")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    environment = {**os.environ, "GLOG_v": "4", "OMP_NUM_THREADS": "1",
                   "PYTHONPATH": str(arguments.package.resolve())}
    failed = 0
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for script_run, wrong in zip(runs.RUNS, pool.map(lambda each: check(each, environment),
                                                         runs.RUNS)):
            if wrong:
                failed += 1
                print(f"FAILED {script_run.script} {script_run.golden}", *wrong, sep="\n  ")
    print(f"{len(runs.RUNS) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
