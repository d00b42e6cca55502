#!/usr/bin/env python3
"""What other programs write, and what becomes of it: names of optimizer states, metadata of
safetensors files, types that a format or its reader lacks, elements smaller than a byte.

Usage: foreign_files_test.py --reshard BIN --gen BIN
"""

import json
import pathlib
import re

import program_case
from program_case import floats, read_safetensors, safetensors

LIST = pathlib.Path(__file__).resolve().parents[2] / "src/base/optimizer_states.inc"


class ForeignFilesTest(program_case.ProgramCase):
    def write_tensors(self, path, tensors, metadata=None):
        self.write(path, safetensors(tensors, metadata))

    def warnings(self, report):
        return {warning["code"]: warning["message"] for warning in report["warnings"]}

    def test_every_optimizer_state_stays_and_is_counted_apart(self):
        prefixes = re.findall(r'\{Kind::k(?:Whole|Part), "(.*)"\}', LIST.read_text())
        self.assertGreater(len(prefixes), 40)
        names = [prefix + "model.w" for prefix in prefixes]
        self.write_tensors("m.safetensors",
                           [("model.w", "F32", [4, 2], floats(*[1] * 8)),
                            *((name, "F32", [4, 2], floats(*[1e-9] * 8)) for name in names)])
        report = json.loads(self.reshard(
            "convert", "m.safetensors", "out", "--format", "huggingface", "--dtype", "float16",
            "--expect-parameters", "8", "--json").stdout)
        tensors, _ = read_safetensors(self.folder / "out/model.safetensors")
        self.assertEqual([name for name in tensors if tensors[name][0] != "F32"], ["model.w"])
        self.assertEqual(report["source_parameters"], {"weights": 8, "optimizer": 8 * len(names)})
        self.assertEqual(report["values_zeroed"], 0)
        totals = json.loads(self.reshard("inspect", "m.safetensors", "--json").stdout)["totals"]
        self.assertEqual(totals["by_prefix"]["weights"]["parameters"], 1)

    def test_states_of_parameters_that_have_another_prefix(self):
        # As a program that saves a network below a prefix, and its optimizer as it is.
        self.write_tensors("m.safetensors",
                           [("model.weight", "F32", [4], floats(1, 2, 3, 4)),
                            *((f"{state}.weight", "F32", [4], floats(*[1e-9] * 4))
                              for state in ("moments", "linear", "exp_avg", "accum", "stat"))])
        self.reshard("convert", "m.safetensors", "out", "--format", "huggingface", "--dtype",
                     "float16")
        tensors, _ = read_safetensors(self.folder / "out/model.safetensors")
        self.assertEqual([name for name in tensors if tensors[name][0] != "F32"], ["model.weight"])

    def test_a_weight_with_the_name_of_a_state_is_one_whatever_folder_it_lies_in(self):
        # No "ghost" and no "layer" are there, so neither "linear.ghost" nor "stat.layer" is a state.
        weights = [(name, "F32", [4], floats(1, 2, 3, 4))
                   for name in ("w", "linear.ghost", "stat.layer")]
        self.write_tensors("one.safetensors", weights)
        self.write_tensors("unified/part0.safetensors", weights)
        self.write_tensors("unified/hyper_param.safetensors", [("step", "F32", [1], floats(1))])
        self.write("unified/param_name_map.json",
                   {name: "part0.safetensors" for name, *_ in weights})
        for source in ("one.safetensors", "unified"):
            out = source + "_out"
            report = json.loads(self.reshard("convert", source, out, "--format", "huggingface",
                                             "--dtype", "float16", "--json").stdout)
            tensors, _ = read_safetensors(self.folder / out / "model.safetensors")
            for name, *_ in weights:
                self.assertEqual(tensors[name][0], "F16", (source, name))
            self.assertEqual(report["source_parameters"]["optimizer"], 0, source)

    def test_values_that_become_zero_or_infinite(self):
        self.write_tensors("m.safetensors",
                           [("w", "F32", [4], floats(1e-9, 7e4, -1e-9, 0)),
                            ("v", "F32", [2], floats(1, 2))])
        run = self.reshard("convert", "m.safetensors", "out", "--format", "huggingface", "--dtype",
                           "float16", "--json")
        report = json.loads(run.stdout)
        self.assertEqual((report["values_lost"], report["values_zeroed"]), (1, 2))
        self.assertEqual(run.stderr.count("warning: casts made"), 2)
        self.reshard("convert", "m.safetensors", "no", "--format", "huggingface", "--dtype",
                     "float16", "--dtype-overflow", "error", code=3)

    def test_weights_that_are_there_twice(self):
        tensors = [(name, "F32", [8], bytes(32)) for name in ("a.w", "b.w")]
        self.write_tensors("m.safetensors",
                           tensors + [("ema." + name, *rest) for name, *rest in tensors])
        report = json.loads(self.reshard("convert", "m.safetensors", "out", "--format",
                                         "huggingface", "--json").stdout)
        self.assertEqual(report["source_parameters"], {"weights": 32, "optimizer": 0})
        message = self.warnings(report)["repeated weights"]
        self.assertIn("2 tensors", message)
        self.assertIn("--exclude 'ema.*'", message)
        report = json.loads(self.reshard(
            "convert", "m.safetensors", "less", "--format", "huggingface", "--json", "--exclude",
            "ema.*", "--expect-parameters", "16").stdout)
        self.assertNotIn("repeated weights", self.warnings(report))
        self.assertEqual(report["source_parameters"], {"weights": 32, "optimizer": 0})
        self.assertEqual(report["chosen_parameters"], {"weights": 16, "optimizer": 0})

    def test_metadata_under_a_tensors_name(self):
        metadata = {"format": "pt", "names": '["w"]', "w": '{"_type": "Float8Tensor"}', "b": "x"}
        self.write_tensors("m/model.safetensors",
                           [("w", "F8_E4M3", [4], b"1234"), ("b", "I8", [2], b"12")], metadata)
        self.generate("two", "--layers", 1, "--hidden", 64, "--ffn", 64, "--vocab", 64, "--tp", 2,
                      "--strategy-only")
        for form, path in (("huggingface", "model.safetensors"),
                           ("safetensors", "rank_1/checkpoint_1.safetensors"),
                           ("unified", "part0.safetensors")):
            options = ["--dst-strategy", "two/strategy"] if form == "safetensors" else []
            self.reshard("convert", "m", form, "--format", form, "--unmatched", "copy", *options)
            tensors, kept = read_safetensors(self.folder / form / path)
            # Shards of ranks are for MindSpore alone, which writes its own format into them.
            expected = {**metadata, "format": "ms"} if form == "safetensors" else metadata
            self.assertEqual(kept, expected, form)
            self.assertEqual(tensors["b"][0], "I8")
            self.reshard("verify", form, "--against", "m", "--format", form, *options)
        # It follows its tensor.
        self.write("map.json", {"w": "v"})
        self.reshard("convert", "m", "renamed", "--format", "huggingface", "--rename", "map.json",
                     "--exclude", "b")
        _, kept = read_safetensors(self.folder / "renamed/model.safetensors")
        self.assertEqual(kept, {"format": "pt", "names": '["w"]', "v": metadata["w"]})

    def test_metadata_that_sources_do_not_agree_on(self):
        for number in (1, 2):
            self.write_tensors(f"m/part{number}.safetensors",
                               [(f"w{number}", "F32", [2], floats(1, 2))],
                               {"format": "pt", "author": "me", "part": str(number),
                                "total_size": "8", "sshs_model_hash": "00"})
        run = self.reshard("merge", "--segments", "m", "all.safetensors", "--json")
        _, kept = read_safetensors(self.folder / "all.safetensors")
        self.assertEqual(kept, {"format": "pt", "author": "me"})
        (note,) = json.loads(run.stdout)["notes"]
        self.assertIn('"part", "sshs_model_hash", "total_size"', note)
        recoded = self.reshard("recode", "all.safetensors", "o", "--format", "ckpt", "--json")
        (note,) = json.loads(recoded.stdout)["notes"]
        self.assertIn('"author"', note)
        self.assertNotIn('"format"', note)

    def test_what_mindspore_cannot_load_from_ckpt_files(self):
        self.write_tensors("m.safetensors",
                           [("w", "F8_E4M3", [2], b"12"), ("c", "C64", [1], bytes(8)),
                            ("e", "F32", [0], b""), ("good", "F32", [0, 2], b""),
                            ("b", "BF16", [2], bytes(4))])
        report = json.loads(
            self.reshard("recode", "m.safetensors", "o", "--format", "ckpt", "--json").stdout)
        messages = [warning["message"] for warning in report["warnings"]
                    if warning["code"] == "not loadable"]
        self.assertEqual(len(messages), 2)
        self.assertIn('"c", "w"', messages[0])
        self.assertIn('"e"', messages[1])
        self.reshard("convert", "o/m.ckpt", "p", "--format", "huggingface")
        tensors, _ = read_safetensors(self.folder / "p/model.safetensors")
        self.assertEqual(set(tensors), {"w", "c", "e", "good", "b"})

    def test_elements_smaller_than_a_byte(self):
        self.write_tensors("m.safetensors",
                           [("four", "F4", [2, 4], bytes.fromhex("10325476")),
                            ("six", "F6_E2M3", [2, 4], bytes(6)),
                            ("odd", "F4", [2, 3], bytes.fromhex("214300"))])
        found = json.loads(self.reshard("inspect", "m.safetensors", "--json", "--values").stdout)
        parameters = {p["name"]: p for p in found["checkpoints"][0]["parameters"]}
        self.assertEqual(parameters["four"]["shape"], [2, 4])
        self.assertEqual(parameters["six"]["shape"], [2, 4])
        self.assertEqual(parameters["odd"]["shape"], [2, 3])
        self.assertEqual(parameters["four"]["statistics"]["values"], 8)
        self.assertEqual(parameters["four"]["statistics"]["max"], 6)
        self.assertEqual(parameters["four"]["statistics"]["mean"], 2.25)
        self.assertEqual(parameters["odd"]["statistics"]["max"], 2)
        shown = self.reshard("inspect", "m.safetensors", "--values").stdout
        self.assertRegex(shown, r"(?m)^ +four +Float4E2M1 +\[2, 4\] .* 0 +6 +2\.25 ")
        digest = json.loads(self.reshard("digest", "m.safetensors", "--json").stdout)
        self.assertEqual({p["name"]: p["full_shape"] for p in digest["parameters"]},
                         {"four": [2, 4], "six": [2, 4], "odd": [2, 3]})
        plan = json.loads(self.reshard("plan", "m.safetensors", "o", "--format", "huggingface",
                                       "--json").stdout)
        self.assertEqual({p["name"]: p["full_shape"] for p in plan["largest"]},
                         {"four": [2, 4], "six": [2, 4], "odd": [2, 3]})
        self.assertEqual(plan["source_parameters"], {"weights": 8 + 8 + 6, "optimizer": 0})
        self.write_tensors("n.safetensors",
                           [("four", "F4", [2, 2], bytes(2)), ("six", "F6_E2M3", [2, 4], bytes(6)),
                            ("odd", "F4", [2, 3], bytes.fromhex("214300"))])
        diff = self.reshard("diff", "m.safetensors", "n.safetensors", code=1)
        self.assertRegex(diff.stdout, r"\[2, 4\] +Float4E2M1 \[2, 2\]")


if __name__ == "__main__":
    program_case.main()
