#!/usr/bin/env python3
"""The files of `tools/release.sh` where there is nothing else of reshard: in each root that fits. With
--pythons, the wheel also by each other Python of this machine, in the root of its release.

Usage: release_test.py --files build/release-files --roots build/roots --gen PROGRAM [--pythons]

There, README's commands and its example in Python are run, and the outcome is verified. Prints a row for
each file and root. Needs root, the network for what wheels depend on, and qemu-user-static for another
processor.
"""

import argparse
import contextlib
import hashlib
import json
import pathlib
import platform
import re
import shlex
import shutil
import sys
import tarfile
import tempfile
import time

from clean_root import CleanRoot, run
from wheel_test import check_wheel, interpreters

ROOT = pathlib.Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
HERE = platform.freedesktop_os_release()["VERSION_CODENAME"]
PROGRAMS = ("reshard", "reshard-gen")
SITE = {"PYTHONPATH": "/site"}
# What pip asks for of the libraries that Pythons of pyenv are linked with, beside those of apt.
PYTHON_LIBRARIES = ("libexpat1", "libffi8", "libssl3", "zlib1g")

README_EXAMPLE = """
import doctest
result = doctest.testfile("/README.md", module_relative=False, optionflags=doctest.ELLIPSIS)
assert result.attempted >= 4 and result.failed == 0, result
"""
# Exceptions of C++, and a thread that asks for the GIL when the interpreter has ended.
RUNTIME_EXAMPLE = """
import threading, time
import reshard
try:
    reshard.open("/none")
    raise SystemExit("a file that is not there was opened")
except reshard.NotFoundError as error:
    assert "/none" in str(error), error
checkpoint = reshard.open("ckpt_8", "ckpt_8/strategy")
begun = threading.Event()
def read():
    while True:
        checkpoint.read(jobs=2, progress=lambda progress: begun.set())
threading.Thread(target=read, daemon=True).start()
assert begun.wait(60)
"""


def readme_commands():
    """README's commands, of which the last one verifies what the others wrote."""
    commands = re.findall(r"^\$ (reshard.*)$", README.read_text(encoding="utf-8"), re.MULTILINE)
    assert commands[-1].startswith("reshard verify "), commands
    return commands


def check_commands(root, programs, **variables):
    """Runs README's commands of the programs that the root has: names to the words that start them."""
    for command in readme_commands():
        program, *arguments = shlex.split(command)
        if program in programs:
            root.run(*programs[program], *arguments, **variables)


def check_python(root, python, **variables):
    """Runs README's example, and one of what is the runtime's, after check_commands."""
    shutil.copy(README, root.folder / "README.md")
    for code in (README_EXAMPLE, *[RUNTIME_EXAMPLE] * 3):
        root.run(python, "-c", code, **variables)


def check_program(root, program, gen):
    """The program alone, which needs no library; reshard-gen is on this machine."""
    headers = run("readelf", "--wide", "--program-headers", "--dynamic", program)
    assert "INTERP" not in headers and "NEEDED" not in headers, headers
    shutil.copy(program, root.folder / "usr" / "bin" / "reshard")
    for command in readme_commands():
        if command.startswith("reshard-gen "):
            run(gen, *shlex.split(command)[1:], cwd=root.folder)
    check_commands(root, {"reshard": ["/usr/bin/reshard"]})


def fetch(pip, machine, minor, wheel, *arguments):
    """pip for a Python and a processor that may be others than those of this machine."""
    platforms = [f"--platform=manylinux{name}_{machine}" for name in
                 ("_2_28", "_2_27", "_2_26", "_2_17", "2014")]
    run(*pip, "--quiet", "--disable-pip-version-check", "--only-binary=:all:",
        f"--python-version=3.{minor}", "--implementation=cp", f"--abi=cp3{minor}", "--abi=abi3",
        "--abi=none", *platforms, *arguments, wheel)


def check_wheel_in(root, wheel, machine, minor, python):
    """Installs the wheel and what it depends on for a Python of the root, and uses it."""
    if root.emulator:
        # pip would start other programs, which are not emulated.
        fetch([sys.executable, "-m", "pip", "install"], machine, minor, wheel, "--target",
              root.folder / "site")
        check_commands(root, {name: [python, f"/site/bin/{name}"] for name in PROGRAMS}, **SITE)
        check_python(root, python, **SITE)
        return
    fetch([sys.executable, "-m", "pip", "download"], machine, minor, wheel, "--dest",
          root.folder / "wheels")
    root.run(python, "-m", "venv", "/venv")
    root.run("/venv/bin/pip", "install", "--quiet", "--no-index", "--find-links=/wheels", "reshard")
    check_commands(root, {name: [f"/venv/bin/{name}"] for name in PROGRAMS})
    check_python(root, "/venv/bin/python")
    root.run("/venv/bin/python", "-m", "reshard", "--version")
    root.run("/venv/bin/python", "-m", "reshard.gen", "--help")


def copy_python(interpreter, root):
    """Copies a Python of pyenv to where it lies here, without what was installed into it."""
    prefix = pathlib.Path(interpreter).parent.parent
    skipped = shutil.ignore_patterns("site-packages", "test", "__pycache__", "*.a")
    shutil.copytree(prefix, root.folder / prefix.relative_to("/"), symlinks=True, ignore=skipped)


def check_materials(files):
    """Checksums, what the sources hold, the notices and the bill of materials."""
    for line in (files / "SHA256SUMS").read_text(encoding="utf-8").splitlines():
        digest, name = line.split(maxsplit=1)
        assert hashlib.sha256((files / name).read_bytes()).hexdigest() == digest, name
    sources, = files.glob("reshard-*.tar.gz")
    with tarfile.open(sources) as archive:
        others = [name for name in archive.getnames() if re.match(r"[^/]+/(build|docs|tests)/", name)]
    assert not others, others[:5]
    notices = (files / "NOTICES.txt").read_text(encoding="utf-8")
    bill = json.loads((files / "sbom.json").read_text(encoding="utf-8"))
    names = [component["name"] for component in bill["components"]]
    for name in ("fmtlib", "xxhash", "libdeflate", "zlib", "protobuf", "openssl"):
        assert name in names and f"\n{name} " in notices, name


class Rows:
    """Prints what was tried: root, file, what was run, seconds."""

    def __init__(self):
        self.start = time.monotonic()

    def add(self, *columns):
        print(" | ".join((*columns, f"{time.monotonic() - self.start:.0f} s")), flush=True)
        self.start = time.monotonic()


def check_files_in(archive, arguments, rows):
    """All that fits the root, each in one of its own."""
    release, _, architecture = archive.stem.rpartition("-")
    machine = MACHINES[architecture]
    emulator = None if machine == platform.machine() else f"/usr/bin/qemu-{machine}-static"

    @contextlib.contextmanager
    def clean_root():
        with tempfile.TemporaryDirectory(prefix="release-", dir=archive.parent) as folder:
            yield CleanRoot(archive, pathlib.Path(folder, "root"), emulator)

    for program in arguments.files.glob(f"reshard-linux-{machine}"):
        with clean_root() as root:
            check_program(root, program, arguments.gen)
        rows.add(archive.stem, program.name, "README's commands, verify")
    for wheel in arguments.files.glob(f"*_{machine}.whl"):
        with clean_root() as root:
            if not root.emulator:
                root.install("python3-venv")
            own = int(root.run("/usr/bin/python3", "-c", "import sys; print(sys.version_info[1])"))
            check_wheel_in(root, wheel, machine, own, "/usr/bin/python3")
        rows.add(archive.stem, wheel.name, f"Python 3.{own}: README's commands and example, verify")
        if not arguments.pythons or (release, machine) != (HERE, platform.machine()):
            continue
        for minor, interpreter in interpreters().items():
            if minor == own or interpreter.startswith("/usr/"):
                continue
            with clean_root() as root:
                root.install(*PYTHON_LIBRARIES)
                copy_python(interpreter, root)
                check_wheel_in(root, wheel, machine, minor, interpreter)
            rows.add(archive.stem, wheel.name, f"Python 3.{minor}: README's commands and example, verify")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("files", "roots", "gen"):
        parser.add_argument(f"--{name}", type=lambda text: pathlib.Path(text).resolve(), required=True)
    parser.add_argument("--pythons", action="store_true")
    arguments = parser.parse_args()
    rows = Rows()
    check_materials(arguments.files)
    for wheel in sorted(arguments.files.glob("*.whl")):
        with tempfile.TemporaryDirectory() as scratch:
            check_wheel(wheel, pathlib.Path(scratch))
        rows.add("none", wheel.name, "what it asks of the system")
    for archive in sorted(arguments.roots.glob("*.tar")):
        check_files_in(archive, arguments, rows)


if __name__ == "__main__":
    main()
