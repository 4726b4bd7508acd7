"""docs/meaning.md: its sentences, snippet and commands."""

import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from hubbub.attacks.screens import SCREENS
from hubbub.cli import build_parser
from hubbub.semantics.explanation import explain

TEXT = (Path(__file__).parents[2] / "docs" / "meaning.md").read_text(encoding="utf-8")


def test_the_document_shows_what_the_command_says() -> None:
    shown = re.search(r"\$ hubbub explain --epsilon 1\n(.*?)```", TEXT, re.DOTALL)
    assert shown is not None
    assert tuple(shown[1].splitlines()) == explain(epsilon=1).sentences


def test_the_snippet_gives_what_its_comments_say() -> None:
    snippet = re.search(r"```python\n(.*?)```", TEXT, re.DOTALL)
    assert snippet is not None
    names: dict[str, Any] = {}
    exec(snippet[1], names)
    game, level = names["game"], names["semantic_level"]
    assert game.posterior(1).mass[1, 0] == (Fraction(3, 8), Fraction(3, 8))
    assert game.difference(1, 0) == (Fraction(1, 4), Fraction(1, 4))
    low, high = level(names["response"], names["worlds"], names["with_default"](0), people=2)
    assert low <= Fraction(1, 2) <= high <= low + Fraction(1, 10**30)


def test_the_document_lists_every_screen() -> None:
    assert [name for name in SCREENS if f"`{name}`" not in TEXT] == []


@pytest.mark.parametrize("line", sorted(set(re.findall(r"hubbub (explain [a-z-][a-z0-9 -]*[a-z0-9])", TEXT))))
def test_every_command_of_the_document_is_one(line: str) -> None:
    assert build_parser().parse_args(line.split()).command == "explain"
