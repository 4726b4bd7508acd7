"""The page that explains: everything it says is what `semantics` says, and what was spent is told beside the cap."""

import html
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import pytest
from tests.fixtures.page_visits import Visitor

from hubbub.attacks.screens import SCREENS
from hubbub.semantics.examples import smoking
from hubbub.semantics.explanation import explain
from hubbub.semantics.reference_points import REFERENCE_POINTS
from hubbub.semantics.tradeoff import approximate
from hubbub.server import page_plots as plots


@pytest.fixture
def visit(visitor: Visitor) -> Callable[[str, str], str]:
    """Go to a page as somebody who signed in; gives what is read there."""

    def go(who: str, path: str) -> str:
        answer = visitor(who).get(path)
        assert answer.status_code == 200
        return html.unescape(answer.text)

    return go


def test_the_page_says_every_sentence(visit: Callable[[str, str], str]) -> None:
    page = visit("ana", "/explain?epsilon=0.5&delta=1e-6&people=50000&prior=25&family=3")
    found = explain(epsilon="0.5", delta="1e-6", people=50000, prior="0.25", size=3)
    for text in (*found.sentences, *found.warnings):
        assert text in page
    assert f"{found.meaning.of_a_hundred} of 100" in page
    for each in REFERENCE_POINTS:
        assert each.name in page
        assert each.source in page


@pytest.mark.row(23)
def test_a_worked_example_is_told_on_the_page(visit: Callable[[str, str], str]) -> None:
    page = visit("ana", "/explain/smoking")
    assert all(line in page for line in smoking().sentences)
    index = visit("ana", "/explain")
    assert all(f'"/explain/{name}">{screen.title}<' in index for name, screen in SCREENS.items())


def test_what_was_asked_so_far_stands_beside_what_may_be_asked(app: Any, visit: Callable[[str, str], str]) -> None:
    sql = "SELECT COUNT(DISTINCT person) AS n FROM health"
    asked = app.client("ana").post(
        "/api/v1/query", json={"sql": sql, "epsilon": "0.5"}, headers={"Idempotency-Key": "one"}
    )
    assert asked.status_code == 200
    page = visit("ana", "/explain")
    cells = re.findall(r'data-name="Maximum certainty so far">([^<]+)<', page)
    e = mpmath.exp(0.55)  # the cap has a δ, so odds are stated at 1.1 ε
    shown = float(cells[0].partition("%")[0])
    assert 0 <= shown - 100 * e / (e + 1) < 0.1
    assert "health so far" in page
    assert "hubbub explain --dataset health" in page


def test_the_curve_of_the_best_test_is_its_formula() -> None:
    drawn = plots.tradeoff({"ε = 1": approximate(epsilon=Fraction(1), delta=Fraction(0)).curve()})
    path = re.search(r'd="M([^"]+)"', drawn)
    assert path is not None
    points = [tuple(map(float, pair.split(" "))) for pair in path[1].split("L")]
    assert len(points) == 42
    assert any(level == pytest.approx(100 / (1 + float(mpmath.e)), abs=0.01) for level, _ in points)  # the bend
    for level, down in points:
        alpha = level / 100
        power = min(1, mpmath.e * alpha, 1 - (1 - alpha) / mpmath.e)
        assert 100 - down == pytest.approx(float(100 * power), abs=0.002)
    assert 'role="img"' in drawn
    assert "style=" not in drawn


@pytest.mark.parametrize("query", ["family=0", "family=x", "family=99999999", "people=1.5"])
def test_numbers_that_are_none_are_refused(visitor: Visitor, query: str) -> None:
    answer = visitor("ana").get(f"/explain?epsilon=1&{query}")
    assert answer.status_code == 422
    assert "HB103" in answer.text
