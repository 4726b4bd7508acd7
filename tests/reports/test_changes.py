"""What changed between two moments."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hubbub.cli import main
from hubbub.config import Config
from hubbub.errors import ParameterError
from hubbub.reports.changes import changes

LATER = datetime.now(UTC) + timedelta(days=2)
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


def test_spending_and_the_changed_cap_are_listed(config: Config) -> None:
    found = changes(config, LONG_AGO, LATER)
    assert [row[:3] for row in found.spending] == [("ana", "people", 2), ("ben", "people", 1)]
    assert [row[3] for row in found.spending] == ["1.5", "0.25"]
    (_, first), (_, second) = found.policies
    assert any(line.startswith("added analysts") for line in first)
    assert second == ('changed analysts.ben.people.epsilon: "2" → "1"',)


def test_nothing_happened_in_an_empty_period(config: Config) -> None:
    found = changes(config, LONG_AGO, LONG_AGO + timedelta(days=1))
    assert found.lines == ("no charges and no changes of hubbub.yaml",)


def test_only_the_difference_to_the_policy_before_is_listed(config: Config) -> None:
    whole = changes(config, LONG_AGO, LATER)
    (_, _), (moment, _) = whole.policies
    late = changes(config, moment, LATER)
    assert [changed for _, changed in late.policies] == [('changed analysts.ben.people.epsilon: "2" → "1"',)]
    assert [row[0] for row in late.spending] == ["ben"]


def test_a_period_that_ends_before_it_begins_is_refused(config: Config) -> None:
    with pytest.raises(ParameterError, match="HB136"):
        changes(config, LATER, LONG_AGO)


def test_the_command_prints_the_changes_and_asks_what_only_people_know(
    config: Config, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["-c", str(config.path)]
    assert main(["report", "diff", "--since", "2020-01-01", *where]) == 0
    assert "ana on people: 2 charges, ε = 1.5" in capsys.readouterr().out
    assert main(["report", "questions", *where]) == 0
    questions = capsys.readouterr().out
    about = tmp_path / "about.yaml"
    about.write_text(questions.replace("\ncurator:\n", "\ncurator: The clinic\n"))
    assert main(["report", "registry", "--about", str(about), *where]) == 0
    assert "- The clinic" in capsys.readouterr().out
    about.write_text("curatorr: The clinic\n")
    assert main(["report", "registry", "--about", str(about), *where]) == 1
    assert "HB116" in capsys.readouterr().err
