#!/usr/bin/env python3
"""Conversions out of and into encrypted files, against plain ones and OpenSSL's rate.

The sources lie in memory, as do the targets; all contenders by turns, in one run. The bound of a
contender is the plain conversion's time and what OpenSSL takes for as many bytes with as many
threads (`openssl speed`, which is measured by turns with them).
"""

import argparse
import pathlib
import shutil
import statistics
import subprocess
import sys

from measure import GIB, Failure, run

MATRICES, SIDE = 16, 4096
MODES = {"AES-GCM": "aes-128-gcm", "AES-CBC": "aes-128-cbc", "SM4-CBC": "sm4-cbc"}


def rate(arguments, mode, decrypt):
    """Bytes a second of all threads together."""
    done = subprocess.run(
        ["openssl", "speed", "-multi", str(arguments.jobs), *(["-decrypt"] if decrypt else []),
         "-evp", MODES[mode], "-bytes", "262144", "-seconds", "1"],
        capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1].rstrip("k")) * 1000


def convert(arguments, source, out, scratch, *more):
    shutil.rmtree(out, ignore_errors=True)
    return run([arguments.binaries / "reshard", "convert", source, out, "--src-strategy",
                scratch / "source" / "strategy", "--dst-strategy", scratch / "target" / "strategy",
                "-q", "--jobs", arguments.jobs, *more]).seconds


def measure(arguments, scratch):
    """Prints the seconds of each contender, and their ratio to its bound."""
    shape = ["--matrices", MATRICES, "--rows", int(SIDE * arguments.size), "--columns", SIDE,
             "--dtype", "Float32", "--no-optimizer"]
    run([arguments.binaries / "reshard-gen", scratch / "source", *shape, "--tp", 8])
    run([arguments.binaries / "reshard-gen", scratch / "target", *shape, "--tp", 4,
         "--strategy-only"])
    key = scratch / "key"
    key.write_bytes(b"0123456789abcdef")
    # The same layout again, encrypted.
    for mode in MODES:
        run([arguments.binaries / "reshard", "convert", scratch / "source", scratch / mode,
             "--src-strategy", scratch / "source" / "strategy", "--dst-strategy",
             scratch / "source" / "strategy", "-q", "--encrypt", mode, "--encrypt-key-file", key])
    out = scratch / "out"
    contenders = {"plain": lambda: convert(arguments, scratch / "source", out, scratch)}
    for mode in MODES:
        contenders[f"into {mode}"] = lambda mode=mode: convert(
            arguments, scratch / "source", out, scratch, "--encrypt", mode, "--encrypt-key-file",
            key)
        contenders[f"out of {mode}"] = lambda mode=mode: convert(
            arguments, scratch / mode, out, scratch, "--key-file", key)
    seconds = {name: [] for name in contenders}
    rates = {name: [] for name in contenders}
    for _ in range(arguments.runs):
        for name, once in contenders.items():
            seconds[name].append(once())
            if name != "plain":
                direction, mode = name.rsplit(" ", 1)
                rates[name].append(rate(arguments, mode, direction == "out of"))
    plain = min(seconds["plain"])
    print(f"8 ranks to 4, {arguments.size:g} GiB of Float32, --jobs {arguments.jobs}, median of "
          f"{arguments.runs} runs (fastest), and the fastest by its bound, of OpenSSL's best rate")
    for name, taken in seconds.items():
        bound = plain
        if name != "plain":
            bound += arguments.size * GIB / max(rates[name])
        print(f"  {name:16} {statistics.median(taken):6.3f} s ({min(taken):.3f})   "
              f"{min(taken) / bound:.2f}"
              + (f"   {max(rates[name]) / GIB:.1f} GiB/s" if rates[name] else ""), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binaries", type=pathlib.Path, default=pathlib.Path("build/release/bin"))
    parser.add_argument("--size", type=float, default=1.0, help="of the source, in GiB")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--scratch", type=pathlib.Path, default=pathlib.Path("/dev/shm/encryption"))
    arguments = parser.parse_args()
    needed = 6 * arguments.size * GIB
    if shutil.disk_usage(arguments.scratch.parent).free < needed:
        sys.exit(f"encryption_times.py: {arguments.scratch.parent}: needs {needed / GIB:g} GiB")
    arguments.scratch.mkdir()
    try:
        measure(arguments, arguments.scratch)
    except Failure as failure:
        sys.exit(f"encryption_times.py: {failure}")
    finally:
        shutil.rmtree(arguments.scratch)


if __name__ == "__main__":
    main()
