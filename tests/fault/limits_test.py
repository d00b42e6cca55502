#!/usr/bin/env python3
"""Few descriptors, little address space: 4,096 source ranks under `ulimit -n 64`, sources that are
larger than what may be mapped.
"""

import pathlib
import re
import resource
import shutil

import harness

RANKS = 4096
DESCRIPTORS = 64
STAGES = 64
SMALL = ("--hidden", "64", "--ffn", "64", "--vocab", "64", "--no-optimizer", "--layers")
MANY_LAYERS = (*SMALL, str(STAGES))
FEW_LAYERS = (*SMALL, "2")
ADDRESS_SPACE = 80 << 20


def limited(command, which, limit):
    return harness.run(command, preexec_fn=lambda: resource.setrlimit(which, (limit, limit)))


def many_ranks(options, folder):
    """As many files as ranks, of which each holds what no other does; few are open at a time."""
    harness.generate(options.gen, folder / "many", *MANY_LAYERS, "--tp", str(RANKS // STAGES),
                     "--pp", str(STAGES))
    for ranks in (1, 8):
        name = f"to_{ranks}"
        harness.generate(options.gen, folder / name, *MANY_LAYERS, "--tp", str(ranks))
        job = harness.Job(options.reshard, folder / "many", folder / "many" / "strategy",
                          folder / name / "strategy", "--jobs", "4")
        target = folder / f"target_{ranks}"
        done = limited(job.command(target), resource.RLIMIT_NOFILE, DESCRIPTORS)
        assert done.returncode == 0, f"{name}: {done.returncode}: {done.stderr.decode()}"
        for rank in range(ranks):
            written, expected = (next(path.iterdir()).read_bytes() for path in
                                 (target / f"rank_{rank}", folder / name / f"rank_{rank}"))
            assert written == expected, f"{name}: rank {rank}: other bytes than made directly"
    print(f"{RANKS} source ranks converted with {DESCRIPTORS} descriptors")


def fewer_descriptors(options, folder):
    """Every limit from none to enough: the run succeeds, or says what to raise."""
    source = folder / "some"
    harness.generate(options.gen, source, *FEW_LAYERS, "--tp", str(DESCRIPTORS))
    job = harness.Job(options.reshard, source, source / "strategy", None, "--jobs", "1")
    finished = harness.undisturbed(job, folder / "some_undisturbed")
    succeeded = failed = 0
    for limit in range(3, DESCRIPTORS + 1):
        target = folder / "few"
        where = f"ulimit -n {limit}"
        done = limited(job.command(target), resource.RLIMIT_NOFILE, limit)
        if done.returncode == 127:  # the loader had no descriptor
            continue
        harness.check_documented(done, where)
        published = harness.check_nothing_looks_finished(target, finished, {}, where)
        assert published == (done.returncode == 0), where
        succeeded += published
        failed += not published
        if not published:
            assert b"ulimit -n" in done.stderr, f"{where}: {done.stderr.decode()}"
            continue
        shutil.rmtree(target)
    print(f"{failed} limits of descriptors too low, {succeeded} high enough")


def no_room_for_maps(options, folder):
    """Sources of which maps would take more than half of the addresses are read with pread."""
    model = ("--layers", "1", "--hidden", "512", "--ffn", "1408", "--vocab", "16384")
    harness.generate(options.gen, folder / "src", *model, "--tp", "2")
    job = harness.Job(options.reshard, folder / "src", folder / "src" / "strategy", None, "--jobs",
                      "1")
    size = min(path.stat().st_size for path in (folder / "src").glob("rank_*/*"))
    assert size > ADDRESS_SPACE, f"sources of {size} bytes could be mapped"
    finished = harness.undisturbed(job, folder / "mapped")
    for space in (ADDRESS_SPACE, size + ADDRESS_SPACE // 2):
        log = folder / f"log{space}"
        target = folder / f"read{space}"
        command = harness.strace(job.command(target), "--seccomp-bpf", "-e", "trace=mmap,pread64",
                                 log=log)
        at = command.index(options.reshard)
        command[at:at] = ["prlimit", f"--as={space}"]
        done = harness.run(command)
        assert done.returncode == 0, done.stderr.decode()
        harness.check_finished(target, finished, "without maps")
        text = log.read_text()
        maps = re.findall(r"mmap\(NULL, (\d+), PROT_READ, MAP_SHARED", text)
        assert all(int(bytes_) < size for bytes_ in maps), "a source was mapped"
        print(f"no map of {size} bytes under {space} bytes of address space; "
              f"{len(re.findall('pread64', text))} reads took its place")


def main():
    options = harness.arguments("reshard", "gen")
    harness.need_programs("strace", "prlimit")
    with harness.scratch_in_memory() as folder:  # thousands of folders
        many_ranks(options, pathlib.Path(folder))
        fewer_descriptors(options, pathlib.Path(folder))
    with harness.scratch() as folder:
        no_room_for_maps(options, pathlib.Path(folder))


main()
