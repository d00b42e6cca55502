#!/usr/bin/env python3
"""Runs the command line against transcripts of what it prints.

Usage: run_cli_tests.py --reshard BIN --gen BIN [--bless] [NAME...]

A transcript (transcripts/NAME.txt) is a list of shell commands with what came of each:

    $ COMMAND      a line for bash, run in the transcript's scratch folder; $DATA is tests/golden/data
    > TEXT         a line of standard output; a JSON document is parsed and laid out anew
    ! TEXT         a line of standard error
    = N            the exit code, when it is not 0

Lines that begin with # and empty lines are for the reader. What differs from run to run is replaced:
paths, times, rates, memory, free space. --bless writes what came out into the transcripts; read the
difference before committing it.
"""

import argparse
import difflib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
DATA = HERE.parent / "golden" / "data"
WIDEST_JSON_LINE = 96
VARYING_JSON = {"seconds", "memory_bytes", "memory_limit", "memory_planned", "memory_peak", "anonymous_peak", "io",
                "space_free", "process"}
VARYING_TEXT = [
    (re.compile(r"in [\d.:]+( s)? \([\d.]+ \w+/s\)"), "in <TIME> (<RATE>)"),
    (re.compile(r"planned in [\d.:]+( s)?"), "planned in <TIME>"),
    (re.compile(r"about [\d.]+ \w+ of at most [\d.]+ \w+$"), "about <MEMORY>"),
    (re.compile(r"memory: [\d.]+ \w+ planned, [\d.]+ \w+ used; sources .*, targets .*$"),
     "memory: <MEMORY>"),
    (re.compile(r"[\d.]+ \w+ free"), "<SPACE> free"),
    (re.compile(r"process \d+ on [\w.-]+"), "<PROCESS>"),
    # A manifest has times and inodes of the sources.
    (re.compile(r'^([<>]   "digest": )"[0-9a-f]{32}"$'), r'\1"<SEAL>"'),
    (re.compile(r'byte \d+: "digest": expected [0-9a-f]{32} (.*), found "[0-9a-f]{32}"'),
     r'byte <N>: "digest": expected <SEAL> \1, found "<SEAL>"'),
    (re.compile(r"but [\d.]+ \w+ are free; free [\d.]+ \w+ more"), "but <SPACE> are free; free <SPACE> more"),
]


def lay_out(value, indent=""):
    """JSON text, with what fits on a line on one line."""
    line = json.dumps(value, ensure_ascii=True)
    if len(indent) + len(line) <= WIDEST_JSON_LINE or not isinstance(value, (dict, list)) or not value:
        return line
    inner = indent + "  "
    if isinstance(value, dict):
        parts = [f"{json.dumps(key)}: {lay_out(item, inner)}" for key, item in value.items()]
    else:
        parts = [lay_out(item, inner) for item in value]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return f"{opening}\n{inner}" + f",\n{inner}".join(parts) + f"\n{indent}{closing}"


def hide_varying(value):
    if isinstance(value, dict):
        return {
            key: f"<{key.upper()}>" if key in VARYING_JSON else hide_varying(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [hide_varying(item) for item in value]
    return value


def normalize(text, scratch):
    lines = text.replace(str(scratch), "<TMP>").replace(str(DATA), "<DATA>").splitlines()
    for pattern, replacement in VARYING_TEXT:
        lines = [pattern.sub(replacement, line) for line in lines]
    return lines


def outcome(command, environment, scratch):
    """Runs `command`; returns the lines that a transcript has for what came of it."""
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"],
        cwd=scratch, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=120,
    )
    # Bytes that are no UTF-8 or that a terminal would obey have to show in a transcript.
    out, err = (stream.decode("utf-8", "backslashreplace") for stream in (done.stdout, done.stderr))
    if out.startswith('{"schema_version"'):
        out = lay_out(hide_varying(json.loads(out)))
    lines = [f"> {line}".rstrip() for line in normalize(out, scratch)]
    lines += [f"! {line}".rstrip() for line in normalize(err, scratch)]
    if done.returncode:
        lines.append(f"= {done.returncode}")
    return [line.encode("unicode_escape").decode() if re.search(r"[\x00-\x1f\x7f-\x9f]", line) else line
            for line in lines]


def play(transcript, environment):
    """Returns the transcript as it came out."""
    lines = []
    with tempfile.TemporaryDirectory(prefix="reshard-cli-") as folder:
        for line in transcript.splitlines():
            if line.startswith("$ "):
                lines.append(line)
                lines += outcome(line[2:], environment, pathlib.Path(folder))
            elif not line.startswith((">", "!", "=")):
                lines.append(line)
    return "\n".join(lines) + "\n"


def environment_for(programs):
    environment = {
        name: os.environ[name] for name in ("ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS", "TMPDIR")
        if name in os.environ
    }
    folders = [str(pathlib.Path(program).resolve().parent) for program in programs]
    environment["PATH"] = os.pathsep.join([*folders, os.environ["PATH"]])
    environment["DATA"] = str(DATA)
    environment["LC_ALL"] = "C"
    return environment


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reshard", required=True)
    parser.add_argument("--gen", required=True)
    parser.add_argument("--bless", action="store_true")
    parser.add_argument("names", nargs="*", metavar="NAME")
    arguments = parser.parse_args()

    environment = environment_for([arguments.reshard, arguments.gen])
    files = sorted((HERE / "transcripts").glob("*.txt"))
    if arguments.names:
        files = [file for file in files if file.stem in arguments.names]
    failed = 0
    for file in files:
        expected = file.read_text()
        found = play(expected, environment)
        if found == expected:
            continue
        if arguments.bless:
            file.write_text(found)
            print(f"blessed {file.stem}")
            continue
        failed += 1
        sys.stdout.writelines(difflib.unified_diff(
            expected.splitlines(True), found.splitlines(True), f"{file.stem}: expected", "found"))
    print(f"{len(files) - failed} of {len(files)} transcripts as expected")
    return 1 if failed or not files else 0


if __name__ == "__main__":
    sys.exit(main())
