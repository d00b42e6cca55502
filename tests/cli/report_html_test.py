#!/usr/bin/env python3
"""The page of `reshard report`, parsed: well-formed, harmless, and with the figures of `reshard plan`.

Usage: report_html_test.py --reshard BIN --gen BIN
"""

import argparse
import html.parser
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
DATA = HERE.parent / "golden" / "data"
RESHARD = GEN = None
VOID = {"meta", "link", "br", "hr", "img", "input"}
HOSTILE = "<script>alert(1)</script>\"'&<img src=x onerror=alert(2)>]]>\x1b[2J"


class Page(html.parser.HTMLParser):
    """The tags of a page with their texts, and its tables as rows of (text, exact values)."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags = []
        self.attributes = []
        self.text = []
        self.open = []
        self.tables = {}
        self.rows = None
        self.feed(text)
        self.close()
        if self.open:
            raise ValueError(f"not closed: {self.open}")

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *attribute) for attribute in attrs]
        if tag in VOID:
            return
        self.open.append(tag)
        if tag == "table":
            self.rows = self.tables[dict(attrs)["id"]] = []
        elif tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append(["", None])
        elif tag == "data" and {"td", "th"} & set(self.open):
            self.rows[-1][-1][1] = int(dict(attrs)["value"])

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *attribute) for attribute in attrs]

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            raise ValueError(f"</{tag}> closes something else")

    def handle_data(self, data):
        self.text.append(data)
        if "td" in self.open or "th" in self.open:
            self.rows[-1][-1][0] += data

    def table(self, name):
        """The rows below the head: for each the name and the exact values."""
        return {row[0][0]: [cell[1] for cell in row] for row in self.tables[name]}


class ReportTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="reshard_report_")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def run_program(self, *arguments):
        done = subprocess.run([RESHARD, *map(str, arguments)], cwd=self.folder, capture_output=True,
                              timeout=240, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def report(self, *arguments):
        self.run_program("report", *arguments, "-o", "page.html", "--force", "-q")
        text = (self.folder / "page.html").read_text(encoding="utf-8")
        page = Page(text)
        # Nothing is loaded, and nothing runs.
        self.assertFalse({"script", "link", "img", "iframe", "object", "a"} & set(page.tags))
        for _, name, value in page.attributes:
            self.assertFalse(name.startswith("on"), name)
            self.assertNotIn(name, ("href", "src", "style"))
            self.assertNotIn("url(", value or "")
        self.assertNotIn("url(", text)
        self.assertNotIn("@import", text)
        for svg in re.findall(r"<svg .*?</svg>", text, re.DOTALL):
            self.assertRegex(svg, r'^<svg [^>]*role="img"[^>]*><title>[^<]+</title><desc>[^<]+</desc>')
        return page

    def test_a_folder_of_whole_tensors_has_files_and_no_ranks(self):
        subprocess.run([GEN, "old", "--layers", "2", "--hidden", "64", "--ffn", "64", "--vocab", "64", "--tp",
                        "2"], cwd=self.folder, check=True, capture_output=True)
        strategy = ["--src-strategy", "old/strategy"]
        self.run_program("convert", "old", "hf", *strategy, "--format", "huggingface", "--shard-size", "30K", "-q")
        files = len(list((self.folder / "hf").glob("*.safetensors")))
        self.assertGreater(files, 1)

        def sides(*arguments):
            rows = self.report(*arguments).tables["totals"]
            return {row[0][0]: row[1][0] for row in rows[1:]}

        self.assertEqual(sides("hf", "--dst-strategy", "old/strategy")["source"],
                         f"{files} files of full tensors")
        self.assertRegex(sides("old", *strategy, "--format", "unified", "--dtype", "float16")["target"],
                         r"^\d+ files of full tensors$")

    def check_against_plan(self, source, strategies):
        page = self.report(source, *strategies)
        plan = json.loads(self.run_program("plan", source, "out", *strategies, "--json"))
        totals = page.table("totals")
        for name, value in (("bytes read", plan["bytes_read"]), ("parameters", plan["parameters"]),
                            ("bytes written", plan["bytes_written"]), ("runs", plan["runs"]["count"]),
                            ("shortest run", plan["runs"]["shortest"]),
                            ("longest run", plan["runs"]["longest"])):
            self.assertEqual(totals[name][1], value, name)

        targets = page.table("target-ranks")
        for target in plan["targets"]:
            self.assertEqual(targets[f"rank {target['rank']}"][1:3], [1, target["size"]])
        flow = {row[0][0]: row for row in page.tables["flow"][1:]}
        for target in plan["targets"]:
            words = ranks_in_words(target["source_ranks"])
            self.assertEqual(flow[f"rank {target['rank']}"][3][0], words)
        sources = page.table("source-ranks")
        for file in plan["sources"]:
            self.assertEqual(sources[f"rank {file['rank']}"][2], file["size"])

        def column(table, number):
            return sum(row[number] for row in list(page.table(table).values())[1:])

        self.assertEqual(column("flow", 1), plan["bytes_read"])
        self.assertEqual(column("source-ranks", 5), plan["bytes_read"])
        self.assertEqual(column("target-ranks", 5), plan["bytes_read"])
        self.assertEqual(column("target-ranks", 2), plan["bytes_written"])
        self.assertEqual(column("target-stages", 2), plan["bytes_written"])
        self.assertEqual(column("by-dtype", 3), plan["bytes_read"])
        self.assertEqual(column("by-prefix", 3), plan["bytes_read"])
        self.assertEqual(column("by-dtype", 1), plan["parameters"])
        self.assertEqual(column("parameters", 1), plan["parameters"])
        full = sum(row[1][1] * row[4][1] for row in page.tables["parameters"][1:])
        self.assertEqual(full, totals["full tensors"][1])
        runs = page.tables["runs"][1:]
        self.assertEqual(sum(row[2][1] for row in runs), plan["runs"]["count"])
        self.assertEqual(sum(row[3][1] for row in runs), plan["bytes_read"])

    def test_figures_are_those_of_the_plan(self):
        for case in ("case_000", "case_027", "case_040"):
            with self.subTest(case):
                folder = DATA / "convert" / case
                strategies = []
                for side in ("src", "dst"):
                    for strategy in folder.glob(f"{side}_strategy.*"):
                        strategies += [f"--{side}-strategy", strategy]
                self.check_against_plan(folder / "src", strategies)

    def test_strategies_in_words_and_parameters_with_their_cuts(self):
        layers = ["--layers", "12", "--hidden", "8", "--ffn", "8", "--vocab", "8"]
        for name, cut in (("old", ["--tp", "2", "--dp", "2"]),
                          ("new", ["--tp", "4", "--strategy-only"])):
            subprocess.run([GEN, name, *layers, *cut], cwd=self.folder, check=True,
                           capture_output=True)
        page = self.report("old", "--src-strategy", "old/strategy", "--dst-strategy", "new/strategy")
        totals = {row[0][0]: row[1][0] for row in page.tables["totals"][1:]}
        for side in ("old", "new"):
            shown = json.loads(self.run_program("strategy", "show", f"{side}/strategy", "--json"))
            words = f"4 ranks: {shown['meaning']} ({side}/strategy)"
            self.assertEqual(totals["source" if side == "old" else "target"], words)
        self.assertEqual(totals["epoch_step"], "1_100")
        rows = {row[0][0]: [cell[0] for cell in row[1:]] for row in page.tables["parameters"][1:]}
        self.assertEqual(rows["model.layers.*.attention.wq.weight"],
                         ["12", "BFloat16", "[8, 8]", "128 B", "2 x 1", "4 x 1"])
        self.assertEqual(rows["model.norm_out.weight"][-2:], ["not cut", "not cut"])
        files = self.report("old")
        self.assertIn("model.norm_out.weight", files.table("parameters"))
        self.assertEqual(len(files.tables["parameters"][0]), 5)

    def test_a_short_run_has_lines_from_its_checks_to_its_end(self):
        subprocess.run([GEN, "tiny", "--layers", "1", "--hidden", "8", "--ffn", "8", "--vocab", "8",
                        "--tp", "2"], cwd=self.folder, check=True, capture_output=True)
        self.run_program("convert", "tiny", "out", "--src-strategy", "tiny/strategy", "--report",
                         "run.html", "-q")
        text = (self.folder / "run.html").read_text(encoding="utf-8")
        page = Page(text)
        lines = re.findall(r'<polyline class="[^"]*" points="([^"]*)"', text)
        self.assertEqual(len(lines), 4)  # read, gathered, written; held
        for line in lines:
            points = [tuple(map(float, point.split(","))) for point in line.split()]
            self.assertGreaterEqual(len(points), 4)
            self.assertGreater(points[-1][0], points[0][0])
            self.assertGreater(points[-1][0], 900)  # the right edge
        written = [row[3][1] for row in page.tables["timeline"][1:]]
        self.assertEqual(written[0], 0)
        self.assertEqual(written[-1], sum(f.stat().st_size for f in self.folder.glob("out/rank_*/*")))

    def test_hostile_names_stay_text(self):
        subprocess.run([GEN, "two", "--layers", "1", "--hidden", "8", "--ffn", "8", "--vocab", "8",
                        "--tp", "2"], cwd=self.folder, check=True, capture_output=True)
        hostile = self.folder / HOSTILE.replace("/", "∕")
        os.rename(self.folder / "two", hostile)
        strategy = hostile / "strategy"
        # A name of as many bytes in place of one in the files: an upper-case tag opens as well.
        name, evil = b"lm_head.weight", b"<B><I>&\"'.a-->"
        self.assertEqual(len(name), len(evil))
        for file in hostile.rglob("*.ckpt"):
            file.chmod(0o600)
            file.write_bytes(file.read_bytes().replace(name, evil))
        page = self.report(hostile.name, "--src-strategy", f"{hostile.name}/strategy", "--param",
                           evil.decode())
        self.assertTrue(strategy.is_dir())
        self.assertFalse({"b", "i"} & set(page.tags))
        text = "".join(page.text)
        self.assertIn(evil.decode(), text)
        self.assertIn(f"Source ranks of {evil.decode()}", text)
        self.assertIn("<script>alert(1)", text)
        self.assertIn("\\x1b[2J", text)
        self.assertNotIn("\x1b", text)


def ranks_in_words(ranks):
    """[0, 1, 2, 5] as "0-2, 5"."""
    words = []
    for rank in ranks:
        if words and words[-1][1] == rank - 1:
            words[-1][1] = rank
        else:
            words.append([rank, rank])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in words)


def main():
    global RESHARD, GEN
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reshard", required=True, type=pathlib.Path)
    parser.add_argument("--gen", required=True, type=pathlib.Path)
    arguments, rest = parser.parse_known_args()
    RESHARD, GEN = arguments.reshard.resolve(), arguments.gen.resolve()
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
