#!/usr/bin/env python3
"""Files at a target that readers would take in place of the new set: the conversion is refused.

Usage: left_overs_test.py --reshard BIN --gen BIN
"""

import json
import shutil

import program_case
from program_case import floats, safetensors

LAYOUT = {"dev_matrix": [1], "tensor_map": [-1], "opt_weight_shard_step": 0,
          "opt_weight_shard_size": 0}
STRATEGY = ["--src-strategy", "s.json"]


def one(name, value):
    return safetensors([(name, "F32", [2], floats(value, value))], {"format": "ms"})


# Each file that lies there.
OLD = {
    "param_name_map.json": {"metadata": {"total_size": 8}, "weight_map": {"w": "part0.safetensors"}},
    "model.safetensors.index.json": {"weight_map": {"w": "old.safetensors"}},
    "part0.safetensors": one("w", 1),
    "old.safetensors": one("w", 1),
    "hyper_param.safetensors": one("global_step", 1000),
    "rank_0/net-1_1.safetensors": one("w", 1),
    "rank_0/net-1_1.ckpt": program_case.checkpoint("w"),
}
# What lies there, what is written, and the file or folder that stands in the way.
ROWS = [
    (("param_name_map.json", "part0.safetensors", "hyper_param.safetensors"), "unified",
     "hyper_param.safetensors"),
    (("hyper_param.safetensors",), "unified", "hyper_param.safetensors"),
    (("param_name_map.json", "part0.safetensors"), "huggingface", "param_name_map.json"),
    (("model.safetensors.index.json", "old.safetensors"), "huggingface",
     "model.safetensors.index.json"),
    (("rank_0/net-1_1.safetensors",), "huggingface", "rank_0"),
    (("rank_0/net-1_1.ckpt",), "huggingface", "rank_0"),
    (("rank_0/net-1_1.safetensors",), "safetensors", "rank_0/net-1_1.safetensors"),
    (("rank_0/net-1_1.ckpt",), "ckpt", "rank_0/net-1_1.ckpt"),
    (("rank_0/net-1_1.safetensors",), "ckpt", "rank_0/net-1_1.safetensors"),
    (("param_name_map.json", "part0.safetensors"), "ckpt", "param_name_map.json"),
]


class LeftOversTest(program_case.ProgramCase):
    def setUp(self):
        super().setUp()
        self.write("new/rank_0/net-1_1.safetensors", one("w", 2))
        self.write("s.json", {"current_stage": 0, "parallel_strategy_item": {},
                              "parallel_layout_item": {"w": LAYOUT}})

    def files(self, folder):
        return {path: path.read_bytes() for path in (self.folder / folder).rglob("*")
                if path.is_file()}

    def test_conversions_are_refused(self):
        for number, (there, form, in_the_way) in enumerate(ROWS):
            with self.subTest(there=there, form=form):
                out = f"o{number}"
                for path in there:
                    self.write(f"{out}/{path}", OLD[path])
                before = self.files(out)
                options = ["new", out, *STRATEGY, "--format", form]
                for command in (["convert"], ["convert", "--shard", "0/2"], ["plan"]):
                    # Files of the same names are in the way, too, if they may not be replaced.
                    self.reshard(*command, *options, code=6)
                    self.reshard(*command, *options, "--force", code=6, says=in_the_way)
                    self.assertEqual(self.files(out), before)
                # Without it the new set is written, and what is read is the new value.
                path = self.folder / out / in_the_way
                shutil.rmtree(path) if path.is_dir() else path.unlink()
                self.reshard("convert", *options, "--force")
                self.check(out, form)

    def test_verify_finds_what_came_later(self):
        for number, (there, form, in_the_way) in enumerate(ROWS):
            with self.subTest(there=there, form=form):
                out = f"o{number}"
                self.reshard("convert", "new", out, *STRATEGY, "--format", form)
                self.check(out, form)
                for path in there:
                    if not (self.folder / out / path).exists():
                        self.write(f"{out}/{path}", OLD[path])
                self.assertIn(in_the_way, self.reshard("verify", out, code=1).stdout)

    def check(self, out, form):
        self.reshard("verify", out)
        strategy = ["--b-strategy", "s.json"] if form in ("ckpt", "safetensors") else []
        self.reshard("diff", "new/rank_0/net-1_1.safetensors", out, *strategy)
        found = json.loads(self.reshard("inspect", out, "--values", "--json").stdout)
        (parameter,) = found["checkpoints"][0]["parameters"]
        self.assertEqual([parameter["name"], parameter["statistics"]["mean"]], ["w", 2])


if __name__ == "__main__":
    program_case.main()
