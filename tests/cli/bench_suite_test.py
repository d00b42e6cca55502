#!/usr/bin/env python3
"""Runs bench/suite.py on tiny samples: that it runs, that all contenders write the same bytes (it
fails by itself when they do not), and what is in its JSON and its tables. Never looks at times.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

SUITE = pathlib.Path(__file__).resolve().parents[2] / "bench" / "suite.py"
CASES = ["rows", "columns_256b", "pipeline_merge", "full_to_8", "8_to_full", "tiny",
         "ckpt_to_unified", "huggingface_to_ckpt"]
CONTENDERS = ["reshard", "reshard, 64 MiB", "map", "cached:2", "cached:4", "direct:2", "direct:4",
              "cp -r, sync"]
FIELDS = ["bytes", "seconds", "cpu_seconds", "cpu_seconds_per_gib", "rss_anon_bytes",
          "source_cache_bytes", "target_cache_bytes"]


def suite(*options):
    command = [sys.executable, SUITE, *options]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\nended with {done.returncode}:\n{done.stderr}")
    return done.stdout


def check(holds, what):
    if not holds:
        sys.exit(f"failed: {what}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--reshard", required=True, type=pathlib.Path)
    parser.add_argument("--gen", type=pathlib.Path)
    arguments = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        found = pathlib.Path(folder) / "found.json"
        chosen = [option for name in (*CASES, "jobs_one_file") for option in ("--case", name)]
        printed = suite("--bin", arguments.reshard.parent, "--work", folder, "--memory", folder,
                        "--size", "0.002", "--runs", "1", "--jobs-runs", "1", "--cache", "warm",
                        "--json", found, *chosen)
        results = json.loads(found.read_text())
        check([case["name"] for case in results["cases"]] == CASES, "cases of the JSON")
        for case in results["cases"]:
            check(case["read_bytes"] > 0 and case["written_bytes"] > 0, f"{case['name']}: bytes")
            contenders = case["modes"]["warm"]
            found_names = [name for name in contenders if name != "ring_direct:4"]  # not everywhere
            check(found_names == CONTENDERS, f"{case['name']}: {list(contenders)}")
            for name, figures in contenders.items():
                check(list(figures) == FIELDS, f"{case['name']}, {name}: {list(figures)}")
                check(len(figures["seconds"]) == 1, f"{case['name']}, {name}: counted runs")
        jobs = results["jobs_cases"][0]["contenders"]
        check(list(jobs) == ["--jobs 1", "--jobs 2"], f"contenders of --jobs: {list(jobs)}")
        for line in ("row cut, warm", "direct:4", "10,000 tiny parameters", "in memory"):
            check(line in printed, f"the tables say nothing of {line}")
        check(suite("--table", found) == printed, "--table prints what the run printed")
        doubled = suite("--table", found, found)
        check(doubled.count("row cut, warm") == printed.count("row cut, warm"),
              "a case of two runs stands once in the tables")
        left = [path.name for path in pathlib.Path(folder).iterdir()]
        check(left == ["found.json"], f"left behind: {left}")


if __name__ == "__main__":
    main()
