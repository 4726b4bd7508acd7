"""The checklist of a release: facts as the ledger has them, and open points that stay open."""

from pathlib import Path

import pytest

from hubbub.cli import main
from hubbub.config import Config, load
from hubbub.curator.opening import open_curator
from hubbub.curator.session import open_session
from hubbub.errors import ParameterError, ReviewError
from hubbub.reports.checklist import checklist, read_release
from hubbub.reports.document import Document
from hubbub.reports.facts import read


def written(config: Config, number: int, **about: str) -> Document:
    return checklist(read(config), read_release(config, number), about)


def answer(document: Document, name: str) -> tuple[str, ...]:
    (item,) = [item for item in document.items if item.name == name]
    return item.answer


def numbers(config: Config) -> list[int]:
    with open_session(config.path, analyst="ana") as h:
        return sorted(each.id for each in h.releases())


def test_facts_are_those_of_the_release_and_the_ledger(config: Config) -> None:
    first = numbers(config)[0]
    document = written(config, first)
    assert answer(document, "query") == ("SELECT region, COUNT(*) AS n FROM people GROUP BY region",)
    assert answer(document, "who")[0].startswith("ana, on 20")
    assert answer(document, "cost") == ("ε = 1, δ = 0",)
    assert answer(document, "others") == ("1 other charge on the same data",)
    with open_session(config.path, analyst="ana") as h:
        release = h.release(first)
    assert answer(document, "smallest") == (f"n: {min(int(str(row[1])) for row in release.rows)}",)
    assert answer(document, "size") == ("2 rows; 1 of 2 columns have intervals",)
    assert answer(document, "noise") == ("n: 0 of 2",)
    assert answer(document, "receipt") == ("The independent checker derived the privacy loss from the receipt again.",)
    assert answer(document, "ledger") == ("The ledger's chain is intact.",)
    assert answer(document, "review") == ("No rule names this answer.",)
    assert "no rule" in answer(document, "rules")[0]
    assert all(item.evidence for item in document.items if item.answered)


def test_what_a_person_must_judge_is_open_until_somebody_does(config: Config) -> None:
    first = numbers(config)[0]
    judged = {"purpose", "sensitive_groups", "misreading", "noise_is_said", "published_beside", "checked_by"}
    assert {item.name for item in written(config, first).unanswered} == judged
    document = written(config, first, purpose="Yes, the annual report.")
    assert answer(document, "purpose") == ("Yes, the annual report.",)
    assert len(document.unanswered) == len(judged) - 1


def test_decisions_and_rules_are_listed(config: Config) -> None:
    rules = "    unit: row\n    review: {people: 2}\n    suppress_below: 50\n"
    config.path.write_text(config.path.read_text().replace("    unit: row\n", rules))
    with open_session(config.path, analyst="ana") as h:
        with pytest.raises(ReviewError):
            h.query("SELECT region, COUNT(*) AS m FROM people GROUP BY region", epsilon="0.9")
        number = h.releases()[0].id
    with open_curator(load(config.path)) as curator:
        curator.decide(number, approve=True, by="stella")
    document = written(load(config.path), number)
    assert answer(document, "review") == ("waiting; 1 of 2 people approved it", "approved by stella")
    assert "below 50 are suppressed" in answer(document, "rules")[0]
    assert answer(document, "smallest") == ()


def test_the_command_writes_it(
    config: Config, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(config.path.parent)
    first = str(numbers(config)[0])
    assert main(["report", "checklist", "--release", first]) == 0
    text = capsys.readouterr().out
    assert f"# Checklist for release {first}" in text
    assert "Is the question within the purpose that was agreed? (`purpose`)" in text
    assert main(["report", "checklist"]) == 1
    assert "HB136" in capsys.readouterr().err
    assert main(["report", "checklist", "--release", first, "--out", "list.html"]) == 0
    assert "Checklist for release" in Path("list.html").read_text()


def test_a_release_that_does_not_exist_is_refused(config: Config) -> None:
    with pytest.raises(ParameterError, match="HB146"):
        read_release(config, 999)
