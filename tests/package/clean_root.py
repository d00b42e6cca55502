"""A clean root: a Debian in a folder, with little but apt, to try in what people install."""

import pathlib
import shutil
import subprocess


def run(*command, **more):
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=600, **more)
    if done.returncode != 0:
        raise AssertionError(f"exit {done.returncode}: {command}\n{done.stdout}{done.stderr}")
    return done.stdout


class CleanRoot:
    """An archive of `tools/deps.sh clean-root` or `release-roots`, unpacked. Needs root.

    `emulator` is a static program that runs those of the root. What they start is not emulated.
    """

    def __init__(self, archive, folder, emulator=None):
        self.folder = folder
        self.emulator = ()
        folder.mkdir()
        run("tar", "--extract", "--file", archive, "--directory", folder)
        (folder / "proc").mkdir(exist_ok=True)
        if emulator is not None:
            shutil.copy(emulator, folder / "emulator")
            self.emulator = ("/emulator",)

    def run(self, *command, **variables):
        """Runs a command in the root, with /proc there and nothing left behind; returns its output.

        Where programs are emulated, it is named by its path.
        """
        variables = {"PATH": "/venv/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                     "DEBIAN_FRONTEND": "noninteractive", **variables}
        return run("env", "-i", *(f"{name}={value}" for name, value in variables.items()),
                   "unshare", "--mount", "--pid", "--fork", f"--mount-proc={self.folder}/proc",
                   "chroot", self.folder, *self.emulator, *command)

    def install(self, *packages):
        """Installs packages from where this machine gets its own."""
        shutil.copy("/etc/resolv.conf", self.folder / "etc" / "resolv.conf")
        shutil.copytree("/etc/apt/apt.conf.d", self.folder / "etc" / "apt" / "apt.conf.d",
                        dirs_exist_ok=True)
        certificates = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")
        if certificates.exists():
            shutil.copy(certificates, self.folder / certificates.relative_to("/"))
        self.run("apt-get", "update")
        self.run("apt-get", "install", "--yes", "--no-install-recommends", *packages)
