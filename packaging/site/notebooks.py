"""Write each notebook of docs/notebooks as a page, with the outputs that are stored in it."""

import base64
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"


def pages() -> dict[str, str]:
    """Return the text of each page by the name of its notebook."""
    return {path.stem: _page(path) for path in sorted(_FOLDER.glob("*.ipynb"))}


def _page(path: Path) -> str:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    title, *parts = [text for cell in notebook["cells"] for text in _cell(cell)]
    download = f"[Download this notebook]({path.name}){{ .md-button }}"
    return "\n\n".join((title, download, *parts)) + "\n"


def _cell(cell: Mapping[str, Any]) -> Iterator[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield source
        return
    yield f"```python\n{source}\n```"
    for output in cell["outputs"]:
        yield from _output(output)


def _output(output: Mapping[str, Any]) -> Iterator[str]:
    data = output.get("data", {})
    if "image/png" in data:
        image = "".join(data["image/png"]).replace("\n", "")
        base64.b64decode(image, validate=True)
        yield f"![](data:image/png;base64,{image})"
        return
    text = "".join(output.get("text") or data.get("text/plain") or "").rstrip()
    if text and not text.startswith("<Figure"):
        yield f"```text\n{text}\n```"
