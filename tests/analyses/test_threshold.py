"""Above threshold: one charge for a session of questions, of which only comparisons leave.

The law of a transcript is computed here by sums over the noise of the threshold, without the code under test; its
scales are those that a session is charged for. The classical mistakes (Lyu, Su and Li 2017) are planted, and lose more.
"""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import exp, log
from unittest.mock import patch

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.contract.tables import ROW, people

from hubbub.accounting.cost import privacy_cost
from hubbub.analyses.base import Arrays, EngineRun, Setting
from hubbub.analyses.threshold import Comparison, OpenSession, ThresholdTerms, above_threshold, compare
from hubbub.core.schema import PrivacyUnit
from hubbub.core.secret import Secret
from hubbub.core.unit import Relation
from hubbub.errors import QueryError
from hubbub.mechanisms.laplace import Laplace
from hubbub.noise.source import system
from hubbub.sql.bounding import RenderOptions

ADD, REPLACE = Relation.ADD_REMOVE, Relation.REPLACE
EPSILON = 2
#: Noise beyond this has a probability below 1e-30 at the scales that occur here.
REACH = 600


WORLD = people()


def setting(unit: PrivacyUnit = ROW, relation: Relation = ADD, **bounds: int) -> Setting:
    table = WORLD.table(unit, relation)
    return Setting({"t": table}, Fraction(EPSILON), Fraction(0), RenderOptions("salt"), **bounds)


def terms(relation: Relation = ADD, *, hits: int = 1, monotone: bool = True) -> ThresholdTerms:
    session = above_threshold(
        setting(relation=relation), table="t", name="s", threshold=Fraction(0), hits=hits, monotone=monotone
    )
    assert privacy_cost(session.event).pure == EPSILON
    return session.terms


def noise(scale: float) -> NDArray[np.float64]:
    """List Pr[Z = z] ∝ exp(−|z|/scale) for z = −REACH, …, REACH."""
    mass = np.exp(-np.abs(np.arange(-REACH, REACH + 1)) / scale)
    return np.asarray(mass / mass.sum())


def reaches(value: int, scale: float) -> NDArray[np.float64]:
    """Give Pr[value + ν ≥ z] for each z."""
    wide = np.arange(-2 * REACH, 2 * REACH + 1)
    upward = np.cumsum(np.exp(-np.abs(wide[::-1]) / scale))[::-1] / np.exp(-np.abs(wide) / scale).sum()
    return np.asarray(upward[np.clip(np.arange(-REACH, REACH + 1) - value + 2 * REACH, 0, len(wide) - 1)])


def chances(values: tuple[int, ...], threshold_scale: float, query_scale: float, hits: float) -> dict[str, float]:
    """Give the probability of every transcript, summed over the noise of the threshold."""
    laws: dict[str, NDArray[np.float64]] = {
        "": noise(threshold_scale) if threshold_scale else np.eye(2 * REACH + 1)[REACH]
    }
    for value in values:
        up = reaches(value, query_scale)
        following: dict[str, NDArray[np.float64]] = {}
        for seen, mass in laws.items():
            if seen.count("T") >= hits:
                following[seen] = mass
            else:
                following |= {seen + "T": mass * up, seen + "F": mass * (1 - up)}
        laws = following
    return {seen: float(mass.sum()) for seen, mass in laws.items()}


def chance(values: tuple[int, ...], seen: str, threshold_scale: float, query_scale: float) -> float:
    """Give ln Pr of one transcript."""
    mass = noise(threshold_scale) if threshold_scale else np.eye(2 * REACH + 1)[REACH]
    for value, answer in zip(values, seen, strict=True):
        up = reaches(value, query_scale)
        mass = mass * (up if answer == "T" else 1 - up)
    return log(mass.sum())


def loss(one: dict[str, float], two: dict[str, float]) -> float:
    return max(abs(log(one[seen] / two[seen])) for seen in one if one[seen] > 1e-12)


def moves(size: int, *, one_way: bool) -> list[tuple[int, ...]]:
    every = list(product((-1, 0, 1), repeat=size))
    return [each for each in every if not one_way or len({*each} - {0}) < 2]


@pytest.mark.parametrize(("relation", "hits"), [(ADD, 1), (ADD, 2), (REPLACE, 1), (REPLACE, 2)])
def test_the_loss_of_all_transcripts_is_within_the_charge(relation: Relation, hits: int) -> None:
    """All neighbors of four questions at several heights, by enumeration; far below, the loss comes near to ε."""
    mechanism = terms(relation, hits=hits).mechanism
    scales = float(mechanism.threshold_scale), float(mechanism.query_scale)
    assert mechanism.monotone == (relation is ADD)
    worst = 0.0
    for base in ((0, 0, 0), (-6, -6, -6), (-9, 0, -9), (2, -2, 2)):
        before = chances(base, *scales, hits)
        for move in moves(3, one_way=relation is ADD):
            after = chances(tuple(np.add(base, move).tolist()), *scales, hits)
            worst = max(worst, loss(before, after))
    assert EPSILON / 2 < worst <= EPSILON * (1 + 1e-9)


def test_the_classical_mistakes_lose_more_than_was_charged() -> None:
    mechanism = terms(REPLACE, hits=3).mechanism
    threshold, query = float(mechanism.threshold_scale), float(mechanism.query_scale)
    # the noise of the threshold is left out: answers below add up
    below = ((0,) * 12, (-1,) * 12)
    bare, kept = ([chance(values, "F" * 12, scale, query) for values in below] for scale in (0.0, threshold))
    assert abs(bare[0] - bare[1]) > EPSILON > abs(kept[0] - kept[1])
    # the noise of a question does not grow with the hits, or the session does not halt: answers above add up
    above = ((0,) * 20 + (-30,) * 3, (1,) * 20 + (-31,) * 3)
    one = terms(REPLACE, hits=1).mechanism
    scales = float(one.threshold_scale), float(one.query_scale)
    small, endless, right = (
        [chance(values, "F" * 20 + "TTT", *both) for values in above]
        for both in ((threshold, scales[1]), scales, (threshold, query))
    )
    assert small[0] - small[1] > EPSILON
    assert endless[0] - endless[1] > EPSILON
    assert EPSILON / 2 < right[0] - right[1] <= EPSILON
    # the value that is compared is released: it tells how high the threshold can be
    assert released(0, *scales) - released(1, *scales) > EPSILON


def released(move: int, threshold_scale: float, query_scale: float) -> float:
    """Give ln Pr of twelve answers below, then the noisy value −8 of a question at 0 that is above."""
    bar = np.arange(-REACH, REACH + 1)
    mass = noise(threshold_scale) * (1 - reaches(move, query_scale)) ** 12 * (bar <= -8)
    return log(mass.sum() * exp(-8 / query_scale))


def planned(sql: str = "SELECT COUNT(*) FROM t", threshold: Fraction | None = None) -> Comparison:
    return compare(setting(), table="t", name="s", query=sql, threshold=threshold)


def test_an_answer_is_the_comparison_of_noisy_values() -> None:
    """Whatever the noises ρ and ν are: the answer is whether q + ν ≥ t + ρ."""
    session = terms()
    for bar in (None, Fraction(1), Fraction(3, 2)):
        question = planned(threshold=bar)
        for value, nu, rho in product((0, 1, 3), (-1, 0, 2), (-2, 0, 1)):
            run = EngineRun(_engine(value), system(), lambda _, __: None)
            with patch.object(Laplace, "sample", lambda _, exact, __, nu=nu: exact + nu):
                published = replace(question, session=OpenSession(7, session, 1, 0, rho)).run(run)
            assert published.outputs[0].values == [value + nu >= (bar or 0) + rho]


def _engine(value: int) -> Callable[[str], Secret[Arrays]]:
    return lambda _: Secret({"m0": np.array([value])})


def test_questions_beyond_the_session_are_refused() -> None:
    counts = terms()
    wide = above_threshold(
        setting(), table="t", name="s", threshold=Fraction(1), sensitivity=Fraction(5, 2), monotone=False
    ).terms
    assert (wide.most, wide.mechanism.sensitivity) == (Fraction(5, 2), 1000)
    planned("SELECT COUNT(*) FROM t WHERE k = 'a'").covers(counts)
    planned("SELECT SUM(i - 2) FROM t").covers(wide)
    for sql in ("SELECT SUM(i) FROM t", "SELECT SUM(x) FROM t"):
        with pytest.raises(QueryError) as refused:
            planned(sql).covers(counts)
        assert refused.value.code == "HB672"
    with pytest.raises(QueryError):
        planned("SELECT SUM(i) FROM t").covers(wide)


@pytest.mark.parametrize("name", ["", "A", "a b", "-x", "a" * 64])
def test_names_that_cannot_be_kept_are_refused(name: str) -> None:
    with pytest.raises(QueryError) as refused:
        above_threshold(setting(), table="t", name=name, threshold=Fraction(1))
    assert refused.value.code == "HB672"


def test_terms_are_read_as_they_were_written() -> None:
    session = above_threshold(setting(rows=1, groups=1), table="t", name="s", threshold=Fraction(7, 2), hits=3)
    assert ThresholdTerms.read(session.terms.to_json()) == session.terms
    line, holds = session.enumerated({"terms": session.terms.to_json()})
    assert holds
    assert line.startswith("enumerated")
