#!/usr/bin/env python3
"""The Python package as users get it: the sdist is unpacked and built once, and its wheel installed and
used under every Python from 3.10 on that is found, with NumPy as old as it may be, with that of
MindSpore, and with today's.

Usage: wheel_test.py --pyenv BUILD/pyenv --gen PROGRAM --scratch FOLDER

`--pyenv` is the environment of `tools/deps.sh python`. Needs the network, for what the wheel depends
on. Prints a line for each thing that was tried; the last one says which Pythons there were.
"""

import argparse
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "tests" / "python" / "data" / "examples.txt"
MINORS = range(10, 20)
MOST_WHEEL_BYTES = 8 << 20
# Of manylinux_2_35: Debian 12, where it is built, and Ubuntu 22.04.
NEWEST_SYMBOLS = {"GLIBC": (2, 35), "GLIBCXX": (3, 4, 30)}

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


def build(python, scratch):
    """Returns the wheel that is made of the sdist."""
    make_sdist = f"from scikit_build_core.build import build_sdist; build_sdist({str(scratch)!r})"
    run(python, "-c", make_sdist, cwd=ROOT)
    [sdist] = scratch.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = archive.getnames()
        archive.extractall(scratch / "source")
    assert not [name for name in names if re.match(r"[^/]+/(tests|docs|build)/", name)], names[:5]
    print(f"sdist: {sdist.stat().st_size >> 10} KiB, {len(names)} entries", flush=True)
    [source] = (scratch / "source").iterdir()
    # The programs that build it are those of the environment, as in the dev build.
    path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
    run(python, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "--quiet",
        "--wheel-dir", scratch, source, env=environment(PATH=path))
    [wheel] = scratch.glob("*.whl")
    return wheel


def numbers(version):
    return tuple(int(part) for part in version.split("."))


def check_symbols(binary):
    said = run("objdump", "--dynamic-syms", binary)
    newest = {}
    for kind, most in NEWEST_SYMBOLS.items():
        newest[kind] = max(map(numbers, re.findall(rf"\b{kind}_([0-9.]+)", said)))
        # What is built on a newer system is for newer systems.
        assert newest[kind] <= most or numbers(platform.libc_ver()[1]) > (2, 36), (binary, newest)
    return newest


def check_wheel(wheel, scratch):
    assert "-cp310-abi3-linux_" in wheel.name, wheel.name
    assert wheel.stat().st_size < MOST_WHEEL_BYTES, wheel.stat().st_size
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        [module] = [name for name in names if name.endswith("_reshard.abi3.so")]
        [program] = [name for name in names if name.endswith("/scripts/reshard")]
        symbols = [check_symbols(archive.extract(name, scratch)) for name in (module, program)]
    print(f"newest symbols of module and program: {symbols}", flush=True)
    for needed in ("reshard/py.typed", "reshard/_reshard.pyi", "reshard/mindspore/__init__.py"):
        assert needed in names, needed
    assert not [name for name in names if name.endswith((".h", ".cmake", ".a"))], names
    symbols = run("nm", "--dynamic", "--defined-only", scratch / module).splitlines()
    assert [symbol.split()[-1] for symbol in symbols] == ["PyInit__reshard"], symbols[:20]
    print(f"wheel: {wheel.name}, {wheel.stat().st_size >> 10} KiB", flush=True)


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

    def check(self, gen, samples, *pinned):
        """Installs the wheel beside what is pinned, which stays, and runs the examples."""
        if pinned:
            self.pip(*pinned)
        self.pip(self.wheel)
        folder = samples / f"{self.folder.name}-{len(list(samples.iterdir()))}"
        folder.mkdir()
        for arguments in re.findall(r"^  reshard-gen (.*)$", EXAMPLES.read_text(encoding="utf-8"), re.MULTILINE):
            run(gen, *arguments.split(), cwd=folder)
        numpy = run(self.python, "-c", RUN_EXAMPLES, EXAMPLES, cwd=folder, env=environment()).split()[-1]
        for name in pinned:
            package, _, version = name.partition("==")
            found = run(self.python, "-c", f"import importlib.metadata as m; print(m.version({package!r}))")
            assert found.strip() == version, (name, found)
        said = run(self.folder / "bin" / "reshard", "--version")
        assert said == run(self.python, "-m", "reshard", "--version", env=environment()), said
        print(f"{self.name}, numpy {numpy}: the examples of the specification", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("pyenv", "gen", "scratch"):
        parser.add_argument(f"--{name}", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    scratch = arguments.scratch.absolute()
    shutil.rmtree(scratch, ignore_errors=True)
    (scratch / "samples").mkdir(parents=True)
    gen = arguments.gen.absolute()
    try:
        wheel = build((arguments.pyenv / "bin" / "python").absolute(), scratch)
        check_wheel(wheel, scratch)
        found = interpreters()
        assert found, "no Python from 3.10 on that can make environments"
        for minor, interpreter in found.items():
            installed = Installed(minor, interpreter, wheel, scratch)
            if minor == min(found):
                if minor <= 11:  # of later ones there is no NumPy as old
                    installed.check(gen, scratch / "samples", "numpy==1.23.5", "ml_dtypes==0.4.0")
                if minor <= 12:
                    installed.check(gen, scratch / "samples", "numpy==1.26.4", "ml_dtypes==0.5.4")
                installed.pip("--upgrade", "numpy")
            installed.check(gen, scratch / "samples")
        print("Pythons: " + ", ".join(f"3.{minor}" for minor in found))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    try:
        main()
    except AssertionError as failure:
        sys.exit(f"wheel_test.py: {failure}")
