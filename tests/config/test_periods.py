"""`unit: {column: user, per: {day: time}}` in hubbub.yaml, and where its guarantee is spelled out."""

from pathlib import Path

import pytest

from hubbub.answers.sheet import sheet
from hubbub.audit.receipt import check_receipt
from hubbub.cli import main
from hubbub.config import examine, load
from hubbub.config.summary import hidden_fact, protected_unit
from hubbub.core.schema import Kind, Period, Table
from hubbub.curator.session import open_session

YAML = """
version: 1
datasets:
  visits:
    source: visits.csv
    unit: {column: user, per: {day: time}, entity: user, rows: 2}
    columns: {user: {type: integer, hidden: true}, time: {type: timestamp}, pages: {type: integer, bounds: [0, 9]}}
    budget: {epsilon: 1000000}
analysts: {ana: {visits: {epsilon: 1000000}}}
"""
WORDS = "what is protected is one day of one user; k days of a user cost k times as much privacy"


def write(folder: Path, unit: str = "", time: str = "timestamp") -> Path:
    rows = [
        f"{user},2024-01-{day:02d} {hour:02d}:00:00,1" for user in (1, 2) for day in (1, 2, 3) for hour in (1, 2, 3)
    ]
    (folder / "visits.csv").write_text("\n".join(["user,time,pages", *rows, ",2024-01-01 00:00:00,1", "1,,1"]) + "\n")
    text = YAML.replace("per: {day: time}", unit or "per: {day: time}").replace("type: timestamp", f"type: {time}")
    (folder / "hubbub.yaml").write_text(text)
    return folder / "hubbub.yaml"


def test_a_period_is_read_and_survives_json(tmp_path: Path) -> None:
    dataset = load(write(tmp_path)).datasets["visits"]
    unit = dataset.table.unit
    assert unit is not None
    assert unit.period == Period("user", Kind.INTEGER, "day", "time", Kind.TIMESTAMP)
    assert unit.column == "user per day"
    assert Table.from_json(dataset.table.to_json()) == dataset.table
    assert [name for name, _ in dataset.view.columns] == ["user", "time", "pages"]


def test_bounds_are_about_one_day_and_rows_without_one_are_in_no_answer(tmp_path: Path) -> None:
    """Six user-days of three visits each, of which two count. False alarms: below e⁻¹⁰⁰."""
    with open_session(write(tmp_path), analyst="ana") as session:
        release = session.query("SELECT count(*), sum(pages) FROM visits", epsilon=20_000)
    assert [round(float(str(value))) for value in release.rows[0]] == [12, 12]


def test_the_guarantee_is_spelled_out_wherever_the_unit_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path)
    dataset = load(path).datasets["visits"]
    assert protected_unit(dataset).endswith(f"; {WORDS}")
    assert hidden_fact(dataset) == "whether any one user per day is in the data"
    assert main(["check", "--config", str(path)]) == 0
    assert WORDS in " ".join(capsys.readouterr().out.split())
    with open_session(path, analyst="ana") as session:
        release = session.query("SELECT count(*) FROM visits", epsilon=1)
    assert release.receipt["data"][0]["unit"] == "user per day"
    assert WORDS in sheet(release, title="Visits").markdown()
    checked = check_receipt(release.document())
    assert checked.sound
    assert "the loss below is for one day of a person; k days lose k times as much" in checked.lines


@pytest.mark.parametrize(
    ("unit", "time", "says"),
    [
        ("per: day", "timestamp", "does not name a period"),
        ("per: {year: time}", "timestamp", "does not name a period"),
        ("per: {day: time, week: time}", "timestamp", "does not name a period"),
        ("per: {day: tme}", "timestamp", "is not a known column"),
        ("per: {day: pages}", "timestamp", "date or timestamp, and pages is integer"),
        ("per: {hour: time}", "date", "of type timestamp, and time is date"),
        ("per: {day: time}", "text", "date or timestamp, and time is text"),
    ],
)
def test_a_period_that_cannot_be_told_is_refused(tmp_path: Path, unit: str, time: str, says: str) -> None:
    _, problems = examine(write(tmp_path, unit, time))
    assert [problem.code for problem in problems] == ["HB736"]
    assert says in problems[0].message


def test_the_period_of_a_charged_dataset_cannot_change(tmp_path: Path) -> None:
    with open_session(write(tmp_path), analyst="ana") as session:
        session.query("SELECT count(*) FROM visits", epsilon=1)
    path = write(tmp_path, "per: {week: time}")
    assert main(["check", "--config", str(path)]) == 1
