#!/usr/bin/env python3
"""Times reshard beside PyTorch's own tools on checkpoints that PyTorch writes.

    bench/frameworks.py --torch build/venv-torch/bin/python

1. Shards of HuggingFaceStorageWriter, a DCP checkpoint, and a file of torch.save for each rank, as
   FSDP2 and verl have them: matrices of 64 MiB over 4 ranks, half cut by rows, half by columns.
   `reshard convert --format huggingface`, with 64 MiB, beside consolidate_safetensors_files,
   dcp_to_torch_save, torch.load with safetensors' save_file, `cp -r`, and the copies alone
   (bare_pipeline, the fastest of its shapes), all durable, by turns. Import of torch is not
   counted. Each result of reshard is compared with safetensors' reading of torch's.
2. `inspect` of a DCP checkpoint of 200,000 chunks beside torch's reading of its .metadata.
3. `plan` of one of 1,000,000 chunks.

--torch needs torch 2.15 or newer, on the CPU, and safetensors. --bin has reshard, copy_list and
bare_pipeline (the preset bench).
"""

import argparse
import pathlib
import shutil
import statistics
import subprocess
import tempfile

import measure
from measure import GIB, MIB
from suite import SHAPES

RANKS = 4
CHUNKS = 200_000
PLANNED_CHUNKS = 1_000_000

# Each rank writes its parts; arguments: the folder, the number of matrices.
SAVE = """
import os, sys
import torch, torch.distributed as dist, torch.distributed.checkpoint as dcp
import torch.multiprocessing as mp
from torch.distributed.tensor import Shard, distribute_tensor, init_device_mesh

def save(rank, ranks, folder, matrices):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29517")
    dist.init_process_group("gloo", rank=rank, world_size=ranks)
    mesh = init_device_mesh("cpu", (ranks,))
    torch.manual_seed(1)
    state = {f"layers.{i}.weight": distribute_tensor(torch.randn(4096, 4096), mesh, [Shard(i % 2)])
             for i in range(matrices)}
    dcp.save(state, storage_writer=dcp.FileSystemWriter(f"{folder}/dcp"))
    dcp.save(state, storage_writer=dcp.HuggingFaceStorageWriter(
        f"{folder}/shards", save_distributed=True))
    os.makedirs(f"{folder}/ranks", exist_ok=True)
    torch.save(state, f"{folder}/ranks/model_world_size_{ranks}_rank_{rank}.pt")
    dist.destroy_process_group()

if __name__ == "__main__":
    ranks, folder, matrices = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    mp.spawn(save, args=(ranks, folder, matrices), nprocs=ranks)
"""

# Tensors of 64 chunks, of 64 bytes each; arguments: the folder, the number of chunks. All items are
# the same.
MANY_CHUNKS = """
import io, pathlib, pickle, sys
import torch
from torch.distributed.checkpoint.metadata import *
from torch.distributed.checkpoint.filesystem import _StorageInfo
folder, chunks = pathlib.Path(sys.argv[1]), int(sys.argv[2])
buffer = io.BytesIO()
torch.save(torch.zeros(4, 4), buffer)
item = buffer.getvalue()
state, stored = {}, {}
for layer in range(chunks // 64):
    name = f"model.layers.{layer}.mlp.weight"
    parts = [ChunkStorageMetadata(torch.Size([i * 4, 0]), torch.Size([4, 4])) for i in range(64)]
    properties = TensorProperties(torch.float32)
    state[name] = TensorStorageMetadata(properties, torch.Size([256, 4]), parts)
    for i, part in enumerate(parts):
        place = _StorageInfo(f"__{i}_0.distcp", len(item) * layer, len(item))
        stored[MetadataIndex(name, part.offsets, i)] = place
(folder / ".metadata").write_bytes(pickle.dumps(Metadata(state, None, stored)))
for i in range(64):
    with (folder / f"__{i}_0.distcp").open("wb") as file:
        for _ in range(chunks // 64):
            file.write(item)
"""

# What is timed of PyTorch: a line of code after its imports, and the time into a file.
TIMED = """
import os, pathlib, sys, time
{imports}
source, target = sys.argv[1], sys.argv[2]
begin = time.monotonic()
{call}
for path in [p for p in pathlib.Path(target).rglob("*") if p.is_file()] or [pathlib.Path(target)]:
    with open(path, "rb+") as file:
        os.fsync(file.fileno())
pathlib.Path(sys.argv[3]).write_text(str(time.monotonic() - begin))
"""
CONSOLIDATE = TIMED.format(
    imports="from torch.distributed.checkpoint._consolidate_hf_safetensors import "
            "consolidate_safetensors_files",
    call="os.makedirs(target)\nconsolidate_safetensors_files(source, target, "
         "{f'layers.{i}.weight': 1 for i in range(int(sys.argv[4]))}, num_threads=2)")
TORCH_SAVE = TIMED.format(
    imports="from torch.distributed.checkpoint.format_utils import dcp_to_torch_save",
    call="dcp_to_torch_save(source, target)")
# What verl's merger does, which does not install without a GPU's libraries.
MERGE = TIMED.format(
    imports="import re, torch, torch.distributed.tensor\nfrom safetensors.torch import save_file",
    call="""
by_rank = sorted(os.listdir(source), key=lambda name: int(re.search(r"rank_(\\d+)", name)[1]))
ranks = [torch.load(f"{source}/{name}", weights_only=False) for name in by_rank]
save_file({name: torch.cat([rank[name].to_local() for rank in ranks], tensor.placements[0].dim)
           for name, tensor in ranks[0].items()}, target)""")

READ_METADATA = """
import pathlib, pickle, sys, time
import torch.distributed.checkpoint
begin = time.monotonic()
pickle.loads(pathlib.Path(sys.argv[1]).read_bytes())
print(time.monotonic() - begin, file=open(sys.argv[2], "w"))
"""

EQUAL = """
import sys
from safetensors import safe_open
import torch
with safe_open(sys.argv[1], "pt") as ours:
    if sys.argv[2].endswith(".pt"):
        theirs = torch.load(sys.argv[2], mmap=True)
        names, of = set(theirs), theirs.__getitem__
    else:
        file = safe_open(sys.argv[2], "pt")
        names, of = set(file.keys()), file.get_tensor
    assert names == set(ours.keys())
    for name in names:
        assert torch.equal(of(name), ours.get_tensor(name)), name
"""


def spread(seconds):
    return (f"{statistics.median(seconds):.2f} s ({min(seconds):.2f} to {max(seconds):.2f} in "
            f"{len(seconds)} runs)")


def remove(path):
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def line(name, seconds, usages):
    print(f"  {name}: {spread(seconds)}, {max(u.rss_anon for u in usages) >> 20} MiB")


def compare(options, work, source, script, theirs):
    """Times reshard and `script`, which writes `theirs`, on `source`."""
    ours, copy, said = work / "ours", work / "copy", work / "seconds"
    convert = [options.bin / "reshard", "convert", source, ours, "-q", "--format", "huggingface",
               "--shard-size", "1TB", "--memory-limit", "64M"]
    listed, bare = work / "copies.txt", work / "bare"
    with listed.open("w") as file:
        subprocess.run([options.bin / "copy_list", source, "", "", "huggingface"], check=True,
                       stdout=file)
    reshard, torch, torch_seconds, copies = [], [], [], []
    shapes = {shape: [] for shape in SHAPES if not shape.startswith("ring")}
    for _ in range(options.runs):
        for path in (ours, copy, theirs):
            remove(path)
        reshard.append(measure.run(convert))
        torch.append(measure.run([options.torch, "-c", script, source, theirs, said,
                                  options.matrices]))
        torch_seconds.append(float(said.read_text()))
        copies.append(measure.run(["cp", "-r", source, copy], finish=lambda: measure.sync(copy)))
        for shape, seconds in shapes.items():
            remove(bare)
            command = [options.bin / "bare_pipeline", shape, listed, bare]
            seconds.append(measure.run(command, finish=lambda: measure.sync(bare)).seconds)
    found = theirs if theirs.is_file() else next(theirs.glob("*.safetensors"))
    measure.run([options.torch, "-c", EQUAL, ours / "model.safetensors", found])
    print(f"{source.name}, {measure.total_bytes(source) / GIB:.2f} GiB, {RANKS} ranks to one file:")
    seconds = [usage.seconds for usage in reshard]
    line("reshard, 64 MiB", seconds, reshard)
    line("PyTorch, without its import", torch_seconds, torch)
    line("cp -r", [usage.seconds for usage in copies], copies)
    least = min(statistics.median(times) for times in shapes.values())
    print(f"  reshard takes {statistics.median(seconds) / statistics.median(torch_seconds):.2f} of "
          f"PyTorch's time, {statistics.median(seconds) / least:.2f} of the copies alone")


def time_inspect(options, work):
    said = work / "seconds"
    measure.run([options.torch, "-c", MANY_CHUNKS, work, CHUNKS])
    torch, seconds, reshard = [], [], []
    for _ in range(options.runs):
        torch.append(measure.run([options.torch, "-c", READ_METADATA, work / ".metadata", said]))
        seconds.append(float(said.read_text()))
        reshard.append(measure.run([options.bin / "reshard", "inspect", work]))
    print(f"inspect of {CHUNKS} chunks, {(work / '.metadata').stat().st_size / MIB:.1f} MiB of "
          "metadata:")
    line("reshard", [usage.seconds for usage in reshard], reshard)
    line("PyTorch reads it, without its import", seconds, torch)


def time_plan(options, work):
    source = work / "dcp"
    source.mkdir()
    measure.run([options.torch, "-c", MANY_CHUNKS, source, PLANNED_CHUNKS])
    plan = [options.bin / "reshard", "plan", source, work / "out", "--format", "huggingface"]
    plans = [measure.run(plan) for _ in range(options.runs)]
    print(f"plan of {PLANNED_CHUNKS} chunks:")
    line("reshard", [usage.seconds for usage in plans], plans)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default="build/release/bin")
    parser.add_argument("--torch", required=True, help="a Python that has torch and safetensors")
    parser.add_argument("--matrices", type=int, default=16, help="of 64 MiB each")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--work", help="a folder on the disk to be measured")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        work = pathlib.Path(folder)
        script = work / "save.py"  # its processes import it
        script.write_text(SAVE)
        measure.run([options.torch, script, RANKS, work, options.matrices])
        compare(options, work, work / "shards", CONSOLIDATE, work / "consolidated")
        compare(options, work, work / "dcp", TORCH_SAVE, work / "saved.pt")
        compare(options, work, work / "ranks", MERGE, work / "merged.safetensors")
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        time_inspect(options, pathlib.Path(folder))
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        time_plan(options, pathlib.Path(folder))


if __name__ == "__main__":
    main()
