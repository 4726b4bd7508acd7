"""`hubbub explain`, as an auditor types it."""

import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from hubbub.answers import terminal
from hubbub.attacks.screens import SCREENS
from hubbub.cli import main
from hubbub.semantics.explanation import explain

Run = Callable[..., tuple[int, str, str]]
YAML = """
version: 1
datasets:
  visits:
    source: visits.csv
    unit: row
    columns: {region: {values: [North, South]}}
    budget: {epsilon: 3}
analysts:
  ana: {visits: {epsilon: 3}}
groups:
  interns: {members: [ana], visits: {epsilon: 3}}
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    (tmp_path / "visits.csv").write_text("region\n" + "North\nSouth\n" * 9)
    (tmp_path / "hubbub.yaml").write_text(YAML)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def runner(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        out, err = capsys.readouterr()
        return code, out, err

    return runner


def test_an_epsilon_is_explained_in_sentences_icons_and_comparisons(run: Run) -> None:
    code, out, _ = run("explain", "--epsilon", "1", "--delta", "1e-6", "--n", "50000", "--family", "2")
    assert code == 0
    found = explain(epsilon="1", delta="1e-6", people=50000, size=2)
    text = " ".join(out.split())
    for sentence in (*found.sentences, *found.warnings, found.heading):
        assert sentence in text
    assert "at most 3% sure, except with probability 1.06e-05" in text  # with δ, at 1.1 ε
    assert sum(map(out.count, "●◉○")) == 103  # a hundred guesses and the legend
    assert "2020 US census" in text


def test_an_explanation_is_available_as_json(run: Run) -> None:
    _, out, _ = run("explain", "--epsilon", "0.5", "--belief", "25", "--json")
    form = json.loads(out)
    assert form == json.loads(json.dumps(explain(epsilon="0.5", prior="0.25").to_json()))
    _, out, _ = run("explain", "height", "--json")
    assert json.loads(out)["title"] == "Was Turing's privacy breached?"


@pytest.mark.row(23)
@pytest.mark.parametrize("name", ["smoking", "dalenius", "height"])
def test_the_worked_examples_run(run: Run, name: str) -> None:
    code, out, _ = run("explain", name)
    assert code == 0
    assert out.count("·") == 4


def test_everything_asked_so_far_is_explained_from_the_ledger(run: Run) -> None:
    assert run("query", "SELECT COUNT(*) AS n FROM visits", "--epsilon", "0.5")[0] == 0
    for words, who in ((["--analyst", "ana"], "ana"), (["--group", "interns"], "the group interns"), ([], "everybody")):
        code, out, _ = run("explain", "--dataset", "visits", *words)
        assert code == 0
        text = " ".join(out.split())
        assert f"All queries so far by {who} on visits: 1 charge." in text
        assert "their total privacy cost is ε = 0.5." in text
    assert json.loads(run("explain", "--dataset", "visits", "--json")[1])["epsilon"] == "1/2"


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["smoking", "--dataset", "visits"],
        ["--epsilon", "1", "--analyst", "ana"],
        ["--epsilon", "1", "--set", "rate=3"],
        ["--epsilon", "0"],
    ],
)
def test_an_unclear_request_is_refused_with_a_remedy(run: Run, words: list[str]) -> None:
    code, out, err = run("explain", *words)
    assert (code, out) == (1, "")
    assert "HB174" in err or "HB103" in err


def test_the_separation_is_a_table_over_bits_and_people(run: Run) -> None:
    code, out, _ = run("explain", "separation", "--json")
    assert code == 0
    response = {(row[0], row[1]): row[2] for row in json.loads(out)["rows"]}
    assert response["6", "1"] == "0.0261"
    assert response["20", "1"] == "1.6e-6"
    _, out, _ = run("explain", "separation", "--epsilon", "0.5", "--n", "7")
    assert "One private answer" in out
    assert "printed" in out


def test_a_screen_is_printed_with_table_figure_and_parameters(run: Run) -> None:
    code, out, _ = run("explain", "beliefs", "--epsilon", "1", "--plot", "beliefs.svg")
    assert code == 0
    text = " ".join(out.split())
    assert "tanh(ε/2) = 46.3 percentage points" in text
    assert "beliefs within s ⇒ private at" in text
    assert out.count("┊") > 5  # the position of ε in the figure
    assert "Parameters: epsilon=1." in text
    assert Path("beliefs.svg").read_text().startswith("<svg")
    form = json.loads(run("explain", "beliefs", "--set", "epsilon=1", "--json")[1])
    assert form["rows"][0][2] == "0.4621"  # tanh(½)
    assert form["figure"]["kind"] == "curves"


def test_the_help_lists_every_screen(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["explain", "--help"])
    out = capsys.readouterr().out
    assert all(f"  {name} " in out and screen.title in out for name, screen in SCREENS.items())


@pytest.mark.row(10)
def test_the_game_is_played_against_the_ledger(run: Run) -> None:
    """One count at ε = ½: a secret of 50 % becomes 62.2 % at worst, and the mechanisms are listed."""
    assert run("query", "SELECT COUNT(*) AS n FROM visits", "--epsilon", "0.5")[0] == 0
    code, out, _ = run("explain", "game", "--dataset", "visits", "--set", "people=1")
    assert code == 0
    text = " ".join(out.split())
    assert "All queries so far by everybody on visits: 1 charge (1 × laplace)." in text
    assert "they cost ε = 0.5." in text
    assert "In game 0, which uses everybody's data, the belief becomes 62.2%" in text  # e^½/(1 + e^½)
    form = json.loads(run("explain", "game", "--dataset", "visits", "--set", "people=1", "--json")[1])
    assert form["rows"][-1] == ["secret", "50.0%", "50.0%", "62.2%", "50.0%"]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["beliefs", "--n", "3"], "HB692"),
        (["beliefs", "--set", "epsilon"], "HB692"),
        (["beliefs", "--plot", "beliefs.png"], "HB693"),
        (["beliefs", "--plot", "nowhere/beliefs.svg"], "HB693"),
        (["height", "--plot", "height.svg"], "HB693"),
        (["game", "--analyst", "ana"], "HB174"),
    ],
)
def test_what_a_screen_does_not_have_is_refused(run: Run, words: list[str], code: str) -> None:
    status, out, err = run("explain", *words)
    assert (status, out) == (1, "")
    assert code in err


def test_a_long_sentence_is_wrapped_with_a_hanging_indent() -> None:
    console = Console(width=20, file=StringIO())
    with console.capture() as captured:
        console.print(terminal.sentences(["one two three four five", "[bold]six"]))
    assert [line.rstrip() for line in captured.get().splitlines()] == [
        " · one two three",
        "   four five",
        " · [bold]six",
    ]
