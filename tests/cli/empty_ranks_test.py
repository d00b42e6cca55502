#!/usr/bin/env python3
"""A rank without parameters: its file is written, verified, and taken as a source like any other.

Usage: empty_ranks_test.py --reshard BIN --gen BIN

Two stages of two ranks, of which one gets nothing: the first, or the last. In both formats, with a
CRC, encrypted, by one process and by two shards.
"""

import argparse
import filecmp
import itertools
import pathlib
import subprocess
import sys
import tempfile

STRATEGY = ["--src-strategy", "a/strategy"]
TO_SAME = STRATEGY + ["--dst-strategy", "a/strategy"]
PROTECTIONS = {
    "plain": [],
    "crc": ["--crc"],
    "AES-GCM": ["--encrypt", "AES-GCM", "--encrypt-key-file", "key"],
    "AES-CBC": ["--encrypt", "AES-CBC", "--encrypt-key-file", "key"],
}
# Which ranks are empty if just these parameters are taken.
EMPTY = {"model.layers.1.*": (0, 1), "model.layers.0.*": (2, 3)}


class Case:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.name, self.mistakes = "", []

    def run(self, *words, code=0, says=None):
        done = subprocess.run([self.program, *map(str, words)], cwd=self.folder,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              errors="replace", timeout=120, check=False)
        if done.returncode != code or (says is not None and says not in done.stderr):
            self.mistakes.append(f"{self.name}: {' '.join(map(str, words))}: exit "
                                 f"{done.returncode}, expected {code} {says or ''}\n{done.stderr}")
        return done

    def same(self, first, second):
        if not filecmp.cmp(self.folder / first, self.folder / second, shallow=False):
            self.mistakes.append(f"{self.name}: {first} and {second} differ")


def check(case, pattern, form, protection, shards):
    case.name = f"{pattern} {form} {protection} {shards}"
    out = case.name.replace(" ", "_").replace("*", "")
    key = ["--key-file", "key"] if protection.startswith("AES") else []
    options = ["--include", pattern, "--format", form]
    convert = ["convert", "a", out, *TO_SAME, *options, *PROTECTIONS[protection]]
    if shards == 1:
        case.run(*convert, says="empty target file")
    else:
        for shard in range(shards):
            case.run(*convert, "--shard", f"{shard}/{shards}")
    extension = "ckpt" if form == "ckpt" else "safetensors"
    for rank in EMPTY[pattern]:
        size = (case.folder / out / f"rank_{rank}/checkpoint_{rank}.{extension}").stat().st_size
        if (size == 0) != (form == "ckpt" and protection != "crc"):
            case.mistakes.append(f"{case.name}: the file of rank {rank} has {size} bytes")
    case.run("verify", out, *key)
    against = ["verify", out, "--against", "a", *TO_SAME, *options]
    if key:
        against += ["--encrypt-key-file", "key"]
    case.run(*against)

    # As a source it gives what the first source gives.
    back = out + ".full"
    case.run("convert", out, back, *STRATEGY, *key, "--format", form, "-q")
    case.run("convert", "a", back + "_a", *STRATEGY, "--include", pattern, "--format", form, "-q")
    path = f"rank_0/checkpoint_0.{extension}"
    case.same(f"{back}/{path}", f"{back}_a/{path}")
    case.run("inspect", out, *key)
    case.run("digest", out, "--strategy", "a/strategy", *key)
    case.run("diff", out, f"{back}/{path}", "--a-strategy", "a/strategy", *key)
    case.run("plan", out, "x", *STRATEGY, *key)
    other = "safetensors" if form == "ckpt" else "ckpt"
    case.run("recode", out, out + "." + other, "--format", other, *key, "-q")


def check_errors(case):
    """What is empty for another reason is still told."""
    case.name = "errors"
    (case.folder / "none.ckpt").write_bytes(b"")
    case.run("inspect", "none.ckpt", code=3, says="is empty (0 bytes)")
    case.run("convert", "none.ckpt", "x", "--dst-strategy", "a/strategy", code=3,
             says="is empty (0 bytes)")
    for rank in range(2):
        (case.folder / f"all/rank_{rank}").mkdir(parents=True)
        (case.folder / f"all/rank_{rank}/{rank}.ckpt").write_bytes(b"")
    case.run("convert", "all", "x", *STRATEGY, code=3, says="is empty (0 bytes)")
    # A file that was cut off to nothing: its shards are in no other one.
    case.run("convert", "a", "cut", *TO_SAME, "-q")
    (case.folder / "cut/rank_1/checkpoint_1.ckpt").write_bytes(b"")
    case.run("convert", "cut", "x", *STRATEGY, code=3, says="rank 1")
    case.run("inspect", "cut")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--reshard", required=True)
    parser.add_argument("--gen", required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "key").write_bytes(b"0123456789abcdef")
        subprocess.run([options.gen, "a", "--layers", "2", "--hidden", "64", "--ffn", "128",
                        "--vocab", "256", "--tp", "2", "--pp", "2"], cwd=folder, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        case = Case(options.reshard, folder)
        for pattern, form, protection, shards in itertools.product(
                EMPTY, ("ckpt", "safetensors"), PROTECTIONS, (1, 2)):
            if form == "safetensors" and protection.startswith("AES"):
                continue
            if shards == 2 and protection in ("plain", "AES-CBC"):
                continue
            check(case, pattern, form, protection, shards)
        check_errors(case)
        for mistake in case.mistakes:
            print(mistake)
        sys.exit(1 if case.mistakes else 0)


if __name__ == "__main__":
    main()
