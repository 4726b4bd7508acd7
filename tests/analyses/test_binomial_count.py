"""`binomial_count`: a count with coins, charged with its exact δ."""

from fractions import Fraction
from math import comb, exp
from pathlib import Path

import pytest

from hubbub.accounting.cost import privacy_cost
from hubbub.audit.receipt import check_receipt
from hubbub.core.events import from_facts
from hubbub.curator.session import open_session
from hubbub.errors import HubbubError, QueryError


@pytest.mark.row(99)
def test_a_count_with_coins_is_charged_with_its_exact_delta(town: Path) -> None:
    with open_session(town / "hubbub.yaml", analyst="ana") as h:
        release = h.binomial_count("people", "SELECT COUNT(*) FROM people WHERE age >= 0", epsilon=1)
        (exact,) = h.query("SELECT COUNT(*) FROM people WHERE age >= 0", epsilon=80).rows[0]
    coins = release.model["coins"]
    chance = [comb(coins, k) / 2**coins for k in range(coins + 1)]
    delta = chance[0] + sum(max(0.0, chance[k] - exp(1) * chance[k - 1]) for k in range(1, coins + 1))
    cost = privacy_cost(from_facts(release.receipt["event"]))
    assert cost.pure == release.epsilon == 1
    assert float(cost.delta) == pytest.approx(delta, rel=1e-6)
    assert 0 < release.delta <= Fraction(1, 10**8)  # a thousandth of 1e-5
    assert check_receipt(release.document()).sound
    assert isinstance(exact, int)
    assert abs(float(str(release.rows[0][0])) - exact) <= release.model["error_at_most"] + 1  # 80: exact but for e⁻⁸⁰


def test_without_a_delta_or_with_too_many_coins_it_is_refused(town: Path) -> None:
    with open_session(town / "hubbub.yaml", analyst="ana") as h:
        for code, options in (("HB553", {"epsilon": 1, "delta": 0}), ("HB544", {"epsilon": "0.001"})):
            with pytest.raises(HubbubError) as refused:
                h.estimates.binomial_count("visits", "SELECT COUNT(*) FROM visits", **options)
            assert refused.value.code == code


def test_a_query_of_another_table_is_refused(town: Path) -> None:
    with open_session(town / "hubbub.yaml", analyst="ana") as h, pytest.raises(QueryError) as refused:
        h.estimates.binomial_count("visits", "SELECT COUNT(*) FROM people", epsilon=1)
    assert refused.value.code == "HB670"
