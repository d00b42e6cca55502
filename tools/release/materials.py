#!/usr/bin/env python3
"""Writes NOTICES.txt and sbom.json of a release: what its files hold of others, and under which license.

Usage: materials.py --libraries build/release-libraries --files build/release-files
"""

import argparse
import hashlib
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOC = pathlib.Path("/usr/share/doc")
# Debian's source packages, built by libraries.sh, and its packages of headers.
SOURCES = ("fmtlib", "xxhash", "libdeflate", "zlib", "protobuf", "openssl")
HEADERS = ("libcli11-dev", "nlohmann-json3-dev", "libboost1.74-dev")


def version():
    text = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    return re.search(r"^  VERSION ([0-9.]+)$", text, re.MULTILINE)[1]


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def source_components(libraries):
    """Yields (name, version, copyright, tarball) of the libraries that were built."""
    for name in SOURCES:
        [described] = (libraries / "sources").glob(f"{name}_*.dsc")
        [tarball] = (libraries / "sources").glob(f"{name}_*.orig.tar.*[!c]")
        text = described.read_text(encoding="utf-8")
        found = re.search(r"^Version: (\S+)$", text, re.MULTILINE)[1]
        folder = next(libraries.glob(f"work-*/{name}"))
        yield name, found, folder / "debian" / "copyright", tarball


def header_components():
    """Yields (name, version, copyright, None) of what is headers alone."""
    status = pathlib.Path("/var/lib/dpkg/status").read_text(encoding="utf-8")
    for name in HEADERS:
        found = re.search(rf"^Package: {name}\n(?:.+\n)*?Version: (\S+)$", status, re.MULTILINE)[1]
        yield name, found, DOC / name / "copyright", None


def zig_components(env):
    """Yields LLVM's C++ library, which zig builds into what it links."""
    [folder] = env.glob("lib/python3*/site-packages/ziglang")
    yield "libc++, libc++abi, libunwind, compiler-rt", "of zig 0.17.1", \
        folder / "lib" / "libcxx" / "LICENSE.TXT", None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--libraries", type=pathlib.Path, required=True)
    parser.add_argument("--files", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    components = [*source_components(arguments.libraries), *header_components(),
                  *zig_components(arguments.libraries.parent / "release-env")]
    notices = ["The files of this release hold code of the libraries below, under these licenses.\n"]
    bill = []
    for name, found, license_file, tarball in components:
        notices.append(f"{'=' * 78}\n{name} {found}\n{'=' * 78}\n\n"
                       + license_file.read_text(encoding="utf-8", errors="replace"))
        entry = {"type": "library", "name": name, "version": found}
        if tarball is not None:
            entry["hashes"] = [{"alg": "SHA-256", "content": sha256(tarball)}]
        bill.append(entry)
    (arguments.files / "NOTICES.txt").write_text("\n".join(notices), encoding="utf-8")
    document = {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
                "metadata": {"component": {"type": "application", "name": "reshard",
                                           "version": version()}},
                "components": bill}
    (arguments.files / "sbom.json").write_text(json.dumps(document, indent=2) + "\n",
                                               encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
