#!/usr/bin/env python3
"""What is given in the place of a checkpoint and is something else is called what it is.

Usage: foreign_sources_test.py --reshard BIN --gen BIN
"""

import json
import struct

import program_case
from program_case import checkpoint, two_floats

LFS = (b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"a" * 64 +
       b"\nsize 17976698\n")
INDEX = "model.safetensors.index.json"


def make(case):
    for k in (1, 2, 3):
        case.write(f"no_index/model-{k:05}-of-00003.safetensors", two_floats(f"w{k}"))
    for name, files in (("stale", ("a", "b")), ("gone", ("old-1", "old-2"))):
        case.write(f"{name}/a.safetensors", two_floats("w"))
        case.write(f"{name}/{INDEX}", {"metadata": {}, "weight_map": {
            f"w{'' if i == 0 else i}": file + ".safetensors" for i, file in enumerate(files)}})
    case.write("lacking/a.safetensors", two_floats("w"))
    case.write(f"lacking/{INDEX}", {"weight_map": {"w": "a.safetensors", "x": "a.safetensors"}})
    case.write("lfs_index/a.safetensors", two_floats("w"))
    case.write(f"lfs_index/{INDEX}", LFS)
    case.write("lfs.safetensors", LFS)
    case.write("lfs_rank/rank_0/net-1_1.ckpt", LFS)
    case.write("lfs_strategy.ckpt", LFS)
    case.write("model.gguf", b"GGUF" + struct.pack("<IQQ", 3, 0, 0) + bytes(64))
    case.write("zip.pt", b"PK\x03\x04" + bytes(60))
    case.write("pickle.pt", b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.")
    case.write("sums.sha256", b"a" * 64 + b"  model.ckpt\n")
    case.write("torch/pytorch_model.bin", b"PK\x03\x04")
    case.write("diffusers/model_index.json", {"_class_name": "X", "_diffusers_version": "0.30"})
    case.write("diffusers/unet/diffusion_pytorch_model.safetensors", two_floats("w"))
    case.write("diffusers/vae/diffusion_pytorch_model.safetensors", two_floats("w"))
    for rank in (0, 1):
        case.write(f"broken/rank_{rank}/net-2_50_breakpoint.ckpt", checkpoint("w"))
        for part in (0, 1):
            case.write(f"vllm/model-rank-{rank}-part-{part}.safetensors", two_floats(f"l{part}.w"))
        for kind in ("model", "opt"):
            case.write(f"mf2/iteration_00000001/llama-{kind}-{rank:07}-0000002.safetensors",
                       two_floats("w"))
        case.write(f"dcp_hf/shard-{rank + 1:05}-model-00001-of-00001.safetensors", two_floats("w"))
        case.write(f"dcp/__{rank}_0.distcp", b"PK\x03\x04")
    case.write("mf2/iteration_00000001/metadata.json", {"state_dict_metadata": {}})
    case.write("mf2/latest_checkpointed_iteration.txt", b"1")
    for rank in (0, 1):
        case.write(f"mega/iter_0000010/mp_rank_{rank:02}_000/model_optim_rng.pt", b"PK\x03\x04")
        case.write(f"zero/global_step5/bf16_zero_pp_rank_{rank}_mp_rank_00_optim_states.pt",
                   b"PK\x03\x04")
        case.write(f"zero3/zero_pp_rank_{rank}_mp_rank_00_model_states.pt", b"PK\x03\x04")
        case.write(f"new/model_{rank}.safetensors", two_floats("w"))
    case.write("new/metadata.pkl", b"\x80\x05")
    case.write("zero/zero_to_fp32.py", b"")
    case.write("zero/latest", b"global_step5")
    case.write("both/pytorch_model.bin.index.json", {"weight_map": {"w": "a.bin"}})
    case.write("both/rank_0/net-1_1.ckpt", checkpoint("w"))
    case.write("hub/metadata.pkl", b"\x80\x05")
    case.write("hub/zero_pp_rank_0_mp_rank_00_model_states.pt", b"PK\x03\x04")
    case.write("hub/model.safetensors", two_floats("w"))
    case.write("s.json", {"current_stage": 0, "parallel_strategy_item": {},
                          "parallel_layout_item": {name: {
                              "dev_matrix": [2], "tensor_map": [0], "opt_weight_shard_step": 0,
                              "opt_weight_shard_size": 0} for name in ("m1", "part0")}})
    case.write("spec.json", {"devices": 2, "parameters": [{"parameter": "*"}]})


# What is given, and words that the message has to have; and not.
ROWS = [
    ("no_index", ["3 files of a Hugging Face folder", "no index", INDEX], ["{rank}"]),
    ("stale", ["names 2 files", "b.safetensors", "complete the folder"], []),
    ("gone", ["names 2 files, but all are missing", "old-1.safetensors", "another folder"], []),
    ("lacking", ["lacks 1 of the 2 tensors", "\"x\""], []),
    ("lfs_index", [INDEX, "Git LFS pointer", "git lfs pull"], []),
    ("lfs.safetensors", ["Git LFS pointer"], []),
    ("lfs_rank", ["Git LFS pointer"], []),
    ("model.gguf", ["a GGUF file"], []),
    ("zip.pt", ["zip.pt", "end record of a zip"], []),
    ("pickle.pt", ["pickle", "again with torch"], []),
    ("sums.sha256", ["a file of checksums"], []),
    ("torch", ["PyTorch files", "(pytorch_model.bin)", "the path of a file"], ["{rank}"]),
    (f"stale/{INDEX}", ["the index of a folder of full tensors; give the folder"], []),
    ("diffusers", ["a diffusers pipeline", "unet", "vae"], ["{rank}"]),
    ("diffusers/model_index.json", ["diffusers"], []),
    ("broken", ["net-2_50_breakpoint.ckpt", "--suffix=-2_50_breakpoint"], []),
    ("vllm", ["vLLM", "model-rank-0-part-0.safetensors"], ["{rank}"]),
    ("mf2", ["metadata.json", "storage_data"], ["{rank}"]),
    ("mf2/iteration_00000001", ["metadata.json", "storage_data"], ["{rank}"]),
    ("mf2/iteration_00000001/metadata.json", ["MindFormers 2.0"], []),
    ("dcp_hf", ["shard-00001", "lacks the metadata DCP_SHARDING_INFO"], ["{rank}"]),
    ("dcp", ["PyTorch DCP", "without .metadata"], ["{rank}"]),
    ("mega/iter_0000010", ["Megatron", "mp_rank_00_000", "mp_rank_01_000",
                           "mp_rank_00_000/model_optim_rng.pt", "torch_dist"], ["{rank}"]),
    ("zero", ["DeepSpeed", "zero_to_fp32.py"], ["{rank}"]),
    ("zero/global_step5", ["DeepSpeed", "bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt",
                           "zero_to_fp32.py"], []),
    ("zero/global_step5/bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt",
     ["DeepSpeed", "zero_to_fp32.py"], []),
    ("zero3", ["DeepSpeed", "zero_to_fp32.py"], []),
    ("new", ["torch_checkpointing", "metadata.pkl", "torch.distributed.checkpoint"], []),
    ("new/metadata.pkl", ["torch_checkpointing"], []),
    ("both", ["pytorch_model.bin.index.json", "rank_N"], []),
]


class ForeignSourcesTest(program_case.ProgramCase):
    def setUp(self):
        super().setUp()
        make(self)

    def test_messages(self):
        for source, has, lacks in ROWS:
            with self.subTest(source):
                said = self.reshard("convert", source, "o", "--format", "huggingface", code=3,
                                    says=has).stderr
                for word in lacks:
                    self.assertNotIn(word, said)
        self.reshard("convert", "broken", "o", "--src-strategy", "lfs_strategy.ckpt", code=3,
                     says="Git LFS pointer")

    def test_what_messages_advise_works(self):
        self.reshard("strategy", "make", "spec.json", "s.ckpt", "--from",
                     "broken/rank_0/net-2_50_breakpoint.ckpt")
        self.reshard("convert", "broken", "b1", "--src-strategy", "s.ckpt",
                     "--suffix=-2_50_breakpoint")
        self.reshard("convert", "broken/rank_{rank}/net-2_50_breakpoint.ckpt", "b2",
                     "--src-strategy", "s.ckpt")
        self.reshard("convert", "diffusers/unet", "d", "--format", "huggingface")
        # Whole tensors beside files that are not read.
        self.reshard("convert", "hub", "h", "--format", "huggingface")
        for source, left_out in (("stale", "w1"), ("lacking", "x")):
            self.reshard("convert", source, source + "_out", "--format", "huggingface",
                         "--exclude", left_out)
            self.reshard("digest", source, "--exclude", left_out)
            self.reshard("verify", source + "_out", "--against", source, "--format",
                         "huggingface", "--exclude", left_out)

    def test_inspect_shows_the_rest(self):
        done = self.reshard("inspect", "stale", code=3, says="b.safetensors: is not there")
        self.assertIn("a.safetensors", done.stdout)
        document = json.loads(self.reshard("inspect", "stale", "--json", code=3).stdout)
        self.assertEqual([len(document["checkpoints"]), len(document["errors"])], [1, 1])

    def test_files_and_totals_that_an_index_states_otherwise(self):
        """Warned of by each command that takes the folder; what the index names is converted."""
        for name in ("m1", "m2", "extra"):
            self.write(f"hf/{name}.safetensors", two_floats(name))
        for name in ("part0", "part1", "hyper_param"):
            self.write(f"unified/{name}.safetensors", two_floats(name))
        for folder, index, named, other in (("hf", INDEX, ("m1", "m2"), "extra.safetensors"),
                                            ("unified", "param_name_map.json", ("part0",),
                                             "part1.safetensors")):
            weights = {name: name + ".safetensors" for name in named}
            unnamed = f"{folder}/{index}: does not name these checkpoints beside it, left out: {other}"
            total = (f'{folder}/{index}: "total_size" is {{}}, but the tensors have '
                     f"{8 * len(named)} bytes")
            wrong = 8 * len(named) + 4
            for size, beside, warnings in (
                    (wrong, True, [unnamed, total.format(wrong)]),
                    (8 * len(named), True, [unnamed]),
                    (0, False, [total.format(0)]),
                    (8 * len(named), False, [])):
                self.write(f"{folder}/{index}",
                           {"metadata": {"total_size": size}, "weight_map": weights})
                if not beside:
                    (self.folder / folder / other).unlink(missing_ok=True)
                out = f"{folder}_{size}_{beside}"
                for command in (["plan", folder, out, "--format", "huggingface"],
                                ["convert", folder, out, "--format", "huggingface"],
                                ["convert", folder, out + "_ranks", "--dst-strategy", "s.json"],
                                ["verify", out, "--against", folder], ["digest", folder],
                                ["inspect", folder], ["diff", folder, out],
                                ["report", folder, "-o", out + ".html"]):
                    with self.subTest(command=command, size=size, beside=beside):
                        said = self.reshard(*command, says=warnings).stderr
                        self.assertEqual("does not name" in said, beside, said)
                        self.assertEqual("total_size" in said, size != 8 * len(named), said)
                found, _ = program_case.read_safetensors(self.folder / out / "model.safetensors")
                self.assertEqual(set(found), {*named, *(["hyper_param"] if folder == "unified"
                                                        else [])})


if __name__ == "__main__":
    program_case.main()
