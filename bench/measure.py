"""What the benchmarks measure of a program, and what they do to the page cache around it."""

import ctypes
import filecmp
import os
import pathlib
import platform
import resource
import shutil
import subprocess
import tempfile
import threading
import time

MIB = 1 << 20
GIB = 1 << 30

# Not in every C library yet; the number is the same on x86-64 and on aarch64.
SYS_CACHESTAT = 451
PAGE = resource.getpagesize()


class Failure(Exception):
    """A program failed; the message has what it said last of an error."""


class Usage:
    """What one run of a program took."""

    def __init__(self, seconds, cpu, rss_anon):
        self.seconds, self.cpu, self.rss_anon = seconds, cpu, rss_anon


def rss_anon(pid):
    """Anonymous memory of a process in bytes; 0 when it has just ended."""
    try:
        for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) << 10
    except (FileNotFoundError, ProcessLookupError):
        pass
    return 0


def run(command, data_limit=None, finish=None):
    """Runs a command to its end and `finish` after it, and returns the Usage of both together.

    RssAnon is read every 10 ms, by a thread, so that the end of the program is seen at once.
    `data_limit` is the RLIMIT_DATA of the program in bytes. Raises Failure.
    """
    def limit():
        resource.setrlimit(resource.RLIMIT_DATA, (data_limit, data_limit))

    with tempfile.TemporaryFile() as errors:
        start = time.monotonic()
        process = subprocess.Popen(
            [str(part) for part in command], stdout=subprocess.DEVNULL, stderr=errors,
            preexec_fn=limit if data_limit else None)  # pylint: disable=subprocess-popen-preexec-fn
        peak, ended = 0, threading.Event()

        def sample():
            nonlocal peak
            while not ended.wait(0.01):
                peak = max(peak, rss_anon(process.pid))

        sampler = threading.Thread(target=sample)
        sampler.start()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        ended.set()
        sampler.join()
        own_start = time.process_time()
        if process.returncode == 0 and finish is not None:
            finish()
        seconds = time.monotonic() - start
        cpu = usage.ru_utime + usage.ru_stime + time.process_time() - own_start
        if process.returncode != 0:
            errors.seek(0)
            said = [line.strip() for line in errors.read().decode(errors="replace").splitlines()
                    if line.strip()] or ["it said nothing"]
            telling = [line for line in said if "error" in line.lower() or "alloc" in line.lower()]
            raise Failure(f"{pathlib.Path(str(command[0])).name} ended with {process.returncode}: "
                          f"{(telling or said)[-1][:200]} (RssAnon up to {peak / GIB:.1f} GiB)")
    return Usage(seconds, cpu, peak)


def files_of(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def total_bytes(folder):
    return sum(path.stat().st_size for path in files_of(folder))


def sync(folder):
    """Makes a tree durable; what has been written back already costs nothing here."""
    for path in [*files_of(folder), *folder.rglob("*/"), folder]:
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


def read_into_cache(paths):
    for path in paths:
        with path.open("rb", buffering=0) as file:
            while file.read(1 << 22):
                pass


def drop_from_cache(paths):
    """Takes files out of the page cache, as root with all other caches; returns how it was done."""
    if os.geteuid() == 0:
        pathlib.Path("/proc/sys/vm/drop_caches").write_text("3\n")
        return "drop_caches"
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)
    return "POSIX_FADV_DONTNEED"


def cached_bytes(paths):
    """Returns how much of files is in the page cache, in bytes; None where the kernel cannot say."""
    libc = ctypes.CDLL(None, use_errno=True)
    whole = (ctypes.c_uint64 * 2)(0, 0)  # offset and length; 0: to the end
    total = 0
    for path in paths:
        counts = (ctypes.c_uint64 * 5)()  # cached, dirty, under write-back, evicted, of these lately
        descriptor = os.open(path, os.O_RDONLY)
        failed = libc.syscall(SYS_CACHESTAT, descriptor, whole, counts, 0)
        os.close(descriptor)
        if failed:
            return None
        total += counts[0] * PAGE
    return total


def check_equal(expected, found):
    """Raises Failure unless every checkpoint of `found` is in `expected` with the same bytes."""
    suffixes = (".ckpt", ".safetensors")
    files = [path for path in files_of(found) if path.suffix in suffixes]
    if len(files) != len([path for path in files_of(expected) if path.suffix in suffixes]):
        raise Failure(f"{found}: not as many files as {expected}")
    for path in files:
        if not filecmp.cmp(expected / path.relative_to(found), path, shallow=False):
            raise Failure(f"{path}: not the bytes that {expected} has")


def available_memory():
    """Returns what the host could give to a program now, in bytes."""
    for line in pathlib.Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 10
    raise Failure("/proc/meminfo: no MemAvailable")


def describe_machine(folder):
    """Returns what the figures depend on: processor, memory, kernel, the file system of a folder."""
    info = {}
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        info.setdefault(key.strip(), value.strip())
    mounted = subprocess.run(["findmnt", "-n", "-o", "FSTYPE", "-T", folder], check=False,
                             capture_output=True, text=True).stdout.strip() or "unknown"
    return {"processor": info.get("model name", platform.machine()), "cores": os.cpu_count(),
            "memory_bytes": os.sysconf("SC_PHYS_PAGES") * PAGE, "kernel": platform.release(),
            "file_system": mounted}
