"""A release in a notebook: executed by Jupyter's own client in a real kernel, and well-formed."""

from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import nbclient
import nbformat
import pytest

from hubbub.answers.notebook import MAX_ROWS
from hubbub.answers.release import Output, Release
from hubbub.demo import lay_out

SVG = "{http://www.w3.org/2000/svg}"


def release(rows: int = 3, name: str = "n", key: str = "North") -> Release:
    counts, low, high = [100] * rows, [90.0] * rows, [110.0] * rows
    columns = (Output("region", "text", [key] * rows), Output(name, "integer", counts, low, high))
    return Release(columns, [0.5] * rows, Fraction(1, 10), Fraction(0), {}, Fraction(2))


class Tags(HTMLParser):
    """Collects tags and attributes, and checks that what is opened is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.seen.append((tag, dict(attrs)))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def tags(text: str) -> Tags:
    found = Tags()
    found.feed(text)
    assert found.open == []
    return found


def test_a_release_is_a_table_a_drawing_and_a_price() -> None:
    text = release()._repr_html_()
    found = [tag for tag, _ in tags(text).seen]
    assert found.count("tr") == 4
    assert found.count("svg") == 1
    assert "100 ±10" in text
    assert "Cost: ε = 0.1; ε = 2 remaining." in text


def test_nothing_in_a_name_or_a_key_breaks_out() -> None:
    text = release(name='<script>alert("n")</script>', key='"><img src=x onerror=alert(1)>')._repr_html_()
    seen = tags(text).seen
    assert not {"script", "img"} & {tag for tag, _ in seen}
    assert not [name for _, attributes in seen for name in attributes if name.startswith("on")]


def test_the_drawing_has_words_for_who_cannot_see_it_and_the_colors_of_the_notebook() -> None:
    text = release()._repr_html_()
    drawn = ElementTree.fromstring(text[text.index("<svg") : text.index("</svg>") + 6])
    assert drawn.tag == f"{SVG}svg"
    assert drawn.get("role") == "img"
    assert "95%" in (drawn.get("aria-label") or "")
    assert {each.get("fill") for each in drawn.iter(f"{SVG}text")} == {"currentColor"}
    assert "http" not in text.replace('xmlns="http://www.w3.org/2000/svg"', "")


def test_a_long_answer_is_cut_and_says_so() -> None:
    text = release(rows=MAX_ROWS + 7)._repr_html_()
    assert "7 more rows are not shown" in text


def test_an_answer_without_noise_has_no_drawing() -> None:
    exact = Release((Output("region", "text", ["North"]),), [None], Fraction(1), Fraction(0), {})
    assert "<svg" not in exact._repr_html_()


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let Jupyter keep its files in a folder of the test."""
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR", "JUPYTER_CONFIG_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))


@pytest.mark.usefixtures("quiet")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_real_notebook_shows_answers_as_tables_with_drawings(tmp_path: Path) -> None:
    lay_out(tmp_path)
    cells = [
        "import hubbub\nh = hubbub.open('hubbub.yaml')",
        "h.estimate('SELECT year, COUNT(*) AS n FROM health GROUP BY year', epsilon='0.2', rows=1)",
        "r = h.query('SELECT year, COUNT(*) AS n FROM health GROUP BY year', epsilon='0.2', rows=1)\nr",
        "r.plot();",
        "r.to_pandas()",
        "h.close()",
    ]
    make: Any = nbformat.v4
    book = make.new_notebook(cells=[make.new_code_cell(each) for each in cells])
    client = nbclient.NotebookClient(
        book, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    )
    done: Any = client.execute()
    estimate, answer, plot, frame = (cell.outputs for cell in done.cells[1:5])
    assert "Cost: ε = 0.2" in estimate[0].data["text/plain"]
    assert "remaining" in answer[0].data["text/plain"]
    seen = [tag for tag, _ in tags(answer[0].data["text/html"]).seen]
    assert seen.count("tr") == 6
    assert seen.count("svg") == 1
    assert "Cost: ε = 0.2" in answer[0].data["text/html"]
    assert any("image/png" in each.get("data", {}) for each in plot)
    assert "<table" in frame[0].data["text/html"]
    nbformat.validate(done)
