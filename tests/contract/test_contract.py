"""Every noise is bought for the sensitivity it needs: every analysis and every aggregate, held against a search.

What each mechanism was built with is read from watched runs; the worst neighbors are searched for in a small universe
with repeats, several rows a unit, empty tables, NULL and numbers beyond their bounds, under both relations and both
kinds of noise. Neighbors must stay within the sensitivity, and some pair must come as near to it as is written beside
each case: otherwise the test could not notice noise that is too small. That it does notice is shown by errors in the
source of every analysis, which the campaign of planted errors tries.

The scale is that of campaigns: HUBBUB_CAMPAIGN=full tries all units, relations and δ, and climbs for longer.
"""

import os
from dataclasses import replace
from fractions import Fraction

import pytest
from tests.contract.queries import TEXTS
from tests.contract.search import climb
from tests.contract.subjects import Tried, every
from tests.contract.watched import slots

from hubbub.analyses.registry import ANALYSES, PAID_BEFORE, USER_FUNCTIONS
from hubbub.sql.aggregates.table import AGGREGATES

FULL = os.environ.get("HUBBUB_CAMPAIGN") == "full"
TRIED: dict[str, list[Tried]] = {}
for _each in every(full=FULL):
    TRIED.setdefault(_each.name, []).append(_each)


@pytest.mark.usefixtures("few_rounds")
@pytest.mark.parametrize("name", TRIED)
def test_neighbors_stay_within_what_each_noise_was_bought_for_and_reach_it(name: str) -> None:
    for tried in TRIED[name]:
        found = tried.climbed(full=FULL)
        assert found.problems == []
        least = {slot: (float(found.best[slot][0]), tried.subject.name) for slot in found.short(tried.reach)}
        assert least == {}, "so much less than can be reached was seen that too little noise would go unnoticed"
        free = not slots(tried.subject.make(silent=False).event)  # the number of rows is public
        assert bool(found.best) is not free, "something was drawn"


def test_every_analysis_and_every_aggregate_is_tried() -> None:
    assert {*ANALYSES, *USER_FUNCTIONS} - PAID_BEFORE <= set(TRIED)
    spelled = {"quantile": ("median", "quantile_cont"), "count_units": ("count(DISTINCT u)",)}
    for name in AGGREGATES:
        over_rows = name.removesuffix("_distinct")
        parts = (f"{over_rows}(DISTINCT ",) if over_rows != name else (name,)
        spelled.setdefault(name, parts)
    missing = [name for name, parts in spelled.items() if not any(part in text for part in parts for text in TEXTS)]
    assert missing == []


def test_both_relations_both_kinds_of_noise_and_both_kinds_of_units_are_tried() -> None:
    """Of each analysis that has them: a stream has no units, and a pure mechanism no δ."""
    for name, tried in TRIED.items():
        assert len({each.subject.relation for each in tried}) == 2, name
    for name in ("tabulate", "moments", "stream", "geography", "ranges"):
        events = [each.subject.make(silent=False).event for each in TRIED[name]]
        assert {kind for event in events for _, kind in slots(event).values()} == {"LaplaceEvent", "GaussianEvent"}, (
            name
        )


def test_a_search_that_reaches_too_little_says_so() -> None:
    """The planted error of this test itself: a universe in which nothing moves."""
    tried = TRIED["tabulate"][0].subject
    still = replace(tried, columns=tuple(((None,), ()) for _ in tried.columns), begin=())
    found = climb(still, {}, steps=10, extra=1)
    assert found.short({}) == list(found.best)
    assert all(share == Fraction(0) for share, _ in found.best.values())
