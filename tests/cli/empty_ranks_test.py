#!/usr/bin/env python3
"""A rank without parameters: its file is written, verified, and taken as a source like any other.

Usage: empty_ranks_test.py --reshard BIN --gen BIN

Two stages of two ranks, of which one gets nothing: the first, or the last. In both formats, with a
CRC, encrypted, by one process and by two shards.
"""

import itertools

import program_case

STRATEGY = ["--src-strategy", "a/strategy"]
TO_SAME = STRATEGY + ["--dst-strategy", "a/strategy"]
PROTECTIONS = {
    "plain": [],
    "crc": ["--crc"],
    "AES-GCM": ["--encrypt", "AES-GCM", "--encrypt-key-file", "key"],
    "AES-CBC": ["--encrypt", "AES-CBC", "--encrypt-key-file", "key"],
}
# Which ranks are empty if just these parameters are taken.
EMPTY = {"model.layers.1.*": (0, 1), "model.layers.0.*": (2, 3)}


class EmptyRanksTest(program_case.ProgramCase):
    def setUp(self):
        super().setUp()
        self.write("key", program_case.KEY)
        self.generate("a", "--layers", 2, "--hidden", 64, "--ffn", 128, "--vocab", 256, "--tp", 2,
                      "--pp", 2)

    def test_written_verified_and_read(self):
        for pattern, form, protection, shards in itertools.product(
                EMPTY, ("ckpt", "safetensors"), PROTECTIONS, (1, 2)):
            if form == "safetensors" and protection.startswith("AES"):
                continue
            if shards == 2 and protection in ("plain", "AES-CBC"):
                continue
            with self.subTest(pattern=pattern, form=form, protection=protection, shards=shards):
                self.check(pattern, form, protection, shards)

    def check(self, pattern, form, protection, shards):
        out = f"{pattern}_{form}_{protection}_{shards}".replace("*", "")
        key = ["--key-file", "key"] if protection.startswith("AES") else []
        options = ["--include", pattern, "--format", form]
        convert = ["convert", "a", out, *TO_SAME, *options, *PROTECTIONS[protection]]
        if shards == 1:
            self.reshard(*convert, says="empty target file")
        else:
            for shard in range(shards):
                self.reshard(*convert, "--shard", f"{shard}/{shards}")
        extension = "ckpt" if form == "ckpt" else "safetensors"
        for rank in EMPTY[pattern]:
            path = self.folder / out / f"rank_{rank}/checkpoint_{rank}.{extension}"
            self.assertEqual(path.stat().st_size == 0, form == "ckpt" and protection != "crc",
                             path.name)
        self.reshard("verify", out, *key)
        against = ["verify", out, "--against", "a", *TO_SAME, *options]
        if key:
            against += ["--encrypt-key-file", "key"]
        self.reshard(*against)

        # As a source it gives what the first source gives.
        back = out + ".full"
        self.reshard("convert", out, back, *STRATEGY, *key, "--format", form, "-q")
        self.reshard("convert", out, back + "_c", *STRATEGY, *key, "--format", form, "--unmatched",
                     "copy", "-q")
        self.reshard("convert", "a", back + "_a", *STRATEGY, "--include", pattern, "--format",
                     form, "-q")
        path = f"rank_0/checkpoint_0.{extension}"
        self.expect_same(f"{back}/{path}", f"{back}_a/{path}")
        self.expect_same(f"{back}_c/{path}", f"{back}_a/{path}")
        self.reshard("inspect", out, *key)
        self.reshard("digest", out, "--strategy", "a/strategy", *key)
        self.reshard("diff", out, f"{back}/{path}", "--a-strategy", "a/strategy", *key)
        self.reshard("plan", out, "x", *STRATEGY, *key)
        other = "safetensors" if form == "ckpt" else "ckpt"
        self.reshard("recode", out, out + "." + other, "--format", other, *key, "-q")

    def test_errors(self):
        """A file that is empty for another reason is an error."""
        self.write("none.ckpt", b"")
        self.reshard("inspect", "none.ckpt", code=3, says="found an empty file (0 bytes)")
        self.reshard("convert", "none.ckpt", "x", "--dst-strategy", "a/strategy", code=3,
                     says="found an empty file (0 bytes)")
        for rank in range(2):
            self.write(f"all/rank_{rank}/{rank}.ckpt", b"")
        self.reshard("convert", "all", "x", *STRATEGY, code=3, says="found an empty file (0 bytes)")
        # A file that was cut off to nothing: its shards are in no other one.
        self.reshard("convert", "a", "cut", *TO_SAME, "-q")
        self.write("cut/rank_1/checkpoint_1.ckpt", b"")
        self.reshard("convert", "cut", "x", *STRATEGY, code=3, says="rank 1")
        self.reshard("inspect", "cut")


if __name__ == "__main__":
    program_case.main()
