#!/usr/bin/env python3
"""Runs every command of the documents, so that none of them promises what is not so.

Usage: run_doc_commands.py --reshard BIN --gen BIN [DOCUMENT...]

In README.md, its translations and the pages of docs commands stand in blocks like this one:

    ```console
    $ reshard ranks 0 --dst-strategy nowhere
    reshard: error: not found: nowhere: ...
    exit 3
    ```

Lines that begin with `$ ` are run by bash, those of a document one after the other in one folder that is
empty at first; a backslash at the end continues a line. Lines of output that the document shows have
to come in that order, with others between them where the document has left some out; `...` stands
for anything; blanks, times and rates need not agree. The exit code has to be 0, or N where a line
says `exit N`. A translation, NAME.zh-CN.md, has the commands of NAME.md.

A reshard command (reshard-gen too, and either with a folder before it) anywhere else in a code block is
an error: nobody would run it. A block marked `text` is for forms of commands, such as SRC and DST.
The lines of a block marked `cpp` stand in that order in a program of docs/examples.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

from run_cli_tests import environment_for, normalize

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMAND = re.compile(r"(\S*/)?reshard(-gen)?(\s|$)")
PROMPT = "$ "


class Step:
    """A command of a document and what it shows of its output."""

    def __init__(self, where, command):
        self.where = where
        self.command = command
        self.shown = []
        self.exit_code = 0


def steps_of(document, errors):
    """Returns the commands of a document; appends to `errors` those that stand where none is run."""
    steps = []
    fence = None  # the word behind the opening ``` of the block that we are in
    step = None  # whose output comes
    lines = document.read_text().splitlines()
    for number, line in enumerate(lines, start=1):
        where = f"{document.relative_to(ROOT)}:{number}"
        if line.lstrip().startswith("```"):
            fence = line.strip("` ") if fence is None else None
            step = None
        elif fence == "console":
            if step and step.command.endswith("\\"):
                step.command = step.command[:-1] + line
            elif line.startswith(PROMPT):
                step = Step(where, line[len(PROMPT):])
                steps.append(step)
            elif step and re.fullmatch(r"exit \d+", line):
                step.exit_code = int(line.split()[1])
            elif step:
                step.shown.append(line)
        elif fence != "text" and (fence is not None or line.startswith("    ")):
            if COMMAND.match(line.strip().removeprefix(PROMPT)):
                errors.append(f"{where}: not run; put it behind `$ ` into a block marked `console`")
    return steps


def missing_line(shown, output):
    """Returns the first of the lines `shown` that does not come in its turn, or None."""
    remaining = (" ".join(line.split()) for line in output)
    for line in shown:
        words = " ".join(line.split())
        pattern = re.compile(".*".join(re.escape(part) for part in words.split("...")))
        if words and not any(pattern.fullmatch(found) for found in remaining):
            return line
    return None


def run(step, folder, environment):
    """Returns what is wrong with a step, or None."""
    done = subprocess.run(["bash", "-c", step.command], cwd=folder, env=environment, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=300)
    if done.returncode != step.exit_code:
        return f"exit {done.returncode}, expected {step.exit_code}\n{done.stdout}"
    line = missing_line(normalize("\n".join(step.shown), folder), normalize(done.stdout, folder))
    return None if line is None else f"did not print in its turn: {line}\n{done.stdout}"


def check(document, bin_folder, environment, errors):
    """Runs a document; returns how many commands were run."""
    steps = steps_of(document, errors)
    with tempfile.TemporaryDirectory(prefix="reshard-doc-") as folder:
        # `build/release/bin/reshard` is what a reader types who has just built it.
        release = pathlib.Path(folder, "build", "release")
        release.mkdir(parents=True)
        (release / "bin").symlink_to(bin_folder)
        for step in steps:
            problem = run(step, folder, environment)
            if problem:
                errors.append(f"{step.where}: $ {step.command}\n{problem}")
                break  # what follows in the document builds on it
    return len(steps)


def check_translation(document, errors):
    original = document.with_name(document.name.replace(".zh-CN", ""))
    commands = [[step.command for step in steps_of(page, [])] for page in (original, document)]
    if commands[0] != commands[1]:
        differing = [command for command in commands[0] + commands[1]
                     if commands[0].count(command) != commands[1].count(command)]
        errors.append(f"{document.relative_to(ROOT)}: not the commands of {original.name}: "
                      f"{differing or 'another order'}")


def check_excerpts(document, errors):
    """Appends an error for each `cpp` block that is no excerpt of a program of docs/examples."""
    programs = [program.read_text().splitlines() for program in (ROOT / "docs" / "examples").glob("*.cc")]
    for block in re.findall(r"^```cpp\n(.*?)^```$", document.read_text(), re.MULTILINE | re.DOTALL):
        if all(missing_line(block.splitlines(), program) for program in programs):
            errors.append(f"{document.relative_to(ROOT)}: a block marked `cpp` is in no program of docs/examples")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reshard", required=True)
    parser.add_argument("--gen", required=True)
    parser.add_argument("documents", nargs="*", type=pathlib.Path, metavar="DOCUMENT")
    arguments = parser.parse_args()

    environment = environment_for([arguments.reshard, arguments.gen])
    bin_folder = pathlib.Path(arguments.reshard).resolve().parent
    documents = [document.resolve() for document in arguments.documents]
    documents = documents or [*sorted(ROOT.glob("README*.md")), *sorted(ROOT.glob("docs/**/*.md"))]
    errors = []
    for document in documents:
        check_translation(document, errors)
        check_excerpts(document, errors)
    commands = sum(check(document, bin_folder, environment, errors) for document in documents)
    for error in errors:
        print(error)
    print(f"{commands} commands in {len(documents)} documents, {len(errors)} errors")
    return 1 if errors or commands == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
