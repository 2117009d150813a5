# SPDX-License-Identifier: Apache-2.0
"""The notebook of the examples runs from its top, and shows what it says."""

import nbclient
import nbformat
import pytest


@pytest.fixture
def notebook(source):
    return nbformat.read(source / "examples/notebook.ipynb", as_version=4)


def outputs(cell):
    """[(type, content)] of all that a cell has shown."""
    shown = []
    for output in cell.outputs:
        shown += output.get("data", {}).items() if output.output_type != "stream" else [("text/plain", output.text)]
    return shown


def test_it_is_stored_without_results(notebook):
    nbformat.validate(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert (cell.outputs, cell.execution_count) == ([], None)


def test_it_runs(notebook, source, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(source / "python"))
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [entry for cell in notebook.cells if cell.cell_type == "code" for entry in outputs(cell)]
    kinds = [kind for kind, _ in shown]
    assert kinds.count("image/svg+xml") == 1  # the program's drawing
    assert kinds.count("image/png") == 2  # a step of the schedule, and accuracy
    texts = "".join(text for kind, text in shown if kind == "text/plain")
    assert "slot 3: forward 3, " in texts
    for scheme in ("model_parallel", "pipedream", "spectrain"):
        assert scheme in texts
    assert [text for kind, text in shown if kind == "text/markdown"][0].startswith("test_accuracy in percent")
    assert (tmp_path / "runs/notebook/results.sqlite").is_file()
