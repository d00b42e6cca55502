#!/usr/bin/env python3
"""The files of a DCP checkpoint that are opened: its metadata lists the tensors, so that only
reading opens the files of items. System calls are counted with strace."""

import json
import pathlib
import re

import harness

OPENED = re.compile(r'^\d+ +openat\(\S+, "((?:[^"\\]|\\.)*)".* = \d+$', re.MULTILINE)


def opened(options, log, source, *words):
    """Runs the program. Returns its output, and the names of files of `source` that it opens."""
    done = harness.run(harness.strace([options.reshard, *words], "-e", "trace=openat", log=log))
    assert done.returncode == 0, done.stderr.decode()
    paths = [pathlib.Path(path) for path in OPENED.findall(log.read_text())]
    return done.stdout.decode(), {path.name for path in paths if path.parent == source}


def check(options, log, source):
    items = {path.name for path in source.glob("*.distcp") if path.stat().st_size > 0}
    assert len(items) > 1, source
    for more in ((), ("--json",), ("--long",), ("--include", "w*")):
        text, names = opened(options, log, source, "inspect", source, *more)
        assert names == {".metadata"}, f"{source}: inspect {more} opens {names}"
        if "--json" in more:
            files = json.loads(text)["checkpoints"]
            assert {pathlib.Path(file["path"]).name for file in files} == items, source
            assert all(file["parameters"] for file in files), source
    _, names = opened(options, log, source, "digest", source)
    assert names == {".metadata", *items}, f"{source}: digest opens {names}"


def main():
    options = harness.arguments("reshard")
    harness.need_programs("strace")
    with harness.scratch_in_memory() as folder:
        log = pathlib.Path(folder) / "log"
        for case in ("case_000", "case_001"):
            check(options, log, harness.SHARDED_CASES / "dcp" / case / "input")


main()
