#!/usr/bin/env python3
"""Compares the CRCs that reshard writes with the installed MindSpore's.

A checkpoint of random tensors and integers that are no arrays, converted with
`--crc` into a .ckpt and a safetensors file: load_checkpoint(crc_check=True)
has to take both, and to refuse either once one bit of its contents is
another. What save_checkpoint(crc_check=True) writes of the same has to be
converted by reshard, and refused with another bit.
"""

import os
import subprocess
import sys

os.environ["GLOG_v"] = "4"
os.environ["OMP_NUM_THREADS"] = "1"

import mindspore  # pylint: disable=wrong-import-position
import numpy as np  # pylint: disable=wrong-import-position

import case_loop  # pylint: disable=wrong-import-position

# Not BFloat16, of which MindSpore has no CRC in safetensors files.
DTYPES = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64",
          "uint64", "float16", "float32", "float64", "bool"]


def parameters_of(rng):
    """Returns parameters for save_checkpoint, the first of some bytes."""
    parameters = [{"name": "layer.0.weight", "data": mindspore.Tensor(
        np.frombuffer(rng.randbytes(64), dtype="float32").reshape(4, 4))}]
    for number in range(rng.randint(0, 6)):
        dtype = rng.choice(DTYPES)
        dims = tuple(rng.randint(0, 9) for _ in range(rng.randint(1, 3)))
        count = int(np.prod(dims))
        content = rng.randbytes(count * np.dtype(dtype).itemsize)
        if dtype == "bool":
            content = bytes(byte & 1 for byte in content)
        array = np.frombuffer(content, dtype=dtype).reshape(dims)
        if 0 in dims:
            continue  # MindSpore saves none
        parameters.append({"name": f"other.{number}",
                           "data": mindspore.Tensor(array)})
    for name in ("epoch_num", "step_num"):
        value = np.array(rng.randint(0, 100_000), dtype="int32")
        parameters.append({"name": name, "data": mindspore.Tensor(value)})
    rng.shuffle(parameters)
    return parameters


def load(path):
    """Returns whether MindSpore takes the file and its CRC."""
    kind = path.suffix[1:]
    try:
        mindspore.load_checkpoint(str(path), crc_check=True, format=kind)
        return True
    except ValueError:
        return False


def recode(reshard, source, out, kind):
    return subprocess.run(
        [reshard, "recode", source, out, "--format", kind, "--crc", "-q",
         "--force"], capture_output=True, text=True, check=False)


def change(path, content):
    """Flips a bit of the file, within `content`."""
    data = bytearray(path.read_bytes())
    place = data.find(content)
    assert place >= 0
    data[place + 7] ^= 4
    path.write_bytes(bytes(data))


def check(rng, reshard, folder):
    """Runs one case; returns what is wrong with it, if anything."""
    parameters = parameters_of(rng)
    weight = next(p["data"].asnumpy().tobytes() for p in parameters
                  if p["name"] == "layer.0.weight")
    for kind, other in (("ckpt", "safetensors"), ("safetensors", "ckpt")):
        source = folder / f"a.{kind}"
        mindspore.save_checkpoint(parameters, str(source), crc_check=True,
                                  format=kind)
        done = recode(reshard, source, folder, other)
        if done.returncode != 0:
            return f"{kind}: {done.stderr}"
        made = folder / f"a.{other}"
        if not load(made):
            return f"{other}: MindSpore does not take the CRC"
        change(made, weight)
        if load(made):
            return f"{other}: MindSpore takes the CRC of other bytes"
        change(source, weight)
        done = recode(reshard, source, folder, other)
        if done.returncode != 3:
            return f"{kind}: another bit, exit {done.returncode}"
        for path in (source, made):
            path.unlink()
    return None


if __name__ == "__main__":
    sys.exit(case_loop.run(__doc__, check))
