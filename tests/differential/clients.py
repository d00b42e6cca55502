#!/usr/bin/env python3
"""Holds what is compared with against the installed libraries.

Every safetensors file below a folder is opened with safetensors, some with
MindSpore: values have to be those that the plain reader finds. The plain
writers have to write what safetensors and huggingface_hub do.
"""

import argparse
import json
import os
import random
import sys
from pathlib import Path

# Its log would bury the report.
os.environ["GLOG_v"] = "4"

import mindspore  # pylint: disable=wrong-import-position
import numpy as np
import safetensors
from huggingface_hub.serialization import split_state_dict_into_shards_factory
from safetensors.numpy import save

import cases
from writers import huggingface_folder, read_safetensors, safetensors_bytes

# Types that NumPy has not.
WITHOUT_NUMPY = {"BFloat16"}


def library_fails(path):
    """Returns where the library finds something else."""
    rows = {row[0]: row for row in read_safetensors(path)}
    with safetensors.safe_open(path, framework="np") as file:
        if sorted(file.keys()) != sorted(rows):
            return [f"{path}: the names differ"]
        failures = []
        for name, (_, dtype, dims, content) in rows.items():
            if list(file.get_slice(name).get_shape()) != dims:
                failures.append(f"{path}: {name}: the shape differs")
            if dtype not in WITHOUT_NUMPY and (
                    file.get_tensor(name).tobytes() != content):
                failures.append(f"{path}: {name}: the values differ")
    return failures


def mindspore_fails(path):
    rows = {row[0]: row for row in read_safetensors(path)}
    if not rows:
        return []
    # MindSpore's BFloat16 needs NumPy 1.
    if np.__version__ >= "2" and WITHOUT_NUMPY & {row[1] for row
                                                  in rows.values()}:
        return []
    loaded = {name: bytes(parameter.data.get_bytes())
              for name, parameter in mindspore.load_checkpoint(
                  str(path), format="safetensors").items()}
    return [f"{path}: MindSpore loads {name} with other values"
            for name in sorted({*rows, *loaded})
            if name not in loaded or name not in rows
            or loaded[name] != rows[name][3]]


def reference_fails(seed):
    """Holds the plain writers, which the random conversions are compared with,
    against safetensors' save_file and huggingface_hub's split."""
    rng = random.Random(seed)
    case = cases.random_case(seed, seed)
    rows = [row for row in case.files[min(case.files)]
            if row[1] not in WITHOUT_NUMPY]
    tensors = {name: np.frombuffer(content, cases.DTYPES[dtype]).reshape(
        [] if dims == [0] and content else dims)
        for name, dtype, dims, content in rows}
    if save(tensors, {"format": "ms"}) != safetensors_bytes(
            rows, {"format": "ms"}):
        return [f"{seed}: save_file writes other bytes"]
    limit = rng.choice((50, 500, 5000))
    split = split_state_dict_into_shards_factory(
        tensors, get_storage_size=lambda tensor: tensor.nbytes,
        get_storage_id=lambda tensor: None,
        filename_pattern="model{suffix}.safetensors", max_shard_size=limit)
    expected = {name: save({key: tensors[key] for key in keys},
                           {"format": "pt"})
                for name, keys in split.filename_to_tensors.items()}
    found = huggingface_folder(rows, limit)
    index = json.loads(found.pop("model.safetensors.index.json", "{}"))
    if found != expected:
        return [f"{seed}: huggingface_hub splits otherwise"]
    if index and (index["weight_map"] != split.tensor_to_filename
                  or index["metadata"]["total_size"]
                  != split.metadata["total_size"]):
        return [f"{seed}: huggingface_hub has another index"]
    return []


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--load-every", type=int, default=10,
                        help="MindSpore loads every so many files")
    parser.add_argument("--references", type=int, default=100,
                        help="so many random files and folders of the plain "
                        "writers")
    arguments = parser.parse_args()
    failures, opened, loaded = [], 0, 0
    for number, path in enumerate(sorted(
            arguments.folder.rglob("*.safetensors"))):
        opened += 1
        failures += library_fails(path)
        if number % arguments.load_every == 0:
            loaded += 1
            failures += mindspore_fails(path)
    for number in range(arguments.references):
        failures += reference_fails(f"reference {number}")
    print(*failures[:20], sep="\n")
    print(f"numpy {np.__version__}, safetensors {safetensors.__version__}: "
          f"{opened} files opened, {loaded} loaded by MindSpore, "
          f"{len(failures)} failures")
    return 1 if failures or not opened else 0


if __name__ == "__main__":
    sys.exit(main())
