#!/usr/bin/env python3
"""The Python package as users get it: a wheel of `tools/release.sh`, looked at, then installed and used
under every Python from 3.10 on that is found, with NumPy as old as it may be, with that of MindSpore, and
with today's. By the oldest Python `tests/python/interpreter_test.py`, too: the module has a C++ library of
its own, unlike the one that the other tests of Python import.

Usage: wheel_test.py --wheel WHEEL --scratch FOLDER

Needs the network, for what the wheel depends on. Prints a line for each thing that was tried; the last one
says which Pythons there were.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "tests" / "python" / "data" / "examples.txt"
INTERPRETER_TEST = ROOT / "tests" / "python" / "interpreter_test.py"
MINORS = range(10, 20)
MOST_WHEEL_BYTES = 8 << 20
# What the module may ask the system for: libraries of glibc, of that version or older, and what glibc and
# NumPy themselves need.
LIBRARIES = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "ld-linux-x86-64.so.2",
             "ld-linux-aarch64.so.1", "libgcc_s.so.1"}
NEWEST_GLIBC = (2, 28)

RUN_EXAMPLES = """
import doctest, importlib.metadata, sys
import reshard
assert importlib.metadata.version("reshard") == reshard.__version__, reshard.__version__
heavy = [name for name in ("ml_dtypes", "torch", "mindspore", "tqdm") if name in sys.modules]
assert not heavy, heavy
result = doctest.testfile(sys.argv[1], module_relative=False, optionflags=doctest.ELLIPSIS)
assert result.attempted > 40 and result.failed == 0, result
import numpy
print(numpy.__version__)
"""


def run(*command, **more):
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, **more)
    if done.returncode != 0:
        raise AssertionError(f"exit {done.returncode}: {command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    return done.stdout


def environment(**more):
    """That of this process without what points Python somewhere."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return inherited | more


def interpreters():
    """The paths of Pythons that can make environments, by minor version; those of pyenv, too."""
    found = {}
    tries = [shutil.which(name) for name in [*(f"python3.{minor}" for minor in MINORS), "python3"]]
    for path in [path for path in tries if path]:
        folder = pathlib.Path(path).parent
        if folder.name == "shims":  # pyenv's, which stand for one version at a time
            tries += sorted(folder.parent.glob("versions/3.*/bin/python3"))
    code = ("import sys, json, ensurepip, venv;"
            "print(json.dumps([*sys.version_info[:2], sys.executable]))")
    for path in dict.fromkeys(path for path in tries if path):
        done = subprocess.run([path, "-c", code], capture_output=True, text=True, check=False,
                              env=environment())
        if done.returncode == 0:
            major, minor, executable = json.loads(done.stdout)
            if major == 3 and minor in MINORS:
                found.setdefault(minor, executable)
    return dict(sorted(found.items()))


def check_wheel(wheel, scratch):
    """What the wheel holds, and what its module needs of the system."""
    assert re.search(r"-cp310-abi3-manylinux_2_28_\w+\.whl$", wheel.name), wheel.name
    assert wheel.stat().st_size < MOST_WHEEL_BYTES, wheel.stat().st_size
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        [module] = [name for name in names if name.endswith(".so")]
        module = archive.extract(module, scratch)
    for name in ("reshard/py.typed", "reshard/_reshard.pyi", "reshard/mindspore/__init__.py"):
        assert name in names, name
    scripts = {name.rpartition("/")[2] for name in names if "/scripts/" in name}
    assert scripts == {"reshard", "reshard-gen"}, scripts
    assert not [name for name in names if name.endswith((".h", ".cmake", ".a"))], names
    needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", run("readelf", "--dynamic", "--wide", module)))
    assert "libc.so.6" in needed and needed <= LIBRARIES, needed
    symbols = run("readelf", "--dyn-syms", "--wide", module)
    versions = {tuple(map(int, found.split("."))) for found in re.findall(r"@GLIBC_([0-9.]+)", symbols)}
    assert max(versions) <= NEWEST_GLIBC, versions
    # A function that no library has would be missed when it is called, only.
    lost = re.findall(r"GLOBAL +DEFAULT +UND +(?!_?Py)([^@\s]+)\n", symbols)
    assert not lost, lost
    exported = re.findall(r"(?:GLOBAL|WEAK) +DEFAULT +[0-9]+ (\S+)", symbols)
    assert exported == ["PyInit__reshard"], exported[:20]
    newest = ".".join(map(str, max(versions)))
    print(f"{wheel.name}: {wheel.stat().st_size >> 10} KiB, needs glibc {newest}", flush=True)


class Installed:
    """An environment with the wheel."""

    def __init__(self, minor, interpreter, wheel, scratch):
        self.name = f"Python 3.{minor}"
        self.folder = scratch / f"venv-3.{minor}"
        run(interpreter, "-m", "venv", self.folder, env=environment())
        self.python = self.folder / "bin" / "python"
        self.wheel = wheel

    def pip(self, *arguments):
        run(self.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
            "--only-binary", ":all:", *arguments, env=environment())

    def check(self, samples, *pinned):
        """Installs the wheel beside what is pinned, which stays, and runs the examples."""
        if pinned:
            self.pip(*pinned)
        self.pip(self.wheel)
        folder = samples / f"{self.folder.name}-{len(list(samples.iterdir()))}"
        folder.mkdir()
        for arguments in re.findall(r"^  reshard-gen (.*)$", EXAMPLES.read_text(encoding="utf-8"), re.MULTILINE):
            run(self.folder / "bin" / "reshard-gen", *arguments.split(), cwd=folder)
        numpy = run(self.python, "-c", RUN_EXAMPLES, EXAMPLES, cwd=folder, env=environment()).split()[-1]
        for name in pinned:
            package, _, version = name.partition("==")
            found = run(self.python, "-c", f"import importlib.metadata as m; print(m.version({package!r}))")
            assert found.strip() == version, (name, found)
        said = run(self.folder / "bin" / "reshard", "--version")
        assert said == run(self.python, "-m", "reshard", "--version", env=environment()), said
        print(f"{self.name}, numpy {numpy}: the examples of the specification", flush=True)

    def check_interpreter(self):
        """How the interpreter ends and forks around calls of the wheel's module."""
        self.pip("pytest")
        run(self.python, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", INTERPRETER_TEST,
            env=environment(RESHARD_BIN=str(self.folder / "bin")), cwd=self.folder)
        print(f"{self.name}: {INTERPRETER_TEST.name}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("wheel", "scratch"):
        parser.add_argument(f"--{name}", type=lambda text: pathlib.Path(text).absolute(), required=True)
    arguments = parser.parse_args()
    scratch, wheel = arguments.scratch, arguments.wheel
    shutil.rmtree(scratch, ignore_errors=True)
    samples = scratch / "samples"
    samples.mkdir(parents=True)
    try:
        check_wheel(wheel, scratch)
        found = interpreters()
        assert found, "no Python from 3.10 on that can make environments"
        for minor, interpreter in found.items():
            installed = Installed(minor, interpreter, wheel, scratch)
            if minor == min(found):
                if minor <= 11:  # of later ones there is no NumPy as old
                    installed.check(samples, "numpy==1.23.5", "ml_dtypes==0.4.0")
                if minor <= 12:
                    installed.check(samples, "numpy==1.26.4", "ml_dtypes==0.5.4")
                installed.check_interpreter()
                installed.pip("--upgrade", "numpy")
            installed.check(samples)
        print("Pythons: " + ", ".join(f"3.{minor}" for minor in found))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    try:
        main()
    except AssertionError as failure:
        sys.exit(f"wheel_test.py: {failure}")
