#!/usr/bin/env python3
"""Times conversions against the simplest programs that move the bytes, a copy, and MindSpore.

    bench/suite.py                                        all cases, warm and cold
    bench/suite.py --case rows --case giant --runs 7      two of them
    bench/suite.py --table FILE.json                      the tables of earlier runs

For each case reshard-gen makes a sample; then the contenders take turns, one round that does not
count and --runs rounds that do, first with the sources in the page cache (warm), then without
(cold). What they write has to be the same, byte for byte. README.md has the protocol.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

import measure
import suite_tables
from bench_cases import CASES, JOBS_CASES, make_sample
from measure import GIB, Failure

MINDSPORE = """
import sys
import mindspore
source, target, source_strategy, target_strategy, output_format = sys.argv[1:]
mindspore.transform_checkpoints(source, target, "checkpoint_", source_strategy or None,
                                target_strategy or None, output_format=output_format)
"""

MINDSPORE_UNIFIED = """
import sys
import mindspore
source, target, source_strategy, target_strategy, output_format = sys.argv[1:]
mindspore.unified_safetensors(source, source_strategy, target)
"""

# By the formats of source and target; it has no other ways in one call.
MINDSPORE_CALLS = {("ckpt", "ckpt"): MINDSPORE, ("safetensors", "ckpt"): MINDSPORE,
                   ("safetensors", "safetensors"): MINDSPORE,
                   ("safetensors", "unified"): MINDSPORE_UNIFIED}

# The shapes of the bare pipeline that may be the fastest.
SHAPES = ["map", "cached:2", "cached:4", "direct:2", "direct:4", "ring_direct:4"]

# What MindSpore may not take, so that the host stays alive when a case does not fit.
KEPT_FREE = 2 * GIB


class Contender:
    """A program that does the work of a case; the figures of one kind of page cache."""

    def __init__(self, name, target, command, start=None, limited=False):
        self.name, self.target, self.command = name, target, command
        self.start = start  # a command that has the program's own files read
        self.limited = limited  # it may fail for want of memory
        self.failure = None
        self.reset()

    def reset(self):
        self.usages, self.source_cache, self.target_cache = [], [], []

    def take_turn(self, sample, is_cold, counts):
        """Runs once. Raises Failure, unless `limited`: then `failure` says what happened."""
        shutil.rmtree(self.target, ignore_errors=True)
        os.sync()
        if is_cold:
            measure.drop_from_cache(sample.files)
            if self.start:
                subprocess.run(self.start, check=False, capture_output=True)
        else:
            measure.read_into_cache(sample.files)
        limit = max(GIB, measure.available_memory() - KEPT_FREE) if self.limited else None
        try:
            usage = measure.run(self.command, limit, lambda: measure.sync(self.target))
        except Failure as failure:
            if not self.limited:
                raise
            self.failure = f"{failure}; RLIMIT_DATA was {limit / GIB:.1f} GiB"
            return
        if counts:
            self.usages.append(usage)
            self.source_cache.append(measure.cached_bytes(sample.files))
            self.target_cache.append(measure.cached_bytes(measure.files_of(self.target)))

    def figures(self, size):
        if self.failure:
            return {"failure": self.failure}
        cpu = statistics.median(usage.cpu for usage in self.usages)
        return {
            "bytes": size,
            "seconds": [usage.seconds for usage in self.usages],
            "cpu_seconds": [usage.cpu for usage in self.usages],
            "cpu_seconds_per_gib": cpu / size * GIB,
            "rss_anon_bytes": max(usage.rss_anon for usage in self.usages),
            "source_cache_bytes": _median(self.source_cache),
            "target_cache_bytes": _median(self.target_cache),
        }


def _median(values):
    return None if None in values else statistics.median(values)


def convert_command(arguments, sample, target, *options):
    command = [arguments.bin / "reshard", "convert", "--quiet", sample.source, target]
    if sample.source_strategy:
        command += ["--src-strategy", sample.source_strategy]
    if sample.target_strategy:
        command += ["--dst-strategy", sample.target_strategy]
    if sample.target_format:
        command += ["--format", sample.target_format]
    return [*command, *options]


def copies_of(sample):
    """The list that the bare pipeline works through."""
    return sample.folder / "copies.txt"


def contenders(arguments, sample):
    out = sample.folder
    strategies = [str(path or "") for path in (sample.source_strategy, sample.target_strategy)]
    reshard = [arguments.bin / "reshard", "--version"]
    yield Contender("reshard", out / "reshard", convert_command(arguments, sample, out / "reshard"),
                    reshard)
    yield Contender("reshard, 64 MiB", out / "small",
                    convert_command(arguments, sample, out / "small", "--memory-limit", "64M"),
                    reshard)
    copies = copies_of(sample)
    with copies.open("w") as file:
        subprocess.run([arguments.bin / "copy_list", sample.source, *strategies,
                        *([sample.target_format] if sample.target_format else [])], check=True,
                       stdout=file)
    bare = arguments.bin / "bare_pipeline"
    has_ring = "ring" in subprocess.run([bare], check=False, capture_output=True, text=True).stderr
    for shape in SHAPES:
        # Its chunks want what they take from to lie close together; full tensors do not.
        if (has_ring and not sample.target_format) or not shape.startswith("ring"):
            target = out / shape.replace(":", "_")
            yield Contender(shape, target, [bare, shape, copies, target], [bare])
    yield Contender("cp -r, sync", out / "cp", ["cp", "-r", sample.checkpoint, out / "cp"],
                    ["cp", "--version"])
    if arguments.paths:
        paths = subprocess.run([arguments.paths], check=True, capture_output=True, text=True)
        for path in paths.stdout.split():
            yield Contender(f"by {path}", out / path, [
                arguments.paths, path, sample.source, out / path, *strategies], [arguments.paths])
    formats = (sample.source_format, sample.target_format or sample.source_format)
    if arguments.mindspore and formats in MINDSPORE_CALLS:
        python = arguments.mindspore
        yield Contender("MindSpore, sync", out / "mindspore", [
            python, "-c", MINDSPORE_CALLS[formats], sample.checkpoint, out / "mindspore",
            *strategies, formats[1]], [python, "-c", "import mindspore"], limited=True)


def take_rounds(entries, sample, arguments, is_cold, runs):
    """Takes `runs` rounds that count, after one that does not, in which outputs are compared."""
    for entry in entries:
        entry.reset()
    for round_number in range(runs + 1):
        for entry in entries:
            if entry.failure or (entry.limited and round_number > arguments.mindspore_runs):
                continue
            entry.take_turn(sample, is_cold, counts=round_number > 0)
            if round_number == 0:
                if not entry.failure and not entry.name.startswith("cp"):
                    measure.check_equal(entries[0].target, entry.target)
                if entry is entries[0]:
                    continue  # stays to be compared with
            shutil.rmtree(entry.target, ignore_errors=True)
        shutil.rmtree(entries[0].target, ignore_errors=True)


def run_case(case, arguments):
    print(f"{case.title}: making the sample", file=sys.stderr, flush=True)
    sample = make_sample(case, arguments.size, arguments.bin, arguments.work / case.name)
    entries = list(contenders(arguments, sample))
    result = {"name": case.name, "title": case.title, "modes": {}}
    result["read_bytes"] = sample.bytes
    result["written_bytes"] = written = sum(
        int(line.split()[1]) for line in copies_of(sample).read_text().splitlines()
        if line.startswith("target "))
    for mode in arguments.cache:
        print(f"{case.title}: {mode}", file=sys.stderr, flush=True)
        take_rounds(entries, sample, arguments, mode == "cold", arguments.runs)
        result["modes"][mode] = {
            entry.name: entry.figures(sample.bytes if entry.name.startswith("cp") else written)
            for entry in entries}
    shutil.rmtree(sample.folder)
    return result


def run_jobs_case(case, arguments):
    """Times --jobs 1 against --jobs 2 where sources and targets are in memory."""
    print(f"{case.title}: --jobs 1 against --jobs 2, in {arguments.memory}", file=sys.stderr,
          flush=True)
    sample = make_sample(case, arguments.size, arguments.bin,
                         arguments.memory / f"reshard_suite_{os.getpid()}")
    try:
        entries = [Contender(f"--jobs {jobs}", sample.folder / f"out_{jobs}", convert_command(
            arguments, sample, sample.folder / f"out_{jobs}", "--jobs", jobs)) for jobs in (1, 2)]
        take_rounds(entries, sample, arguments, False, arguments.jobs_runs)
    finally:
        shutil.rmtree(sample.folder)
    return {"name": case.name, "title": case.title, "read_bytes": sample.bytes,
            "contenders": {entry.name: entry.figures(sample.bytes) for entry in entries}}


def check_space(cases, jobs_cases, arguments):
    """Says what space is needed and fails where it is not there."""
    largest = max((case.gib for case in cases), default=0) * arguments.size * GIB
    in_memory = max((case.gib for case in jobs_cases), default=0) * arguments.size * GIB
    # The sample, what reshard made of it, and what another contender did.
    for folder, need in ((arguments.work, 3 * largest), (arguments.memory, 3 * in_memory)):
        if need:
            free = shutil.disk_usage(folder).free
            print(f"{folder}: {need / GIB:.1f} GiB are needed, {free / GIB:.1f} GiB are free",
                  file=sys.stderr)
            if free < need * 1.05:
                raise Failure(f"{folder}: not enough space; choose cases, a smaller --size, or "
                              "another folder")


def parse_arguments():
    names = [case.name for case in (*CASES, *JOBS_CASES)]
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default="build/release/bin",
                        help="folder with reshard, reshard-gen, copy_list and bare_pipeline")
    parser.add_argument("--work", type=pathlib.Path, default="build/suite",
                        help="folder for samples and outputs, on the disk to be measured")
    parser.add_argument("--memory", type=pathlib.Path, default="/dev/shm",
                        help="folder in memory for the cases of --jobs")
    parser.add_argument("--case", action="append", choices=names, metavar="NAME",
                        help=f"only this case; may be given several times: {', '.join(names)}")
    parser.add_argument("--size", type=float, default=1.0, metavar="FACTOR",
                        help="1: samples of 1 GiB, of 0.3 and 0.4 GiB, and one of 8 GiB")
    parser.add_argument("--runs", type=int, default=5, help="that count, for each contender")
    parser.add_argument("--jobs-runs", type=int, default=9, help="for the cases of --jobs")
    parser.add_argument("--cache", choices=["warm", "cold"], action="append",
                        help="only with the sources in the page cache, or only without")
    parser.add_argument("--mindspore", metavar="PYTHON", help="a Python that has MindSpore")
    parser.add_argument("--mindspore-runs", type=int, default=5, help="of --runs")
    parser.add_argument("--paths", type=pathlib.Path, metavar="BIN",
                        help="convert_paths: each path of the logical digest beside the others")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE",
                        help="write everything to a file, anew after each case")
    parser.add_argument("--table", type=pathlib.Path, metavar="FILE", nargs="+",
                        help="measure nothing; print the tables of what --json has written, "
                        "in several runs of some cases each")
    arguments = parser.parse_args()
    arguments.bin, arguments.work = arguments.bin.resolve(), arguments.work.resolve()
    arguments.cache = arguments.cache or ["warm", "cold"]
    if min(arguments.runs, arguments.jobs_runs, arguments.mindspore_runs) < 1:
        parser.error("a median needs one run at least")
    return arguments


def join(runs):
    """Joins the results of several runs on one machine: cases of all, and both modes of a case."""
    joined = runs[0]
    for run in runs[1:]:
        cases = {case["name"]: case for case in joined["cases"]}
        for case in run["cases"]:
            if case["name"] in cases:
                cases[case["name"]]["modes"].update(case["modes"])
            else:
                joined["cases"].append(case)
        joined["jobs_cases"] += run["jobs_cases"]
        joined["load_average"] = max(joined["load_average"], run["load_average"])
    return joined


def main():
    arguments = parse_arguments()
    if arguments.table:
        suite_tables.print_all(join([json.loads(path.read_text()) for path in arguments.table]))
        return
    chosen = arguments.case or [case.name for case in (*CASES, *JOBS_CASES) if not case.only_named]
    cases = [case for case in CASES if case.name in chosen]
    jobs_cases = [case for case in JOBS_CASES if case.name in chosen]
    arguments.work.mkdir(parents=True, exist_ok=True)
    version = subprocess.run([arguments.bin / "reshard", "--version"], check=True,
                             capture_output=True, text=True).stdout.strip()
    results = {"reshard": version, "machine": measure.describe_machine(arguments.work),
               "runs": arguments.runs, "size": arguments.size, "cases": [], "jobs_cases": [],
               "cold_by": "drop_caches" if os.geteuid() == 0 else "POSIX_FADV_DONTNEED"}

    def keep():
        results["load_average"] = os.getloadavg()[1]
        if arguments.json:
            arguments.json.write_text(json.dumps(results, indent=1) + "\n")

    try:
        check_space(cases, jobs_cases, arguments)
        for case in cases:
            results["cases"].append(run_case(case, arguments))
            keep()
        for case in jobs_cases:
            results["jobs_cases"].append(run_jobs_case(case, arguments))
            keep()
    except Failure as failure:
        sys.exit(f"suite.py: {failure}")
    suite_tables.print_all(results)


if __name__ == "__main__":
    main()
