"""An owner's own function: each metric with its noise, totality, and who may hand code in."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hubbub.accounting.cost import privacy_cost
from hubbub.analyses.functions.function import FunctionRequest, Named
from hubbub.analyses.functions.noise import GridNoise
from hubbub.analyses.graphs.properties import DistanceFrom, pairs_of
from hubbub.audit.receipt import check_receipt
from hubbub.core.events import FlipsEvent, GaussianEvent, LaplaceEvent, MetricEvent, from_facts
from hubbub.curator.session import Session
from hubbub.errors import ParameterError, QueryError
from hubbub.mechanisms.metric import Space

Opener = Callable[..., Session]
Rows = Mapping[str, Any]

COLUMNS = ["cost", "word"]
LINE = Space.of([[abs(i - j) for j in range(11)] for i in range(11)])


def total(rows: Rows) -> float:
    return float(np.nansum(rows["cost"]))


def test_exact_values_come_out_where_the_noise_is_nothing(clinic: Opener) -> None:
    """Noise of scale s/ε, with ε = 700: other than 0 with probability below e⁻³⁴⁰ for every metric here."""
    h = clinic()
    true = sum(30 + (i * 7 + j) % 41 for i in range(200) for j in range(3))
    assert h.release(
        total, table="visits", columns=COLUMNS, sensitivity=100, step=100, epsilon=700, total=True
    ).rows == [(true // 100 * 100,)]
    decile = h.release(
        lambda rows: int(np.nanmedian(rows["cost"]) // 10),
        table="visits",
        columns=COLUMNS,
        sensitivity=1,
        metric=LINE,
        points=range(11),
        epsilon=3500,
    )
    assert decile.rows == [(5,)]
    words = h.release(
        lambda rows: [(rows["word"] == name).any() for name in ("w0", "w9")],
        table="visits",
        columns=COLUMNS,
        sensitivity=1,
        metric="hamming",
        outputs=2,
        epsilon=700,
        total=True,
    )
    assert words.rows == [(0, True), (1, False)]
    both = h.release(
        lambda rows: [len(rows["cost"]), (rows["word"] == "w1").sum()],
        table="visits",
        columns=COLUMNS,
        sensitivity=2,
        metric="l1",
        outputs=2,
        step=1,
        epsilon=2000,
        total=True,
    )
    assert both.rows == [(0, 602.0), (1, 200.0)]


def test_each_metric_is_charged_what_it_costs(clinic: Opener) -> None:
    h = clinic()
    cases: list[tuple[Callable[[Rows], Any], dict[str, Any], type]] = [
        (total, {"sensitivity": 100}, LaplaceEvent),
        (lambda rows: [1.0, 2.0, total(rows)], {"sensitivity": 100, "metric": "l1", "outputs": 3}, LaplaceEvent),
        (lambda rows: [1.0, 2.0, total(rows)], {"sensitivity": 100, "metric": "l2", "outputs": 3}, GaussianEvent),
        (lambda _: [True, False], {"sensitivity": 1, "metric": "hamming", "outputs": 2}, FlipsEvent),
        (lambda _: 3, {"sensitivity": 1, "metric": LINE, "points": range(11)}, MetricEvent),
    ]
    for place, (function, given, kind) in enumerate(cases):
        said = {"total": True, **given}
        found = h.release(function, table="visits", columns=COLUMNS, epsilon="0.5", key=str(place), **said)
        assert found.epsilon == Fraction(1, 2)
        event = from_facts(found.receipt["event"])
        assert isinstance(event.parts[0][0], kind)  # type: ignore[union-attr]
        if kind is GaussianEvent:
            assert found.delta == Fraction(1, 10**5)
        else:
            assert privacy_cost(event).pure == Fraction(1, 2)
            assert found.delta == 0
        finding = check_receipt(found.document())
        assert finding.sound, finding.problems
        estimate = h.estimate_own(FunctionRequest.of(function, "visits", COLUMNS, **said), epsilon="0.5")
        assert estimate.epsilon == Fraction(1, 2)
        assert estimate.expected[0].plus_minus > 0


def test_rounding_to_steps_stays_within_what_the_noise_is_for() -> None:
    """Random values a step's width apart from each other and from the grid: halves, ties and tiny differences."""
    random = np.random.default_rng(6)
    cases: list[tuple[int, Named]] = [(1, "absolute"), (3, "l1"), (3, "l2")]
    for outputs, metric in cases:
        order = FunctionRequest.of(
            total, "visits", COLUMNS, sensitivity="0.3", metric=metric, outputs=outputs, step="0.25", total=True
        )
        noise = order.noise(Fraction(1), Fraction(1, 10**6))
        assert isinstance(noise, GridNoise)
        for _ in range(500):
            one = random.choice([0, 0.25, 0.125, 1e-12, 7.3], outputs) + random.normal(0, 1e-3, outputs)
            way = random.normal(0, 1, outputs)
            way *= 0.3 * (1 - 1e-9) / (np.abs(way).sum() if metric != "l2" else np.linalg.norm(way))
            assert noise.distance(noise.read(one), noise.read(one + way)) <= 1


def test_a_planted_rounding_to_the_nearest_breaks_it() -> None:
    """Halves to even: 0.5 becomes 0 and 1.5 becomes 2, so a sensitivity of one step becomes two."""
    assert abs(np.rint(1.5) - np.rint(0.5)) == 2
    noise = FunctionRequest.of(total, "t", ["c"], sensitivity=1, step=1, total=True).noise(Fraction(1), Fraction(0))
    assert noise.distance(noise.read(0.5), noise.read(1.5)) == 1


@pytest.mark.parametrize(
    "function",
    [
        lambda _: float("nan"),
        lambda _: float("inf"),
        lambda _: None,
        lambda _: "a text",
        lambda _: [1, 2],
        lambda _: 1 // 0,
        lambda rows: rows["nothing"],
    ],
)
def test_a_value_that_is_none_is_replaced_and_nobody_sees_a_failure(
    clinic: Opener, function: Callable[[Rows], Any]
) -> None:
    found = clinic().release(function, table="visits", columns=COLUMNS, sensitivity=1, epsilon=1, bounds=(5, 9))
    assert found.epsilon == 1
    assert 5 <= found.rows[0][0] <= 9  # type: ignore[operator]


def test_rows_come_in_the_order_of_their_values(clinic: Opener) -> None:
    def sorted_rows(rows: Rows) -> int:
        cost = rows["cost"][~np.isnan(rows["cost"])]
        words = [word for word in rows["word"] if word is not None]
        first = cost[rows["word"][~np.isnan(rows["cost"])] == "w0"]
        return int(words == sorted(words) and bool((np.diff(first) >= 0).all()))

    found = clinic().release(
        sorted_rows, table="visits", columns=COLUMNS, sensitivity=1, step=1, epsilon=700, total=True
    )
    assert found.rows == [(1.0,)]


def test_the_same_function_is_answered_from_the_ledger_and_another_is_not(clinic: Opener) -> None:
    h = clinic()
    first = h.release(total, table="visits", columns=COLUMNS, sensitivity=100, epsilon=1, total=True)
    again = h.release(total, table="visits", columns=COLUMNS, sensitivity=100, epsilon=1, total=True)
    other = h.release(
        lambda rows: total(rows) / 2, table="visits", columns=COLUMNS, sensitivity=100, epsilon=1, total=True
    )
    assert (first.replayed, again.replayed, other.replayed) == (False, True, False)
    assert again.rows == first.rows
    assert h.release(h.releases()[-1].id).rows == first.rows, "a number still asks for an earlier answer"


def test_a_distance_from_an_owners_property_is_such_a_function(clinic: Opener) -> None:
    nearest = DistanceFrom(checker=lambda edges: len(edges) >= 3, nodes=5, most=4)

    def distance(rows: Rows) -> int:
        return nearest(pairs_of(5, rows["cost"] - 30, rows["cost"] - 29))

    found = clinic().release(distance, table="visits", columns=["cost"], sensitivity=1, step=1, epsilon=700, total=True)
    assert found.rows == [(0.0,)], "costs from 30 to 70 make a path of four edges"


def test_a_text_cannot_bring_code(clinic: Opener) -> None:
    """What stands in the ledger can be read by an analyst, and asked again only by who has the function."""
    h = clinic()
    first = h.release(total, table="visits", columns=COLUMNS, sensitivity=100, epsilon=1, total=True)
    text = first.receipt["query"]
    assert text.startswith("CALL release(")
    with pytest.raises(QueryError, match="HB597"):
        h.query(text, epsilon=1)
    with pytest.raises(QueryError, match="HB597"):
        h.query("CALL sample_and_aggregate(table => 'visits')", epsilon=1)
    assert len(h.releases()) == 1


@pytest.mark.parametrize(
    "said",
    [
        {"sensitivity": 0},
        {"sensitivity": -1},
        {"sensitivity": float("nan")},
        {"sensitivity": 1, "metric": "euclid"},
        {"sensitivity": 1, "metric": LINE},
        {"sensitivity": 1, "metric": LINE, "points": [1] * 11},
        {"sensitivity": 1, "outputs": 2},
        {"sensitivity": 1, "bounds": (2, 1)},
        {"sensitivity": 1, "step": 0},
        {"sensitivity": 5, "metric": "hamming", "outputs": 3},
    ],
)
def test_what_makes_no_sense_is_refused_before_a_charge(clinic: Opener, said: dict[str, Any]) -> None:
    h = clinic()
    with pytest.raises(ParameterError):
        h.release(total, table="visits", columns=COLUMNS, epsilon=1, **said)
    with pytest.raises((ParameterError, QueryError)):
        h.release(total, table="visits", columns=["nothing"], sensitivity=1, epsilon=1)
    assert h.releases() == ()
