"""`hubbub profile`: charged and published, shown again for free, or exact and for the owner's eyes only."""

import ast
import json
from collections.abc import Callable
from pathlib import Path

import pytest

import hubbub
from hubbub.cli import main

Run = Callable[..., tuple[int, str, str]]
YAML = """
version: 1
datasets:
  visits:
    source: visits.csv
    unit: {column: patient, groups: 2, rows: 2}
    columns:
      patient: {}
      region: {values: [North, South]}
      age: {type: integer, bounds: [0, 60]}
    budget: {epsilon: 20}
analysts:
  ana: {visits: {epsilon: 20}}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """80 patients with 5 rows each: at most 2 rows leave out 60%."""
    rows = "".join(f"p{i % 80},{('North', 'South')[i % 2]},{20 + i % 50}\n" for i in range(400))
    (tmp_path / "visits.csv").write_text(f"patient,region,age\n{rows}")
    (tmp_path / "hubbub.yaml").write_text(YAML)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "140")
    monkeypatch.delenv("HUBBUB_URL", raising=False)
    return tmp_path


@pytest.fixture
def run(folder: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def runner(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        out, err = capsys.readouterr()
        return code, out, err

    return runner


def charges(run: Run) -> int:
    return len(run("audit", "ledger")[1].splitlines())


def test_a_profile_is_charged_shown_again_for_free_and_stated_on_answers(run: Run) -> None:
    code, out, _ = run("profile", "visits", "--epsilon", "10", "--max-rows", "20")
    assert code == 0
    for part in ("Rows of each patient", "█", "Bounds on rows", "declared", "recommended", "Cost: ε = 10"):
        assert part in out
    paid = charges(run)
    code, again, _ = run("profile", "visits")
    assert code == 0
    assert again.strip() == out.partition("\nCost:")[0].strip()
    assert charges(run) == paid
    _, answer, _ = run("query", "SELECT COUNT(*) AS n FROM visits", "-e", "1")
    assert "This leaves out about 60%" in " ".join(answer.split())
    _, plan, _ = run("plan", "SELECT COUNT(*) AS n FROM visits", "-e", "1")
    assert "This leaves out about 60%" in " ".join(plan.split())
    form = json.loads(run("query", "SELECT COUNT(*) AS n FROM visits", "-e", "1", "--json")[1])
    assert form["left_out"]["share"]["value"] == pytest.approx(0.6, abs=0.05)
    assert form["left_out"]["text"] in " ".join(answer.split())


def test_without_a_profile_the_command_says_how_to_make_one(run: Run) -> None:
    code, _, err = run("profile", "visits")
    assert code == 1
    assert "HB159" in err
    _, answer, _ = run("query", "SELECT COUNT(*) AS n FROM visits", "-e", "1")
    assert "`hubbub profile visits` estimates it" in " ".join(answer.split())


def test_an_exact_profile_is_never_recorded_or_charged(run: Run, folder: Path) -> None:
    run("query", "SELECT COUNT(*) AS n FROM visits", "-e", "1")
    before = charges(run)
    code, out, err = run("profile", "visits", "--exact", "--max-rows", "20")
    assert code == 0
    text = " ".join(out.split())
    assert " ".join(err.split()).startswith("Warning These figures are exact")
    assert "visits has 80 units; those with up to 8 rows have 400 rows." in text
    assert "60%" in text
    assert charges(run) == before
    with hubbub.open(folder / "hubbub.yaml") as session:
        assert session.published_profile("visits") is None
        assert session.budget()[0].largest == 19


def test_an_exact_profile_cannot_come_from_a_server(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    code, _, err = run("profile", "visits", "--exact", "--server", "https://data.example.org")
    assert (code, err[:5]) == (1, "HB149")
    monkeypatch.setenv("HUBBUB_URL", "https://data.example.org")
    code, _, err = run("profile", "visits", "--exact")
    assert (code, err[:5]) == (1, "HB149")


def test_nothing_but_the_command_can_count_without_noise() -> None:
    """No module of the server or of a session imports the exact profile, or calls `exact` of a prepared one."""
    source = Path(hubbub.__file__).parent
    users = set()
    for path in source.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            imported = isinstance(node, ast.ImportFrom) and (node.module or "").endswith("exact_profile")
            called = isinstance(node, ast.Attribute) and node.attr == "exact" and "prepared" in ast.unparse(node.value)
            if imported or called:
                users.add(path.relative_to(source).as_posix())
    assert users == {"cli/profile.py", "curator/exact_profile.py"}


def test_check_and_init_point_to_the_profile(run: Run) -> None:
    assert "hubbub profile visits --epsilon 0.2" in run("check")[1]
    run("init", "visits.csv", "--output", "new.yaml")
    assert "`hubbub profile`" in Path("new.yaml").read_text()
