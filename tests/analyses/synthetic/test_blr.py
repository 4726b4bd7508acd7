"""Small databases chosen by the exponential mechanism (Blum, Ligett and Roth)."""

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from hubbub.accounting.cost import privacy_cost
from hubbub.analyses.base import Setting
from hubbub.analyses.synthetic.blr import SmallDatabase, databases, questions, scores, small_database
from hubbub.core.schema import Column, Kind, PrivacyUnit, Table
from hubbub.core.unit import Relation
from hubbub.errors import ParameterError, QueryError
from hubbub.mechanisms.enumeration import worst_ratio
from hubbub.sql.bounding import RenderOptions

F = Fraction
BITS = tuple(Column(name, Kind.BOOLEAN) for name in ("p", "q", "r"))


def setting(epsilon: str = "1", unit: PrivacyUnit | None = None, relation: Relation = Relation.ADD_REMOVE) -> Setting:
    columns = (Column("who", Kind.INTEGER), *BITS)
    return Setting(
        {"t": Table("t", columns, unit or PrivacyUnit(None), relation)}, F(epsilon), F(0), RenderOptions("salt")
    )


def prepared(at: Setting | None = None, **how: Any) -> SmallDatabase:
    arguments: dict[str, Any] = {"columns": ["p", "q", "r"]} | how
    return small_database(at or setting(), table="t", **arguments)


def population(n: int) -> Any:
    """Two bits that 40 % have and one that 10 % have, all independent, rounded to n rows."""
    chance = np.array(
        [
            np.prod([p if bit else 1 - p for bit, p in zip(bits, (0.4, 0.4, 0.1), strict=True)])
            for bits in product((0, 1), repeat=3)
        ]
    )
    rows = np.floor(chance * n).astype(np.int64)
    rows[np.argsort(rows - chance * n, kind="stable")[: n - rows.sum()]] += 1
    return rows


@pytest.mark.row(58)
@pytest.mark.parametrize(("n", "figure"), [(100, 0.106), (300, 0.071), (1000, 0.059)])
def test_expected_error_of_ten_rows_for_26_conjunctions_of_three_bits(n: int, figure: float) -> None:
    """The mean largest error over all 19,448 databases of ten rows, weighted as the mechanism chooses them."""
    made = prepared(total=n)
    every, asks, truth = databases(8, 10), questions((2, 2, 2), 3), population(n)
    assert (len(every), asks.shape[1]) == (19_448, 26)
    found = scores(truth, every, asks, n)
    weights = np.exp(float(made.selection.rate) * (found - found.max()))
    error = float(weights @ -found / weights.sum()) / (10 * n)
    assert error == pytest.approx(figure, abs=0.006)
    # the printed rate, ε·u/Δu and not half of it, costs twice as much
    assert made.selection.epsilon == 1
    assert made.selection.rate * made.selection.sensitivity * 2 == 1


def test_the_sampler_chooses_as_that_expectation_says(bench: Any) -> None:
    """400 draws at n = 300, whose errors lie in [0.05, 0.2] with a deviation of 0.015: their mean is within 0.006 of
    the expectation but for a chance below 1e-12."""
    made = prepared(total=300)
    every, asks, truth = databases(8, 10), questions((2, 2, 2), 3), population(300)
    found = scores(truth, every, asks, 300)
    weights = np.exp(float(made.selection.rate) * (found - found.max()))
    expected = float(weights @ -found / weights.sum()) / 3000
    run = bench({})
    drawn = [-found[made.selection.sample(found, run.source)] / 3000 for _ in range(400)]
    assert float(np.mean(drawn)) == pytest.approx(expected, abs=0.006)


@pytest.mark.parametrize("relation", list(Relation))
def test_neighbors_move_a_score_by_no_more_than_its_sensitivity(relation: Relation) -> None:
    """All neighbors of all datasets of two rows over two bits."""
    made = prepared(setting("1", None, relation), columns=["p", "q"], size=3, total=5)
    every, asks = databases(4, 3), questions((2, 2), 2)
    data = [row for row in product(range(3), repeat=4) if sum(row) == 2]
    apart = 1 if relation is Relation.ADD_REMOVE else 2
    worst = 0
    for one, other in product(map(np.array, data), product(range(4), repeat=4)):
        if np.abs(one - np.array(other)).sum() == apart and (apart == 1 or sum(other) == 2):
            moved = np.abs(scores(one, every, asks, 5) - scores(np.array(other), every, asks, 5)).max()
            worst = max(worst, int(moved))
    assert worst == made.selection.sensitivity == 3


def test_the_choice_is_private_by_enumeration() -> None:
    made = prepared(columns=["p"], size=4, total=3)
    every, asks = databases(2, 4), questions((2,), 1)
    worst = F(0)
    for yes in range(4):
        one, other = (
            made.selection.distribution(scores(np.array([2, count]), every, asks, 3).tolist())
            for count in (yes, yes + 1)
        )
        worst = max(worst, F(worst_ratio(one, other)[1]))
    assert F(1, 10) < worst <= 1


def test_rows_are_those_of_the_chosen_database(bench: Any) -> None:
    rows = "SELECT i % 2 = 0 AS p, i % 2 = 0 AS q, FALSE AS r FROM range(1000) AS t(i)"
    published = prepared(setting("50")).run(bench({"t": rows}))
    values = sorted(zip(*(output.values for output in published.outputs), strict=True))
    assert values == [(False, False, False)] * 5 + [(True, True, False)] * 5
    assert abs(published.model["total"] - 1000) < 50
    assert sum(published.model["cells"]) == 10


@pytest.mark.parametrize("unit", [PrivacyUnit(None), PrivacyUnit("who", 2, 3)])
@pytest.mark.parametrize("total", [None, 100])
def test_a_small_database_costs_what_it_says(unit: PrivacyUnit, total: int | None) -> None:
    made = prepared(setting("1/2", unit), total=total)
    loss = privacy_cost(made.event).pure
    assert loss is not None
    assert F(499, 1000) <= loss <= F(1, 2)
    assert len(made.derivation) == (1 if total else 2)
    assert made.selection.sensitivity == 10 * (6 if unit.column else 1)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"size": 40}, "more than"),
        ({"size": 0}, "size"),
        ({"ways": 4}, "ways"),
        ({"total": 0}, "total"),
        ({"columns": []}, "columns is empty"),
    ],
)
def test_what_is_too_large_is_refused_with_a_remedy(how: dict[str, Any], words: str) -> None:
    with pytest.raises((QueryError, ParameterError), match=words) as refusal:
        prepared(**how)
    assert refusal.value.remedy
