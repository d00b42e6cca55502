#!/usr/bin/env python3
"""Makes each system call of a run fail once, at each call number, with each error that fits.

Whatever fails: the run ends with the right bytes, or with a documented exit code, a message and
nothing that looks finished; the same command, run again with or without --resume, ends with the
right bytes. A file whose fsync failed is not flushed again.
"""

import collections
import os
import pathlib
import re
import shutil
import sys

import harness

ERRORS = {
    "openat": "EIO EMFILE ENFILE ENOMEM EINTR ENOSPC EDQUOT",
    "open": "EIO EMFILE ENOMEM EINTR",
    "newfstatat": "EIO ENOMEM",
    "statx": "EIO ENOMEM ENOSYS",
    "fstat": "EIO ENOMEM",
    "stat": "EIO ENOMEM",
    "lstat": "EIO ENOMEM",
    "readlink": "EIO ENOMEM",
    "getcwd": "ENOMEM",
    "faccessat": "EIO ENOMEM",
    "faccessat2": "EIO ENOMEM ENOSYS EACCES",
    "statfs": "EIO ENOSYS EINTR",
    "fstatfs": "EIO ENOSYS EINTR",
    "getdents64": "EIO",
    "read": "EIO EINTR EAGAIN",
    "pread64": "EIO EINTR EAGAIN",
    "preadv": "EIO EINTR EAGAIN",
    "write": "EIO EINTR EAGAIN ENOSPC EDQUOT EFBIG",
    "pwrite64": "EIO EINTR EAGAIN ENOSPC EDQUOT EFBIG EINVAL",
    "pwritev": "EIO EINTR EAGAIN ENOSPC EDQUOT EFBIG EINVAL",
    "fallocate": "EIO EINTR ENOSPC EDQUOT EFBIG EOPNOTSUPP ENOSYS",
    "ftruncate": "EIO EINTR ENOSPC EFBIG",
    "sync_file_range": "EIO EINTR ENOSPC EDQUOT ENOSYS EINVAL",
    "fsync": "EIO EINTR ENOSPC EDQUOT",
    "fdatasync": "EIO EINTR ENOSPC EDQUOT",
    "close": "EIO EINTR ENOSPC EDQUOT",
    "fcntl": "EINVAL",
    "fadvise64": "EIO EINVAL",
    "rename": "EIO ENOSPC EDQUOT",
    "renameat": "EIO ENOSPC EDQUOT EXDEV",
    "renameat2": "EIO ENOSPC EDQUOT EXDEV ENOSYS",
    "link": "EIO ENOSPC EPERM",
    "linkat": "EIO ENOSPC EPERM",
    "unlink": "EIO EBUSY EACCES",
    "unlinkat": "EIO EBUSY EACCES",
    "rmdir": "EIO EBUSY EACCES",
    "mkdir": "EIO ENOSPC EDQUOT EACCES",
    "mkdirat": "EIO ENOSPC EDQUOT EACCES",
    "flock": "EIO EINTR ENOLCK EAGAIN",
    "mmap": "ENOMEM EAGAIN ENODEV",
    "munmap": "ENOMEM",
    "mprotect": "ENOMEM",
    "madvise": "ENOMEM EAGAIN EINVAL EFAULT EIO",
    "mincore": "ENOMEM EAGAIN",
    "cachestat": "ENOSYS EOPNOTSUPP EFAULT",
    "clone": "EAGAIN ENOMEM",
    "clone3": "EAGAIN ENOMEM",
    "getrandom": "EAGAIN ENOSYS",
    "sched_getaffinity": "EINVAL",
    "prlimit64": "EINVAL",
    "sysinfo": "EFAULT",
}
# Says "no more" by its value, not by an error.
VALUES = {"brk": "0"}
# They cannot fail with what the C library gives them, or have nothing to fail at.
NEVER_FAIL = {
    "execve", "exit", "exit_group", "arch_prctl", "set_tid_address", "set_robust_list", "rseq",
    "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "futex", "gettid", "getpid", "geteuid",
    "uname", "sched_yield", "restart_syscall", "clock_nanosleep",
}
# strace before 6.5 knows it by no name (cachestat), so it cannot make it fail.
UNNAMED = {"syscall_0x1c3"}
# What a run with more than one chunk, and more than one window of write-back, does besides.
OF_LARGE_FILES = ("pwrite64 pwritev sync_file_range fallocate fadvise64 fcntl clone clone3 madvise "
                  "fsync fstatfs").split()

# What a kernel or a file system may never have had; nobody is to notice.
MISSING = {
    "fallocate": "EOPNOTSUPP ENOSYS",
    "sync_file_range": "ENOSYS EINVAL",
    "fadvise64": "EINVAL ENOSYS",
    "madvise": "EINVAL ENOSYS",
    "faccessat2": "ENOSYS",
    "cachestat": "ENOSYS EOPNOTSUPP",
}

INJECTED = re.compile(r"\(INJECTED\)")


def faults(numbers, only=None):
    for call, at in sorted(numbers.items()):
        if call in NEVER_FAIL | UNNAMED or (only is not None and call not in only):
            continue
        if call not in ERRORS and call not in VALUES:
            sys.exit(f"inject_test.py: does not know how {call} fails")
        ways = [f"error={error}" for error in ERRORS.get(call, "").split()]
        ways += [f"retval={value}" for value in VALUES.get(call, "").split()]
        for when in sorted(at):
            for way in ways:
                yield call, way, when


class Scenario:
    """A command, what its target looks like before it, and what it has to look like after it."""

    def __init__(self, name, job, folder, before=None, more=()):
        self.name = name
        self.job = job
        self.folder = pathlib.Path(folder)
        self.more = more
        self.before_folder = before
        self.before = harness.snapshot(before) if before else {}
        target = self.prepare("undisturbed")
        self.finished = harness.undisturbed(job, target, *more)
        # Of those that a run makes in any case: how many depends on what is in the page cache.
        first, second = self.count(), self.count()
        self.numbers = {call: at & second[call] for call, at in first.items()}
        self.missed = collections.Counter()  # faults that a run did not come to, by their call

    def count(self):
        command = self.job.command(self.prepare("counted"), *self.more)
        return harness.calls_of(command, self.folder / "calls.log")

    def prepare(self, name):
        # Into the page cache, which loses files where memory is short: a run says of the pages that
        # it brought in itself that they may go, and makes more calls for that.
        harness.snapshot(self.job.source)
        target = self.folder / name
        shutil.rmtree(target, ignore_errors=True)
        if self.before_folder:
            shutil.copytree(self.before_folder, target)
        return target

    def inject(self, number, fault):
        """Returns the exit code of a run with this fault, or None where it did not come to it."""
        call, way, when = fault
        where = f"{self.name}: {call}:{way}:when={when}"
        target = self.prepare(f"target{number}")
        log = self.folder / f"log{number}"
        traced = f"trace={call},fsync,fdatasync"
        done = harness.run(harness.strace(
            self.job.command(target, *self.more), "--seccomp-bpf", "-y", "-e", traced, "-e",
            f"inject={call}:{way}:when={when}", log=log))
        text = log.read_text() if log.exists() else ""
        harness.check_documented(done, where)
        published = harness.check_nothing_looks_finished(target, self.finished, self.before, where)
        assert published or done.returncode != 0, f"{where}: exit 0, but no new set"
        if call in ("fsync", "fdatasync"):
            self.check_not_flushed_again(done, text, where)
        again = harness.AGAIN[number % len(harness.AGAIN)]
        harness.complete(self.job, target, self.finished, where, *self.more, *again)
        shutil.rmtree(target)
        log.unlink(missing_ok=True)
        if INJECTED.search(text):
            return done.returncode
        self.missed[call] += 1
        return None

    def miss(self, call, error):
        """A run in which the call fails each time."""
        where = f"{self.name}: {call}:{error} always"
        target = self.prepare(f"{call}{error}")
        log = self.folder / f"{call}{error}.log"
        named = f"?{call}"  # by some straces: the others let it be
        done = harness.run(harness.strace(
            self.job.command(target, *self.more), "--seccomp-bpf", "-e", f"trace={named}", "-e",
            f"inject={named}:error={error}", log=log))
        assert done.returncode == 0, f"{where}: {done.returncode}: {done.stderr.decode()}"
        harness.check_finished(target, self.finished, where)
        shutil.rmtree(target)
        return bool(INJECTED.search(log.read_text()))

    def check_not_flushed_again(self, done, text, where):
        """A failed flush fails the run, and nothing flushes the file again."""
        flushed = re.findall(r"(?:fsync|fdatasync)\(\d+<(.*?)>\).*?(\(INJECTED\))?$", text, re.M)
        for i, (path, injected) in enumerate(flushed):
            if injected:
                assert done.returncode == 4, f"{where}: flush of {path}: exit {done.returncode}"
                again = [later for later, _ in flushed[i + 1:] if later == path]
                # A folder, whose name has no suffix, may be: for what is removed from it.
                assert not again or not os.path.splitext(path)[1], f"{where}: {path} again"


def survive(scenario, options, only=None):
    """Injects each fault, or those of the calls in `only`; returns how many there were."""
    chosen = harness.sample(list(enumerate(faults(scenario.numbers, only))), options)
    codes = harness.run_all(scenario.inject, chosen)
    missed = codes.pop(None, 0)
    print(f"{scenario.name}: {sum(codes.values())} faults survived; exit codes "
          f"{dict(sorted(codes.items()))}; {missed} not reached "
          f"{dict(sorted(scenario.missed.items()))}", flush=True)
    # How often these two are called depends on what is in the page cache, where memory is short.
    of_cache = sum(scenario.missed[call] for call in ("madvise", "fadvise64"))
    assert missed - of_cache <= sum(codes.values()) // 50, "too many faults were not reached"
    assert of_cache <= len(chosen) // 5, "too many faults of the page cache were not reached"
    return sum(codes.values())


def main():
    options = harness.arguments("reshard", "gen", every=True)
    harness.need_programs("strace")
    total = 0
    with harness.scratch_in_memory() as folder:
        folder = pathlib.Path(folder)
        old = folder / "old"
        harness.undisturbed(harness.golden_job(options.reshard, "case_010"), old)
        small = harness.golden_job(options.reshard, "case_037")
        (folder / "new").mkdir()
        new = Scenario("new target", small, folder / "new")
        for name, content in harness.golden_outputs("case_037").items():
            assert new.finished[name] == content, f"{name} is not what MindSpore wrote"
        total += survive(new, options)
        (folder / "replace").mkdir()
        replace = Scenario("--force over another set", small, folder / "replace", old, ("--force",))
        total += survive(replace, options)
    # Here files are written directly on ext4 and XFS, with early write-back, and in memory.
    for place, io in ((harness.scratch(), "auto"), (harness.scratch(), "buffered"),
                      (harness.scratch_in_memory(), "auto")):
        with place as folder:
            folder = pathlib.Path(folder)
            harness.generate(options.gen, folder / "src", "--layers", "1", "--hidden", "896",
                             "--ffn", "2560", "--vocab", "4096", "--tp", "2", "--no-optimizer")
            job = harness.Job(options.reshard, folder / "src", folder / "src" / "strategy", None,
                              "--jobs", "1", "--io", io)
            large = Scenario(f"large file in {folder.parent}, --io {io}", job, folder)
            total += survive(large, options, OF_LARGE_FILES)
            missing = [(call, error) for call in MISSING for error in MISSING[call].split()]
            missed = harness.run_all(large.miss, missing)
            print(f"{large.name}: {missed[True]} calls not there at all, {missed[False]} unused")
    print(f"{total} injected faults survived")


main()
