#!/usr/bin/env python3
"""Compares how reshard reads encrypted checkpoints with the installed MindSpore.

MindSpore saves random parameters twice, plain and encrypted, in a random mode
with a random key: `reshard recode` to safetensors has to write the same bytes
from both, and refuse another key.
"""

import os
import subprocess
import sys

os.environ["GLOG_v"] = "4"

import mindspore  # pylint: disable=wrong-import-position
import numpy as np  # pylint: disable=wrong-import-position

import case_loop  # pylint: disable=wrong-import-position

KEY_LENGTHS = {"AES-GCM": [16, 24, 32], "AES-CBC": [16, 24, 32],
               "SM4-CBC": [16]}
DTYPES = [np.float32, np.float16, np.int32, np.int8, np.float64]


def parameters_of(rng):
    parameters = []
    for number in range(rng.randint(1, 12)):
        shape = [rng.randint(1, 40) for _ in range(rng.randint(0, 3))]
        size = int(np.prod(shape)) * 8
        values = np.frombuffer(rng.randbytes(size), np.int64) % 1000
        tensor = values.reshape(shape).astype(rng.choice(DTYPES))
        parameters.append({"name": f"layer.{number}.weight",
                           "data": mindspore.Tensor(tensor)})
    return parameters


def recode(reshard, source, out, key_file=None):
    key = ["--key-file", key_file] if key_file else []
    return subprocess.run(
        [reshard, "recode", source, out, "--format", "safetensors", "-q",
         *key], capture_output=True, text=True, check=False)


def check(rng, reshard, folder):
    """Runs one case; returns what is wrong with it, if anything."""
    mode = rng.choice(list(KEY_LENGTHS))
    key = rng.randbytes(rng.choice(KEY_LENGTHS[mode]))
    parameters = parameters_of(rng)
    for side, options in (("plain", {}),
                          ("secret", {"enc_key": key, "enc_mode": mode})):
        (folder / side).mkdir()
        mindspore.save_checkpoint(parameters, str(folder / side / "a.ckpt"),
                                  **options)
    (folder / "key").write_bytes(key)
    (folder / "other").write_bytes(rng.randbytes(len(key)))
    for side, key_file in (("plain", None), ("secret", folder / "key")):
        done = recode(reshard, folder / side / "a.ckpt",
                      folder / f"{side}_out", key_file)
        if done.returncode != 0:
            return f"{mode}: {done.stderr}"
    expected = (folder / "plain_out" / "a.safetensors").read_bytes()
    found = (folder / "secret_out" / "a.safetensors").read_bytes()
    if found != expected:
        return f"{mode}: other bytes"
    done = recode(reshard, folder / "secret" / "a.ckpt", folder / "other_out",
                  folder / "other")
    if done.returncode != 3:
        return f"{mode}: another key, exit {done.returncode}: {done.stderr}"
    return None


if __name__ == "__main__":
    sys.exit(case_loop.run(__doc__, check))
