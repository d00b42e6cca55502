#!/usr/bin/env python3
"""Counts patterns that make English hard to read, and fails if there are more than the limits allow.

Usage: check_prose.py [--list GROUP] [ROOT]

  --list GROUP  prints the sentences of a group that have a pattern, by file

Figures are for 1,000 words of a group as a whole; `wide` is for 1,000 lines. The patterns:

  headless  a clause that begins with what, who or where in place of a noun ("what follows of it")
  nothing   "nothing", "nobody", "none of" in place of a plain statement
  of-it     "of it", "of them", "of these"
  long      sentences of more than 28 words
  wide      lines of Markdown over 100 columns, tables left out
"""

import argparse
import collections
import pathlib
import re
import sys

PATTERNS = {
    "headless": re.compile(
        r"(?<![?])\b(?:what|who|whom|whose|whoever|whatever)\s+(?!to do\b|was expected\b|was found\b)[a-z]+"
        r"|\bwhere\s+(?:there|it|one|they|that|this|these|those|nothing|no|a|an|the|he|she|each|all|some|none"
        r"|many|few)\b|\bfor one who\b|\bone who\b|\bthose (?:that|who|of|in|with)\b|\bthat of\b",
        re.IGNORECASE,
    ),
    "nothing": re.compile(r"\b(?:nothing|nobody|none of|no other|neither)\b", re.IGNORECASE),
    "of-it": re.compile(r"\bof (?:it|them|these|those|one|that|which)\b", re.IGNORECASE),
}
LONG = 28
WIDE = 100

LIMITS = {
    "documents": {"headless": 3, "nothing": 1, "of-it": 1, "long": 6, "wide": 25},
    "public headers": {"headless": 3, "nothing": 1, "of-it": 1, "long": 4},
    "comments": {"headless": 3, "nothing": 1, "of-it": 1, "long": 4},
    "texts for users": {"headless": 2, "nothing": 1, "of-it": 1, "long": 8},
}

SOURCES = {"include", "src", "format", "tools", "python"}
SUFFIXES = {".md", ".h", ".cc", ".py", ".in"}
SKIPPED_FOLDERS = {"__pycache__", "build", "dist"}


def files_of(root):
    """The files that are checked: documents and sources, translations left out."""
    yield from (root / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md") if (root / name).exists())
    for folder in sorted({"docs", *SOURCES}):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in SUFFIXES and not path.name.endswith("zh-CN.md"):
                if not SKIPPED_FOLDERS & set(path.relative_to(root).parts):
                    yield path


class Markdown:
    """The prose of a page: without code, and with each longer table cell as a sentence of its own."""

    def __init__(self, text):
        self.lines = text.count("\n") + 1
        self.wide = 0
        kept, fenced = [], False
        for line in text.split("\n"):
            if line.lstrip().startswith("```"):
                fenced = not fenced
            elif fenced or line.startswith("    "):
                continue
            elif line.lstrip().startswith("|"):
                kept.extend(cell.strip() + "." for cell in line.strip("| ").split("|") if len(cell.split()) > 5)
            else:
                self.wide += len(line) > WIDE
                ends = line.startswith("#") or not line.strip()
                kept.append(line.lstrip("#*->0123456789. ") + ("." if ends else ""))
        self.prose = "\n".join(kept)


def comments_of(path, text):
    if path.suffix == ".py":
        return ".\n".join(re.findall(r'"""(.*?)"""', text, re.DOTALL) + re.findall(r"#\s(.*)", text))
    blocks, block = [], []
    for line in text.split("\n"):
        if found := re.match(r"\s*//+\s?(.*)", line):
            block.append(found[1])
        elif block:
            blocks.append(" ".join(block))
            block = []
    return ".\n".join(blocks)


def literals_of(text):
    """The texts of C++ string literals with more than four words. Adjacent literals are one text."""
    runs = re.findall(r'(?:"(?:[^"\\\n]|\\.)*"\s*)+', text)
    texts = ("".join(re.findall(r'"((?:[^"\\\n]|\\.)*)"', run)) for run in runs)
    return [one for one in texts if len(one.split()) > 4]


def sentences_of(prose):
    prose = re.sub(r"\s+", " ", re.sub(r"`[^`]*`", "X", prose))
    return [one.strip() for one in re.split(r"(?<=[.!?])\s+(?=[A-Z(*\"X])", prose) if len(one.split()) > 2]


class Group:
    """The counts of a group."""

    def __init__(self):
        self.sentences = []  # pairs of a path and a sentence
        self.lines = self.wide = 0

    def add(self, path, prose):
        self.sentences.extend((path, sentence) for sentence in sentences_of(prose))

    def patterns_in(self, sentence):
        found = {name: len(pattern.findall(sentence)) for name, pattern in PATTERNS.items()}
        found["long"] = int(len(sentence.split()) > LONG)
        return {name: count for name, count in found.items() if count}

    def figures(self):
        words = sum(len(sentence.split()) for _, sentence in self.sentences)
        counts = collections.Counter()
        for _, sentence in self.sentences:
            counts.update(self.patterns_in(sentence))
        figures = {name: 1000 * counts[name] / max(words, 1) for name in (*PATTERNS, "long")}
        if self.lines:
            figures["wide"] = 1000 * self.wide / self.lines
        return figures


def groups_of(root):
    groups = {name: Group() for name in LIMITS}
    for path in files_of(root):
        text = path.read_text(encoding="utf-8", errors="replace")
        name = path.relative_to(root)
        if path.suffix == ".md":
            page = Markdown(text)
            groups["documents"].add(name, page.prose)
            groups["documents"].lines += page.lines
            groups["documents"].wide += page.wide
            continue
        if name.parts[0] == "docs":
            continue
        groups["public headers" if name.parts[0] == "include" else "comments"].add(name, comments_of(path, text))
        if path.suffix == ".cc":
            for literal in literals_of(text):
                groups["texts for users"].add(name, literal)
    return groups


def check(groups):
    """Returns errors, and figures by group and pattern."""
    errors, figures = [], {}
    for group, limits in LIMITS.items():
        found = groups[group].figures()
        for name, limit in limits.items():
            figure = round(found.get(name, 0), 1)
            figures[group, name] = figure
            if figure > limit:
                errors.append(f"{group}: {name} {figure} for 1,000, at most {limit} are allowed: --list '{group}'")
    return errors, figures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", choices=LIMITS, metavar="GROUP")
    parser.add_argument("root", nargs="?", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    arguments = parser.parse_args()
    groups = groups_of(arguments.root.resolve())
    if arguments.list:
        group = groups[arguments.list]
        for path, sentence in group.sentences:
            if found := group.patterns_in(sentence):
                print(f"{path}: {', '.join(found)}: {sentence}")
        return 0
    errors, figures = check(groups)
    for group in LIMITS:
        print(f"{group}: " + ", ".join(f"{name} {figures[group, name]:g}" for name in LIMITS[group]))
    for error in errors:
        print(error)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
