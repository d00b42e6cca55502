#!/usr/bin/env python3
"""Files of one set that differ in encryption, CRC, format or order: each is asked for itself.

Usage: each_file_test.py --reshard BIN --gen BIN
"""

import json
import pathlib
import random
import shutil
import struct
import sys

import program_case

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "differential"))
import ciphers  # pylint: disable=wrong-import-position

SRC = ["--src-strategy", "a/strategy"]
TO_SAME = SRC + ["--dst-strategy", "a/strategy"]
KEY = ["--key-file", "key"]
SECRET = "S3cretS3cretS3cr"


def reorder(path):
    """Puts the tensors of a safetensors file in the opposite order; its size stays."""
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    begin, end, body = 8 + length, 0, b""
    metadata = {"__metadata__": header.pop("__metadata__")} if "__metadata__" in header else {}
    for name in reversed(list(header)):
        first, last = header[name]["data_offsets"]
        body += data[begin + first:begin + last]
        metadata[name] = {**header[name], "data_offsets": [end, end + last - first]}
        end += last - first
    text = json.dumps(metadata, separators=(",", ":")).encode()
    text += b" " * (max(length, len(text)) - len(text))
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


class EachFileTest(program_case.ProgramCase):
    def setUp(self):
        super().setUp()
        self.write("key", program_case.KEY)
        self.generate("a", "--layers", 2, "--hidden", 64, "--ffn", 128, "--vocab", 256, "--tp", 2,
                      "--dp", 2)

    def file(self, folder, rank, extension="ckpt"):
        return self.folder / folder / f"rank_{rank}/checkpoint_{rank}.{extension}"

    def said(self, *words, code=0):
        done = self.reshard(*words, code=code)
        return done.stdout + done.stderr

    def test_encryption(self):
        self.reshard("convert", "a", "sealed", *TO_SAME, "--encrypt", "AES-GCM",
                     "--encrypt-key-file", "key")
        self.reshard("convert", "a", "plain", *TO_SAME)
        self.assertNotIn("not encrypted", self.said("convert", "sealed", "o1", *SRC, *KEY))
        for ranks, words in (((2,), "1 of 4 files is not encrypted; the key is not used for it: "
                                    "sealed/rank_2/checkpoint_2.ckpt"),
                             ((2, 3), "2 of 4 files are not encrypted; the key is not used for "
                                      "them: sealed/rank_2/checkpoint_2.ckpt, "
                                      "sealed/rank_3/checkpoint_3.ckpt")):
            for rank in ranks:
                shutil.copy(self.file("plain", rank), self.file("sealed", rank))
            for command in (["convert", "sealed", f"o{len(ranks) + 1}", *SRC],
                            ["digest", "sealed", "--strategy", "a/strategy"],
                            ["plan", "sealed", "x", *SRC]):
                self.reshard(*command, *KEY, says=words)
        self.expect_same(self.file("o1", 0), self.file("o3", 0))

    def test_order(self):
        """Replicas that are equal, but for the order of their tensors."""
        self.reshard("recode", "a", "st", "--format", "safetensors")
        self.reshard("convert", "st", "st1", *SRC)
        for rank in range(1, 4):
            (path,) = (self.folder / "st" / f"rank_{rank}").iterdir()
            reorder(path)
            # Each rank against those before it that still have the first order.
            self.assertNotIn("differ", self.said("convert", "st", f"st_{rank}", *SRC))
            self.expect_same(self.file("st1", 0, "safetensors"),
                             self.file(f"st_{rank}", 0, "safetensors"))

    def test_crc(self):
        for form, extension in (("ckpt", "ckpt"), ("safetensors", "safetensors")):
            with_crc, without = f"crc_{form}", f"no_crc_{form}"
            self.reshard("convert", "a", with_crc, *TO_SAME, "--format", form, "--crc")
            self.reshard("convert", "a", without, *TO_SAME, "--format", form)
            for rank in (0, 2):
                shutil.copy(self.file(without, rank, extension),
                            self.file(with_crc, rank, extension))
                self.reshard("verify", with_crc, "--against", "a", *TO_SAME)
            shutil.move(self.folder / with_crc / "rank_0", self.folder / f"{with_crc}_0")
            said = self.said("verify", with_crc, "--against", "a", *TO_SAME, code=1)
            self.assertIn("rank_0/checkpoint_0", said)
            self.assertIn("missing", said)
            self.assertNotIn("rank_1", said)

        # Names without an extension, two formats: the CRC of each file is checked that states one.
        (self.folder / "mixed").mkdir()
        for rank in range(4):
            path = (self.file("crc_ckpt", rank) if rank in (1, 3) else
                    self.file("no_crc_safetensors", rank, "safetensors"))
            shutil.copy(path, self.folder / f"mixed/r{rank}")
        self.reshard("convert", "mixed/r{rank}", "m1", *SRC, "--format", "ckpt", "-v")
        path = self.folder / "mixed/r1"
        data = bytearray(path.read_bytes())
        data[-100] ^= 1
        path.write_bytes(data)
        self.reshard("convert", "mixed/r{rank}", "m2", *SRC, "--check-replicas=none", code=3,
                     says="mixed/r1: the trailer states CRC-32")

    def test_blocks(self):
        """Encrypted blocks of any size, also when the last one lies where an even one would."""
        plain = program_case.checkpoint(*(f"w{index:02}" for index in range(11)))
        self.assertEqual(len(plain), 330)
        self.write("plain.ckpt", plain)
        expected = json.loads(self.reshard("digest", "plain.ckpt", "--json").stdout)
        for mode in ciphers.MODES:
            for sizes in ((100,), (100, 52, 148, 30), (30, 300)):
                with self.subTest(mode=mode, sizes=sizes):
                    self.write("sealed.ckpt", ciphers.encrypted(
                        plain, program_case.KEY, mode, random.Random(0), sizes))
                    found = self.reshard("digest", "sealed.ckpt", *KEY, "--json")
                    self.assertEqual(json.loads(found.stdout)["parameters"],
                                     expected["parameters"])
                    self.reshard("recode", "sealed.ckpt", "st", "--format", "safetensors", *KEY,
                                 "--force")
                    self.reshard("diff", "plain.ckpt", "st/sealed.safetensors")

    def test_shards_again(self):
        """A shard of an encrypted set that runs again has nothing to do, with --force too."""
        self.generate("b", "--layers", 2, "--hidden", 64, "--ffn", 128, "--vocab", 256, "--tp", 4,
                      "--strategy-only")
        for mode in ciphers.MODES:
            convert = ["convert", "a", mode, *SRC, "--dst-strategy", "b/strategy", "--encrypt",
                       mode, "--encrypt-key-file", "key"]
            for shard in (0, 1):
                self.reshard(*convert, "--shard", f"{shard}/2")
            manifest = (self.folder / mode / "manifest.json").read_bytes()
            content = [self.file(mode, rank).read_bytes() for rank in range(4)]
            for again in ([0], [1, "--force"], [0], [0, "--force"], [1]):
                shard, *force = again
                self.reshard(*convert, "--shard", f"{shard}/2", *force,
                             says=f"share {shard}/2: nothing to do")
                self.assertFalse((self.folder / mode / ".reshard").exists())
            self.assertEqual((self.folder / mode / "manifest.json").read_bytes(), manifest)
            # With new vectors, what is written again would differ.
            self.assertEqual([self.file(mode, rank).read_bytes() for rank in range(4)], content)
            self.reshard("verify", mode, *KEY)

    def test_key_names(self):
        """A key in the place of its name is shown nowhere."""
        self.reshard("convert", "a", "plain", *TO_SAME)
        self.reshard("convert", "plain", "logged", *SRC, "--log-file", "log.txt")
        for option in ("--key-env", "--key-file"):
            for command in (["inspect", "plain"], ["convert", "plain", "k", *SRC],
                            ["digest", "plain"], ["verify", "plain"]):
                said = self.said(*command, option, SECRET, "--json-lines", "--log-file", "log.txt",
                                 code=2)
                self.assertNotIn(SECRET, said)
                self.assertIn("not shown", said)
        for option in ("--encrypt-key-env", "--encrypt-key-file"):
            said = self.said("convert", "plain", "k", *SRC, "--encrypt", "AES-GCM", option, SECRET,
                             code=2)
            self.assertNotIn(SECRET, said)
            self.assertIn("not shown", said)
        for words in (["--key", SECRET], ["--key=" + SECRET], ["--key-envv", SECRET],
                      ["--key-env=" + SECRET, "--key-file=" + SECRET]):
            self.assertNotIn(SECRET, self.said("inspect", "plain", *words, code=2))
        kept = [path for path in self.folder.rglob("*")
                if path.is_file() and SECRET.encode() in path.read_bytes()]
        self.assertFalse(kept, "the key is in files")


if __name__ == "__main__":
    program_case.main()
