"""The examples of docs/python.md."""

import doctest
import pathlib

DOCUMENT = pathlib.Path(__file__).parents[2] / "docs" / "python.md"


def test_examples_do_what_the_page_says(samples, full, monkeypatch):
    assert full.is_relative_to(samples)
    monkeypatch.chdir(samples)
    result = doctest.testfile(str(DOCUMENT), module_relative=False)
    assert result.attempted > 20 and result.failed == 0
