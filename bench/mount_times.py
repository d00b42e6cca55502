#!/usr/bin/env python3
"""Files of `reshard mount` beside converted files, and how soon a mount is ready, in one run.

All contenders take turns, with sources and converted files in the page cache. One round does not
count; in it the mounted files are compared with the converted ones. Needs /dev/fuse.
"""

import argparse
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time

import bench_cases
from dropin_times import call
from measure import GIB, MIB, Failure, check_equal, files_of, read_into_cache, rss_anon, run

CUTS = ("rows", "columns_256b")
# Not the bytes of a conversion, but how many files and parameters there are.
READY = (
    ("8 files", bench_cases.Case("files", "", bench_cases.llama, ["--tp", 4], ["--tp", 8]), 0.5, 0.05),
    ("10,000 parameters", next(case for case in bench_cases.CASES if case.name == "tiny"), 1, 0.25),
)


def conversion(arguments, verb, sample, place, *more):
    words = [arguments.binaries / "reshard", verb, sample.source, place]
    for word, strategy in (("--src-strategy", sample.source_strategy),
                           ("--dst-strategy", sample.target_strategy)):
        words += [word, strategy] if strategy else []
    return [str(word) for word in (*words, *more)]


class Mounted:
    """A mount, and how long it took until it was ready. Raises Failure."""

    def __init__(self, arguments, sample, *more):
        self.place = sample.folder / "mounted"
        self.place.mkdir(exist_ok=True)
        start = time.monotonic()
        self.process = subprocess.Popen(
            conversion(arguments, "mount", sample, self.place, *more), stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True)
        said = ""
        for line in self.process.stderr:
            said += line
            if line.endswith(", ready\n"):
                break
        else:
            raise Failure(f"mount: {said}")
        self.seconds = time.monotonic() - start

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate()


def targets(folder):
    return [path for path in files_of(folder) if path.suffix == ".ckpt"]


def dd(*paths):
    """Bytes a second of as many readers at the same time."""
    start = time.monotonic()
    readers = [subprocess.Popen(["dd", f"if={path}", "of=/dev/null", "bs=1M"],
                                stderr=subprocess.PIPE, text=True) for path in paths]
    said = [reader.communicate()[1] for reader in readers]
    seconds = time.monotonic() - start
    if any(reader.returncode for reader in readers):
        raise Failure(f"dd: {said}")
    size = sum(path.stat().st_size for path in paths)
    if len(paths) > 1:
        return size / seconds
    # Without the start of the program, which takes as long as some MiB do.
    return size / float(re.search(r" copied, ([0-9.e-]+) s", said[0])[1])


def spread(values, form="{:.2f}"):
    return (f"{form.format(statistics.median(values))} ({form.format(min(values))} to "
            f"{form.format(max(values))})")


def measure_reads(arguments, scratch):
    print(f"dd bs=1M, {arguments.size:g} GiB, GiB/s and ratios, medians of {arguments.runs} "
          "(lowest to highest); goals: 0.25 of a converted file, two readers 1.3 times one")
    for case in (case for case in bench_cases.CASES if case.name in CUTS):
        sample = bench_cases.make_sample(case, arguments.size, arguments.binaries, scratch / case.name)
        out = sample.folder / "out"
        run(conversion(arguments, "convert", sample, out))
        read_into_cache([*sample.files, *targets(out)])
        rates = {"converted": [], "mounted": [], "two readers": []}
        with Mounted(arguments, sample) as mounted:
            check_equal(out, mounted.place)
            of_file, of_mount = targets(out)[0], targets(mounted.place)
            for _ in range(arguments.runs):
                rates["converted"].append(dd(of_file))
                rates["mounted"].append(dd(of_mount[0]))
                rates["two readers"].append(dd(*of_mount[:2]))
        one = rates["mounted"]
        print(f"  {case.title}")
        for name, found in rates.items():
            print(f"    {name:12} {spread([rate / GIB for rate in found])}")
        print(f"    mounted / converted {spread([a / b for a, b in zip(one, rates['converted'])])}")
        print("    two readers / one   "
              f"{spread([a / b for a, b in zip(rates['two readers'], one)])}", flush=True)
        shutil.rmtree(sample.folder)


def measure_ready(arguments, scratch):
    print(f"ready after, seconds, medians of {arguments.runs} (fastest to slowest)")
    for title, case, size, goal in READY:
        sample = bench_cases.make_sample(case, size, arguments.binaries, scratch / case.name)
        read_into_cache(sample.files)
        out = sample.folder / "out"
        seconds = {"mount": [], "plan": [], "convert": []}
        for number in range(arguments.runs + 1):
            with Mounted(arguments, sample) as mounted:
                taken = {"mount": mounted.seconds}
                count = len(targets(mounted.place))
            for verb in ("plan", "convert"):
                taken[verb] = run(conversion(arguments, verb, sample, out, "-q")).seconds
            shutil.rmtree(out)
            for verb, found in taken.items():
                if number > 0:
                    seconds[verb].append(found)
        print(f"  {title} ({count} files), goal {goal:g}")
        for verb, found in seconds.items():
            print(f"    {verb:8} {spread(found, '{:.3f}')}")
        ratios = [a / b for a, b in zip(seconds["mount"], seconds["convert"])]
        print(f"    mount / convert {spread(ratios)}", flush=True)
        shutil.rmtree(sample.folder)


def measure_loads(arguments, scratch):
    """MindSpore's load_checkpoint of a file of 512 MiB."""
    case = next(case for case in bench_cases.CASES if case.name == "rows")
    sample = bench_cases.make_sample(case, arguments.size, arguments.binaries, scratch / "load")
    out = sample.folder / "out"
    seconds = {"converted": [], "mounted": [], "convert": []}
    with Mounted(arguments, sample) as mounted:
        for number in range(arguments.runs + 1):
            taken = {"convert": run(conversion(arguments, "convert", sample, out, "--rank", "0")).seconds}
            file = targets(out)[0]
            found = {}
            for name, path in (("converted", file), ("mounted", targets(mounted.place)[0])):
                read_into_cache([*sample.files, file])
                found[name] = call(arguments, "mindspore", "load_checkpoint", number == 0, path)
                taken[name] = found[name]["seconds"]
            if found["converted"]["digest"] != found["mounted"]["digest"]:
                raise Failure("load_checkpoint: other values from a mounted file")
            for name, value in taken.items():
                if number > 0:
                    seconds[name].append(value)
            size = file.stat().st_size
            shutil.rmtree(out)
    print(f"load_checkpoint of {size / MIB:.0f} MiB by MindSpore, seconds, medians of "
          f"{arguments.runs} (fastest to slowest); goals: 1.6, and less than 1")
    for name, found in seconds.items():
        print(f"  {name:10} {spread(found)}")
    print(f"  mounted / converted {spread([a / b for a, b in zip(seconds['mounted'], seconds['converted'])])}")
    both = [a + b for a, b in zip(seconds["converted"], seconds["convert"])]
    print(f"  mounted / (convert and load) {spread([a / b for a, b in zip(seconds['mounted'], both)])}",
          flush=True)
    shutil.rmtree(sample.folder)


def measure_memory(arguments, scratch):
    print("RssAnon while two readers read all files, MiB; goal: within the limit")
    for case in (case for case in bench_cases.CASES if case.name in ("columns_256b", "tiny")):
        sample = bench_cases.make_sample(case, arguments.size, arguments.binaries, scratch / case.name)
        for limit in ("64M", "256M"):
            most = 0
            with Mounted(arguments, sample, "--memory-limit", limit) as mounted:
                readers = [threading.Thread(target=dd, args=(path,)) for path in targets(mounted.place)]
                for reader in readers:
                    reader.start()
                while any(reader.is_alive() for reader in readers):
                    most = max(most, rss_anon(mounted.process.pid))
                    time.sleep(0.002)
            print(f"  {case.title}, --memory-limit {limit}: {most / MIB:.0f}", flush=True)
        shutil.rmtree(sample.folder)


PARTS = {"reads": measure_reads, "ready": measure_ready, "loads": measure_loads,
         "memory": measure_memory}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binaries", type=pathlib.Path, default=pathlib.Path("build/release/bin"))
    parser.add_argument("--python", type=pathlib.Path, default=pathlib.Path("build/venv/bin/python"),
                        help="an interpreter that has MindSpore")
    parser.add_argument("--package", type=pathlib.Path, default=pathlib.Path("build/release/python"))
    parser.add_argument("--only", choices=PARTS, action="append", help="several times")
    parser.add_argument("--size", type=float, default=1.0, help="of a source, in GiB")
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--scratch", type=pathlib.Path, default=pathlib.Path("build/mount_times"))
    arguments = parser.parse_args()
    arguments.scratch.mkdir(parents=True)
    try:
        for name, measure in PARTS.items():
            if not arguments.only or name in arguments.only:
                measure(arguments, arguments.scratch)
    except Failure as failure:
        sys.exit(f"mount_times.py: {failure}")
    finally:
        shutil.rmtree(arguments.scratch, ignore_errors=True)


if __name__ == "__main__":
    main()
