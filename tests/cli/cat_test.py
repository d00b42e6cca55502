#!/usr/bin/env python3
"""reshard cat: a target file that is passed on is the one that convert writes, or the exit code says so.

Usage: cat_test.py --reshard BIN --gen BIN
"""

import json
import os
import pathlib
import pty
import select
import shutil
import subprocess
import threading

import program_case

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden" / "data"
SRC = ["--src-strategy", "a/strategy"]
RESHARDED = SRC + ["--dst-strategy", "b/strategy"]
RENAMES = {"patterns": {"*": "model.*"}}
# Options that change the files, of which each conversion below gets one set.
WAYS = [
    [],
    ["--format", "safetensors"],
    ["--format", "ckpt", "--crc"],
    ["--format", "safetensors", "--crc"],
    ["--dtype", "*=float16"],
    ["--rename", "renames.json", "--exclude", "*bias"],
    ["--include", "*layer*", "--dtype", "bfloat16", "--check-replicas"],
]
WHOLE = [["--format", "unified", "--part-size", "2K"], ["--format", "huggingface", "--shard-size", "2K"]]


class CatTest(program_case.ProgramCase):
    def setUp(self):
        super().setUp()
        self.write("renames.json", RENAMES)
        self.write("key", program_case.KEY)

    def samples(self, hidden=64):
        """A checkpoint of 4 ranks, and the strategy of 2."""
        sizes = ["--layers", 2, "--hidden", hidden, "--ffn", 2 * hidden, "--vocab", 256]
        self.generate("a", *sizes, "--tp", 2, "--dp", 2)
        self.generate("b", *sizes, "--tp", 2, "--strategy-only")

    def bytes_of(self, *words, code=0, says=()):
        done = subprocess.run([self.program, "cat", *map(str, words)], cwd=self.folder,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False)
        said = done.stderr.decode(errors="replace")
        self.assertEqual(done.returncode, code, f"cat {' '.join(map(str, words))}\n{said}")
        for text in [says] if isinstance(says, str) else says:
            self.assertIn(text, said)
        return done.stdout

    def expect_files_of_convert(self, source, *options):
        """Returns how many files there were."""
        out = self.folder / "out"
        converted = json.loads(self.reshard("convert", source, "out", *options, "--json").stdout)
        planned = json.loads(self.reshard("plan", source, "elsewhere", *options, "--json").stdout)
        for file in planned["targets"]:
            expected = (out / file["path"]).read_bytes()
            found = self.bytes_of(source, "--rank", file["rank"], *options, "-q")
            self.assertTrue(found == expected, f"{source} {options}: {file['path']} differs")
        self.assertEqual(len(converted["files"]), len(planned["targets"]))
        shutil.rmtree(out)
        return len(planned["targets"])

    def test_golden_conversions(self):
        files = 0
        cases = sorted((GOLDEN / "convert").iterdir())
        for number, case in enumerate(cases):
            stated = json.loads((case / "case.json").read_text())
            options = []
            for side in ("src", "dst"):
                if stated[f"{side}_strategy"]:
                    options += [f"--{side}-strategy", case / stated[f"{side}_strategy"]]
            files += self.expect_files_of_convert(case / "src", *options,
                                                  *WAYS[number % len(WAYS)])
        self.assertGreater(len(cases), 60)
        self.assertGreater(files, 2 * len(cases))

    def test_golden_casts(self):
        for case in sorted((GOLDEN / "safetensors" / "cast").iterdir()):
            stated = json.loads((case / "case.json").read_text())
            options = [word for rule in stated["dtype"] for word in ("--dtype", rule)]
            self.expect_files_of_convert(
                case / stated["src"], "--src-strategy", case / stated["src_strategy"],
                "--dst-strategy", case / stated["dst_strategy"], *options)

    def test_folders_of_whole_tensors(self):
        self.samples()
        for way in WHOLE:
            self.assertGreater(self.expect_files_of_convert("a", *SRC, *way), 3)
        self.reshard("convert", "a", "hf", *SRC, *WHOLE[1])
        self.expect_files_of_convert("hf", "--dst-strategy", "b/strategy", "--format", "ckpt")
        self.bytes_of("a", *SRC, *WHOLE[1], "--rank", 99, code=2, says="--rank 99: the target has")

    def test_encrypted_sources_and_files_of_ranks(self):
        self.samples()
        self.reshard("convert", "a", "sealed", *SRC, "--dst-strategy", "a/strategy", "--encrypt", "AES-GCM",
                     "--encrypt-key-file", "key")
        self.reshard("convert", "a", "out", *RESHARDED)
        expected = (self.folder / "out/rank_1/checkpoint_1.ckpt").read_bytes()
        self.assertEqual(self.bytes_of("sealed", *RESHARDED, "--rank", 1, "--key-file", "key"), expected)
        needed = self.reshard("ranks", 1, *RESHARDED).stdout.split()
        files = [word for rank in needed for word in ("--source", f"{rank}=a/rank_{rank}/llama-1_100.ckpt")]
        self.assertEqual(self.bytes_of(*files, *RESHARDED, "--rank", 1), expected)
        self.bytes_of("a", *RESHARDED, "--rank", 1, "--encrypt", "AES-GCM", code=2, says="--encrypt")

    def test_many_chunks_in_order(self):
        self.samples(hidden=1024)
        self.reshard("convert", "a", "out", *RESHARDED)
        expected = (self.folder / "out/rank_1/checkpoint_1.ckpt").read_bytes()
        self.assertGreater(len(expected), 30 << 20)
        for more in (["--jobs", 1], ["--jobs", 4], ["--memory-limit", "32M"], ["--no-checksum"]):
            found = self.bytes_of("a", *RESHARDED, "--rank", 1, *more)
            self.assertTrue(found == expected, more)

    def test_ranges(self):
        self.samples()
        whole = self.bytes_of("a", *RESHARDED, "--rank", 0)
        size = len(whole)
        for begin, length in ((0, 0), (0, 1), (7, 4096), (size - 5, 5), (0, size), (size, 0)):
            found = self.bytes_of("a", *RESHARDED, "--rank", 0, "--range", f"{begin}:{length}")
            self.assertEqual(found, whole[begin:begin + length])
        for text in (f"{size - 5}:6", f"{size + 1}:0", f"0:{2**64 - 1}"):
            said = f"has {size} bytes"
            self.assertEqual(self.bytes_of("a", *RESHARDED, "--rank", 0, "--range", text, code=2, says=said), b"")
        for text in ("5", ":", "1:", "-1:5", "1:2:3", f"0:{2**64}", "0x1:2"):
            self.bytes_of("a", *RESHARDED, "--rank", 0, f"--range={text}", code=2, says="--range")

    def test_ranks(self):
        self.samples()
        self.bytes_of("a", *RESHARDED, code=2, says="--rank is required: the target has 2 files, 0-1")
        self.bytes_of("a", *RESHARDED, "--rank", 2, code=2)
        full = self.bytes_of("a", *SRC)  # one file only
        self.assertEqual(full, self.bytes_of("a", *SRC, "--rank", 0))

    def test_a_cluster(self):
        self.samples()
        for cluster in (["--tp", 2, "--dp", 2, "--optimizer-sharding"], ["--stage-layers", 2]):
            self.reshard("convert", "a", "out", *SRC, *cluster)
            ranks = len(list((self.folder / "out").glob("rank_*")))
            for rank in range(ranks):
                expected = (self.folder / f"out/rank_{rank}/checkpoint_{rank}.ckpt").read_bytes()
                self.assertEqual(self.bytes_of("a", *SRC, *cluster, "--rank", rank), expected)
            # The strategy is no rank's.
            self.bytes_of("a", *SRC, *cluster, "--rank", ranks, code=2, says=f"0 to {ranks - 1}")
            if ranks > 1:
                self.bytes_of("a", *SRC, *cluster, code=2, says=f"the target has {ranks} files, 0-{ranks - 1}")
            else:
                self.assertEqual(self.bytes_of("a", *SRC, *cluster), expected)
            shutil.rmtree(self.folder / "out")

    def test_casts_that_lose_values(self):
        self.write("full.safetensors", program_case.safetensors(
            [("a", "F32", [2], program_case.floats(1, 2)), ("b", "F32", [2], program_case.floats(1e9, 2))]))
        cast = ["full.safetensors", "--format", "unified", "--rank", 0, "--dtype", "*=float16"]
        self.assertIn(b"a", self.bytes_of(*cast, says="warning: casts made 1 finite value"))
        self.bytes_of(*cast, "--dtype-overflow", "error", code=3, says="infinite or NaN")

    def test_a_source_that_states_a_wrong_crc(self):
        self.samples()
        self.reshard("convert", "a", "with_crc", *SRC, "--dst-strategy", "a/strategy", "--crc")
        path = self.folder / "with_crc/rank_0/checkpoint_0.ckpt"
        content = bytearray(path.read_bytes())
        content[-100] ^= 1
        path.write_bytes(content)
        found = self.bytes_of("with_crc", *RESHARDED, "--rank", 0, "--check-replicas=none", code=3, says="CRC")
        self.assertEqual(found, b"")
        self.bytes_of("with_crc", *RESHARDED, "--rank", 0, "--check-replicas=none", "--no-checksum")
        # A range is not compared, as help says.
        self.bytes_of("with_crc", *RESHARDED, "--rank", 0, "--check-replicas=none", "--range", "0:100")
        self.assertIn("compares no digests or CRCs", " ".join(self.reshard("cat", "--help").stdout.split()))

    def test_a_source_that_changes(self):
        self.samples(hidden=1024)
        for more, change in ((["--jobs", "1"], "append"), (["--range", "0:20000000"], "append"),
                             (["--jobs", "1"], "truncate")):
            shutil.copytree(self.folder / "a", self.folder / "changing")
            with subprocess.Popen([self.program, "cat", "changing", *RESHARDED, "--rank", "0", *more],
                                  cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
                self.assertEqual(len(process.stdout.read(100)), 100)  # now the others wait for us
                for path in (self.folder / "changing").rglob("*.ckpt"):
                    if path.parent.name.startswith("rank_"):
                        if change == "append":
                            with open(path, "ab") as file:
                                file.write(b"more")
                        else:
                            os.truncate(path, 4096)
                process.stdout.read()
                said = process.stderr.read().decode()
                self.assertEqual(process.wait(timeout=60), 3, said)
            self.assertIn("changed", said)
            shutil.rmtree(self.folder / "changing")

    def test_the_reader_goes(self):
        self.samples(hidden=1024)
        with subprocess.Popen([self.program, "cat", "a", *RESHARDED, "--rank", "0"], cwd=self.folder,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            process.stdout.read(100)
            process.stdout.close()
            said = process.stderr.read().decode()
            self.assertEqual(process.wait(timeout=60), 4, said)
        self.assertIn("standard output: its reader has gone", said)

    def test_a_full_device(self):
        self.samples()
        self.bytes_of("a", *RESHARDED, "--rank", 0, "-o", "/dev/full", code=4, says="/dev/full: cannot write")
        self.assertEqual(self.bytes_of("a", *RESHARDED, "--rank", 0, "-o", "/dev/null"), b"")

    def test_a_terminal_is_refused(self):
        self.samples()
        leader, follower = pty.openpty()
        for words, output in (([], follower), (["-o", os.ttyname(follower)], subprocess.DEVNULL)):
            done = subprocess.run([self.program, "cat", "a", *RESHARDED, "--rank", "0", *words], cwd=self.folder,
                                  stdout=output, stderr=subprocess.PIPE, timeout=60, check=False)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(b"is a terminal", done.stderr)
        os.close(follower)
        os.close(leader)

    def test_files(self):
        self.samples()
        whole = self.bytes_of("a", *RESHARDED, "--rank", 0)
        out = self.folder / "new/folder/0.ckpt"
        to_out = ["a", *RESHARDED, "--rank", 0, "-o", out]
        self.assertEqual(self.bytes_of(*to_out), b"")
        self.assertEqual(out.read_bytes(), whole)
        out.write_bytes(b"kept")
        self.bytes_of(*to_out, code=6, says="pass --force")
        self.assertEqual(out.read_bytes(), b"kept")
        self.bytes_of(*to_out, "--force", "--range", "1:9")
        self.assertEqual(out.read_bytes(), whole[1:10])
        # What fails leaves what was there.
        self.bytes_of(*to_out, "--force", "--range", f"{len(whole)}:1", code=2)
        self.assertEqual(out.read_bytes(), whole[1:10])
        self.assertEqual(os.listdir(out.parent), ["0.ckpt"])
        # No file that is read, by whatever name.
        os.link(self.folder / "a/rank_0/llama-1_100.ckpt", self.folder / "link.ckpt")
        self.bytes_of(*to_out[:-1], self.folder / "link.ckpt", "--force", code=2)
        self.bytes_of(*to_out[:-1], self.folder, code=6, says="is a folder")

    def test_named_pipes(self):
        self.samples()
        whole = self.bytes_of("a", *RESHARDED, "--rank", 0)
        pipe = self.folder / "0.ckpt"
        os.mkfifo(pipe)
        # A reader of a conversion that fails finds nothing, and does not wait for ever.
        for rank, code, expected in ((0, 0, whole), (9, 2, b"")):
            end = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
            found = []
            reader = threading.Thread(target=lambda: found.append(read_all(end)))
            reader.start()
            self.bytes_of("a", *RESHARDED, "--rank", rank, "-o", pipe, code=code)
            reader.join()
            os.close(end)
            self.assertEqual(found, [expected])
        self.assertTrue(pipe.is_fifo())


def read_all(end):
    """Reads a pipe that somebody will open and close; nothing if nobody does."""
    found = b""
    poll = select.poll()
    poll.register(end, select.POLLIN)
    while poll.poll(60_000):  # also when its writers have gone
        piece = os.read(end, 1 << 16)
        if not piece:
            return found
        found += piece
    return None


if __name__ == "__main__":
    program_case.main()
