"""The examples of docs/python.md and of README.md."""

import doctest
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).parents[2]
PROGRAMS = pathlib.Path(os.environ["RESHARD_BIN"])


def test_examples_do_what_the_page_says(samples, full, monkeypatch):
    assert full.is_relative_to(samples)
    monkeypatch.chdir(samples)
    result = doctest.testfile(str(ROOT / "docs" / "python.md"), module_relative=False)
    assert result.attempted > 20 and result.failed == 0


def test_the_tour_of_the_readme_does_what_it_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    readme = ROOT / "README.md"
    made = re.findall(r"^\$ reshard-gen (.*)$", readme.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(made) == 2
    for arguments in made:
        subprocess.run(
            [PROGRAMS / "reshard-gen", *arguments.split()], check=True, stdout=subprocess.DEVNULL
        )
    result = doctest.testfile(str(readme), module_relative=False)
    assert result.attempted > 3 and result.failed == 0
