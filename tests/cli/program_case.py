"""A base for tests that call the program in a scratch folder, and safetensors files for them."""

import argparse
import filecmp
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

KEY = b"0123456789abcdef"


class ProgramCase(unittest.TestCase):
    program = gen = None  # paths of both programs, set by main()

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="reshard-cli-")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def reshard(self, *words, code=0, says=()):
        """Runs the program; it must end with `code`, and its messages must have each of `says`."""
        done = subprocess.run([self.program, *map(str, words)], cwd=self.folder,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              errors="replace", timeout=120, check=False)
        command = " ".join(map(str, words))
        self.assertEqual(done.returncode, code, f"{command}\n{done.stderr}")
        for text in [says] if isinstance(says, str) else says:
            self.assertIn(text, done.stderr, command)
        return done

    def generate(self, name, *options):
        """Makes a checkpoint with its strategy, or with --strategy-only the strategy alone."""
        subprocess.run([self.gen, name, *map(str, options)], cwd=self.folder, check=True,
                       capture_output=True, timeout=120)

    def write(self, path, content):
        """Writes bytes, or a value as JSON, to a file below the scratch folder."""
        path = self.folder / path
        path.parent.mkdir(parents=True, exist_ok=True)
        if not isinstance(content, bytes):
            content = json.dumps(content).encode()
        path.write_bytes(content)
        return path

    def expect_same(self, first, second):
        self.assertTrue(filecmp.cmp(self.folder / first, self.folder / second, shallow=False),
                        f"{first} and {second} differ")


def floats(*values):
    return struct.pack(f"<{len(values)}f", *values)


def safetensors(tensors, metadata=None):
    """Returns a file of (name, dtype, shape, content)."""
    header, contents = {}, b""
    if metadata is not None:
        header["__metadata__"] = metadata
    for name, dtype, shape, content in tensors:
        header[name] = {"dtype": dtype, "shape": shape,
                        "data_offsets": [len(contents), len(contents) + len(content)]}
        contents += content
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + contents


def two_floats(*names):
    """Returns a safetensors file in which each of the names has another value."""
    return safetensors([(name, "F32", [2], floats(index, 1)) for index, name in enumerate(names)])


def read_safetensors(path):
    """Returns ({name: (dtype, shape, content)}, metadata)."""
    content = path.read_bytes()
    begin = 8 + struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:begin])
    metadata = header.pop("__metadata__", {})
    return {name: (tensor["dtype"], tensor["shape"],
                   content[begin + tensor["data_offsets"][0]:begin + tensor["data_offsets"][1]])
            for name, tensor in header.items()}, metadata


def checkpoint(*names):
    """Returns a .ckpt file of Float32 tensors of the shape [2]; the names are short."""
    def field(number, content):
        return bytes([number << 3 | 2, len(content)]) + content
    tensor = b"\x08\x02" + field(2, b"Float32") + field(3, floats(1, 2))
    return b"".join(field(1, field(1, name.encode()) + field(2, tensor)) for name in names)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--reshard", required=True)
    parser.add_argument("--gen", required=True)
    options, rest = parser.parse_known_args()
    ProgramCase.program, ProgramCase.gen = options.reshard, options.gen
    unittest.main(module="__main__", argv=[sys.argv[0], *rest])
