#!/usr/bin/env python3
"""Installs the Debian package, and runs the static program, where there is nothing else of reshard.

Usage: clean_root_test.py --release BUILD --root ROOT.tar [--static BUILD]

BUILD are build folders of the presets release and static, ROOT.tar is what `tools/deps.sh clean-root`
makes. Needs root, and the network for the libraries that the package depends on.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ARGUMENTS = None
SAMPLE = ("--layers", "1", "--hidden", "64", "--ffn", "128", "--vocab", "64", "--tp", "2")
CONVERT = ("convert", "/sample", "/full", "--src-strategy", "/sample/strategy")
# Of lintian's errors and warnings, those that do not fit a package that no Debian archive gets.
NOT_FOR_US = ("initial-upload-closes-no-bugs", "bogus-mail-host",
              "pkg-config-unavailable-for-cross-compilation")


def run(*command, **more):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=300, **more)
    if done.returncode != 0:
        raise AssertionError(f"exit {done.returncode}: {command}\n{done.stdout}{done.stderr}")
    return done.stdout


def run_in(root, *command):
    """Runs a command in the root, with /proc there and nothing left behind."""
    (root / "proc").mkdir(exist_ok=True)
    return run("unshare", "--mount", "--pid", "--fork", f"--mount-proc={root}/proc",
               "chroot", root, "/usr/bin/env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
               "DEBIAN_FRONTEND=noninteractive", *command)


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

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def check_program(self, root, run_program):
        """Converts and verifies a sample in the root."""
        shutil.copytree(self.folder / "sample", root / "sample")
        self.assertRegex(run_program("--version"), r"^reshard \d+\.\d+\.\d+\n$")
        run_program(*CONVERT)
        run_program("verify", "/full", "--against", "/sample", "--src-strategy", "/sample/strategy")
        self.assertTrue((root / "full" / "rank_0" / "checkpoint_0.ckpt").is_file())

    def test_the_package_of_the_program(self):
        root = self.folder / "root"
        root.mkdir()
        run("tar", "--extract", "--file", ARGUMENTS.root, "--directory", root)
        # Packages come from where this machine gets them.
        shutil.copy("/etc/resolv.conf", root / "etc" / "resolv.conf")
        shutil.copytree("/etc/apt/apt.conf.d", root / "etc" / "apt" / "apt.conf.d",
                        dirs_exist_ok=True)
        certificates = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")
        if certificates.exists():
            shutil.copy(certificates, root / certificates.relative_to("/"))
        shutil.copy(self.program, root / "reshard.deb")
        with self.assertRaisesRegex(AssertionError, "exit 127"):
            run_in(root, "reshard", "--version")  # it is clean
        run_in(root, "apt-get", "update")
        run_in(root, "apt-get", "install", "--yes", "--no-install-recommends", "/reshard.deb")
        run_in(root, "dpkg", "--verify", "reshard")

        self.check_program(root, lambda *arguments: run_in(root, "reshard", *arguments))
        share = root / "usr" / "share"
        page = run("zcat", share / "man" / "man1" / "reshard.1.gz")
        self.assertIn(".SS reshard convert\n", page)
        for file in ("bash-completion/completions/reshard", "zsh/vendor-completions/_reshard",
                     "fish/vendor_completions.d/reshard.fish"):
            self.assertIn("unmatched", (share / file).read_text())
        completed = run_in(root, "bash", "-c", "source /usr/share/bash-completion/completions/reshard;"
                           " COMP_WORDS=(reshard insp) COMP_CWORD=1; _reshard; echo ${COMPREPLY[*]}")
        self.assertEqual(completed, "inspect\n")
        for file in ("copyright", "changelog.gz", "changelog.Debian.gz"):
            self.assertTrue((share / "doc" / "reshard" / file).is_file(), file)

        run_in(root, "apt-get", "purge", "--yes", "reshard")
        self.assertEqual(list(share.rglob("*reshard*")), [])
        self.assertFalse((root / "usr" / "bin" / "reshard").exists())

    def test_the_package_of_the_library(self):
        files = run("dpkg-deb", "--contents", self.library)
        for file in ("/usr/include/reshard/convert.h", "/libreshard.a", "/reshardConfig.cmake"):
            self.assertIn(file, files)
        depends = run("dpkg-deb", "--field", self.library, "Depends")
        for package in ("libfmt-dev", "libprotobuf-dev", "libxxhash-dev", "libdeflate-dev",
                        "libssl-dev"):
            self.assertIn(package, depends)

    def test_lintian(self):
        done = subprocess.run(["lintian", "--allow-root", self.program, self.library],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        found = [line for line in done.stdout.splitlines()
                 if re.match(r"[EW]: ", line) and line.split()[2] not in NOT_FOR_US]
        self.assertEqual(found, [])
        self.assertIn(done.returncode, (0, 2), done.stderr)  # 2: there are errors

    def test_the_static_program(self):
        if ARGUMENTS.static is None:
            self.skipTest("without --static")
        root = self.folder / "bare"
        root.mkdir()
        program = shutil.copy(ARGUMENTS.static / "bin" / "reshard", root / "reshard")
        headers = run("readelf", "--wide", "--program-headers", "--dynamic", program)
        self.assertNotIn("INTERP", headers)
        self.assertNotIn("NEEDED", headers)
        self.check_program(root, lambda *arguments: run("chroot", root, "/reshard", *arguments))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("--release", "--static", "--root"):
        parser.add_argument(name, required=name != "--static",
                            type=lambda path: pathlib.Path(path).resolve())
    ARGUMENTS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
