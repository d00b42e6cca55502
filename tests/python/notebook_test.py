"""The notebook docs/guide/tour.ipynb, run from its first cell to its last in a kernel of its own."""

import os
import pathlib
import shutil

import pytest

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")

NOTEBOOK = pathlib.Path(__file__).parents[2] / "docs" / "guide" / "tour.ipynb"


def of_kind(cell, kind):
    """What a cell shows in this form, one text for each output."""
    return [
        "".join(output["data"][kind])
        for output in cell.outputs
        if "data" in output and kind in output["data"]
    ]


def test_the_tour_runs_and_shows_what_it_says(samples, tmp_path, monkeypatch):
    monkeypatch.delenv("RESHARD_PROGRESS", raising=False)
    for name in ("ckpt_8", "new"):
        shutil.copytree(samples / name, tmp_path / name)
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells), "it is kept without outputs"
    client = nbclient.NotebookClient(
        notebook, timeout=250, resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute(env=os.environ | {"PYDEVD_DISABLE_FILE_VALIDATION": "1"})
    table, shards, rows, conversion, checks, page = (
        cell for cell in notebook.cells if cell.cell_type == "code"
    )
    assert "<table>" in of_kind(table, "text/html")[0]
    assert of_kind(shards, "text/plain")[0].count("Shard(") == 4
    assert "dtype=float32" in of_kind(rows, "text/plain")[0]
    # The bar is drawn over itself: what stands there in the end is full.
    assert any('<progress value="100"' in shown for shown in of_kind(conversion, "text/html"))
    assert "rank_3/checkpoint_3.ckpt" in of_kind(conversion, "text/plain")[-1]
    assert of_kind(checks, "text/plain") == ["(True, True)"]
    assert of_kind(page, "text/html")[0].startswith("<iframe srcdoc=")
