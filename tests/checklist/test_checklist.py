"""The commands of `make checklist` and the page docs/papers.md that is made from them."""

import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.checklist.commands import COMMANDS, TOPICS
from tests.checklist.errata import ERRATA
from tests.checklist.folder import make_folder
from tests.checklist.papers import PAGE, PAPERS, page, recorded_figures
from tests.checklist.record import Figure, Place, Row
from tests.checklist.rows import ROWS
from tests.checklist.run import lines, outcome

QUICK = [row for row in COMMANDS.values() if row.quick]


@pytest.fixture(scope="module")
def template() -> Iterator[Path]:
    with TemporaryDirectory() as name:
        yield make_folder(Path(name) / "template")


@pytest.mark.parametrize("row", QUICK, ids=lambda row: f"row-{row.number}")
def test_a_quick_command_prints_its_figures(row: Row, template: Path, tmp_path: Path) -> None:
    result = outcome(row, template, tmp_path / "row")
    assert result.problem == ""
    assert len(result.figures) == len(row.figures) > 0


def test_every_row_has_a_command_with_figures() -> None:
    numbers = [row.number for topic in TOPICS for row in topic.RECORDS]
    assert sorted(numbers) == sorted(COMMANDS) == sorted(ROWS)
    assert [row.number for row in COMMANDS.values() if not (row.command and row.figures and row.lives)] == []
    names = {row.number: [figure.name for figure in row.figures] for row in COMMANDS.values()}
    assert [number for number, figures in names.items() if len(set(figures)) < len(figures)] == []


def test_commands_are_what_a_user_types() -> None:
    """Shell commands start programs of a user; Python imports the package, or what its documents import."""
    documents = "".join(path.read_text() for path in PAGE.parent.glob("*.md") if path != PAGE)
    for row in COMMANDS.values():
        imports = re.findall(r"from (hubbub[\w.]*) import", row.command)
        assert all(module in documents for module in imports), (row.number, imports)
        assert "tests." not in row.command
        assert "hubbub" in row.command


def test_places_and_errata_name_sections_and_rows_that_exist() -> None:
    for row in COMMANDS.values():
        assert row.places, row.number
        for place in row.places:
            assert place.section in PAPERS[place.paper].sections, (row.number, place)
    for erratum in ERRATA:
        assert set(erratum.rows) <= set(ROWS)
    assert len(ERRATA) >= 20


def test_the_recorded_figures_hold_and_the_page_shows_them() -> None:
    recorded = recorded_figures()
    for row in COMMANDS.values():
        figures = recorded[str(row.number)]
        assert {figure.name for figure in row.figures} == set(figures), row.number
        assert [figure.name for figure in row.figures if not figure.holds(figures[figure.name])] == [], row.number
    assert PAGE.read_text() == page(recorded)


def test_links_of_the_page_exist() -> None:
    text = PAGE.read_text()
    anchors = set(re.findall(r'<a id="([\w-]+)"></a>', text))
    assert {f"row-{number}" for number in ROWS} == anchors
    for target in re.findall(r"\]\(([^)]+)\)", text):
        file, _, anchor = target.partition("#")
        assert anchor in anchors if not file else (PAGE.parent / file).exists(), target


@pytest.mark.parametrize(
    ("figure", "expected", "holds"),
    [
        ("1.09861", "1.0986", True),
        ("1.0988", "1.0986", False),
        ("1.1", "1.0986", False),
        ("20,190", "20190", True),
        ("1/3", "1/3", True),
        ("1.62e-6", "1.6e-6", True),
        ("∞", "∞", True),
        ("3", "∞", False),
        ("none", (0, 1), False),
        ("0.4", (0.4, 0.5), True),
        ("52.5%", (50, 52), False),
    ],
)
def test_a_figure_is_compared_to_the_digits_that_are_expected(
    figure: str, expected: str | tuple[float, float], *, holds: bool
) -> None:
    assert Figure("x", "x", expected, "").holds(figure) is holds


def test_planted_errors_are_reported(template: Path, tmp_path: Path) -> None:
    """A wrong figure, a figure that is not printed, and a command that fails."""

    def planted(command: str, expected: str) -> Row:
        figure = Figure("n", r"n = (\d+)", expected, "planted")
        return Row(number=1, places=(Place("2006", "2"),), says="", command=command, figures=(figure,))

    assert outcome(planted("echo n = 3", "3"), template, tmp_path / "right").problem == ""
    wrong = outcome(planted("echo n = 4", "3"), template, tmp_path / "wrong")
    assert wrong.problem == "n should be 3 (planted)"
    assert any("FAILS" in line for line in lines(planted("echo n = 4", "3"), wrong))
    assert "no n in the output" in outcome(planted("echo m = 3", "3"), template, tmp_path / "missing").problem
    assert "exit code 7" in outcome(planted("exit 7", "3"), template, tmp_path / "failed").problem
