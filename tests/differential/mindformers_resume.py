#!/usr/bin/env python3
"""Asks MindFormers which checkpoint it would resume from in a folder of `--names mindformers`.

    mindformers_resume.py --mindformers FOLDER --reshard BIN --gen BIN

FOLDER has the package `mindformers` as its wheel does. To import it takes an NPU's libraries, so
that its functions for meta.json, which are plain Python, are taken out of their files and run by
themselves.
"""

import argparse
import ast
import inspect
import json
import logging
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

FUNCTIONS = {
    "tools/utils.py": ["get_epoch_and_step_from_ckpt_name", "get_rank_id_from_ckpt_name",
                       "replace_rank_id_in_ckpt_name", "check_ckpt_file_name"],
    "tools/resume_ckpt.py": ["get_info_from_meta", "check_meta_info", "get_resume_ckpt_list",
                             "check_checkpoints_by_rank"],
}
RANKS = 4


def mindformers_functions(package):
    names = {"json": json, "os": os, "re": re, "logger": logging,
             "get_real_group_size": lambda: RANKS}
    for file, wanted in FUNCTIONS.items():
        tree = ast.parse((package / "mindformers" / file).read_text())
        tree.body = [node for node in tree.body
                     if isinstance(node, ast.FunctionDef) and node.name in wanted]
        assert len(tree.body) == len(wanted), f"{file} lacks some of {wanted}"
        exec(compile(tree, file, "exec"), names)  # pylint: disable=exec-used
    return names


def failures_of(functions, folder, extension, prefix):
    ckpt_format = extension[1:]
    read = functions["get_info_from_meta"]
    # Later versions take the number of ranks as an argument.
    ranks = [RANKS] if "rank_dir_num" in inspect.signature(read).parameters else []
    epoch, step, last = read(str(folder), *ranks, ckpt_format)
    if (epoch, step) != (1, 100):
        return [f"{extension}: meta.json is read as epoch {epoch}, step {step}"]
    failures = []
    for rank in range(RANKS):
        found = functions["get_resume_ckpt_list"](str(folder), last, rank, RANKS, ckpt_format)
        wanted = folder / f"rank_{rank}" / f"{prefix}_rank_{rank}-1_100{extension}"
        if found != [str(wanted)] or not wanted.exists():
            failures.append(f"rank {rank} would resume from {found}, not from {wanted}")
    return failures


def main():
    options = argparse.ArgumentParser(description=__doc__)
    for name in ("mindformers", "reshard", "gen"):
        options.add_argument(f"--{name}", required=True, type=Path)
    arguments = options.parse_args()
    functions = mindformers_functions(arguments.mindformers)
    failures = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sizes = ["--layers", "2", "--hidden", "16", "--ffn", "32", "--vocab", "32"]
        for out, shape in (("output/checkpoint", ["--tp", "2", "--dp", "4"]),
                           ("new", ["--tp", "2", "--dp", "2", "--strategy-only"])):
            (folder / out).parent.mkdir(exist_ok=True)
            subprocess.run([arguments.gen.resolve(), folder / out, *sizes, *shape], check=True,
                           stderr=subprocess.DEVNULL)
        (folder / "output/checkpoint/strategy").rename(folder / "output/strategy")
        for extension in (".ckpt", ".safetensors"):
            for prefix in ("llama", "a_rank"):
                out = folder / f"{prefix}{extension}"
                subprocess.run([arguments.reshard.resolve(), "convert", folder / "output", out,
                                "--dst-strategy", folder / "new/strategy", "--prefix", prefix,
                                "--format", extension[1:], "--names", "mindformers", "-q"],
                               check=True)
                failures += failures_of(functions, out, extension, prefix)
    print("\n".join(failures) or "MindFormers resumes from all folders")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
