"""Every kind of stream under every relation, with and without a private state: exact losses against the charge."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog

from hubbub.accounting.cost import privacy_cost
from hubbub.analyses.streams.audit import worst_snapshot
from hubbub.analyses.streams.density import Density
from hubbub.analyses.streams.enumeration import enumerate_loss
from hubbub.analyses.streams.root import SquareRootCounter
from hubbub.analyses.streams.terms import Terms
from hubbub.analyses.streams.tree import TreeCounter
from hubbub.audit.release import audit
from hubbub.cli import main
from hubbub.config import load
from hubbub.core.unit import Relation
from hubbub.curator.session import open_session
from hubbub.mechanisms.enumeration import SLACK
from hubbub.mechanisms.laplace import Laplace
from hubbub.noise.source import ReplaySource

NOTHING = ReplaySource([])
DELTA = Fraction(1, 10**6)
Matrix = NDArray[np.float64]


def densities() -> Iterator[Terms]:
    # ε is shared between look and answers by the size of the universe, so large ones are enumerated with two elements
    for relation, classic, (outputs, size) in product(Relation, (False, True), ((1, 99), (1, 99_999), (2, 999))):
        for epsilon in (Fraction(1, 10), Fraction(1)):
            yield Terms(
                name="s",
                kind="density",
                epsilon=epsilon,
                universe=(0, size),
                outputs=outputs,
                classic=classic,
                relation=relation,
            )


def counts() -> Iterator[Terms]:
    ways: tuple[dict[str, Any], ...] = (
        {"method": "tree"},
        {"method": "tree", "private_state": True},
        {"method": "tree", "delta": DELTA},
        {"method": "tree", "delta": DELTA, "private_state": True},
        {"method": "root", "delta": DELTA},
    )
    shapes: tuple[dict[str, Any], ...] = ({}, {"bound": 3}, {"bins": ("a", "b")})
    for relation, way, shape, horizon in product(Relation, ways, shapes, (1, 4)):
        yield Terms(name="s", kind="count", epsilon=Fraction(1), horizon=horizon, relation=relation, **way, **shape)


def charged(terms: Terms) -> Fraction:
    paid = privacy_cost(terms.event).pure
    assert paid is not None
    return paid


@pytest.mark.parametrize(
    "terms", list(densities()), ids=lambda each: f"{each.relation.value}-{each.epsilon}-{each.outputs}"
)
def test_every_kind_of_stream_keeps_what_it_charges(terms: Terms) -> None:
    """A density: one look at any moment and all answers at any moments, over all neighbors of two elements."""
    small = replace(terms.density, size=2)
    loss = worst_snapshot(small, length=2 if terms.outputs == 1 else 1, relation=terms.relation, answers=terms.outputs)
    assert loss.bounds[1] <= charged(terms) + SLACK
    assert charged(terms) <= terms.epsilon
    assert loss.bounds[0] >= terms.epsilon / 3  # what is enumerated is not nothing


@pytest.mark.parametrize(("epsilon", "least"), [(Fraction(1), "1.47"), (Fraction(1, 10), "0.174")])
def test_the_enumeration_finds_a_density_that_ignores_the_relation(epsilon: Fraction, least: str) -> None:
    """The table of edition 1: a unit that is replaced changes two bits, and one was charged."""
    old = replace(Density.from_epsilon(size=100_000, epsilon=epsilon, outputs=1), size=2)
    assert worst_snapshot(old, length=2, relation=Relation.ADD_REMOVE).bounds[1] <= epsilon + SLACK
    assert worst_snapshot(old, length=2, relation=Relation.REPLACE).bounds[0] > Fraction(least)


@dataclass(frozen=True)
class Scripted(Laplace):
    """Noise that is written down beforehand: one number is 1 and all others are 0."""

    at: int = -1

    def sample(self, value: Any, source: Any) -> Any:
        del source
        shape = np.asarray(value).shape
        start, size = DRAWN[0], int(np.prod(shape))
        DRAWN[0] += size
        given = np.zeros(size, dtype=np.int64)
        if start <= self.at < start + size:
            given[self.at - start] = 1
        return np.asarray(value) + given.reshape(shape)


DRAWN = [0]


def observed(terms: Terms, values: NDArray[np.int64], look: int | None, at: int = -1) -> NDArray[np.int64]:
    """All that is seen of a run, one arrival at a time: answers, and the state at the look where it is private."""
    DRAWN[0] = 0
    counter = replace(terms.counter, noise=Scripted(sensitivity=1, scale=Fraction(1), at=at))  # type: ignore[arg-type]
    state, seen = counter.start(NOTHING), []
    for time in range(len(values) + 1):
        if time == look and isinstance(counter, TreeCounter):
            seen += [state["open"].ravel(), state["closed"].ravel()]
        if time < len(values):
            state = counter.take(state, values[time : time + 1], NOTHING)
    seen.append(state["measured" if isinstance(counter, SquareRootCounter) else "answers"].ravel())
    return np.concatenate(seen).astype(np.int64)


def least(noise: Matrix, moved: Matrix, *, squared: bool) -> float:
    """The least shift of the noise that explains a move: in L1, or in L2 squared; infinite where none does."""
    if squared:
        shift, *_ = np.linalg.lstsq(noise, moved, rcond=None)
        return float(shift @ shift) if np.allclose(noise @ shift, moved, atol=1e-6) else np.inf
    size = noise.shape[1]
    solved = linprog(np.ones(2 * size), A_eq=np.hstack([noise, -noise]), b_eq=moved, bounds=(0, None), method="highs")
    return float(solved.fun or 0) if solved.status == 0 else np.inf


def worst_move(terms: Terms) -> float:
    """The largest least shift over all neighbors and looks: everything is linear in arrivals and noise."""
    length, bins = terms.length, len(terms.bins or ("",))
    nothing = np.zeros((length, bins), dtype=np.int64)
    arrivals = [np.zeros(bins, dtype=np.int64), *(np.eye(bins, dtype=np.int64) * terms.bound)]
    pairs = [(a, b) for a, b in product(arrivals, arrivals) if terms.relation is Relation.REPLACE or not b.any()]
    looks: list[int | None] = list(range(length + 1)) if terms.private_state else [None]
    worst = 0.0
    for look in looks:
        base = observed(terms, nothing, look)
        draws = DRAWN[0]
        noise = np.stack([observed(terms, nothing, look, at) - base for at in range(draws)], axis=1).astype(float)
        for time, (one, other) in product(range(length), pairs):
            values = nothing.copy()
            values[time] = one
            moved = observed(terms, values, look)
            values[time] = other
            difference = (moved - observed(terms, values, look)).astype(float)
            worst = max(worst, least(noise, difference, squared=bool(terms.delta)))
    return worst


@pytest.mark.parametrize(
    "terms", list(counts()), ids=lambda each: f"{each.relation.value}-{each.method}-{each.horizon}"
)
def test_every_counter_moves_by_what_its_noise_is_for(terms: Terms) -> None:
    """A count: all answers, and one look at any moment where the state is private, over all neighbors.

    With Laplace noise the loss is the least L1 shift of the noise over its scale, with Gaussian noise ρ is the least
    squared L2 shift over 2σ²: both are compared with what the mechanism was built for.
    """
    noise = terms.counter.noise
    allowed = noise.sensitivity if isinstance(noise, Laplace) else noise.sensitivity_squared
    worst = worst_move(terms)
    assert worst <= float(allowed) * (1 + 1e-6)
    assert worst >= float(allowed) * 0.49  # noise is not bought for nothing
    assert enumerate_loss(terms).kept


@pytest.mark.parametrize("relation", Relation)
def test_a_look_at_a_state_that_is_secret_has_no_bound(relation: Relation) -> None:
    """Planted: the state of a counter without noise of its own, seen as if it were private."""
    terms = Terms(name="s", kind="count", epsilon=Fraction(1), horizon=4, relation=relation, private_state=True)

    class Open(Terms):
        @property
        def counter(self) -> TreeCounter | SquareRootCounter:
            tree = super().counter
            assert isinstance(tree, TreeCounter)
            return replace(tree, private_state=False)

    bare = Open(**{name: getattr(terms, name) for name in Terms.__slots__})
    assert worst_move(bare) == np.inf


def test_the_enumeration_in_small_finds_bins_that_ignore_the_relation(monkeypatch: pytest.MonkeyPatch) -> None:
    terms = Terms(name="s", kind="count", epsilon=Fraction(1), horizon=64, bins=("a", "b"), relation=Relation.REPLACE)
    assert enumerate_loss(terms).kept
    cheap = replace(terms, relation=Relation.ADD_REMOVE).counter
    monkeypatch.setattr(Terms, "counter", property(lambda self: replace(cheap, horizon=self.length)))
    assert not enumerate_loss(terms).kept


YAML = """
version: 1
datasets:
  visitors:
    source: visitors.csv
    unit: {column: id}
    relation: replace
    columns: {id: {type: integer}}
    budget: {epsilon: 3}
analysts:
  ana: {visitors: {epsilon: 3}}
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "hubbub.yaml").write_text(YAML)
    (tmp_path / "visitors.csv").write_text("id\n1\n2\n")
    return tmp_path


def test_the_audit_of_a_release_enumerates_the_declared_relation(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A density that was bought as edition 1 sold it is not sound under replace; one that is bought now is."""
    form = Terms.to_json
    with open_session(place / "hubbub.yaml", analyst="ana") as ana:
        good = ana.stream("visitors", "good", kind="density", universe=(0, 99_999), epsilon=1)
        with monkeypatch.context() as old:
            old.setattr(Terms, "elements", property(lambda _: 1))
            old.setattr(Terms, "to_json", lambda terms: {k: v for k, v in form(terms).items() if k != "edition"})
            bad = ana.stream("visitors", "bad", kind="density", universe=(0, 99_999), epsilon=1)
    numbers = [each.receipt["ledger"][0]["sequence"] for each in (good, bad)]
    config = load(place / "hubbub.yaml")
    honest = audit(config, numbers[0])
    assert honest.sound
    assert any("(replace): the privacy loss of one intrusion and 1 of 1 answers is" in line for line in honest.lines)
    undercharged = audit(config, numbers[1])
    assert not undercharged.sound
    assert "(replace)" in undercharged.problems[0]


def test_the_command_audits_both_relations(capsys: pytest.CaptureFixture[str]) -> None:
    for relation in ("add_remove", "replace"):
        assert main(["stream", "audit", "--epsilon", "1", "--relation", relation]) == 0
        assert relation in capsys.readouterr().out
