#!/usr/bin/env python3
"""Files of one set that differ in encryption, CRC, format or order: each is asked for itself.

Usage: each_file_test.py --reshard BIN --gen BIN
"""

import argparse
import filecmp
import json
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

SRC = ["--src-strategy", "a/strategy"]
KEY = ["--key-file", "key"]
SECRET = "S3cretS3cretS3cr"


class Test:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.mistakes = []

    def run(self, *words, code=0):
        done = subprocess.run([self.program, *words], cwd=self.folder, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, errors="replace", timeout=120,
                              check=False)
        if done.returncode != code:
            self.mistakes.append(f"{' '.join(words)}: exit {done.returncode}, expected {code}\n"
                                 f"{done.stderr}")
        return done.stdout + done.stderr

    def expect(self, holds, what):
        if not holds:
            self.mistakes.append(what)

    def file(self, folder, rank, extension="ckpt"):
        return self.folder / folder / f"rank_{rank}/checkpoint_{rank}.{extension}"


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


def check_encryption(test):
    to_same = SRC + ["--dst-strategy", "a/strategy"]
    test.run("convert", "a", "sealed", *to_same, "--encrypt", "AES-GCM", "--encrypt-key-file",
             "key")
    test.run("convert", "a", "plain", *to_same)
    said = test.run("convert", "sealed", "o1", *SRC, *KEY)
    test.expect("not encrypted" not in said, said)
    for ranks, words in (((2,), "1 of 4 files is not encrypted; the key is not used for it: "
                                "sealed/rank_2/checkpoint_2.ckpt"),
                         ((2, 3), "2 of 4 files are not encrypted; the key is not used for them: "
                                  "sealed/rank_2/checkpoint_2.ckpt, "
                                  "sealed/rank_3/checkpoint_3.ckpt")):
        for rank in ranks:
            shutil.copy(test.file("plain", rank), test.file("sealed", rank))
        for command in (["convert", "sealed", f"o{len(ranks) + 1}", *SRC],
                        ["digest", "sealed", "--strategy", "a/strategy"],
                        ["plan", "sealed", "x", *SRC]):
            said = test.run(*command, *KEY)
            test.expect(words in said, f"{command}: {said}")
    test.expect(filecmp.cmp(test.file("o1", 0), test.file("o3", 0), False), "plain among sealed")


def check_order(test):
    """Replicas that are equal, but for the order of their tensors."""
    test.run("recode", "a", "st", "--format", "safetensors")
    test.run("convert", "st", "st1", *SRC)
    for rank in range(1, 4):
        (path,) = (test.folder / "st" / f"rank_{rank}").iterdir()
        reorder(path)
        # Each rank against those before it that still have the first order.
        said = test.run("convert", "st", f"st_{rank}", *SRC)
        test.expect("differ" not in said, said)
        test.expect(filecmp.cmp(test.file("st1", 0, "safetensors"),
                                test.file(f"st_{rank}", 0, "safetensors"), False),
                    f"order of rank {rank}")


def check_crc(test):
    to_same = SRC + ["--dst-strategy", "a/strategy"]
    for form, extension in (("ckpt", "ckpt"), ("safetensors", "safetensors")):
        with_crc, without = f"crc_{form}", f"no_crc_{form}"
        test.run("convert", "a", with_crc, *to_same, "--format", form, "--crc")
        test.run("convert", "a", without, *to_same, "--format", form)
        for rank in (0, 2):
            shutil.copy(test.file(without, rank, extension), test.file(with_crc, rank, extension))
            test.run("verify", with_crc, "--against", "a", *to_same)
        shutil.move(test.folder / with_crc / "rank_0", test.folder / f"{with_crc}_0")
        said = test.run("verify", with_crc, "--against", "a", *to_same, code=1)
        test.expect("rank_0/checkpoint_0" in said and "missing" in said and "rank_1" not in said,
                    said)

    # Names without an extension, two formats: the CRC of each file is checked that states one.
    (test.folder / "mixed").mkdir()
    for rank in range(4):
        path = (test.file("crc_ckpt", rank) if rank in (1, 3) else
                test.file("no_crc_safetensors", rank, "safetensors"))
        shutil.copy(path, test.folder / f"mixed/r{rank}")
    said = test.run("convert", "mixed/r{rank}", "m1", *SRC, "--format", "ckpt", "-v")
    path = test.folder / "mixed/r1"
    data = bytearray(path.read_bytes())
    data[-100] ^= 1
    path.write_bytes(data)
    said = test.run("convert", "mixed/r{rank}", "m2", *SRC, "--check-replicas=none", code=3)
    test.expect("mixed/r1: the trailer states CRC-32" in said, said)


def check_key_names(test):
    """A key in the place of its name is shown nowhere."""
    test.run("convert", "plain", "logged", *SRC, "--log-file", "log.txt")
    for option in ("--key-env", "--key-file"):
        for command in (["inspect", "plain"], ["convert", "plain", "k", *SRC],
                        ["digest", "plain"], ["verify", "plain"]):
            said = test.run(*command, option, SECRET, "--json-lines", "--log-file", "log.txt",
                            code=2)
            test.expect(SECRET not in said and "not shown" in said, f"{command} {option}: {said}")
    for option in ("--encrypt-key-env", "--encrypt-key-file"):
        said = test.run("convert", "plain", "k", *SRC, "--encrypt", "AES-GCM", option, SECRET,
                        code=2)
        test.expect(SECRET not in said and "not shown" in said, f"{option}: {said}")
    for words in (["--key", SECRET], ["--key=" + SECRET], ["--key-envv", SECRET],
                  ["--key-env=" + SECRET, "--key-file=" + SECRET]):
        said = test.run("inspect", "plain", *words, code=2)
        test.expect(SECRET not in said, f"{words}: {said}")
    kept = [path for path in test.folder.rglob("*")
            if path.is_file() and SECRET.encode() in path.read_bytes()]
    test.expect(not kept, f"the key is in {kept}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--reshard", required=True)
    parser.add_argument("--gen", required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "key").write_bytes(b"0123456789abcdef")
        subprocess.run([options.gen, "a", "--layers", "2", "--hidden", "64", "--ffn", "128",
                        "--vocab", "256", "--tp", "2", "--dp", "2"], cwd=folder, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        test = Test(options.reshard, folder)
        for check in (check_encryption, check_order, check_crc, check_key_names):
            check(test)
        for mistake in test.mistakes:
            print(mistake)
        sys.exit(1 if test.mistakes else 0)


if __name__ == "__main__":
    main()
