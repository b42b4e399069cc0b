"""The notebooks under examples/: each is run as a reader runs it, one after the other, against the whole service."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[1] / "examples"
NAMES = ("owner", "analyst", "auditor")
CELL_SECONDS = 300


def read(name: str) -> nbformat.NotebookNode:
    return nbformat.read(EXAMPLES / f"{name}.ipynb", as_version=4)


def run(name: str) -> nbformat.NotebookNode:
    notebook = read(name)
    NotebookClient(notebook, timeout=CELL_SECONDS, resources={"metadata": {"path": str(EXAMPLES)}}).execute()
    return notebook


def shown(notebook: nbformat.NotebookNode, kind: str = "text/plain") -> list[str]:
    """What cells printed or displayed; of a kind of picture or markup, that alone."""
    cells = [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]
    outputs = [output for of_cell in cells for output in of_cell]
    # What one cell prints may come in several pieces, cut anywhere.
    printed = ["".join(each.text for each in of_cell if each.output_type == "stream") for of_cell in cells]
    return [text for text in printed if text and kind == "text/plain"] + [
        output.data[kind] for output in outputs if kind in output.get("data", {})
    ]


@pytest.fixture
def service_of_the_reader(stack, api_key, monkeypatch, tmp_path):
    monkeypatch.setenv("IMPRIMATUR_URL", stack.url)
    monkeypatch.setenv("IMPRIMATUR_API_KEY", api_key)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))


@pytest.mark.usefixtures("service_of_the_reader")
def test_the_notebooks_work_one_after_the_other(client):
    owner = run("owner")
    dataset = client.dataset("commuters")
    (first,) = dataset.releases()
    assert (first.name, first.state, first.price.epsilon) == ("first", "published", pytest.approx(2, rel=0.01))
    text = "\n".join(shown(owner))
    assert "Column 'age': 2 cells are outside the declared range" in text
    assert "basic 50 % used" in text
    assert any("published" in bar for bar in shown(owner, "text/html") if bar.startswith("<progress"))

    analyst = run("analyst")
    assert len(shown(analyst, "image/png")) == 1
    assert "True True" in "\n".join(shown(analyst)), "the same question costs nothing"
    newest, *_ = dataset.releases()
    (answer,) = client.answers(newest)["answers"]
    assert f"{answer['value']} people" in "\n".join(shown(analyst))
    entries = client.ledger(dataset).entries
    assert [entry.kind for entry in entries] == ["reserve", "post"] * 3  # the refused order left none

    auditor = run("auditor")
    text = "\n".join(shown(auditor))
    assert len(shown(auditor, "image/png")) == 1
    assert "'signature'] True True" in text
    assert "False" in shown(auditor), "a changed figure is noticed"
    assert "[]" in shown(auditor), "the ledger has no fault"
    assert "entry 2 was changed: its hash does not match its contents" in text
    assert "generator.onnx" in text
    assert re.search(r"^\d+ → \d+ True$", text, re.MULTILINE)
    assert re.search(r"^\d+ entries: True True$", text, re.MULTILINE)
    assert "6 of 6" in text

    again = run("owner")
    assert client.ledger(dataset).entries == entries, "the second run paid nothing"
    assert "uploaded before" in "\n".join(shown(again))


@pytest.mark.parametrize("name", NAMES)
def test_notebooks_are_committed_without_outputs_and_say_what_each_cell_does(name):
    cells = read(name).cells
    assert all(not cell.outputs and cell.execution_count is None for cell in cells if cell.cell_type == "code")
    assert cells[0].cell_type == "markdown"
    kinds = [cell.cell_type for cell in cells]
    assert ("code", "code") not in itertools.pairwise(kinds)
    assert (
        max(
            len(cell.source.splitlines())
            for cell in cells
            if cell.cell_type == "code" and "schema = {" not in cell.source
        )
        <= 25
    )
