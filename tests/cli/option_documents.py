#!/usr/bin/env python3
"""The tables of options in docs/reference/cli.md are what `reshard COMMAND --help` says.

    option_documents.py --reshard BIN [--bless]

Behind a line `<!-- options of COMMAND -->` stands a table with a row for each option of the command, in
the order of its help: what the help says, and behind `<br>` what the document adds. --bless writes the
rows anew and keeps what the document adds. Options that all commands have stand in their own table; a
command's table has them only where it adds something.
"""

import argparse
import pathlib
import re
import subprocess
import sys

DOCUMENT = pathlib.Path(__file__).resolve().parents[2] / "docs" / "reference" / "cli.md"
TABLE = re.compile(r"(<!-- options of ([a-z -]+) -->\n\n\| option \| \|\n\| --- \| --- \|\n)((?:\|.*\n)*)")
HELP_COLUMN = 30


def options_of(reshard, command):
    """Pairs of an option with its value, as `--rank N ...`, and the sentence of its help."""
    words = command.split()
    only_with = words.pop() if words[-1].startswith("--") else None
    text = subprocess.run([reshard, *words, "--help"], capture_output=True, text=True, check=True).stdout
    found = []
    group = ""
    for line in text.splitlines():
        if line and not line.startswith(" "):
            group = line.rstrip(":")
        if line.startswith("  -"):
            is_short = line[HELP_COLUMN - 1 : HELP_COLUMN] == " "
            name, words = (line[:HELP_COLUMN], line[HELP_COLUMN:]) if is_short else (line, "")
            found.append([group, name.strip().removesuffix(" REQUIRED"), words])
        elif found and line.startswith(" " * HELP_COLUMN):
            found[-1][2] += " " + line.strip()
    return [(name, words.strip()) for group, name, words in found if is_of(group, only_with)]


def is_of(group, only_with):
    """Options of `verify --against` are a group of their own; spellings of MindFormers stand elsewhere."""
    return ("against" in group) == (only_with is not None) and "MindFormers" not in group


def first_name(cell):
    return re.search(r"--?[a-zA-Z][\w-]*", cell.replace("`", ""))[0]


def escaped(text):
    return text.replace("|", r"\|")


def with_code(text):
    """Options and file names in a sentence of the help, as a document has them."""
    return re.sub(r"(?<![\w`-])(--[a-z][\w-]*(?:=\S*\w)?(?: (?:unified|huggingface))?)", r"`\1`", text).replace("*", r"\*")


def row_of(name, words, added):
    return f"| `{escaped(name)}` | {escaped(with_code(words))}{'<br>' + added if added else ''} |\n"


def added_in(rows):
    """What the document adds, by the first name of each row's option."""
    added = {}
    for row in rows.splitlines():
        name, words = re.match(r"\| (.*?) \| (.*) \|$", row.replace(r"\|", "\0")).groups()
        parts = words.replace("\0", r"\|").split("<br>", 1)
        if len(parts) == 2:
            added[first_name(name)] = parts[1]
    return added


def written(text, reshard, errors):
    in_all = {"-h", "-q", "-v", "--json", "--json-lines", "--log-file"}

    def table(match):
        head, command, rows = match.groups()
        added = added_in(rows)
        options = options_of(reshard, command)
        lost = added.keys() - {first_name(name) for name, _ in options}
        errors.extend(f"{command}: has no option {name}, which docs/reference/cli.md tells of" for name in lost)
        return head + "".join(
            row_of(name, words, added.get(first_name(name)))
            for name, words in options
            if first_name(name) not in in_all or first_name(name) in added
        )

    return TABLE.sub(table, text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reshard", required=True)
    parser.add_argument("--gen", help="not needed")
    parser.add_argument("--bless", action="store_true")
    arguments = parser.parse_args()
    text = DOCUMENT.read_text(encoding="utf-8")
    errors = []
    now = written(text, arguments.reshard, errors)
    tables = len(TABLE.findall(text))
    if arguments.bless:
        DOCUMENT.write_text(now, encoding="utf-8")
    elif now != text:
        errors.append("docs/reference/cli.md: a table of options is not what the help says; pass --bless")
    print("\n".join(errors))
    print(f"{tables} tables of options")
    return 1 if errors or tables == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
