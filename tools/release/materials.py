#!/usr/bin/env python3
"""Writes NOTICES.txt and sbom.json (CycloneDX) of a release: the authors of the code in its files,
and the licenses.

Usage: materials.py --env build/release-env --files build/release-files
"""

import argparse
import dataclasses
import json
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Debian's binary packages with code in all of the files, with the license of their sources.
LIBRARIES = {
    "libfmt-dev": "MIT",
    "libxxhash-dev": "BSD-2-Clause",
    "libdeflate-dev": "MIT",
    "zlib1g-dev": "Zlib",
    "libprotobuf-dev": "BSD-3-Clause",
    "libssl-dev": "Apache-2.0",
    "libcli11-dev": "BSD-3-Clause",
    "nlohmann-json3-dev": "MIT",
    "libboost1.74-dev": "BSL-1.0",
    "libstdc++-12-dev": "GPL-3.0-or-later WITH GCC-exception-3.1",
}
# The licenses that Debian's copyright files refer to.
COMMON = ("Apache-2.0", "LGPL-2.1", "GPL-3")
# Longer files have a paragraph for each source file; the text of the license is enough.
LONGEST_TEXT = 1 << 20


@dataclasses.dataclass(frozen=True)
class Component:
    name: str
    version: str
    license: str
    text: pathlib.Path  # the file that has the license
    files: str  # of the release, which hold its code


def packaged(package, identifier, files):
    """The component of a package that is installed here."""
    said = subprocess.run(["dpkg-query", "-W", "-f", "${source:Package} ${source:Version}", package],
                          check=True, capture_output=True, text=True).stdout
    name, version = said.split()
    return Component(name, version, identifier, pathlib.Path("/usr/share/doc", package, "copyright"), files)


def from_pypi(env, name, identifier, license_file):
    folder, = env.glob(f"lib/python3*/site-packages/{name}-*.dist-info")
    version = folder.name.removesuffix(".dist-info").partition("-")[2]
    return Component(name, version, identifier, next(folder.parent.glob(license_file)), "wheels")


def components(env):
    for package, identifier in LIBRARIES.items():
        yield packaged(package, identifier, "wheels and programs")
    yield packaged("libc6-dev", "LGPL-2.1-or-later", "programs")
    yield from_pypi(env, "nanobind", "BSD-3-Clause", "nanobind-*.dist-info/licenses/LICENSE")
    yield from_pypi(env, "ziglang", "MIT", "ziglang/LICENSE")  # its compiler-rt


def under_title(title, text):
    return f"{'=' * 78}\n{title}\n{'=' * 78}\n\n{text}"


def notice(component):
    text = component.text.read_text(encoding="utf-8", errors="replace")
    if len(text) > LONGEST_TEXT:
        paragraph = re.compile(rf"^License: {re.escape(component.license)}\n(?: .*\n)+", re.MULTILINE)
        text = max(paragraph.findall(text), key=len)
    title = f"{component.name} {component.version} ({component.license}), in the {component.files}"
    return under_title(title, text)


def bill_entry(component):
    return {
        "type": "library",
        "name": component.name,
        "version": component.version,
        "licenses": [{"expression": component.license}],
        "properties": [{"name": "reshard:files", "value": component.files}],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("env", "files"):
        parser.add_argument(f"--{name}", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    cmake = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    version = re.search(r"^  VERSION ([0-9.]+)$", cmake, re.MULTILINE)[1]
    found = list(components(arguments.env))

    head = "The files of this release hold code of others, under the licenses below.\n"
    common = [under_title(name, pathlib.Path("/usr/share/common-licenses", name).read_text(encoding="utf-8"))
              for name in COMMON]
    (arguments.files / "NOTICES.txt").write_text("\n".join([head, *map(notice, found), *common]),
                                                 encoding="utf-8")
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": "reshard", "version": version}},
        "components": list(map(bill_entry, found)),
    }
    (arguments.files / "sbom.json").write_text(json.dumps(bill, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
