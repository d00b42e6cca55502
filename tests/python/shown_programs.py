"""The programs of many processes that the pages of docs/guide show, run as they show them."""

import os
import pathlib
import re
import subprocess
import sys

PAGES = pathlib.Path(__file__).parents[2] / "docs" / "guide"


def shown(page, mark):
    """The program on the page that begins with this comment."""
    text = (PAGES / page).read_text(encoding="utf-8")
    [program] = re.findall(rf"```python\n(# with {re.escape(mark)}\n.*?)```", text, re.DOTALL)
    return program


def run(program, folder, *launcher):
    """Runs the program in the folder. Returns its output."""
    script = folder / "script.py"
    script.write_text(program)
    done = subprocess.run(
        [*launcher, sys.executable, script],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=250,
        env=os.environ | {"RESHARD_PROGRESS": "0"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
