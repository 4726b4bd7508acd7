"""docs/sql.md is what the allow-lists say, and its recipes are accepted."""

import re

import pytest
from tests.project.sql_reference import PAGE, RECIPES, page
from tests.sql.corpus import clinic

from hubbub.sql.aggregates.table import AGGREGATES
from hubbub.sql.bind import bind
from hubbub.sql.functions import FUNCTIONS, Function


def test_the_page_is_that_of_the_allow_lists() -> None:
    assert PAGE.read_text() == page(), "run `make sql`"


def test_every_function_and_aggregate_is_on_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    text = PAGE.read_text()
    for name in {*FUNCTIONS, *AGGREGATES} - {"decimal"}:
        assert f"`{name}`" in text, name
    monkeypatch.setitem(FUNCTIONS, "planted", Function("planted", lambda _: None, "never"))
    assert page() != text


@pytest.mark.parametrize("recipe", [text for _, text in RECIPES if "SUM(CASE" in text or "bucket" in text])
def test_a_recipe_is_accepted(recipe: str) -> None:
    written = re.findall(r"`([^`]+)`", recipe)[0].replace("region = 'North'", "health = 'good'")
    text = f"SELECT COUNT(*) FROM people {written}" if written.startswith("GROUP") else f"SELECT {written} FROM people"
    assert bind(text, tables=clinic.tables()).aggregates
