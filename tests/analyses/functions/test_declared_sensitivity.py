"""A declared sensitivity against all datasets of a small universe, and the loss that follows, outcome by outcome."""

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import pytest

from hubbub.analyses.functions.declared_sensitivity import (
    SensitivityCheck,
    Universe,
    check_sensitivity,
    refuse_exceeded,
)
from hubbub.analyses.functions.function import FunctionRequest
from hubbub.core.unit import Relation
from hubbub.curator.session import Session
from hubbub.errors import ParameterError, QueryError
from hubbub.mechanisms.enumeration import SLACK
from hubbub.mechanisms.metric import Space

Opener = Callable[..., Session]
Rows = Mapping[str, Any]

SMALL = Universe({"cost": [0.0, 1.0, 2.0], "word": ["a", "b"]}, 3)
LINE = Space.of([[abs(i - j) for j in range(4)] for i in range(4)])
CIRCLE = Space.of([[0, 1, 2, 1], [1, 0, 1, 2], [2, 1, 0, 1], [1, 2, 1, 0]])


def rows_with_a(rows: Rows) -> int:
    return int((rows["word"] == "a").sum())


def examined(function: Callable[[Rows], Any], relation: Relation, *, epsilon: int = 1, **said: Any) -> SensitivityCheck:
    order = FunctionRequest.of(function, "visits", ["cost", "word"], **{"total": True, **said})
    return check_sensitivity(order, order.noise(Fraction(epsilon), Fraction(1, 10**6)), SMALL, relation)


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("space", [LINE, CIRCLE])
def test_a_promise_that_is_kept_is_enumerated_to_the_charged_loss(relation: Relation, space: Space) -> None:
    found = examined(lambda rows: rows_with_a(rows) % 4, relation, sensitivity=1, metric=space, points=range(4))
    assert found.kept
    assert found.farthest == 1
    low, high = found.loss
    assert Fraction(3, 10) < low <= high <= 1 + SLACK
    if space == CIRCLE:
        assert low >= 1 - SLACK, "with a constant normaliser all of ε is used"
    refuse_exceeded(found, Fraction(1))


@pytest.mark.parametrize("relation", Relation)
def test_a_sum_has_the_sensitivity_of_its_bounds(relation: Relation) -> None:
    found = examined(lambda rows: rows["cost"].sum(), relation, sensitivity=2)
    assert found.kept
    assert found.farthest == 1
    assert min(found.loss) == max(found.loss) == 1
    assert found.pairs > 100


def test_bits_that_one_row_flips_lose_what_is_charged() -> None:
    def seen(rows: Rows) -> list[bool]:
        return [bool((rows["cost"] == value).any()) for value in (0, 1, 2)]

    kept = examined(seen, Relation.ADD_REMOVE, sensitivity=1, metric="hamming", outputs=3)
    assert kept.kept
    assert math.isclose(kept.loss[1], 1, rel_tol=1e-12)
    broken = examined(seen, Relation.REPLACE, sensitivity=1, metric="hamming", outputs=3)
    assert broken.farthest == 2, "another row in its place flips two"
    assert broken.loss[0] > 1


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda rows: rows["cost"].sum(), {"sensitivity": 1}),
        (lambda rows: rows["cost"].max(initial=0.0), {"sensitivity": "1.5"}),
        (lambda rows: [rows["cost"].sum(), len(rows["cost"])], {"sensitivity": 2, "metric": "l1", "outputs": 2}),
        (lambda rows: rows_with_a(rows) ** 2 % 4, {"sensitivity": "0.5", "metric": LINE, "points": range(4)}),
    ],
)
def test_a_wrong_sensitivity_is_found_with_its_pair(function: Callable[[Rows], Any], said: dict[str, Any]) -> None:
    found = examined(function, Relation.ADD_REMOVE, **said)
    assert not found.kept
    assert found.at is not None
    with pytest.raises(QueryError, match="HB598"):
        refuse_exceeded(found, Fraction(1))


def test_a_vector_is_measured_in_l2() -> None:
    def pair(rows: Rows) -> list[float]:
        return [rows["cost"].sum(), float(len(rows["cost"]))]

    assert examined(pair, Relation.ADD_REMOVE, sensitivity="2.25", metric="l2", outputs=2).kept
    assert not examined(pair, Relation.ADD_REMOVE, sensitivity="2.2", metric="l2", outputs=2).kept


def test_a_broken_promise_is_refused_before_a_charge(clinic: Opener) -> None:
    h = clinic()
    with pytest.raises(QueryError, match="HB598"):
        h.release(
            lambda rows: rows["cost"].sum(),
            table="visits",
            columns=["cost"],
            sensitivity=1,
            epsilon=1,
            bounds=(0, 2),
            check=Universe({"cost": [0.0, 100.0]}, 3),
        )
    assert h.releases() == ()
    kept = h.release(
        lambda rows: rows["cost"].sum(),
        table="visits",
        columns=["cost"],
        sensitivity=100,
        epsilon=1,
        bounds=(0, 200),
        check=Universe({"cost": [0.0, 100.0]}, 3),
    )
    assert kept.epsilon == 1


def test_a_universe_too_large_to_go_through_is_refused() -> None:
    with pytest.raises(ParameterError, match="HB195"):
        Universe({"cost": list(range(1000))}, 5)
    with pytest.raises(ParameterError, match="HB195"):
        Universe({"cost": []}, 5)
