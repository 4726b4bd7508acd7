"""Parts of a batch or a statement with different noises cost no more in the ledger than the price that was named."""

from fractions import Fraction
from typing import Any

import pytest

from hubbub.accounting.cost import ZERO, privacy_cost
from hubbub.accounting.filters import Budget, admits
from hubbub.answers.batch import batch_text
from hubbub.audit import replan
from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.curator import batch, queries
from hubbub.curator.question import Question

DELTA = Fraction(1, 10**6)
WIDE = [
    "SELECT day, COUNT(*) AS n FROM v GROUP BY day",
    "SELECT COUNT(*) AS n FROM v WHERE day < 20",
]
NARROW = [
    "SELECT MEDIAN(cost) AS m FROM v",
    "SELECT COUNT(DISTINCT person) AS n FROM v",
    "SELECT MAX(cost) AS m FROM v",
]
TEXTS = {
    "counts and a median": batch_text([WIDE[0], NARROW[0]]),
    "shared counts and three others": batch_text([*WIDE, *NARROW]),
    "a statement of two parts": f"{WIDE[0].replace('day, ', 'CAST(day AS REAL) AS k, ', 1)} UNION ALL "
    "SELECT 0.5 AS k, MEDIAN(cost) AS n FROM v",
}


def table() -> Table:
    columns = (
        Column("person", Kind.TEXT),
        Column("site", Kind.TEXT, values=("a", "b", "c")),
        Column("day", Kind.INTEGER, bounds=Bounds(Fraction(0), Fraction(40))),
        Column("cost", Kind.REAL, bounds=Bounds(Fraction(0), Fraction(100)), step=Fraction(1, 2)),
    )
    return Table("v", columns, PrivacyUnit("person", groups=20, rows=1))


def planned(text: str, epsilon: Fraction) -> Any:
    question = Question(text, epsilon=epsilon, delta=DELTA)
    return replan.plan_again(question, {"v": table()}, salt="s", hashing="engine")


@pytest.mark.parametrize("what", TEXTS)
def test_several_noises_cost_no_more_than_their_price(what: str) -> None:
    epsilon = Fraction(1, 10)
    made = planned(TEXTS[what], epsilon)
    assert admits(Budget(epsilon, DELTA), ZERO, privacy_cost(made.event))


def test_a_pure_loss_beside_gaussian_noise_would_cost_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted error: every part with the noise that is best for it."""
    for module in (batch, queries):
        monkeypatch.setattr(module, "at_one_price", lambda make, **_: make(None))
    monkeypatch.setattr(batch, "fits", lambda *_: True)
    made = planned(TEXTS["counts and a median"], Fraction(1, 10))
    assert not admits(Budget(Fraction(1, 10), DELTA), ZERO, privacy_cost(made.event))
