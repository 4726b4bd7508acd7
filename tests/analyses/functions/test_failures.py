"""A function that fails on one neighbor and not on the other: its default is within what the noise is for."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from hubbub.analyses.functions.declared_sensitivity import Universe, check_sensitivity, check_total, refuse_exceeded
from hubbub.analyses.functions.function import FunctionRequest
from hubbub.analyses.functions.noise import GridNoise
from hubbub.analyses.functions.sample_and_aggregate import AggregateRequest
from hubbub.core.unit import Relation
from hubbub.curator.session import Session
from hubbub.errors import HubbubError, ParameterError, QueryError
from hubbub.mechanisms.enumeration import SLACK
from hubbub.mechanisms.metric import Space

Opener = Callable[..., Session]
Rows = Mapping[str, Any]

WORLD = Universe({"word": ["a", "b", "z"]}, 3)
LINE = Space.of([[abs(i - j) for j in range(5)] for i in range(5)])


def _exit() -> None:
    raise SystemExit(3)


def _memory() -> None:
    raise MemoryError


#: What a function may do where somebody called z is in the data.
FAILURES: dict[str, Callable[[], Any]] = {
    "raises": lambda: 1 // 0,
    "memory": _memory,
    "exits": _exit,
    "nan": lambda: float("nan"),
    "infinite": lambda: float("inf"),
    "nothing": lambda: None,
    "text": lambda: "many",
    "too many": lambda: [1.0] * 7,
    "too large": lambda: 10**400,
    "complex": lambda: object(),
}

#: Each metric with a function of sensitivity 1 and what is said about it; values lie as far as can be from a default.
KINDS: dict[str, tuple[Callable[[Rows], Any], dict[str, Any]]] = {
    "absolute": (lambda rows: 1000 + len(rows["word"]), {"bounds": (0, 1003)}),
    "l1": (lambda rows: [1000 + len(rows["word"]), 7], {"metric": "l1", "outputs": 2, "bounds": (0, 1003)}),
    "l2": (lambda rows: [1000 + len(rows["word"]), 7], {"metric": "l2", "outputs": 2, "bounds": (0, 1003)}),
    "hamming": (lambda rows: [len(rows["word"]) > 1, True, True], {"metric": "hamming", "outputs": 3}),
    "points": (lambda rows: min(len(rows["word"]), 3) + 1, {"metric": LINE, "points": range(5)}),
}


def failing(kind: str, failure: Callable[[], Any], **more: Any) -> FunctionRequest:
    function, said = KINDS[kind]

    def own(rows: Rows) -> Any:
        return failure() if "z" in rows["word"] else function(rows)

    return FunctionRequest.of(own, "visits", ["word"], sensitivity=1, **{**said, **more})


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize(("kind", "failure"), list(product(KINDS, FAILURES)))
def test_a_function_that_fails_on_one_neighbor_keeps_the_charge(kind: str, failure: str, relation: Relation) -> None:
    """All datasets of three rows, and all their neighbors; the loss between values, failures among them, exactly."""
    order, epsilon = failing(kind, FAILURES[failure]), Fraction(1)
    seen = check_sensitivity(order, order.noise(epsilon, Fraction(1, 10**6)), WORLD, relation)
    assert seen.kept
    assert seen.loss[1] <= epsilon + SLACK
    refuse_exceeded(seen, epsilon)


@pytest.mark.parametrize("relation", Relation)
def test_the_old_default_lost_a_thousand_times_the_charge(relation: Relation) -> None:
    """Planted: noise for the declared sensitivity alone, and 0 for a failure, as it was."""
    order = failing("absolute", FAILURES["raises"])
    total = replace(order, total=True).noise(Fraction(1), Fraction(0))
    assert isinstance(total, GridNoise)

    class Zero(GridNoise):
        @property
        def default(self) -> Any:
            return self.read([0] * self.outputs)

    old = Zero(total.mechanism, total.step, total.outputs, total.bounds)
    seen = check_sensitivity(order, old, WORLD, relation)
    assert not seen.kept
    assert seen.loss[0] >= 1000
    with pytest.raises(QueryError, match="HB598"):
        refuse_exceeded(seen, Fraction(1))


@pytest.mark.parametrize(
    ("said", "reach"),
    [
        ({"bounds": (0, 1000)}, 500),
        ({"bounds": (5, 9), "sensitivity": 10}, 2),
        ({"metric": "l1", "outputs": 3, "bounds": (-1, 1)}, 3),
        ({"metric": "l2", "outputs": 4, "bounds": (0, 6)}, 36),
        ({"metric": "hamming", "outputs": 3}, 3),
        ({"metric": LINE, "points": range(5)}, 2),
    ],
)
def test_the_reach_of_the_default_is_what_one_counts_by_hand(said: dict[str, Any], reach: int) -> None:
    """Half the width, for each number; its square in L2; all bits; the largest distance from the middle point."""
    order = FunctionRequest.of(len, "visits", ["word"], **{"sensitivity": 1, **said})
    assert order.default_distance == reach
    noise, calm = (each.noise(Fraction(1), Fraction(1, 10**6)) for each in (order, replace(order, total=True)))
    assert replace(order, total=True).default_distance == 0
    least = math.sqrt(reach) if said.get("metric") == "l2" else reach
    if order.sensitivity >= least:
        assert noise.event == calm.event
    else:
        assert noise.event != calm.event
        assert noise.plus_minus >= calm.plus_minus


def test_numbers_without_bounds_are_refused_unless_the_function_is_total(clinic: Opener) -> None:
    h = clinic()
    for metric in ("absolute", "l1", "l2"):
        with pytest.raises(ParameterError, match="HB194"):
            h.release(
                lambda rows: len(rows["cost"]),
                table="visits",
                columns=["cost"],
                sensitivity=1,
                metric=metric,
                epsilon=1,
            )
    assert h.releases() == ()
    said = h.release(
        lambda rows: len(rows["cost"]), table="visits", columns=["cost"], sensitivity=1, epsilon=1, total=True
    )
    assert "total => TRUE" in said.receipt["query"]
    assert any("every dataset: the owner's word" in line for line in said.receipt["derivation"])


@pytest.mark.parametrize(
    ("function", "where"),
    [
        (lambda rows: rows["cost"].mean(), "empty table"),
        (lambda rows: np.nanmax(rows["cost"]), "empty table"),
        (lambda rows: rows["cost"].sum(), "NULL"),
        (lambda rows: 1 / (rows["cost"].min(initial=2.0) - 2), "empty table"),
        (lambda rows: len([word.upper() for word in rows["word"]]), "NULL"),
        (lambda rows: float(int(rows["cost"].max(initial=0.0))), "NULL"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_function_that_is_not_total_is_found_before_a_charge(
    clinic: Opener, function: Callable[[Rows], Any], where: str
) -> None:
    h = clinic()
    with pytest.raises(QueryError, match=f"HB598.*{where}"):
        h.release(function, table="visits", columns=["cost", "word"], sensitivity=100, epsilon=1, total=True)
    assert h.releases() == ()


def test_a_universe_finds_failures_of_a_function_that_was_said_to_be_total(clinic: Opener) -> None:
    def fails_on_three(rows: Rows) -> int:
        return 1 // (len(rows["cost"]) - 3) * 0

    h = clinic()
    with pytest.raises(QueryError, match=r"HB598.*total"):
        h.release(
            fails_on_three,
            table="visits",
            columns=["cost"],
            sensitivity=1,
            epsilon=1,
            total=True,
            check=Universe({"cost": [0.0]}, 4),
        )
    assert h.releases() == ()


def test_a_total_function_that_fails_on_the_data_ends_in_the_constant_failure(clinic: Opener) -> None:
    """The word was not kept: nothing is released, least of all a default far away."""
    h = clinic()
    with pytest.raises(HubbubError, match="HB900"):
        h.release(
            lambda rows: 1 // (len(rows["cost"]) < 100),
            table="visits",
            columns=["cost"],
            sensitivity=1,
            epsilon=1,
            total=True,
        )


def test_trials_take_every_kind_of_column(clinic: Opener) -> None:
    h = clinic()
    table = h.describe("visits")
    seen: list[tuple[Any, ...]] = []
    names = [each.name for each in table.columns if not each.hidden]

    def own(rows: Rows) -> int:
        seen.append(tuple(rows[name].dtype.kind for name in names))
        return len(rows[names[0]])

    order = FunctionRequest.of(own, "visits", names, sensitivity=1, total=True)
    check_total(order, order.noise(Fraction(1), Fraction(0)), table)
    assert len(seen) == 7
    assert set(seen[0]) <= {"O", "f", "M"}


@pytest.mark.parametrize("how", ["median", "mean"])
@pytest.mark.parametrize("default", [-0.001, 10.001, 1000])
def test_the_default_of_a_block_lies_in_its_bounds(how: Any, default: float) -> None:
    text = "def f(rows): return 1 // 0"
    with pytest.raises(ParameterError, match="HB193"):
        AggregateRequest.of(text, "visits", ["cost"], bounds=(0, 10), how=how, default=default)
    for inside in (None, 0, 10):
        made = AggregateRequest.of(text, "visits", ["cost"], bounds=(0, 10), how=how, default=inside)
        assert 0 <= made.default[0] <= 10
