#!/usr/bin/env python3
"""Sources whose files hold parts of tensors and say which: as the folder of whole tensors that they
were cut from, for the calls that need more than the tensors.

Usage: sharded_sources_test.py --reshard BIN --gen BIN
"""

import json

import program_case
from program_case import read_safetensors, safetensors

MINDSPORE_TYPES = {"BF16": "BFloat16", "F32": "Float32", "I32": "Int32"}
CUT = ["--tp", "2", "--format", "safetensors", "--names", "rank_{rank}.safetensors"]


def halves(tensors):
    """Returns what each of two files has of the tensors: (name, dtype, shape, content, begin)."""
    files = ([], [])
    for name, (dtype, shape, content) in tensors.items():
        if not shape or shape[0] % 2:
            files[0].append((name, dtype, shape, content, [0] * len(shape)))
            continue
        half, middle = [shape[0] // 2, *shape[1:]], len(content) // 2
        for number, part in enumerate((content[:middle], content[middle:])):
            files[number].append((name, dtype, half, part,
                                  [number * half[0], *[0] * (len(shape) - 1)]))
    return files


class ShardedSourcesTest(program_case.ProgramCase):
    def setUp(self):
        super().setUp()
        self.generate("ranks", "--layers", 1, "--hidden", 64, "--ffn", 128, "--vocab", 256,
                      "--no-optimizer")
        self.reshard("convert", "ranks", "whole", "--src-strategy", "ranks/strategy", "--format",
                     "huggingface")
        self.tensors, _ = read_safetensors(self.folder / "whole/model.safetensors")
        self.files = halves(self.tensors)

    def make_shards(self):
        """Writes what PyTorch's HuggingFaceStorageWriter writes on two ranks."""
        for number, arrays in enumerate(self.files):
            begins = {array[0]: {"saved_offsets": array[4]} for array in arrays}
            self.write(f"parts/shard-{number + 1:05}-model-00001-of-00001.safetensors",
                       safetensors([array[:4] for array in arrays],
                                   {"format": "pt", "DCP_VERSION": "1.0",
                                    "DCP_SHARDING_INFO": json.dumps(begins)}))

    def make_mindformers(self):
        """Writes what MindFormers 2.0 writes on two ranks."""
        tensors, places = {}, {}
        names = [f"model-{number:07}-0000002.safetensors" for number in (0, 1)]
        for number, arrays in enumerate(self.files):
            self.write(f"parts/{names[number]}",
                       safetensors([array[:4] for array in arrays], {"format": "ms"}))
            for name, dtype, part, _, _ in arrays:
                shape = self.tensors[name][1]
                cuts = [whole // own for whole, own in zip(shape, part)]
                layout = {"device_matrix": [2], "tensor_map": [0, *[-1] * (len(shape) - 1)],
                          "interleaved_parallel": False, "alias_name": ["tp"], "rank_list": [0, 1]}
                tensor = tensors.setdefault(name, {
                    "properties": {"dtype": MINDSPORE_TYPES[dtype], "replica_id": 0,
                                   "allow_shape_mismatch": False, "allow_to_save": True},
                    "global_shape": shape, "axis_fragmentations": cuts,
                    "layout": layout if 2 in cuts else None, "chunk": []})
                piece = len(tensor["chunk"])
                tensor["chunk"].append({"global_offset": [piece], "local_shape": part})
                places[str((name, (piece,)))] = [
                    {"file_name": names[number], "storage_rank": number, "rank_group": [number]}]
        self.write("parts/metadata.json", {"state_dict_metadata": tensors, "storage_data": places})

    def expect_as_whole(self):
        self.write("spec.json", {"devices": 2, "parameters": [
            {"parameter": "lm_head.weight", "cuts": [2, 1]}, {"parameter": "*"}]})
        self.reshard("strategy", "make", "spec.json", "two.ckpt", "--from", "parts")
        for source in ("parts", "whole"):
            self.reshard("convert", source, f"{source}_cut", *CUT)
            self.reshard("convert", source, f"{source}_again", *CUT, "--shard", "1/2")
            self.reshard("convert", source, f"{source}_again", *CUT, "--shard", "0/2", "--resume")
            page = f"{source}.html"
            self.reshard("report", source, "--dst-strategy", "two.ckpt", "-o", page)
            self.assertIn("lm_head.weight", (self.folder / page).read_text())
        for rank in (0, 1):
            cut = read_safetensors(self.folder / f"whole_cut/rank_{rank}.safetensors")[0]
            self.assertGreater(len(cut), 0)
            for folder in ("parts_cut", "parts_again", "whole_again"):
                self.assertEqual(
                    read_safetensors(self.folder / f"{folder}/rank_{rank}.safetensors")[0], cut)
        self.reshard("verify", "parts_cut", "--against", "parts", "--tp", "2", "--names",
                     "rank_{rank}.safetensors")
        self.reshard("diff", "parts", "whole")
        digests = {json.loads(self.reshard("digest", source, "--json").stdout)["digest"]
                   for source in ("parts", "whole")}
        self.assertEqual(len(digests), 1)

    def test_shards_of_hugging_face(self):
        self.make_shards()
        self.expect_as_whole()

    def test_mindformers(self):
        self.make_mindformers()
        self.expect_as_whole()


if __name__ == "__main__":
    program_case.main()
