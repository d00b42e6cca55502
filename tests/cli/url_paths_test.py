#!/usr/bin/env python3
"""URLs in the place of paths: each command says what to do instead, and makes nothing.

Usage: url_paths_test.py --reshard BIN --gen BIN
"""

import os
import shutil

import program_case

URL = "s3://bucket/x"
SAYS = (URL, ": expected a path, found a URL; mount the storage as a folder, or copy the files")
STRATEGIES = "--src-strategy src/strategy --dst-strategy new/strategy"

# Each place of each command that takes a path of a checkpoint, a target or a strategy.
COMMANDS = f"""
convert URL out {STRATEGIES}
convert src URL {STRATEGIES}
convert src out --src-strategy URL --dst-strategy new/strategy
convert src out --src-strategy src/strategy --dst-strategy URL
convert src out {STRATEGIES} --reference URL
convert src out {STRATEGIES} --name-map URL
convert src out {STRATEGIES} --rename URL
convert src out {STRATEGIES} --report URL
convert URL out --format safetensors
convert URL/node{{rank}} out {STRATEGIES}
convert src URL {STRATEGIES} --shard 1/2
commit URL
plan URL out {STRATEGIES}
plan src URL {STRATEGIES}
plan src out --src-strategy URL --dst-strategy new/strategy
ranks 0 --src-strategy URL --dst-strategy new/strategy
ranks 0 --src-strategy src/strategy --dst-strategy URL
inspect URL
inspect URL.ckpt
inspect src --strategy URL
recode URL out --format safetensors
recode src URL --format safetensors
recode URL.ckpt out --format safetensors
merge URL src/rank_1/model.ckpt out.ckpt --segments
merge URL out.ckpt --segments
merge src/rank_0/model.ckpt src/rank_1/model.ckpt URL
merge src/rank_0/model.ckpt src/rank_1/model.ckpt out.ckpt --strategy URL
digest URL
digest src --strategy URL
diff URL src --b-strategy src/strategy
diff src URL --a-strategy src/strategy
diff src src --a-strategy URL --b-strategy src/strategy
verify URL
verify src --against URL {STRATEGIES}
verify URL --against src {STRATEGIES}
verify src --against src --src-strategy URL --dst-strategy new/strategy
report URL -o page.html
report src -o URL --src-strategy src/strategy
report src -o page.html --src-strategy URL
strategy show URL
strategy merge URL out.ckpt
strategy merge src/strategy URL
strategy make URL out.ckpt
strategy make spec.json URL
strategy make spec.json out.ckpt --from URL
strategy make out.ckpt --like URL
strategy make out.ckpt --like src --src-strategy URL
strategy infer URL out.ckpt --reference full.ckpt
strategy infer src out.ckpt --reference URL
strategy infer src URL --reference full.ckpt
strategy convert URL out.ckpt
strategy convert src/strategy/src_strategy.ckpt URL
"""


class UrlPathsTest(program_case.ProgramCase):
    def setUp(self):
        super().setUp()
        small = ("--layers", 1, "--hidden", 16, "--ffn", 32, "--vocab", 32)
        self.generate("src", *small, "--tp", 2)
        self.generate("new", *small, "--tp", 1, "--strategy-only")

    def files(self):
        return sorted(os.path.join(folder, name) for folder, folders, names in os.walk(self.folder)
                      for name in folders + names)

    def test_every_command_names_what_works(self):
        for rank in range(2):
            folder = self.folder / f"src/rank_{rank}"
            os.link(next(folder.glob("*.ckpt")), self.folder / f"rank_{rank}.ckpt")
        (self.folder / "full.ckpt").write_bytes((self.folder / "rank_0.ckpt").read_bytes())
        self.write("spec.json", {"devices": 2, "parameters": [{"parameter": "*"}]})
        before = self.files()
        for line in COMMANDS.strip().splitlines():
            words = (line.replace("src/rank_0/model", "rank_0").replace("src/rank_1/model", "rank_1")
                     .replace("URL", URL).split())
            with self.subTest(line):
                self.reshard(*words, code=3, says=SAYS)
                self.assertEqual(self.files(), before)

    def test_other_schemes(self):
        for url in ("hdfs://host/x", "obs://bucket/x", "gs://bucket/x", "https://host/x.ckpt",
                    "HTTP://host/x", "file:///x", "git+ssh://host/x"):
            self.reshard("inspect", url, code=3, says=f"{url}: expected a path, found a URL")
        for path in ("s3:/bucket", "://x", "3s://x", "a/s3://x", "./s3://x"):
            self.reshard("inspect", path, code=3, says=f"{path}: does not exist")

    def test_a_path_that_is_there_is_no_url(self):
        (self.folder / "s3:").mkdir()
        shutil.copytree(self.folder / "src", self.folder / "s3:/src")
        self.reshard("convert", "s3://src", "s3://out", "--src-strategy", "s3://src/strategy",
                     "--dst-strategy", "new/strategy")
        self.reshard("verify", "./s3:/out")
        self.reshard("inspect", "s3://none", code=3, says="s3://none: does not exist")


if __name__ == "__main__":
    program_case.main()
