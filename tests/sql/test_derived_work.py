"""The work of one derivation is bounded, whatever was released before."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.sql.test_derived import planned, source

from hubbub.mechanisms.laplace import Laplace
from hubbub.sql import derived
from hubbub.sql.coarser import SourceView, view
from hubbub.sql.measured import describe
from hubbub.sql.terms import MOST_VIEWS, Source, mean_of_views


def _source(number: int, values: int) -> Source:
    keys = [{"of": "key", "values": list(range(values)), "null": False, "whole": True}]
    noise = Laplace(sensitivity=1, scale=Fraction(number))
    return Source(number, {"sets": [{"keys": keys}, {"keys": []}]}, ((noise, noise),))


def test_large_sources_of_others_do_not_keep_small_ones_out() -> None:
    large = [_source(number, 19_000) for number in range(1, 1001)]
    chosen = derived._within([*large, _source(1001, 3), _source(1002, 99)])
    assert {1001, 1002} <= {source.number for _, source in chosen}
    assert sum(len(source.facts["sets"][0]["keys"][0]["values"]) + 1 for _, source in chosen) <= derived.MOST_CELLS
    assert [source.number for _, source in chosen] == sorted(source.number for _, source in chosen)
    assert len(chosen) == 2 + (derived.MOST_CELLS - 104) // 19_001


def test_the_most_exact_views_are_averaged() -> None:
    form = {"kind": "rows", "present": list[str](), "where": None}
    count = 5 * MOST_VIEWS
    # the scales are in no order
    scales = [Fraction(1 + number * 37 % count) for number in range(count)]
    noises = [Laplace(sensitivity=1, scale=scale) for scale in scales]
    sources = [Source(place, {"measures": [form]}, ((noise,),)) for place, noise in enumerate(noises)]
    views = [SourceView(place, 0, 0, np.zeros(1, dtype=np.int64), 1, same=True) for place in range(count)]
    terms = mean_of_views(form, views, sources, by_row=True, converting=False)
    best = sorted(range(count), key=lambda place: scales[place])[:MOST_VIEWS]
    assert {term.view for term in terms} == set(best)
    assert sum(term.weight for term in terms) == 1


def test_many_releases_of_one_query_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left out of 100 releases at one price is what a mean of 32 views has no room for."""
    text, finer = "SELECT COUNT(*), SUM(cost) FROM v", "SELECT site, COUNT(*), SUM(cost) FROM v GROUP BY site"
    described = describe(planned(text), (None, None))
    assert described is not None
    cheap, dear, fine = source(planned(text)), source(planned(text, epsilon=2)), source(planned(finer, epsilon=4))
    sources = [Source(n, each.facts, each.noises) for n, each in enumerate([*[cheap] * 50, fine, *[dear] * 50], 2)]
    looked = list[int]()
    original = view

    def counted(*args: Any) -> Any:
        looked.append(args[2])
        return original(*args)

    monkeypatch.setattr(derived, "view", counted)
    few = derived.derive(described, sources)
    assert len(looked) == 2
    monkeypatch.setattr(derived, "MOST_VIEWS", 1000)
    every = derived.derive(described, sources)
    assert few is not None
    assert every is not None
    assert few.used == every.used
    assert [each.weight for each in few.terms[0]] == [each.weight for each in every.terms[0]]
    assert few.plan.measures == every.plan.measures
