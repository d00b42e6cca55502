#!/usr/bin/env python3
"""Sources on a FUSE file system that takes 5 ms for each read, whatever its size.

The files are read, not mapped: contents in large requests, many at a time, and no byte of them
twice. What counts is what the file system is asked for; a busy machine may take any time for it.
"""

import pathlib
import re

import harness
from unreadable_test import maps_of_files, mounted

MILLISECONDS = 5
MODEL = ("--layers", "1", "--hidden", "1024", "--ffn", "2048", "--vocab", "2048", "--dtype",
         "Float32", "--no-optimizer")
REQUEST = re.compile(r"^(.+) (\d+) (\d+) (\d+)$", re.MULTILINE)

# After so many milliseconds without another request, all are answered. Who asks side by side does so
# within a few, but for a machine with much else to do: hence more rounds than it ought to take.
ROUND = 50
MOST_ROUNDS = 24
MOST_DIGEST_ROUNDS = 84

# The most that is asked for at a time to read headers of this model; contents come in larger
# requests, but for a few.
HEADERS = 256 << 10


def overlapping(requests):
    """The bytes of (path, offset, size, busy) that were asked for before."""
    twice = 0
    end_of = {}
    for path, offset, size, _ in sorted(requests):
        end = end_of.get(path, 0)
        twice += max(0, min(end, offset + size) - offset)
        end_of[path] = max(end, offset + size)
    return twice


def test(options, folder, cut):
    source = folder / f"{cut}_4"
    harness.generate(options.gen, source, *MODEL, "--tp", "4", "--cut", cut)
    harness.generate(options.gen, folder / f"{cut}_2", *MODEL, "--tp", "2", "--cut", cut,
                     "--strategy-only")
    strategies = [folder / f"{cut}_{n}" / "strategy" / "strategy_0.ckpt" for n in (4, 2)]
    job = harness.Job(options.reshard, source, *strategies)
    finished = harness.undisturbed(job, folder / f"{cut}_undisturbed")
    place = folder / "src"
    log = folder / f"{cut}_requests"
    job.source = place
    target = folder / f"{cut}_target"
    with mounted(options.fault_fs, source, place, range(0), str(MILLISECONDS), str(log)):
        assert maps_of_files(job.command(target), folder / "maps") == 0, "maps of files on FUSE"
    harness.check_finished(target, finished, "slow FUSE")
    requests = [(path, int(offset), int(size), int(busy))
                for path, offset, size, busy in REQUEST.findall(log.read_text())]
    held = sum(path.stat().st_size for path in source.rglob("*.ckpt"))
    contents = [request for request in requests if request[2] > HEADERS]
    asked = sum(size for _, _, size, _ in requests)
    mean = sum(size for _, _, size, _ in contents) // len(contents)
    most = max(busy for _, _, _, busy in contents)
    print(f"{cut}: {len(requests)} requests, {len(contents)} of them for contents, of {mean >> 10} "
          f"KiB on average, up to {most} at a time, for {asked / held:.2f} times the bytes there are")
    # Through the page cache, the kernel asks FUSE for 128 KiB at most.
    assert mean >= 512 << 10, "small requests"
    assert most >= 8, "one request waits for the other"
    assert sum(size for _, _, size, _ in contents) >= 0.8 * held, "small requests"
    assert overlapping(contents) == 0, "contents are read more than once"
    assert asked <= 1.2 * held, "bytes are read more than once"


def test_headers(options, folder):
    """Headers that lie closely are read in blocks, as format/mindspore_checkpoint/checkpoint_reader.h
    states: a file of 10 MiB takes 15 requests, four of them at most 64."""
    source = folder / "small_4"
    small = ("--matrices", "10000", "--rows", "32", "--columns", "32", "--dtype", "Float32",
             "--no-optimizer", "--cut", "rows")
    harness.generate(options.gen, source, *small, "--tp", "4")
    place = folder / "src"
    log = folder / "small_requests"
    files = sorted(path.relative_to(source) for path in source.rglob("rank_*/*.ckpt"))
    assert len(files) == 4
    with mounted(options.fault_fs, source, place, range(0), str(MILLISECONDS), str(log)):
        for path in files:
            here, there = (harness.run([options.reshard, "inspect", "--json", path], cwd=root)
                           for root in (source, place))
            assert there.returncode == 0 and there.stdout == here.stdout, there.stderr
    count = len(REQUEST.findall(log.read_text()))
    print(f"headers of 10,000 parameters in {len(files)} files: {count} requests")
    assert count <= 64, "headers that lie closely are not read in blocks"


def check_rounds(what, log, most):
    """Checks that the server whose requests `log` has answered in `most` rounds."""
    requests = REQUEST.findall(log.read_text())
    rounds = int(requests[-1][3]) + 1
    print(f"{what}: {len(requests)} requests in {rounds} rounds")
    assert rounds <= most, "one request waits for the other"


def test_rounds(options, folder):
    """How often a conversion waits for an answer before it asks on: once or twice for headers, for
    the sample of replicas and where there is no room for more windows, whatever there is to read."""
    source = folder / "rounds_4"
    model = ("--matrices", "12", "--rows", "1024", "--columns", "1024", "--dtype", "Float32",
             "--no-optimizer", "--cut", "rows")
    harness.generate(options.gen, source, *model, "--tp", "2", "--dp", "2")
    harness.generate(options.gen, folder / "rounds_2", *model, "--tp", "1", "--dp", "2",
                     "--strategy-only")
    strategies = [folder / f"rounds_{n}" / "strategy" / "strategy_0.ckpt" for n in (4, 2)]
    job = harness.Job(options.reshard, source, *strategies)
    finished = harness.undisturbed(job, folder / "rounds_undisturbed")
    place = folder / "src"
    log = folder / "rounds"
    job.source = place
    target = folder / "rounds_target"
    with mounted(options.fault_fs, source, place, range(0), str(ROUND), str(log), "rounds"):
        done = harness.run(job.command(target))
        assert done.returncode == 0, done.stderr
    harness.check_finished(target, finished, "FUSE that answers in rounds")
    check_rounds("conversion", log, MOST_ROUNDS)


def test_digest_rounds(options, folder):
    """The same of a digest: files are indexed side by side, and several parameters that lie one
    behind the other asked for at a time."""
    source = folder / "digest_8"
    harness.generate(options.gen, source, "--matrices", "48", "--rows", "1024", "--columns", "1024",
                     "--dtype", "Float32", "--no-optimizer", "--cut", "rows", "--tp", "4",
                     "--dp", "2")
    command = [options.reshard, "digest", ".", "--strategy", source / "strategy", "--jobs", "2"]
    here = harness.run(command, cwd=source)
    place = folder / "src"
    log = folder / "digest_rounds"
    with mounted(options.fault_fs, source, place, range(0), str(ROUND), str(log), "rounds"):
        there = harness.run(command, cwd=place)
    assert there.returncode == 0 and there.stdout == here.stdout, there.stderr
    check_rounds("digest", log, MOST_DIGEST_ROUNDS)


def main():
    options = harness.arguments("reshard", "gen", "fault_fs")
    if harness.can_mount_fuse("slow sources", options.fault_fs):
        with harness.scratch_in_memory() as folder:
            for cut in ("rows", "columns"):
                test(options, pathlib.Path(folder), cut)
            test_headers(options, pathlib.Path(folder))
            test_rounds(options, pathlib.Path(folder))
            test_digest_rounds(options, pathlib.Path(folder))


if __name__ == "__main__":
    main()
