#!/usr/bin/env python3
"""What is given in the place of a checkpoint and is something else is called what it is.

Usage: foreign_sources_test.py --reshard BIN --gen BIN
"""

import argparse
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

LFS = (b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"a" * 64 +
       b"\nsize 17976698\n")
INDEX = "model.safetensors.index.json"


class Folder:
    """Writes files below a folder of its own."""

    def __init__(self, root):
        self.root = pathlib.Path(root)

    def write(self, path, content):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, (dict, list)):
            content = json.dumps(content).encode()
        (self.root / path).write_bytes(content)

    def tensors(self, path, *names):
        header, body = {}, b""
        for name in names:
            data = struct.pack("<2f", len(body), 1)
            header[name] = {"dtype": "F32", "shape": [2],
                            "data_offsets": [len(body), len(body) + len(data)]}
            body += data
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        self.write(path, struct.pack("<Q", len(text)) + text + body)


def ckpt(name):
    """A checkpoint of MindSpore with one tensor."""
    def field(number, content):
        return bytes([number << 3 | 2, len(content)]) + content
    tensor = b"\x08\x02" + field(2, b"Float32") + field(3, struct.pack("<2f", 1, 2))
    return field(1, field(1, name.encode()) + field(2, tensor))


def make(folder):
    for k in (1, 2, 3):
        folder.tensors(f"no_index/model-{k:05}-of-00003.safetensors", f"w{k}")
    for name, files in (("stale", ("a", "b")), ("gone", ("old-1", "old-2"))):
        folder.tensors(f"{name}/a.safetensors", "w")
        folder.write(f"{name}/{INDEX}", {"metadata": {}, "weight_map": {
            f"w{'' if i == 0 else i}": file + ".safetensors" for i, file in enumerate(files)}})
    folder.tensors("lacking/a.safetensors", "w")
    folder.write(f"lacking/{INDEX}", {"weight_map": {"w": "a.safetensors", "x": "a.safetensors"}})
    folder.tensors("lfs_index/a.safetensors", "w")
    folder.write(f"lfs_index/{INDEX}", LFS)
    folder.write("lfs.safetensors", LFS)
    folder.write("lfs_rank/rank_0/net-1_1.ckpt", LFS)
    folder.write("lfs_strategy.ckpt", LFS)
    folder.write("model.gguf", b"GGUF" + struct.pack("<IQQ", 3, 0, 0) + bytes(64))
    folder.write("zip.pt", b"PK\x03\x04" + bytes(60))
    folder.write("pickle.pt", b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.")
    folder.write("sums.sha256", b"a" * 64 + b"  model.ckpt\n")
    folder.write("torch/pytorch_model.bin", b"PK\x03\x04")
    folder.write("diffusers/model_index.json", {"_class_name": "X", "_diffusers_version": "0.30"})
    folder.tensors("diffusers/unet/diffusion_pytorch_model.safetensors", "w")
    folder.tensors("diffusers/vae/diffusion_pytorch_model.safetensors", "w")
    for rank in (0, 1):
        folder.write(f"broken/rank_{rank}/net-2_50_breakpoint.ckpt", ckpt("w"))
        for part in (0, 1):
            folder.tensors(f"vllm/model-rank-{rank}-part-{part}.safetensors", f"l{part}.w")
        for kind in ("model", "opt"):
            folder.tensors(f"mf2/iteration_00000001/llama-{kind}-{rank:07}-0000002.safetensors",
                           "w")
        folder.tensors(f"dcp_hf/shard-{rank + 1:05}-model-00001-of-00001.safetensors", "w")
        folder.write(f"dcp/__{rank}_0.distcp", b"PK\x03\x04")
    folder.write("mf2/iteration_00000001/metadata.json", {"state_dict_metadata": {}})
    folder.write("mf2/latest_checkpointed_iteration.txt", b"1")
    folder.write("dcp/.metadata", b"\x80\x04")
    folder.write("spec.json", {"devices": 2, "parameters": [{"parameter": "*"}]})


# What is given, and words that the message has to have; and not.
ROWS = [
    ("no_index", ["3 files of a Hugging Face folder", "no index", INDEX], ["{rank}"]),
    ("stale", ["names 2 files", "b.safetensors", "complete the folder"], []),
    ("gone", ["names 2 files, none of which is there", "old-1.safetensors", "another folder"], []),
    ("lacking", ["lacks 1 of the 2 tensors", "\"x\""], []),
    ("lfs_index", [INDEX, "Git LFS pointer", "git lfs pull"], []),
    ("lfs.safetensors", ["Git LFS pointer"], []),
    ("lfs_rank", ["Git LFS pointer"], []),
    ("model.gguf", ["a GGUF file"], []),
    ("zip.pt", ["PyTorch", "safetensors"], []),
    ("pickle.pt", ["pickle", "safetensors"], []),
    ("sums.sha256", ["a file of checksums"], []),
    ("torch", ["PyTorch files", "(pytorch_model.bin)", "safetensors"], ["{rank}"]),
    (f"stale/{INDEX}", ["the index of a folder of whole tensors; give the folder"], []),
    ("diffusers", ["a diffusers pipeline", "unet", "vae"], ["{rank}"]),
    ("diffusers/model_index.json", ["diffusers"], []),
    ("broken", ["net-2_50_breakpoint.ckpt", "--suffix=-2_50_breakpoint"], []),
    ("vllm", ["vLLM", "model-rank-0-part-0.safetensors"], ["{rank}"]),
    ("mf2", ["MindFormers 2.0"], ["{rank}"]),
    ("mf2/iteration_00000001", ["MindFormers 2.0", "metadata.json"], ["{rank}"]),
    ("mf2/iteration_00000001/metadata.json", ["MindFormers 2.0"], []),
    ("dcp_hf", ["PyTorch", "consolidate_safetensors_files"], ["{rank}"]),
    ("dcp", ["PyTorch DCP", "dcp_to_torch_save"], ["{rank}"]),
]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--reshard", required=True)
    parser.add_argument("--gen", required=True)
    options = parser.parse_args()
    mistakes = []
    with tempfile.TemporaryDirectory() as name:
        make(Folder(name))

        def run(*words, code=0):
            done = subprocess.run([options.reshard, *words], cwd=name, stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, errors="replace", timeout=120,
                                  check=False)
            if done.returncode != code:
                mistakes.append(f"{words}: exit {done.returncode}, expected {code}: {done.stderr}")
            return done

        for source, has, lacks in ROWS:
            said = run("convert", source, "o", "--format", "huggingface", code=3).stderr
            mistakes += [f"{source}: lacks {word}: {said}" for word in has if word not in said]
            mistakes += [f"{source}: has {word}: {said}" for word in lacks if word in said]
        said = run("convert", "broken", "o", "--src-strategy", "lfs_strategy.ckpt", code=3).stderr
        if "Git LFS pointer" not in said:
            mistakes.append(f"a strategy: {said}")

        # What the messages advise works.
        run("strategy", "make", "spec.json", "s.ckpt", "--from",
            "broken/rank_0/net-2_50_breakpoint.ckpt")
        run("convert", "broken", "b1", "--src-strategy", "s.ckpt", "--suffix=-2_50_breakpoint")
        run("convert", "broken/rank_{rank}/net-2_50_breakpoint.ckpt", "b2", "--src-strategy",
            "s.ckpt")
        run("convert", "diffusers/unet", "d", "--format", "huggingface")
        for source, left_out in (("stale", "w1"), ("lacking", "x")):
            run("convert", source, source + "_out", "--format", "huggingface", "--exclude",
                left_out)
            run("digest", source, "--exclude", left_out)
            run("verify", source + "_out", "--against", source, "--format", "huggingface",
                "--exclude", left_out)

        # What cannot be read is reported, and the rest is shown.
        done = run("inspect", "stale", code=3)
        if "a.safetensors" not in done.stdout or "b.safetensors: is not there" not in done.stderr:
            mistakes.append(f"inspect: {done.stdout} {done.stderr}")
        done = run("inspect", "stale", "--json", code=3)
        document = json.loads(done.stdout)
        if [len(document["checkpoints"]), len(document["errors"])] != [1, 1]:
            mistakes.append(f"inspect --json: {done.stdout}")
    for mistake in mistakes:
        print(mistake)
    sys.exit(1 if mistakes else 0)


if __name__ == "__main__":
    main()
