"""The drawings of the pages, and what stands beside the slider."""

import math
import re
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hubbub.answers.estimate import Estimate, Expected
from hubbub.server import page_plots as plots
from hubbub.server.pages.ask import ladder, laid_out, scale, step

fractions = st.fractions(Fraction(1, 1000), Fraction(100), max_denominator=1000)


def estimate(*points: tuple[str, float]) -> Estimate:
    scaling = tuple((Fraction(epsilon), (Expected("n", half, None, 0.1),)) for epsilon, half in points)
    epsilon, expected = scaling[len(scaling) // 2]
    admitted = True
    return Estimate(("t",), epsilon, Fraction(0), "laplace", 1, expected, (), admitted, Fraction(1), scaling, ())


@given(st.one_of(st.none(), fractions), fractions, fractions)
def test_a_budget_bar_never_leaves_its_frame(spent: Fraction | None, total: Fraction, coming: Fraction) -> None:
    drawn = plots.budget(spent, total, coming=coming)
    ElementTree.fromstring(drawn)
    used, more = (float(found) for found in re.findall(r'class="(?:spent|coming)"[^>]* width="([\d.]+)%"', drawn))
    assert 0 <= used <= 100
    assert 0 <= used + more <= 100.01
    if spent is not None and spent <= total:
        assert used == pytest.approx(100 * float(spent / total), abs=0.01)


def test_the_twenty_answers_are_quantiles_of_the_noise() -> None:
    places = [(2 * k + 1) / 40 for k in range(20)]
    laplace = [float(stats.laplace.ppf(p)) / math.log(20) for p in places]
    normal = [float(stats.norm.ppf(p) / stats.norm.ppf(0.975)) for p in places]
    assert plots.quantiles("laplace") == pytest.approx(laplace)
    assert plots.quantiles("gaussian") == pytest.approx(normal)
    for noise in ("laplace", "gaussian"):
        # the outermost of twenty stands for the quantile of 1/40, which is the end of a 95% interval
        assert plots.quantiles(noise)[0] == pytest.approx(-1)
        assert plots.quantiles(noise)[-1] == pytest.approx(1)


def test_likely_answers_are_drawn_from_distribution_and_width_alone() -> None:
    assert plots.likely("laplace", 5.0, 12.5) == plots.likely("laplace", 5.0, 12.5)
    tree = ElementTree.fromstring(plots.likely("laplace", 5.0, 12.5))
    dots = [float((dot.get("cx") or "").strip("%")) for dot in tree.iter("{http://www.w3.org/2000/svg}circle")]
    assert len(dots) == 20
    assert dots[0] == 30
    assert dots[-1] == 70


@pytest.mark.parametrize(("marked", "right"), [(50, 0), (74, 24), (100, 50)])
def test_the_icons_can_be_counted(marked: int, right: int) -> None:
    drawn = plots.icons(marked)
    assert drawn.count('class="chance"') == 50
    assert drawn.count('class="right"') == right
    assert drawn.count("<circle") == 100


def test_spending_goes_up_in_steps_below_the_cap() -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    points = [(start + timedelta(days=day), total) for day, total in ((1, 0.5), (2, 1.5))]
    drawn = plots.over_time({"<ana>": points, "ben": []}, cap=2.0, start=start, end=start + timedelta(days=4))
    tree = ElementTree.fromstring(drawn)
    (ana, ben) = tree.iter("{http://www.w3.org/2000/svg}path")
    heights = [100 - 100 * total / 2.1 for total in (0, 0, 0.5, 0.5, 1.5, 1.5)]
    found = [tuple(map(float, point)) for point in re.findall(r"[ML]([\d.]+) ([\d.]+)", ana.get("d") or "")]
    assert [x for x, _ in found] == [0, 25, 25, 50, 50, 100]
    assert [y for _, y in found] == pytest.approx(heights, abs=0.001)
    assert ben.get("d") == "M0 100.0L100 100.0"
    assert "&lt;ana&gt;" in drawn


@given(fractions, fractions)
def test_the_slider_offers_the_price_wanted_and_nothing_absurd(largest: Fraction, wanted: Fraction) -> None:
    prices = ladder(largest, wanted)
    assert wanted in prices
    assert prices == sorted(set(prices))
    assert len(prices) <= 40
    assert max(prices) <= max(Fraction(10), wanted)


def test_the_expected_error_follows_the_planned_points() -> None:
    """At the planned prices it is theirs; between and beyond them it goes on as a power of the price."""
    found = estimate(("0.025", 120.0), ("0.1", 30.0), ("0.4", 7.5))
    assert [scale(found, 0, Fraction(e)) for e in ("0.025", "0.1", "0.4")] == pytest.approx([120, 30, 7.5])
    assert scale(found, 0, Fraction("0.2")) == pytest.approx(15)
    assert scale(found, 0, Fraction(1)) == pytest.approx(3)
    assert scale(found, 0, Fraction("0.01")) == pytest.approx(300)
    assert scale(estimate(("0.1", 30.0)), 0, Fraction("0.2")) == pytest.approx(15)


def test_a_step_of_the_slider_says_what_holds_at_its_price() -> None:
    found = step(Fraction("0.2"), estimate(("0.025", 120.0), ("0.1", 30.0), ("0.4", 7.5)), Fraction(0), [])
    assert found["epsilon"] == "0.2"
    assert found["margins"] == ["about ±15"]
    assert step(Fraction("0.1"), estimate(("0.1", 30.0)), Fraction(0), [])["margins"] == ["±30"]
    assert found["half"] == pytest.approx(15)
    assert "at most 55% sure" in found["belief"]
    assert "1.23" in found["odds"]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("SELECT COUNT(*) FROM t", "SELECT COUNT(*)\nFROM t"),
        ("SELECT COUNT(*) FROM t WHERE a = 'x WHERE y' -- raw", "SELECT COUNT(*)\nFROM t\nWHERE a = 'x WHERE y'"),
        ("SELECT COUNT(*) FROM t WHERE a = ' -- rows = 1'", "SELECT COUNT(*)\nFROM t\nWHERE a = ' -- rows = 1'"),
    ],
)
def test_a_question_is_laid_out_without_a_change_of_meaning(query: str, text: str) -> None:
    assert laid_out(query) == text
