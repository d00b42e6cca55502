"""The examples of README.md, docs/guide/python.md and docs/guide/python_mindspore.md, of their
translations, and of the specification."""

import doctest
import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[2]
PROGRAMS = pathlib.Path(os.environ["RESHARD_BIN"])


def generate(commands):
    assert len(commands) == 2
    for arguments in commands:
        subprocess.run(
            [PROGRAMS / "reshard-gen", *arguments.split()], check=True, stdout=subprocess.DEVNULL
        )


def test_examples_do_what_the_page_says(samples, full, monkeypatch):
    assert full.is_relative_to(samples)
    monkeypatch.chdir(samples)
    result = doctest.testfile(str(ROOT / "docs" / "guide" / "python.md"), module_relative=False)
    assert result.attempted > 20 and result.failed == 0


def test_the_examples_of_the_specification_work_verbatim(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    examples = ROOT / "tests" / "python" / "data" / "examples.txt"
    generate(re.findall(r"^  reshard-gen (.*)$", examples.read_text(encoding="utf-8"), re.MULTILINE))
    result = doctest.testfile(str(examples), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert result.attempted == 51 and result.failed == 0


@pytest.mark.parametrize(
    "page",
    (
        "README.md",
        "README.zh-CN.md",
        "docs/guide/python_mindspore.md",
        "docs/guide/python_mindspore.zh-CN.md",
    ),
)
def test_a_page_with_its_own_sample_does_what_it_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    document = ROOT / page
    generate(re.findall(r"^\$ reshard-gen (.*)$", document.read_text(encoding="utf-8"), re.MULTILINE))
    result = doctest.testfile(str(document), module_relative=False, encoding="utf-8")
    assert result.attempted > 3 and result.failed == 0
