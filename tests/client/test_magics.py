"""Notebook magics in a real IPython shell: an estimate first, the answer when the cell is run again."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from tests.mcp.conftest import COUNT, lay_out

import hubbub
from hubbub.answers.estimate import Estimate
from hubbub.answers.release import Release
from hubbub.client.magics import NotebookMagics, VegaChart
from hubbub.errors import ParameterError


class Shell:
    """What the magics use of IPython."""

    def __init__(self) -> None:
        self.user_ns: dict[str, Any] = {}


@pytest.fixture
def magics(tmp_path: Path) -> Iterator[NotebookMagics]:
    made = NotebookMagics(Shell())
    made.line(f"open {lay_out(tmp_path)} ana")
    yield made
    made.session().close()


def test_a_cell_spends_when_it_is_run_again(magics: NotebookMagics, capsys: pytest.CaptureFixture[str]) -> None:
    assert magics.cell("--epsilon 1", COUNT) is None
    out = capsys.readouterr().out
    assert "Cost: ε = 1 on visits" in out
    assert "Run this cell again to spend it" in out
    assert magics.session().releases() == ()
    assert magics.cell("--epsilon 2", COUNT) is None  # another cost is another question
    assert magics.cell("--epsilon 1", COUNT) is None
    answer = magics.cell("--epsilon 1", COUNT + ";\n")
    assert isinstance(answer, Release)
    assert magics.session().budget()[0].caps[1].spent == 1
    again = magics.cell("--epsilon 1", COUNT)  # recorded: free, so nobody is asked
    assert again.document() == answer.document()


def test_yes_spends_at_once_and_into_keeps_the_answer(magics: NotebookMagics) -> None:
    answer = magics.cell("--epsilon 1 --yes --into answer", COUNT)
    assert magics._shell.user_ns["answer"] is answer
    assert isinstance(magics.cell("--epsilon 1 --estimate", COUNT), Estimate)
    chart = magics.cell("--epsilon 1 --chart", COUNT)
    assert isinstance(chart, VegaChart)
    bundle = chart._repr_mimebundle_()
    assert bundle["application/vnd.vegalite.v5+json"]["layer"]
    assert "<svg" in bundle["text/html"]


def test_lines_show_what_there_is(magics: NotebookMagics) -> None:
    assert magics.line("datasets") == ("visits", "regions")
    assert magics.line("budget")[0].dataset == "visits"


@pytest.mark.parametrize(
    ("line", "cell"),
    [
        ("nonsense", None),
        ("connect http://127.0.0.1:9", None),
        ("--epsilon", COUNT),
        ("-e 1 -w 2", COUNT),
        ("-x", COUNT),
    ],
)
def test_mistakes_are_told(
    magics: NotebookMagics, line: str, cell: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HUBBUB_TOKEN", raising=False)
    with pytest.raises(ParameterError, match="HB837"):
        magics.line(line) if cell is None else magics.cell(line, cell)


def test_the_extension_loads_in_ipython(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shell: Any = InteractiveShell()  # type: ignore[no-untyped-call]
    try:
        hubbub.load_ipython_extension(shell)
        shell.run_line_magic("hubbub", f"open {lay_out(tmp_path)} ana")
        answer = shell.run_cell_magic("hubbub", "--epsilon 1 --yes --into r", COUNT)
        assert isinstance(answer, Release)
        assert shell.user_ns["r"] is answer
    finally:
        shell.history_manager.end_session()
    assert "ana can query visits, regions" in capsys.readouterr().out
