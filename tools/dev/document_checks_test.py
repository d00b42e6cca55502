#!/usr/bin/env python3
"""Tests check_prose.py, check_links.py and readme_figures.py: good pages, and one fault in each."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import check_links  # noqa: E402
import check_prose  # noqa: E402
import readme_figures  # noqa: E402

DOCS = pathlib.PurePath("docs")  # as a value: check_links.py reads this file, too
HEADLESS = "It says what follows. "
PLAIN = "The reader copies each byte once and then compares the digests of both sides. "


class Tree(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


class CheckProseTest(Tree):
    def figures(self):
        return check_prose.check(check_prose.groups_of(self.root))

    def test_counts_each_pattern_by_group(self):
        self.write(DOCS / "page.md", HEADLESS + "None of it is known. " + "word " * 29 + "ends.\n\n" + "x" * 101 + "\n")
        self.write("include/reshard/a.h", f"// {HEADLESS}\n")
        self.write("src/base/a.cc", f'// {PLAIN}\nconst char* text = "nobody knows who asks for it";\n')
        _, figures = self.figures()
        for group, name in (
            ("documents", "headless"), ("documents", "nothing"), ("documents", "of-it"), ("documents", "long"),
            ("documents", "wide"), ("public headers", "headless"), ("texts for users", "headless"),
            ("texts for users", "nothing"),
        ):
            self.assertGreater(figures[group, name], 0, (group, name))
        self.assertEqual(figures["comments", "headless"], 0)

    def test_a_text_is_one_literal_or_several_adjacent_ones(self):
        words = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
        self.write("src/base/a.cc", f'A("{words}", "{words}");\n')
        self.assertEqual(self.figures()[1]["texts for users", "long"], 0)
        self.write("src/base/a.cc", f'A("{words} "\n  "{words}");\n')
        self.assertGreater(self.figures()[1]["texts for users", "long"], 0)

    def test_code_tables_and_translations_are_no_long_sentences(self):
        row = "| One two three four five six | Word " + "word " * 26 + "|\n"
        self.write(DOCS / "page.md", f"```text\n{HEADLESS * 9}\n```\n\n| a | b |\n| --- | --- |\n{row * 3}\n`{HEADLESS}`\n")
        self.write(DOCS / "page.zh-CN.md", HEADLESS * 9)
        self.assertEqual(self.figures()[0], [])

    def test_limits_hold_for_a_group_as_a_whole(self):
        self.write(DOCS / "bad.md", HEADLESS * 2)
        self.assertTrue(self.figures()[0])
        self.write(DOCS / "good.md", (PLAIN.strip() + "\n") * 100)
        self.assertEqual(self.figures()[0], [])


class CheckLinksTest(Tree):
    def errors(self, link):
        self.write(DOCS / "guide/page.md", f"# A page\n\n## Its `part`: one, two\n\n{link}\n")
        self.write(DOCS / "reference/other.md", '# Other\n\n<a id="values"></a>\n\n```text\n# no heading\n```\n\n## Two\n\n## Two\n')
        return check_links.check(self.root)

    def test_links_that_resolve(self):
        for target in ("../reference/other.md", "../reference/other.md#values", "../reference/other.md#two-1",
                       "#its-part-one-two", "https://example.com/x", "../reference"):
            self.assertEqual(self.errors(f"[words]({target})"), [], target)
        self.assertEqual(self.errors("`[words](missing.md)`"), [])

    def test_links_that_do_not(self):
        for target in ("other.md", "../reference/other.md#three", "../reference/other.md#no-heading", "#part", "/etc"):
            self.assertTrue(self.errors(f"[words]({target})"), target)

    def test_paths_in_texts(self):
        self.write("src/base/a.h", f"// See {DOCS}/reference/other.md.\n")
        self.assertEqual(self.errors(""), [])
        self.write("src/base/a.h", f"// See {DOCS}/other.md.\n")
        self.assertEqual(self.errors(""), [f"src/base/a.h: names {DOCS}/other.md, which does not exist"])


    def test_names_in_design_pages(self):
        self.write("src/write/prove.h", "Status Prove();\n")
        self.write("tests/fault/kill_test.py", "")
        self.write(DOCS / "design/page.md", "`Prove`, `Writer::Prove`, `kill_test`, `--jobs`, `DST`\n")
        self.assertEqual(check_links.check(self.root), [])
        self.write(DOCS / "design/page.md", "`Proves`, `Prove::Writer`, `kills_test`\n")
        self.assertEqual(len(check_links.check(self.root)), 3)


PAGE = """
| warm | s | times cp | times MindSpore |
| --- | --- | --- | --- |
| row cut | 0.20 | 1.50 | 29.28 |
| optimizer shards merged | 0.50 | **0.90** | 20.00 |
| 5,000 tiny parameters | 0.13 | **0.83** | 150.86 |

| cold | s | times cp | times MindSpore |
| --- | --- | --- | --- |
| row cut | 0.52 | 1.50 | 15.10 |
| 5,000 tiny parameters | 0.25 | 1.23 | 79.96 |

| memory, MiB | GiB | reshard | cp -r | MindSpore |
| --- | --- | --- | --- | --- |
| optimizer shards merged | 0.94 | 18 | 0.2 | 2668 |
"""


class ReadmeFiguresTest(unittest.TestCase):
    def test_the_table_has_the_least_and_the_greatest(self):
        rows = readme_figures.speed_table(PAGE, *readme_figures.WORDS["README.md"]).splitlines()[2:]
        self.assertEqual(rows, [
            "| in the page cache | large | 0.90 to 1.50 | 20 to 29 |",
            "| in the page cache | 5,000 tiny | 0.83 | 151 |",
            "| on disk | large | 1.50 | 15 |",
            "| on disk | 5,000 tiny | 1.23 | 80 |",
        ])

    def test_the_picture_has_time_and_memory_of_each_program(self):
        svg = readme_figures.picture(PAGE)
        for text in ("0.5 s", "0.5 s", "10.0 s", "18 MiB", "0.2 MiB", "2,668 MiB"):
            self.assertIn(f">{text}<", svg)


if __name__ == "__main__":
    unittest.main()
