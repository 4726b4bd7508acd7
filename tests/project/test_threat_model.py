"""The threat model names every attack, and every test and campaign that it names exists."""

import re
from pathlib import Path

from hubbub.attacks.catalogue import ATTACKS

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "threat-model.md").read_text()
LINES = {found[1]: found[0] for found in re.finditer(r"^\| `(\w+)` \|.*$", TEXT, re.MULTILINE)}
TEST = re.compile(r"(tests/[\w/]+\.py)::(\w+)")


def missing(text: str) -> list[str]:
    """List the tests that a text names and that are not there."""
    return [
        f"{path}::{name}"
        for path, name in TEST.findall(text)
        if not (ROOT / path).is_file() or not re.search(rf"^ *def {name}\(", (ROOT / path).read_text(), re.MULTILINE)
    ]


def test_every_attack_has_a_line_and_no_other_has() -> None:
    assert set(LINES) == set(ATTACKS)


def test_every_line_names_a_test() -> None:
    assert [name for name, line in LINES.items() if not TEST.search(line)] == []
    assert all(len(line.split("|")) == 7 for line in LINES.values())


def test_every_named_test_exists() -> None:
    assert missing(TEXT) == []
    assert missing("tests/noise/test_source.py::test_that_is_not_there") != []


def test_every_named_campaign_exists() -> None:
    rest = TEXT.split("## Attacks on the curator itself")[1]
    named = {name for part in re.findall(r"campaigns? ((?:`\w+`(?:, )?)+)", rest) for name in re.findall(r"\w+", part)}
    assert len(named) >= 8
    assert [name for name in sorted(named) if not (ROOT / "tests" / "campaigns" / f"{name}.py").is_file()] == []


def test_linked_documents_exist() -> None:
    assert [path for path in re.findall(r"\]\((\w[\w/.-]*\.md)\)", TEXT) if not (ROOT / "docs" / path).is_file()] == []
