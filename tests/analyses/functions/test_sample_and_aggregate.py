"""Sample and aggregate: blocks that share no unit, clamped answers, and a mean or median that keeps its price."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hubbub.accounting.cost import privacy_cost
from hubbub.analyses.base import Setting
from hubbub.analyses.functions.sample_and_aggregate import AggregateRequest, How, SampleAndAggregate, scores
from hubbub.audit.receipt import check_receipt
from hubbub.core.events import from_facts
from hubbub.core.loss import Pure
from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.core.unit import Relation
from hubbub.curator.session import Session
from hubbub.errors import ParameterError
from hubbub.mechanisms.enumeration import satisfies, worst_ratio
from hubbub.noise.source import ReplaySource, system
from hubbub.sql.bounding import RenderOptions

Opener = Callable[..., Session]

MEAN = "def f(rows): return np.nanmean(rows['cost'])"


def prepared(
    *,
    how: How = "median",
    unit: PrivacyUnit | None = None,
    relation: Relation = Relation.ADD_REMOVE,
    blocks: int = 4,
    **said: Any,
) -> SampleAndAggregate:
    columns = (Column("cost", Kind.REAL, Bounds(Fraction(0), Fraction(100))), Column("who", Kind.INTEGER))
    table = Table("visits", columns, unit or PrivacyUnit(None), relation)
    setting = Setting({"visits": table}, Fraction(1), Fraction(0), RenderOptions("salt"))
    bounds = said.pop("bounds", (0, 100))
    return AggregateRequest.of(MEAN, "visits", ["cost"], bounds=bounds, blocks=blocks, how=how, **said).prepare(
        setting, None
    )


def test_one_unit_changes_the_rows_of_one_block() -> None:
    """The same words put common units into the same blocks, as the proof pairs them; rows come in any order."""
    random = np.random.default_rng(2)
    made = prepared(unit=PrivacyUnit("who", 1, 1), blocks=5)
    words = [int(word) for word in random.integers(0, 1 << 63, 64)]
    who, cost = np.repeat(np.arange(20), 3), random.integers(0, 100, 60).astype(np.float64)

    def split(kept: Any) -> list[list[float]]:
        order = random.permutation(int(kept.sum()))
        found = {"v0": cost[kept][order], "$unit": who[kept][order]}
        return [block["cost"].tolist() for block in made.split(found, ReplaySource(words))]

    everybody = split(who >= 0)
    assert sorted(each for block in everybody for each in block) == sorted(cost.tolist())
    assert all(block == sorted(block) for block in everybody)
    # the last in the order of owners goes, so that all others draw the same words
    without = split(who != 19)
    changed = [one != other for one, other in zip(everybody, without, strict=True)]
    assert sum(changed) == 1


def test_all_rows_of_a_unit_are_in_one_block() -> None:
    made = prepared(unit=PrivacyUnit("who", 1, 1), blocks=7)
    found = {"v0": np.repeat(np.arange(30.0), 5), "$unit": np.repeat(np.arange(30), 5)}
    blocks = made.split(found, system())
    assert sum(len(block["cost"]) for block in blocks) == 150
    homes = [set(block["cost"].tolist()) for block in blocks]
    for person in range(30):
        assert sum(float(person) in home for home in homes) == 1


def test_a_unit_with_both_zeros_is_in_one_block() -> None:
    """As in SQL, where they are one owner; in a hundred blocks two would part but for 1 of 100, ten times over."""
    made = prepared(unit=PrivacyUnit("who", 1, 1), blocks=100)
    found = {"v0": np.arange(2.0), "$unit": np.array([-0.0, 0.0])}
    for _ in range(10):
        assert sorted(len(block["cost"]) for block in made.split(found, system()))[-1] == 2


def test_the_distribution_of_blocks_is_uniform() -> None:
    """3,000 rows in three blocks: each count is within 160 of 1,000 but for 10⁻⁸ (its standard deviation is 26)."""
    made = prepared(blocks=3)
    counts = [len(block["cost"]) for block in made.split({"v0": np.arange(3000.0)}, system())]
    assert all(abs(count - 1000) < 160 for count in counts)


def test_enumerated_loss_of_a_changed_answer_is_the_charged_one() -> None:
    """All answers of three blocks from a coarse grid, one of them changed to any other: the median's choice."""
    made = prepared(blocks=3)
    (median,) = made.medians
    grid = [(40.0,), (100.0,), None]
    worst = Fraction(0)
    for first in grid:
        for second in grid:
            answers = [first, second, (100.0,)]
            changed = [first, second, (0.0,)]
            distributions = [
                median.distribution(scores(np.concatenate([made.steps(each) for each in some])).tolist())
                for some in (answers, changed)
            ]
            assert satisfies(Pure(Fraction(1)), *distributions)
            worst = max(worst, Fraction(worst_ratio(*distributions)[1]))
    assert worst > Fraction(3, 10), "it is not that nothing ever changes"


def test_scores_move_by_two_at_most_and_a_rank_alone_would_move_by_less() -> None:
    random = np.random.default_rng(5)
    moved = 0
    for _ in range(200):
        answers = random.integers(0, 1 << 16, 9)
        changed = answers.copy()
        changed[random.integers(9)] = random.integers(0, 1 << 16)
        moved = max(moved, int(np.abs(scores(answers) - scores(changed)).max()))
    assert moved == 2


def test_a_mean_of_answers_moves_by_its_bounds_at_most() -> None:
    made = prepared(how="mean", bounds=[(0, 100), (-5, 5)], blocks=6)
    assert made.mean is not None
    low, high = made.steps((-1e300, -1e300)), made.steps((1e300, 1e300))
    assert int(np.abs(high - low).sum()) == made.mean.sensitivity
    assert made.steps(None).tolist() == made.steps((50.0, 0.0)).tolist()


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("how", ["median", "mean"])
def test_the_price_is_the_whole_epsilon_under_either_relation(relation: Relation, how: How) -> None:
    for bounds in ((0, 1), [(0, 1)] * 3):
        made = prepared(how=how, relation=relation, bounds=bounds)
        pure = privacy_cost(made.event).pure
        assert pure is not None
        assert Fraction(999_999, 1_000_000) < pure <= 1
        assert made.expected[0].plus_minus > 0


@pytest.mark.parametrize("how", ["median", "mean"])
def test_a_mean_of_means_is_near_the_truth(clinic: Opener, how: How) -> None:
    """ε = 500 in 5 blocks: the noise is nothing, and block means of about 120 rows in [30, 70] are within 10 of 50."""
    h = clinic(unit="{column: who, groups: 1, rows: 3}")
    found = h.sample_and_aggregate(
        MEAN, "visits", ["cost"], bounds=(0, 100), blocks=5, how=how, seconds="0.4", epsilon=500
    )
    assert abs(found.rows[0][0] - 50) < 10  # type: ignore[operator]
    finding = check_receipt(found.document())
    assert finding.sound, finding.problems
    assert privacy_cost(from_facts(found.receipt["event"])).pure == 500


def test_a_function_that_fails_on_some_blocks_is_answered_all_the_same(clinic: Opener) -> None:
    """Half of the blocks raise, sleep or lie, by what they hold: charged once, answered within the bounds."""
    text = """
def f(rows):
    import time
    n = len(rows["cost"])
    if n % 3 == 0:
        raise ValueError(n)
    if n % 3 == 1:
        time.sleep(60)
    return float("nan") if n % 2 else 1e308
"""
    h = clinic()
    found = h.sample_and_aggregate(
        text, "visits", ["cost"], bounds=(0, 100), blocks=6, default=20, seconds="0.2", epsilon=1
    )
    assert 0 <= found.rows[0][0] <= 100  # type: ignore[operator]
    assert len(h.releases()) == 1


def test_defaults_stand_for_answers_that_are_none(clinic: Opener) -> None:
    """The scales of the noise are .025 and .00025: one in 10¹⁰ runs is further away."""
    h = clinic()
    found = h.sample_and_aggregate(
        "def f(rows): raise ValueError",
        "visits",
        ["cost"],
        bounds=[(0, 100), (0, 1)],
        default=[25, "0.5"],
        blocks=4,
        how="mean",
        seconds="0.1",
        epsilon=2000,
    )
    values = [row[1] for row in found.rows]
    assert values[0] == pytest.approx(25, abs=0.6)
    assert values[1] == pytest.approx(0.5, abs=0.006)


def test_an_estimate_is_free_and_starts_nothing(clinic: Opener) -> None:
    h = clinic()
    order = AggregateRequest.of(MEAN, "visits", ["cost"], bounds=(0, 100))
    estimate = h.estimate_own(order, epsilon=1)
    assert estimate.expected[0].unit == "rank"
    assert h.releases() == ()
    wider = AggregateRequest.of(MEAN, "visits", ["cost"], bounds=(0, 100), how="mean")
    assert h.estimate_own(wider, epsilon=1).expected[0].plus_minus == pytest.approx(100 / 64 * 3, rel=0.01)


def test_progress_tells_blocks_and_nothing_else(clinic: Opener) -> None:
    from hubbub.curator.question import Question

    h, told = clinic(), list[tuple[float, str]]()
    order = AggregateRequest.of(MEAN, "visits", ["cost"], bounds=(0, 100), blocks=3, seconds="0.1")
    with order.sandbox() as box:
        question = Question(order.text, epsilon=1, user_function=lambda setting: order.prepare(setting, box))
        h._curator.query("ana", question, progress=lambda done, what: told.append((done, what)))
    assert told == [(0.0, "block 1 of 3"), (1 / 3, "block 2 of 3"), (2 / 3, "block 3 of 3")]


@pytest.mark.parametrize(
    "said",
    [
        {"bounds": (1, 1)},
        {"bounds": (0, float("nan"))},
        {"bounds": [(0, 1, 2)]},
        {"bounds": []},
        {"bounds": (0, 1), "blocks": 1},
        {"bounds": (0, 1), "how": "mode"},
        {"bounds": (0, 1), "default": 2},
        {"bounds": (0, 1), "default": [0, 1]},
        {"bounds": (0, 1), "seconds": 0},
        {"bounds": (0, 1), "memory": 1},
    ],
)
def test_what_makes_no_sense_is_refused_before_a_charge(clinic: Opener, said: dict[str, Any]) -> None:
    h = clinic()
    with pytest.raises(ParameterError):
        h.sample_and_aggregate(MEAN, "visits", ["cost"], epsilon=1, **said)
    assert h.releases() == ()
