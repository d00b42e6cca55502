#!/usr/bin/env python3
"""Compares the rules for names with MindFormers' own conversion of weights.

For each model that `reshard name-rules` lists, a small Hugging Face folder of random weights is
converted by MindFormers and by reshard, there and back. Names, dtypes, shapes and bytes have to be
equal. Needs the packages mindformers, torch and transformers. Conversion code that is in
MindFormers' repository, but not in its package, is run if --sources names a checkout.
"""

import argparse
import contextlib
import importlib
import importlib.util
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import types

os.environ["GLOG_v"] = "4"
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np  # pylint: disable=wrong-import-position
from safetensors.numpy import load_file, save_file  # pylint: disable=wrong-import-position

PACKAGES = ("mindformers", "torch", "transformers")
HIDDEN, HEADS, KV_HEADS, INNER, VOCAB, LAYERS = 16, 4, 2, 24, 32, 11
KV_ROWS = HIDDEN // HEADS * KV_HEADS
TO_MINDFORMERS, TO_HUGGING_FACE = "hf-to-mindformers", "mindformers-to-hf"
# Parts of MindFormers 1.9.0; those below `research` are in its repository only.
CODE = {
    "llama": {"to_ms": "mindformers.models.llama.convert_weight",
              "to_hf": "mindformers.models.llama.convert_reversed"},
    "qwen2": {"to_ms": "research.qwen2_5.convert_weight",
              "to_hf": "research.qwen2_5.convert_reversed"},
}


def made_weights(model, rng):
    """Returns the weights of a Hugging Face model."""
    def random(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    weights = {"model.embed_tokens.weight": random(VOCAB, HIDDEN)}
    for layer in range(LAYERS):
        prefix = f"model.layers.{layer}."
        for name, rows in (("q", HIDDEN), ("k", KV_ROWS), ("v", KV_ROWS)):
            weights[f"{prefix}self_attn.{name}_proj.weight"] = random(rows, HIDDEN)
            if model == "qwen2":
                weights[f"{prefix}self_attn.{name}_proj.bias"] = random(rows)
        weights[prefix + "self_attn.o_proj.weight"] = random(HIDDEN, HIDDEN)
        weights[prefix + "mlp.gate_proj.weight"] = random(INNER, HIDDEN)
        weights[prefix + "mlp.up_proj.weight"] = random(INNER, HIDDEN)
        weights[prefix + "mlp.down_proj.weight"] = random(HIDDEN, INNER)
        weights[prefix + "input_layernorm.weight"] = random(HIDDEN)
        weights[prefix + "post_attention_layernorm.weight"] = random(HIDDEN)
    weights["model.norm.weight"] = random(HIDDEN)
    weights["lm_head.weight"] = random(VOCAB, HIDDEN)
    return weights


def write_folder(model, weights, folder):
    """Writes two files with an index, and the configuration."""
    folder.mkdir()
    names = list(weights)
    files = {"model-00001-of-00002.safetensors": names[::2], "model-00002-of-00002.safetensors": names[1::2]}
    for file, part in files.items():
        save_file({name: weights[name] for name in part}, folder / file, {"format": "pt"})
    index = {"metadata": {"total_size": sum(array.nbytes for array in weights.values())},
             "weight_map": {name: file for file, part in files.items() for name in part}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / "config.json").write_text(json.dumps({
        "architectures": [f"{model.capitalize()}ForCausalLM"], "model_type": model, "hidden_size": HIDDEN,
        "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "intermediate_size": INNER,
        "vocab_size": VOCAB, "num_hidden_layers": LAYERS, "tie_word_embeddings": False,
        "torch_dtype": "float32"}))


def read_folder(folder):
    """Returns the arrays of all safetensors files."""
    return {name: array for file in sorted(folder.glob("*.safetensors")) for name, array in load_file(file).items()}


def read_checkpoint(path):
    import mindspore  # pylint: disable=import-outside-toplevel

    return {name: value.asnumpy() for name, value in mindspore.load_checkpoint(str(path)).items()}


def difference(expected, found):
    """Returns what differs, or ""."""
    if set(expected) != set(found):
        return f"lacks {sorted(set(expected) - set(found))[:3]}, has {sorted(set(found) - set(expected))[:3]}"
    for name, array in expected.items():
        other = found[name]
        if (array.dtype, array.shape, array.tobytes()) != (other.dtype, other.shape, other.tobytes()):
            return f"{name} differs"
    return ""


class Comparison:
    """Of one model."""

    def __init__(self, reshard, model, folder):
        self.reshard, self.model, self.folder = reshard, model, folder
        self.weights = made_weights(model, np.random.default_rng(7))
        self.source = folder / "hf"
        self.done, self.failures = [], []
        write_folder(model, self.weights, self.source)

    def convert(self, command, source, target, way, *options):
        subprocess.run([self.reshard, command, source, target, "-q", "--name-rules", f"{self.model}:{way}", *options],
                       check=True)

    def expect(self, title, expected, found):
        self.done.append(title)
        wrong = difference(expected, found)
        if wrong:
            self.failures.append(f"{self.model}, {title}: {wrong}")

    def by_network(self):
        """The network's own conversion of a folder, when training or inference loads one."""
        from mindformers.models.llama import LlamaForCausalLM  # pylint: disable=import-outside-toplevel
        from mindformers.utils.safetensors import convert_safetensors  # pylint: disable=import-outside-toplevel

        config = types.SimpleNamespace(num_heads=HEADS, n_kv_heads=KV_HEADS, num_attention_heads=HEADS,
                                       num_key_value_heads=KV_HEADS, hidden_size=HIDDEN, qkv_concat=False)
        expected = self.folder / "ms"
        with contextlib.redirect_stdout(io.StringIO()):
            convert_safetensors.convert_hf_safetensors_multiprocess(str(self.source), str(expected), LlamaForCausalLM,
                                                                    config)
        found = self.folder / "found"
        self.convert("convert", self.source, found, TO_MINDFORMERS, "--format", "huggingface")
        self.expect("folder to MindFormers", read_folder(expected), read_folder(found))
        index = json.loads((expected / "param_name_map.json").read_text())
        self.expect("index", {name: np.zeros(0) for name in index}, {name: np.zeros(0) for name in read_folder(found)})
        back = self.folder / "back"
        self.convert("convert", found, back, TO_HUGGING_FACE, "--format", "huggingface")
        self.expect("there and back", self.weights, read_folder(back))

    def by_scripts(self):
        """What convert_weight.py calls, on one file."""
        import torch  # pylint: disable=import-outside-toplevel

        checkpoint, code = self.folder / "ms.ckpt", CODE[self.model]
        with contextlib.redirect_stdout(io.StringIO()):
            importlib.import_module(code["to_ms"]).convert_pt_to_ms(str(self.source), str(checkpoint), dtype=None)
        expected = read_checkpoint(checkpoint)
        one = self.folder / "one"
        one.mkdir()
        save_file(self.weights, one / "model.safetensors", {"format": "pt"})
        self.convert("recode", one / "model.safetensors", self.folder / "recoded", TO_MINDFORMERS, "--format", "ckpt")
        self.expect("script to MindFormers", expected, read_checkpoint(self.folder / "recoded" / "model.ckpt"))

        self.convert("recode", checkpoint, self.folder / "reversed", TO_HUGGING_FACE, "--format", "safetensors")
        reverse = importlib.import_module(code["to_hf"])
        with contextlib.redirect_stdout(io.StringIO()):
            if self.model == "qwen2":
                # Of the two formats that it reads, it fails for .ckpt.
                config = self.folder / "model.yaml"
                config.write_text("load_ckpt_format: safetensors\nmodel:\n  model_config:\n"
                                  f"    num_layers: {LAYERS}\n    compute_dtype: float32\n")
                reverse.convert_ms_to_pt(str(self.folder / "ms"), str(self.folder / "pt"), str(config))
                expected = read_folder(self.folder / "pt")
            else:
                reverse.convert_ms_to_pt(str(checkpoint), str(self.folder / "ms.pth"), dtype=None)
                loaded = torch.load(self.folder / "ms.pth", weights_only=True)
                expected = {name: tensor.numpy() for name, tensor in loaded.items()}
        self.expect("script to Hugging Face", expected, read_folder(self.folder / "reversed"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reshard", type=pathlib.Path)
    parser.add_argument("--is-possible", action="store_true", help="only tell whether the packages are there")
    parser.add_argument("--sources", type=pathlib.Path, help="a checkout of MindFormers")
    arguments = parser.parse_args()
    if arguments.is_possible:
        return 0 if all(map(importlib.util.find_spec, PACKAGES)) else 1
    if arguments.reshard is None:
        parser.error("--reshard is required")
    reshard = arguments.reshard.resolve()
    if arguments.sources:
        sys.path.append(str(arguments.sources.resolve()))
    listed = subprocess.run([reshard, "name-rules"], check=True, capture_output=True, text=True).stdout.split()
    models = {rules.partition(":")[0] for rules in listed}
    if models != set(CODE):
        print(f"rules of {sorted(models)}, comparisons of {sorted(CODE)}")
        return 1
    failures = []
    for model in sorted(models):
        with tempfile.TemporaryDirectory() as name:
            os.chdir(name)  # MindFormers writes logs
            comparison = Comparison(reshard, model, pathlib.Path(name))
            comparison.by_network()
            package = CODE[model]["to_ms"].partition(".")[0]
            if importlib.util.find_spec(package) is None:
                print(f"{model}: without its scripts, which --sources has")
            else:
                comparison.by_scripts()
            print(f"{model}: {', '.join(comparison.done)}")
            failures += comparison.failures
            os.chdir("/")
    for failure in failures:
        print(f"FAILED {failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
