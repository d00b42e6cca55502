#!/usr/bin/env python3
"""Compares how reshard reads and writes encrypted checkpoints with the installed MindSpore.

MindSpore saves random parameters twice, plain and encrypted, in a random mode
with a random key: `reshard recode` to safetensors has to write the same bytes
from both, and refuse another key. What `reshard recode --encrypt` makes of
these MindSpore has to load with its key, as the same, and not with another.
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
        if number == 0 and rng.random() < 0.3:  # some blocks of reshard's
            shape = [rng.randint(100_000, 500_000)]
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
    return check_written(reshard, folder, mode, key)


def check_written(reshard, folder, mode, key):
    """Has reshard encrypt what it made, and MindSpore load it."""
    made = folder / "written"
    done = subprocess.run(
        [reshard, "recode", folder / "plain_out" / "a.safetensors", made,
         "--format", "ckpt", "-q", "--encrypt", mode,
         "--encrypt-key-file", folder / "key"],
        capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return f"{mode}: {done.stderr}"
    plain = mindspore.load_checkpoint(str(folder / "plain" / "a.ckpt"))
    try:
        loaded = mindspore.load_checkpoint(str(made / "a.ckpt"), dec_key=key,
                                           dec_mode=mode)
    except ValueError as error:
        return f"{mode}: MindSpore does not load it: {error}"
    if set(loaded) != set(plain):
        return f"{mode}: other parameters"
    for name, parameter in plain.items():
        found = loaded[name].asnumpy()
        expected = parameter.asnumpy()
        if (found.dtype, found.shape, found.tobytes()) != (
                expected.dtype, expected.shape, expected.tobytes()):
            return f"{mode}: {name} has other values"
    try:
        mindspore.load_checkpoint(
            str(made / "a.ckpt"), dec_key=(folder / "other").read_bytes(),
            dec_mode=mode)
        return f"{mode}: MindSpore loads it with another key"
    except ValueError:
        return None


if __name__ == "__main__":
    sys.exit(case_loop.run(__doc__, check))
