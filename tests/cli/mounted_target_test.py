#!/usr/bin/env python3
"""reshard mount: the files of a conversion, without writing them, by the real /dev/fuse.

Usage: mounted_target_test.py --reshard BIN --gen BIN; reshard-mount lies beside BIN
"""

import concurrent.futures
import contextlib
import ctypes
import errno
import mmap
import os
import pathlib
import random
import shutil
import signal
import subprocess
import threading
import time
import unittest

import program_case

SRC = ["--src-strategy", "a/strategy"]
RESHARDED = SRC + ["--dst-strategy", "b/strategy"]
WAYS = [
    RESHARDED,
    RESHARDED + ["--format", "safetensors"],
    RESHARDED + ["--crc", "--prefix", "net_", "--names", "{prefix}{rank}/deep/er.{ext}"],
    RESHARDED + ["--format", "safetensors", "--crc", "--rank", "1"],
    RESHARDED + ["--dtype", "*=float32", "--rename", "renames.json"],
    RESHARDED + ["--include", "*norm*"],
    SRC + ["--format", "unified", "--part-size", "100K"],
    SRC + ["--format", "huggingface", "--shard-size", "100K", "--exclude", "adam_*"],
    SRC + ["--tp", "2", "--pp", "2", "--rename", "renames.json"],
    SRC + ["--tp", "2", "--dp", "2", "--optimizer-sharding", "--rank", "1-3"],
]
OUR_FILES = {"checksums.xxh128", "origin.jsonl", "manifest.json", "part_records", ".reshard"}


def files_below(folder):
    """The paths of files, relative to the folder, but for what only we read."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*")
            if path.is_file() and not OUR_FILES & set(path.relative_to(folder).parts)}


def bytes_in_cache(path):
    """The bytes of a file in the page cache."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        pages = (ctypes.c_ubyte * -(-len(mapped) // mmap.PAGESIZE))()
        first = ctypes.c_char.from_buffer(mapped)
        failed = libc.mincore(ctypes.byref(first), ctypes.c_size_t(len(mapped)), pages)
        del first
    if failed:
        raise OSError(ctypes.get_errno(), "mincore")
    return sum(page & 1 for page in pages) * mmap.PAGESIZE


def drop_from_cache(files):
    for path in files:
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class MountedTargetTest(program_case.ProgramCase):
    def setUp(self):
        super().setUp()
        self.write("renames.json", {"patterns": {"model.*": "*"}})
        self.generate("a", "--layers", 2, "--hidden", 64, "--ffn", 128, "--vocab", 256, "--tp", 2, "--dp", 2)
        self.generate("b", "--layers", 2, "--hidden", 64, "--ffn", 128, "--vocab", 256, "--tp", 4,
                      "--strategy-only")
        self.place = self.folder / "mnt"
        self.place.mkdir()
        self.addCleanup(lambda: subprocess.run(["umount", "-l", self.place], check=False, capture_output=True))

    @contextlib.contextmanager
    def mounted(self, *options, ends_by=signal.SIGTERM, code=0, source="a", wrapper=()):
        """Yields the process that serves, which is ended by the signal."""
        command = [*wrapper, self.program, "mount", source, self.place, *options]
        with subprocess.Popen([*map(str, command)], cwd=self.folder, stdin=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True) as process:
            said = ""
            for line in process.stderr:
                said += line
                if line.endswith(", ready\n"):
                    break
            else:
                self.fail(said)
            self.said = None
            try:
                yield process
            finally:
                if ends_by:
                    process.send_signal(ends_by)
                rest = process.communicate(timeout=60)[1]
                self.said = said + rest
            self.assertEqual(process.returncode, code, self.said)
        self.assertFalse(os.path.ismount(self.place))

    def expect_refused(self, path, *numbers):
        with self.assertRaises(OSError) as refused:
            path.read_bytes()
        self.assertIn(refused.exception.errno, numbers)

    def test_files_are_those_of_a_conversion(self):
        for number, way in enumerate(WAYS):
            out = self.folder / f"out{number}"
            self.reshard("convert", "a", out, *way, "-q")
            cache = ["--cache"] if number % 2 else []
            with self.mounted(*way, *cache):
                expected = files_below(out)
                self.assertGreater(len(expected), 0)
                self.assertEqual(files_below(self.place), expected | {".reshard-status"})
                for path in expected:
                    self.expect_same(self.place / path, out / path)
                    self.assertEqual((self.place / path).stat().st_size, (out / path).stat().st_size)
                    if cache:
                        with open(self.place / path, "rb") as file, \
                                mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
                            self.assertEqual(mapped[:], (out / path).read_bytes())
                self.assertEqual((self.place / ".reshard-status").read_text(), "ok\n")

    def test_maps(self):
        self.reshard("convert", "a", "out", *RESHARDED, "-q")
        expected = (self.folder / "out/rank_0/checkpoint_0.ckpt").read_bytes()
        with self.mounted(*RESHARDED):
            with open(self.place / "rank_0/checkpoint_0.ckpt", "rb") as file:
                with self.assertRaises(OSError) as refused:
                    mmap.mmap(file.fileno(), 0, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ)
                self.assertEqual(refused.exception.errno, errno.ENODEV)
                with mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ) as mapped:
                    self.assertEqual(mapped[:], expected)

    def test_other_users(self):
        if os.geteuid() != 0:
            print("did not run: mount --allow-other: needs root, to be another user", flush=True)
            return
        for folder in (self.folder, *self.folder.parents):
            if not folder.stat().st_mode & 0o001:
                os.chmod(folder, 0o711)
                self.addCleanup(os.chmod, folder, 0o700)
        read = ["cat", self.place / "rank_0/checkpoint_0.ckpt"]
        for options, code in (([], 1), (["--allow-other"], 0)):
            with self.mounted(*RESHARDED, *options):
                done = subprocess.run(read, user=65534, group=65534, extra_groups=[], check=False, capture_output=True)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertEqual(done.stdout == b"", code == 1)

    def test_sources_that_state_a_wrong_crc(self):
        self.reshard("convert", "a", "with_crc", *SRC, "--dst-strategy", "a/strategy", "--crc")
        path = self.folder / "with_crc/rank_0/checkpoint_0.ckpt"
        content = bytearray(path.read_bytes())
        content[-100] ^= 1
        path.write_bytes(content)
        unchecked = [*RESHARDED, "--check-replicas=none"]
        self.reshard("mount", "with_crc", self.place, *unchecked, code=3, says="CRC")
        self.assertFalse(os.path.ismount(self.place))
        with self.mounted(*unchecked, "--no-checksum", source="with_crc"):
            pass

    def test_nothing_can_be_changed(self):
        with self.mounted(*RESHARDED):
            path = self.place / "rank_0/checkpoint_0.ckpt"
            for change in (lambda: open(path, "ab"), lambda: open(self.place / "new", "wb"),
                           lambda: os.remove(path), lambda: os.truncate(path, 1),
                           lambda: os.mkdir(self.place / "folder"), lambda: os.rename(path, self.place / "x")):
                with self.assertRaises(OSError) as refused:
                    change()
                self.assertEqual(refused.exception.errno, errno.EROFS)
            self.assertFalse((self.place / "rank_0/none").exists())
            self.assertEqual(os.statvfs(self.place).f_bfree, 0)

    def test_threads_read_anywhere(self):
        self.reshard("convert", "a", "out", *RESHARDED, "-q")
        expected = {path: (self.folder / "out" / path).read_bytes() for path in files_below(self.folder / "out")}
        wrong = []

        def read(seed):
            rng = random.Random(seed)
            for _ in range(375):
                path = rng.choice(sorted(expected))
                begin = rng.randrange(len(expected[path]) + 10)
                length = rng.choice((1, 100, 4096, 70_000))
                with open(self.place / path, "rb", buffering=0) as file:
                    if os.pread(file.fileno(), length, begin) != expected[path][begin:begin + length]:
                        wrong.append((path, begin, length))

        with self.mounted(*RESHARDED):
            threads = [threading.Thread(target=read, args=(seed,)) for seed in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(wrong, [])

    def test_sources_that_change(self):
        needed = self.reshard("ranks", 0, *RESHARDED).stdout.split()
        other = next(rank for rank in range(4)
                     if not set(needed) & set(self.reshard("ranks", rank, *RESHARDED).stdout.split()))

        def truncate(path):
            os.truncate(path, 5000)

        def replace(path):
            shutil.copy(path, f"{path}.new")
            os.replace(f"{path}.new", path)

        def overwrite(path):
            with open(path, "r+b") as file:
                file.seek(3000)
                file.write(b"other")

        for cache in ([], ["--cache"]):
            for change in (truncate, replace, overwrite, os.remove):
                shutil.copytree(self.folder / "a", self.folder / "changing")
                with self.mounted(*RESHARDED, *cache, source="changing"):
                    path = self.place / "rank_0/checkpoint_0.ckpt"
                    with open(path, "rb", buffering=0) as open_before:
                        self.assertEqual(len(open_before.read(100)), 100)
                        for rank in needed:
                            change(self.folder / f"changing/rank_{rank}/llama-1_100.ckpt")
                        if not cache:  # else the kernel has these pages
                            with self.assertRaises(OSError) as refused:
                                os.pread(open_before.fileno(), 100, 200)
                            self.assertEqual(refused.exception.errno, errno.ESTALE)
                    with self.assertRaises(OSError) as refused:
                        os.open(path, os.O_RDONLY)
                    self.assertEqual(refused.exception.errno, errno.ESTALE)
                    self.assertIn(f"rank_{needed[0]}", (self.place / ".reshard-status").read_text())
                    self.assertGreater(len((self.place / f"rank_{other}/checkpoint_{other}.ckpt").read_bytes()), 0)
                self.assertIn("changed", self.said)
                shutil.rmtree(self.folder / "changing")

    def test_signals_end_it(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.mounted(*RESHARDED, ends_by=number):
                pass

    def test_it_ends_with_its_input(self):
        with subprocess.Popen([self.program, "mount", "a", self.place, *RESHARDED], cwd=self.folder,
                              stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            self.assertIn("ready", process.stderr.readline())
            process.stdin.close()
            self.assertEqual(process.wait(timeout=60), 0)
        self.assertFalse(os.path.ismount(self.place))

    def test_kill_and_mount_again(self):
        with self.mounted(*RESHARDED, ends_by=None) as process:
            process.kill()
            process.wait()
            self.expect_refused(self.place / "rank_0/checkpoint_0.ckpt", errno.ENOTCONN)
            self.reshard("mount", "a", self.place, *RESHARDED, code=6, says="reshard unmount")
            self.reshard("unmount", self.place)
            process.returncode = 0  # as the block expects
        with self.mounted(*RESHARDED):
            self.assertGreater(len((self.place / "rank_0/checkpoint_0.ckpt").read_bytes()), 0)

    def test_in_the_background(self):
        done = self.reshard("mount", "a", self.place, *RESHARDED, "--background", "--log-file", "log",
                            says=f"{self.place}: 4 files, ")
        self.assertEqual(done.stdout, "")
        with open(self.place / "rank_0/checkpoint_0.ckpt", "rb"):
            self.reshard("unmount", self.place, code=6, says="is in use")
        os.truncate(self.folder / "a/rank_0/llama-1_100.ckpt", 100)
        self.expect_refused(self.place / "rank_0/checkpoint_0.ckpt", errno.ESTALE)
        self.reshard("unmount", self.place)
        self.reshard("unmount", self.place, code=2, says="no target is mounted there")
        log = (self.folder / "log").read_text()
        self.assertIn(", ready", log)
        self.assertIn("changed", log)
        # It outlives its input.
        shutil.rmtree(self.folder / "a")
        self.generate("a", "--layers", 2, "--hidden", 64, "--ffn", 128, "--vocab", 256, "--tp", 2, "--dp", 2)
        subprocess.run([self.program, "mount", "a", self.place, *RESHARDED, "--background", "-q"], input=b"",
                       cwd=self.folder, check=True)
        time.sleep(0.3)  # more than what looks at the input takes
        self.assertGreater(len((self.place / "rank_0/checkpoint_0.ckpt").read_bytes()), 0)
        self.reshard("unmount", self.place)
        # What fails before it is ready is said at once.
        self.reshard("mount", "nowhere", self.place, *RESHARDED, "--background", code=3, says="nowhere")
        self.reshard("mount", "a", self.place, "--background", code=2, says="--src-strategy")

    def test_bad_places(self):
        (self.folder / "full").mkdir()
        self.write("full/file", b"x")
        (self.folder / "a/inside").mkdir()
        for place, code, says in (("full", 6, "is not empty"), ("full/file", 6, "is no folder"),
                                  ("none", 3, "does not exist"), ("a/inside", 2, "lies in, the source"),
                                  ("a", 2, "lies in, the source"), (".", 2, "would hide it"),
                                  ("/proc", 6, "a file system (proc) is mounted there")):
            self.reshard("mount", "a", place, *RESHARDED, code=code, says=says)
        with self.mounted(*RESHARDED):
            self.reshard("mount", "a", self.place, *RESHARDED, code=6, says="a target is mounted there")
            # A source on the mount itself would wait for itself.
            self.reshard("mount", self.place, self.place, *RESHARDED, code=6)
        self.reshard("unmount", "/proc", code=2, says="of type proc")
        self.reshard("mount", "a", self.place, *RESHARDED, "--encrypt", "AES-GCM", code=2)

    def test_a_target_of_a_mounted_target(self):
        """A source may be a mount of another target."""
        again = self.folder / "again"
        again.mkdir()
        self.reshard("convert", "a", "out", *SRC, "-q")
        self.addCleanup(lambda: subprocess.run(["umount", "-l", again], check=False, capture_output=True))
        with self.mounted(*RESHARDED):
            self.reshard("mount", self.place, again, "--src-strategy", "b/strategy", "--background")
            self.expect_same(again / "rank_0/checkpoint_0.ckpt", "out/rank_0/checkpoint_0.ckpt")
            self.reshard("unmount", again)

    def test_without_the_program(self):
        alone = self.folder / "bin/reshard"
        alone.parent.mkdir()
        shutil.copy(self.program, alone)
        done = subprocess.run([alone, "mount", "a", self.place, *RESHARDED], cwd=self.folder, check=False,
                              env={"PATH": "/nowhere"}, capture_output=True, text=True)
        self.assertEqual(done.returncode, 3)
        self.assertIn("install the package reshard-mount", done.stderr)

    def test_without_the_right_or_the_device(self):
        """As in a container that was started without them."""
        if os.geteuid() != 0:
            print("did not run: mount without rights: needs root, to give them up", flush=True)
            return
        mount = [self.program, "mount", "a", self.place, *RESHARDED]
        no_device = "mount -t tmpfs none /dev && mknod -m 666 /dev/null c 1 3 && exec \"$@\""
        for prefix in (["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"],
                       ["unshare", "-m", "sh", "-c", no_device, "sh"]):
            done = subprocess.run([*map(str, prefix + mount)], cwd=self.folder, stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(done.returncode, 4, done.stderr)
            self.assertIn("cannot be mounted; is /dev/fuse there, and may this user open it?", done.stderr)
            self.assertFalse(os.path.ismount(self.place))

    def test_in_a_user_namespace(self):
        """As a user who may not mount, without fusermount3."""
        script = f"""set -e
            export PATH=/nowhere
            {self.program} mount a mnt {' '.join(RESHARDED)} --background
            /usr/bin/cmp mnt/rank_3/checkpoint_3.ckpt out/rank_3/checkpoint_3.ckpt
            {self.program} unmount mnt"""
        self.reshard("convert", "a", "out", *RESHARDED, "-q")
        done = subprocess.run(["unshare", "-Urm", "/bin/bash", "-c", script], cwd=self.folder, check=False,
                              capture_output=True, text=True, timeout=120)
        if done.returncode != 0 and "unshare:" in done.stderr:
            print(f"did not run: mount in a user namespace: {done.stderr.strip()}", flush=True)
            return
        self.assertEqual(done.returncode, 0, done.stderr)

    def read_together(self):
        """Reads all files at the same time; returns their contents by their paths."""
        paths = files_below(self.place) - {".reshard-status"}
        with concurrent.futures.ThreadPoolExecutor(len(paths)) as threads:
            return dict(zip(paths, threads.map(lambda path: (self.place / path).read_bytes(), paths)))

    def test_memory_stays_within_the_limit(self):
        limit = 64 << 20
        # Many bytes, and many plans: those of all files do not fit the limit.
        for number, (model, cuts) in enumerate((
                (["--layers", 2, "--hidden", 1024, "--ffn", 2048, "--vocab", 8192], (2, 4)),
                (["--matrices", 6000, "--rows", 64, "--columns", 64, "--no-optimizer"], (2, 16)))):
            source, target = f"source{number}", f"target{number}"
            self.generate(source, *model, "--tp", cuts[0])
            self.generate(target, *model, "--tp", cuts[1], "--strategy-only")
            strategies = ["--src-strategy", f"{source}/strategy", "--dst-strategy", f"{target}/strategy"]
            self.reshard("convert", source, "out", *strategies, "-q")
            most, ended = [0], threading.Event()
            with self.mounted(*strategies, "--memory-limit", limit, source=source) as process:
                status = pathlib.Path(f"/proc/{process.pid}/status")

                def watch(status=status, most=most, ended=ended):
                    while not ended.wait(0.001):
                        line = next(line for line in status.read_text().splitlines() if line.startswith("RssAnon"))
                        most[0] = max(most[0], int(line.split()[1]) << 10)

                watching = threading.Thread(target=watch)
                watching.start()
                try:
                    found = self.read_together()
                finally:
                    ended.set()
                    watching.join()
            self.assertEqual(len(found), cuts[1])
            for path, content in found.items():
                self.assertTrue(content == (self.folder / "out" / path).read_bytes(), path)
            self.assertLess(most[0], limit)
            self.assertGreater(most[0], 1 << 20)
            shutil.rmtree(self.folder / "out")

    def bytes_from_disk(self, process):
        fields = pathlib.Path(f"/proc/{process.pid}/io").read_text().split()
        return int(fields[fields.index("read_bytes:") + 1])

    def sources_on_disk(self, matrices, cut):
        """A checkpoint of 4 ranks whose files are not in the page cache, and a strategy of 8. Returns
        the files; none without a disk."""
        model = ["--matrices", matrices, "--rows", 4096, "--columns", 4096, "--dtype", "Float32",
                 "--no-optimizer", "--cut", cut]
        self.generate("cold", *model, "--tp", 4)
        self.generate("cut", *model, "--tp", 8, "--strategy-only")
        kind = subprocess.run(["findmnt", "-n", "-o", "FSTYPE", "-T", self.folder], check=True,
                              capture_output=True, text=True).stdout.strip()
        if kind in ("tmpfs", "overlay"):
            print(f"did not run: mount: {self.folder} is no disk but {kind}", flush=True)
            return []
        files = sorted((self.folder / "cold").glob("rank_*/*.ckpt"))
        drop_from_cache(files)
        return files

    def test_ranks_that_load_together_read_each_source_byte_once(self):
        files = self.sources_on_disk(matrices=4, cut="columns")
        if not files:
            return
        size = sum(path.stat().st_size for path in files)
        # Windows are much smaller than the sources, and each source byte lies between those of another rank.
        counts = []
        # Others may empty the page cache meanwhile.
        while len(counts) < 3 and min(counts, default=2 * size) > 1.1 * size:
            drop_from_cache(files)
            with self.mounted("--src-strategy", "cold/strategy", "--dst-strategy", "cut/strategy",
                              "--memory-limit", "64M", source="cold") as process:
                found = self.read_together()
                counts.append(self.bytes_from_disk(process))
            self.assertEqual(len(found), 8)
            self.assertGreater(sum(map(len, found.values())), size * 0.99)
        self.assertLess(min(counts), 1.1 * size)
        self.assertGreater(min(counts), 0.9 * size)  # so that they were not in the page cache

    def test_reading_in_order_reads_sources_ahead(self):
        files = self.sources_on_disk(matrices=2, cut="rows")
        if not files:
            return
        mib = 1 << 20

        def is_read_ahead():
            drop_from_cache(files)
            with self.mounted("--src-strategy", "cold/strategy", "--dst-strategy", "cut/strategy", source="cold"):
                opened = [bytes_in_cache(path) for path in files]
                with open(self.place / "rank_0/checkpoint_0.ckpt", "rb", buffering=0) as file:
                    for _ in range(3):
                        self.assertEqual(len(file.read(mib)), mib)
                deadline = time.monotonic() + 20
                while bytes_in_cache(files[0]) < opened[0] + 8 * mib:  # much more than was read
                    if time.monotonic() > deadline:
                        return False
                    time.sleep(0.01)
            # But not the whole file, of 32 MiB, and nothing of the other ranks.
            self.assertLess(bytes_in_cache(files[0]), opened[0] + 13 * mib)
            for path, before in zip(files[1:], opened[1:]):
                self.assertLessEqual(bytes_in_cache(path), before)
            self.assertLess(max(opened), mib)
            return True

        # Others may empty the page cache meanwhile.
        self.assertTrue(any(is_read_ahead() for _ in range(3)), "nothing was read ahead")


def main():
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        print("did not run: mount: needs /dev/fuse", flush=True)
        return
    program_case.main()


if __name__ == "__main__":
    main()
