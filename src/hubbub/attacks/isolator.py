"""Isolate one lonely person from published counts, with and without that person's data (Chawla and others 2005).

Dwork, McSherry, Nissim and Smith (2006, section 1.2) note that differential privacy protects against isolation.
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import numpy as np
from numpy.typing import NDArray

from hubbub.attacks.base import (
    AttackFinding,
    AttackStudy,
    Progress,
    Score,
    describe_findings,
    no_progress,
    percent,
)
from hubbub.attacks.isolation import publish_counts
from hubbub.attacks.table import AttackTable
from hubbub.attacks.target import laplace
from hubbub.core import numbers
from hubbub.core.numbers import brief
from hubbub.crowd.histogram import build_histogram
from hubbub.crowd.isolation import Hits, isolates_among
from hubbub.crowd.neighbors import Floats, NeighborIndex
from hubbub.crowd.points import make_points
from hubbub.mechanisms.laplace import Laplace
from hubbub.noise.source import system
from hubbub.semantics.odds import power

#: The crowd fills this part of the cube on each axis; the lonely person is in the outermost tenth of a corner.
_CROWD, _LONELY = 0.3, 0.8


def isolation_ceiling(epsilon: Fraction, delta: Fraction = Fraction(0), *, without: Fraction) -> float:
    """Bound how often an adversary isolates a person, from how often without that person's data.

    Theorem (Isolation). Let an isolator see (ε, δ)-private answers about x and name a point q. The probability that q
    (c,t)-isolates person i is at most e^ε·p + δ, and at most 1 − e^(−ε)(1 − δ − p), where p is the probability that it
    does if the answers are about x without person i's data.
    Proof    Which points isolate person i is fixed by x, not by the answers: a set Q(x). Whether q is in Q(x) is a
    function of the answers, so the definition of privacy bounds it, for Q(x) and for its complement (`odds.power`).
    Assumes  nothing about the distribution of the data or what else the isolator knows; compare the sanitizers of 2005.
    Tested   tests/attacks/test_isolator.py::test_no_isolator_gains_more_than_stated
             tests/attacks/test_isolator.py::test_a_lonely_person_is_isolated_by_exact_counts_and_not_by_private_ones

    >>> round(isolation_ceiling(Fraction(1), without=Fraction(1, 8)), 4)
    0.3398
    """
    return float(power(epsilon=epsilon, delta=delta, level=without))


def study(
    table: AttackTable | None = None,  # noqa: ARG001 - all studies have the same signature
    *,
    epsilons: Sequence[Fraction],
    generator: np.random.Generator,
    progress: Progress = no_progress,
    people: int = 300,
    dimension: int = 3,
    crowd: int = 10,
    factor: float = 4.0,
    trials: int = 500,
) -> AttackStudy:
    """Isolate one person far from a crowd, from exact counts and from counts with noise.

    The crowd sits in the middle of a cube; one person sits alone in one of its corners, chosen at random. An adversary
    who knows everybody else names a point, and succeeds if it is `factor` times nearer to that person than to a crowd
    of `crowd` people. The recursive histogram of 2005 publishes exact counts and gives the corner away. hubbub's table
    of counts limits the success rate to e^ε times that without the person's data, which is one corner in 2^`dimension`.
    """
    people = numbers.integer(people, "people", 50, 20_000)
    trials = numbers.integer(trials, "trials", 1, 10**5)
    d = numbers.integer(dimension, "dimension", 1, 5)
    crowd = numbers.integer(crowd, "crowd", 2, people // 4)
    others = generator.uniform(-_CROWD, _CROWD, (people - 1, d))
    corners = np.array(list(product((-1.0, 1.0), repeat=d)))
    at = generator.integers(0, len(corners), trials)
    lonely = corners[at] * generator.uniform(_LONELY, 1, (trials, d))
    blind = Fraction(1, len(corners))
    guesses = corners * (_LONELY + 1) / 2
    findings = []
    known = [_leaves(np.vstack([others, guess]), crowd) for guess in guesses]
    exact = np.array([_by_counts(_leaves(np.vstack([others, row]), crowd), known, generator) for row in lonely])
    hits = _isolated(others, lonely, guesses[exact], crowd, factor)
    findings.append(AttackFinding("recursive histogram", None, _score(hits, blind), None))
    for step, epsilon in enumerate(epsilons):
        progress((1 + step) / (1 + len(epsilons)), f"hubbub at ε = {brief(epsilon)}")
        noise = _noise(others, lonely[0], epsilon, generator)
        shown = {}
        for used in (True, False):
            named = _by_noise(at, len(corners), noise, generator, used=used)
            hits = _isolated(others, lonely, guesses[named], crowd, factor)
            shown[used] = _score(hits, blind)
        facts = {"isolated without the person's data": percent(shown[False].share)}
        ceiling = isolation_ceiling(epsilon, without=blind)
        findings.append(AttackFinding("hubbub", epsilon, shown[True], ceiling, facts))
    progress(1.0, "done")
    return AttackStudy("isolator", "Isolation of a lonely person", describe_findings(findings), tuple(findings))


def _score(hits: Hits, blind: Fraction) -> Score:
    return Score(int(hits.sum()), len(hits), float(blind))


def _by_counts(published: Floats, known: Sequence[Floats], generator: np.random.Generator) -> int:
    """Find the corner whose histogram, with everybody else in place, equals the published one."""
    equal = [place for place, leaves in enumerate(known) if np.array_equal(leaves, published)]
    return int(generator.choice(equal)) if equal else int(generator.integers(len(known)))


def _leaves(points: Floats, t: int) -> Floats:
    low, side, count = build_histogram(points, t=t).leaves
    cells = np.column_stack([low, side, count])
    return cells[np.lexsort(cells.T)]


def _noise(others: Floats, row: Floats, epsilon: Fraction, generator: np.random.Generator) -> Laplace:
    """Publish the table once with hubbub, and return the noise on each of its cells."""
    values = np.vstack([others, row])
    columns = {f"x{index}": values[:, index] for index in range(values.shape[1])}
    points = make_points(columns, list(columns), rng=generator, bounds=dict.fromkeys(columns, (-1.0, 1.0)))
    _, release = publish_counts(points, epsilon=epsilon, singly=False)
    return laplace(release)


def _by_noise(
    at: NDArray[np.int64], corners: int, noise: Laplace, generator: np.random.Generator, *, used: bool
) -> NDArray[np.int64]:
    """Name the corner with the largest noisy count; nobody else is in any of them."""
    counts = np.zeros((len(at), corners), dtype=np.int64)
    counts[np.arange(len(at)), at] = int(used)
    noisy = noise.sample(counts.ravel(), system()).reshape(counts.shape)
    return np.asarray(np.argmax(noisy + generator.random(counts.shape), axis=1))  # a fraction of a count breaks ties


def _isolated(others: Floats, lonely: Floats, guesses: Floats, t: int, c: float) -> Hits:
    """Tell which guesses isolate the person of their trial, by the definition of 2005."""
    hits = [
        isolates_among(NeighborIndex(np.vstack([others, row])), guess[None], row[None], c=c, t=t)[0]
        for row, guess in zip(lonely, guesses, strict=True)
    ]
    return np.array(hits)
