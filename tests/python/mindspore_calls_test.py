"""The drop-in against MindSpore's recorded calls and signatures, without MindSpore."""

import os

import pytest

import recorded_calls
from recorded_calls import CALLED, SIGNATURES, is_there


@pytest.fixture
def folder(tmp_path, monkeypatch):
    recorded_calls.lay_out(tmp_path)
    monkeypatch.chdir(tmp_path)
    mask = os.umask(0o022)
    yield tmp_path
    os.umask(mask)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("row", CALLED, ids=lambda row: row["id"])
def test_a_call_does_what_mindspore_did(row, folder):
    assert not recorded_calls.wrong_with(row, recorded_calls.light_words())


@pytest.mark.parametrize("name", [name for name in SIGNATURES if is_there(name)])
def test_a_function_takes_what_mindspores_does(name):
    assert not recorded_calls.wrong_signatures(name, SIGNATURES[name]["signature"])
