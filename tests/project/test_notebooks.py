"""Every notebook of the documentation runs from its first to its last cell, and stores what it shows."""

import json
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(path.name for path in FOLDER.glob("*.ipynb"))


def test_there_are_four() -> None:
    assert len(NOTEBOOKS) == 4


@pytest.mark.slow
@pytest.mark.parametrize("name", NOTEBOOKS)
@pytest.mark.filterwarnings("ignore")
def test_a_notebook_runs(name: str, tmp_path: Path) -> None:
    notebook = nbformat.read(FOLDER / name, 4)  # type: ignore[no-untyped-call]
    client = NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    assert any(cell.outputs for cell in notebook.cells if cell.cell_type == "code")


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_stored_outputs_are_whole_and_name_no_machine(name: str) -> None:
    text = (FOLDER / name).read_text(encoding="utf-8")
    assert "/tmp/" not in text
    assert '"output_type": "error"' not in text
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    assert all(cell["execution_count"] for cell in cells)
