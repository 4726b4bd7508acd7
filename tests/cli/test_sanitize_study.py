"""`hubbub sanitize study`, as a reader of the paper types it."""

import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from hubbub.cli import main
from hubbub.crowd.disclaimers import NOT_PRIVATE
from hubbub.crowd.studies.catalogue import STUDIES

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "250")

    def runner(*arguments: str) -> tuple[int, str, str]:
        code = main(["sanitize", "study", *arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return runner


FEW = ("smoothness", "--set", "trials=50", "--set", "dimensions=4,8", "--seed", "3")


def test_all_studies_are_listed_with_the_part_of_the_paper(run: Run) -> None:
    code, out, _ = run()
    assert code == 0
    for entry in STUDIES.values():
        assert entry.name in out
        assert entry.source in out
    assert NOT_PRIVATE in out


def test_a_study_shows_progress_a_table_its_meaning_and_that_it_is_not_private(run: Run, tmp_path: Path) -> None:
    code, out, err = run(*FEW, "--plot", "rough.svg")
    assert code == 0
    assert "smoothness:  50% d = 8" in err
    assert "with the histogram" in out
    assert NOT_PRIVATE in out
    assert "Repeat it with --seed 3. Wrote rough.svg." in out
    root = ElementTree.fromstring((tmp_path / "rough.svg").read_text())
    assert len(list(root.iter("{http://www.w3.org/2000/svg}circle"))) == 4


def test_the_same_seed_gives_the_same_study_as_json(run: Run) -> None:
    first, second = (json.loads(run(*FEW, "--json")[1]) for _ in range(2))
    assert first == second
    assert first["seed"] == 3
    assert first["differentially_private"] is False
    assert first["warning"] == NOT_PRIVATE


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_describes_itself_and_its_settings(run: Run, name: str) -> None:
    code, out, _ = run(name, "--about")
    assert code == 0
    assert "Theorem (" not in out
    for setting in STUDIES[name].settings:
        assert setting in out


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("cube",), "HB684"),
        (("cubes", "--set", "cube=1"), "HB685"),
        (("cubes", "--set", "cubes=many"), "HB685"),
        (("cubes", "--set", "cubes"), "HB685"),
        (("cubes", "--set", "dimensions="), "HB685"),
        (("cubes", "--set", "dimensions=a"), "HB685"),
        (("cubes", "--set", "dimensions=0"), "HB103"),
        (("cubes", "--set", "half=0.9"), "HB685"),
        (("cubes", "--set", "half=nan"), "HB685"),
        (("isolation", "--set", "over=x"), "HB685"),
        (("subspace", "--set", "data=other"), "HB685"),
        (("cubes", "--plot", "x.png"), "HB625"),
        (("cubes", "--plot", "no/x.svg"), "HB625"),
        (("cubes", "--with", "ball"), "HB626"),
    ],
)
def test_an_invalid_command_is_refused_before_anything_runs(run: Run, words: tuple[str, ...], code: str) -> None:
    ended, out, err = run(*words)
    assert (ended, out) == (1, "")
    assert code in err
    assert "Traceback" not in err


def test_an_existing_plot_is_replaced_only_with_force(run: Run, tmp_path: Path) -> None:
    (tmp_path / "x.svg").write_text("mine")
    assert "HB625" in run(*FEW, "--plot", "x.svg")[2]
    assert (tmp_path / "x.svg").read_text() == "mine"
    assert run(*FEW, "--plot", "x.svg", "--force")[0] == 0
