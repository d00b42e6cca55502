#!/usr/bin/env python3
"""Checks that links between documents resolve, and that files named in the tree's texts exist.

Usage: check_links.py [ROOT]. Prints one line for each violation; exits 1 when there is any.

In Markdown a relative link needs its file and, behind `#`, its heading. In all texts, comments and
messages included, a path below docs/ or bench/results/ needs its file. A class, function or test that
a page of docs/design names, such as `Prove` or `kill_test`, has to occur in the code. So have the words
of a heading that a page of docs/guide quotes from a message: all but numbers, names and options.
"""

import pathlib
import re
import sys

FOLDERS = ("bench", "docs", "format", "include", "python", "src", "tests", "tools")
SUFFIXES = {".md", ".h", ".cc", ".py", ".cmake", ".txt", ".in", ".sh", ".ipynb", ".json"}
SKIPPED = {"__pycache__", "build", "dist", "data", "corpus"}
LINK = re.compile(r"\]\(([^()\s]+)\)|\bsrc=\"([^\"]+)\"")
MENTION = re.compile(r"(?<![\w/.-])(?:docs|bench/results)/[\w./-]*\w\.(?:md|ipynb|cc|sh|yaml|svg)\b")
HEADING = re.compile(r"^#+ +(.*?) *$|<a id=\"([^\"]+)\">", re.MULTILINE)
NAMED_CODE = re.compile(r"`(?:[A-Z]\w+::)?([A-Z]\w*[a-z]\w*|\w+_test)`")
QUOTED = re.compile(r"^### `([^`]+)`$", re.MULTILINE)
LITERALS = re.compile(r'(?:"(?:[^"\\\n]|\\.)*"\s*)+')
FENCED = re.compile(r"^( *)```.*?^\1```", re.MULTILINE | re.DOTALL)


def files_of(root):
    yield from sorted(path for path in root.iterdir() if path.suffix in SUFFIXES)
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in SUFFIXES and not SKIPPED & set(path.relative_to(root).parts):
                yield path


def anchors_of(text):
    """The anchors that GitHub gives the headings of a page."""
    anchors = set()
    for heading, name in HEADING.findall(FENCED.sub("", text)):
        if name:
            anchors.add(name)
            continue
        heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        repeated = sum(1 for known in anchors if re.fullmatch(re.escape(slug) + r"(-\d+)?", known))
        anchors.add(f"{slug}-{repeated}" if slug in anchors else slug)
    return anchors


def errors_of_link(path, target, root):
    if re.match(r"[a-z]+:", target):
        return None
    name, _, anchor = target.partition("#")
    page = (path.parent / name).resolve() if name else path
    if not page.exists():
        return f"links to {target}, which does not exist"
    if root not in (page, *page.parents):
        return f"links to {target}, which is outside of the tree"
    if anchor and page.suffix == ".md" and anchor not in anchors_of(page.read_text(encoding="utf-8")):
        return f"links to {target}, but that page has no such heading"
    return None


def messages_of(texts):
    """The string literals of the code, joined as the compiler joins them."""
    literals = (found[0] for path, text in texts.items() if path.suffix in {".h", ".cc"} for found in LITERALS.finditer(text))
    return "\n".join(re.sub(r'"\s*"', "", literal) for literal in literals)


def unknown_words(heading, messages):
    """The first words of a quoted message that are in no message, or None."""
    for words in re.split(r"\.\.\.|[:;,]|\S*[A-Z0-9{][^ ]*|--\S+|\bor both\b", heading):
        if len(words.split()) > 1 and words.strip() not in messages:
            return words.strip()
    return None


def check(root):
    """Returns one line for each violation."""
    errors = []
    texts = {path: path.read_text(encoding="utf-8", errors="replace") for path in files_of(root)}
    messages = messages_of(texts)
    code = {path.stem for path in texts}
    for path, text in texts.items():
        if path.suffix != ".md":
            code.update(re.findall(r"\w+", text))
    for path, text in texts.items():
        found = []
        if path.suffix == ".md":
            prose = re.sub(r"`[^`\n]*`", "", FENCED.sub("", text))
            found = [errors_of_link(path, a or b, root) for a, b in LINK.findall(prose)]
        if path.parent == root / "docs" / "design":
            names = NAMED_CODE.findall(FENCED.sub("", text))
            found += [f"names `{name}`, which is not in the code" for name in names if name not in code]
        if path.parent == root / "docs" / "guide":
            unknown = [unknown_words(heading, messages) for heading in QUOTED.findall(text)]
            found += [f"quotes `{words}`, which is in no message" for words in unknown if words]
        found += [f"names {name}, which does not exist" for name in MENTION.findall(text) if not (root / name).exists()]
        errors.extend(f"{path.relative_to(root)}: {error}" for error in found if error)
    return errors


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]).resolve()
    errors = check(root)
    for error in errors:
        print(error)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
