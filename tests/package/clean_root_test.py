#!/usr/bin/env python3
"""Installs the Debian packages where there is nothing else of reshard.

Usage: clean_root_test.py --release BUILD --root ROOT.tar

BUILD is a build folder of the preset release, ROOT.tar is what `tools/deps.sh clean-root` makes. Needs
root, and the network for the libraries that the package depends on.
"""

import argparse
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

from clean_root import CleanRoot, run

ARGUMENTS = None
SAMPLE = ("--layers", "1", "--hidden", "64", "--ffn", "128", "--vocab", "64", "--tp", "2")
CONVERT = ("convert", "/sample", "/full", "--src-strategy", "/sample/strategy")
# Of lintian's errors and warnings, those that do not fit a package that no Debian archive gets.
NOT_FOR_US = ("initial-upload-closes-no-bugs", "bogus-mail-host",
              "pkg-config-unavailable-for-cross-compilation")


class CleanRootTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="clean-root-", dir=ARGUMENTS.root.parent)
        cls.folder = pathlib.Path(cls.scratch.name)
        run(ARGUMENTS.release / "bin" / "reshard-gen", cls.folder / "sample", *SAMPLE)
        run("cpack", "-G", "DEB", "--config", ARGUMENTS.release / "CPackConfig.cmake", "-B",
            cls.folder / "packages", cwd=ARGUMENTS.release)
        cls.program, = (cls.folder / "packages").glob("reshard_*.deb")
        cls.library, = (cls.folder / "packages").glob("libreshard-dev_*.deb")
        cls.mount, = (cls.folder / "packages").glob("reshard-mount_*.deb")

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def test_the_package_of_the_program(self):
        root = CleanRoot(ARGUMENTS.root, self.folder / "root")
        shutil.copy(self.program, root.folder / "reshard.deb")
        with self.assertRaisesRegex(AssertionError, "exit 127"):
            root.run("reshard", "--version")  # it is clean
        root.install("/reshard.deb")
        root.run("dpkg", "--verify", "reshard")

        shutil.copytree(self.folder / "sample", root.folder / "sample")
        self.assertRegex(root.run("reshard", "--version"), r"^reshard \d+\.\d+\.\d+\n$")
        root.run("reshard", *CONVERT)
        root.run("reshard", "verify", "/full", "--against", "/sample", "--src-strategy",
                 "/sample/strategy")
        self.assertTrue((root.folder / "full" / "rank_0" / "checkpoint_0.ckpt").is_file())

        share = root.folder / "usr" / "share"
        page = run("zcat", share / "man" / "man1" / "reshard.1.gz")
        self.assertIn(".SS reshard convert\n", page)
        for file in ("bash-completion/completions/reshard", "zsh/vendor-completions/_reshard",
                     "fish/vendor_completions.d/reshard.fish"):
            self.assertIn("unmatched", (share / file).read_text())
        completed = root.run("bash", "-c", "source /usr/share/bash-completion/completions/reshard;"
                           " COMP_WORDS=(reshard insp) COMP_CWORD=1; _reshard; echo ${COMPREPLY[*]}")
        self.assertEqual(completed, "inspect\n")
        for file in ("copyright", "changelog.gz", "changelog.Debian.gz"):
            self.assertTrue((share / "doc" / "reshard" / file).is_file(), file)

        root.run("apt-get", "purge", "--yes", "reshard")
        self.assertEqual(list(share.rglob("*reshard*")), [])
        self.assertFalse((root.folder / "usr" / "bin" / "reshard").exists())

    def test_the_package_of_the_library(self):
        files = run("dpkg-deb", "--contents", self.library)
        for file in ("/usr/include/reshard/convert.h", "/libreshard.a", "/reshardConfig.cmake"):
            self.assertIn(file, files)
        depends = run("dpkg-deb", "--field", self.library, "Depends")
        for package in ("libfmt-dev", "libprotobuf-dev", "libxxhash-dev", "libdeflate-dev",
                        "libssl-dev"):
            self.assertIn(package, depends)

    def test_the_package_of_the_mount(self):
        files = run("dpkg-deb", "--contents", self.mount)
        for file in ("/usr/bin/reshard-mount", "/man1/reshard-mount.1.gz"):
            self.assertIn(file, files)
        depends = run("dpkg-deb", "--field", self.mount, "Depends")
        self.assertRegex(depends, r"libfuse3.*\breshard \(= |\breshard \(= .*libfuse3")
        self.assertNotIn("fuse", run("dpkg-deb", "--field", self.program, "Depends"))

        root = CleanRoot(ARGUMENTS.root, self.folder / "mount-root")
        for package in (self.program, self.mount):
            shutil.copy(package, root.folder)
        root.install(f"/{self.program.name}", f"/{self.mount.name}")
        shutil.copytree(self.folder / "sample", root.folder / "sample")
        root.run("reshard", *CONVERT)
        device = root.folder / "dev" / "fuse"
        if not device.exists():
            os.mknod(device, 0o600 | stat.S_IFCHR, os.makedev(10, 229))
        mount = "reshard mount /sample /mnt --src-strategy /sample/strategy --background"
        try:
            os.close(os.open(device, os.O_RDWR))
        except OSError as error:
            print(f"did not run: mount in a clean root: {error}", flush=True)
            return
        root.run("sh", "-c", f"{mount} && cmp /mnt/rank_0/checkpoint_0.ckpt /full/rank_0/checkpoint_0.ckpt"
                             " && reshard unmount /mnt")

    def test_lintian(self):
        done = subprocess.run(["lintian", "--allow-root", self.program, self.library, self.mount],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        found = [line for line in done.stdout.splitlines()
                 if re.match(r"[EW]: ", line) and line.split()[2] not in NOT_FOR_US]
        self.assertEqual(found, [])
        self.assertIn(done.returncode, (0, 2), done.stderr)  # 2: there are errors


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("--release", "--root"):
        parser.add_argument(name, required=True, type=lambda path: pathlib.Path(path).resolve())
    ARGUMENTS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
