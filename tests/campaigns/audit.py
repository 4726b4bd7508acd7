"""Black-box audit: lower bounds on ε from samples never exceed the charge, and come close to it in the worst case.

It covers every mechanism; every aggregate, kind of group and kind of noise, and every analysis, through the public API
on two neighboring datasets, under both relations, with and without contribution bounds; streams; and surveys. No lower
bound may exceed the charge. For pairs that attain the charge (as the exact integers before noise show), the bound must
reach most of it.

A query takes 10 ms, so a million queries are too slow. Instead, the public path runs once on each neighbor and records
every draw: the mechanism object and its exact value. Then `sample` of that object is called on that value a million
times, in one array (thirty thousand times for mechanisms that return one outcome per call, unless the pair is a worst
case). For each draw the campaign checks that this is the code that computed the answer: with the same random words it
reproduces the outcome bit by bit. Everything after the draws is post-processing, as the grey box shows, and adds no
loss. The public path itself is sampled too.

    HUBBUB_CAMPAIGN=full .venv/bin/python -m tests.campaigns.audit

All bounds of one run hold together, except with probability 10⁻⁶.
"""

import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import chain, product
from math import erfc, exp, inf, log, log1p, sqrt
from typing import Any

import numpy as np
from tests.analyses.conftest import EXAMPLES
from tests.campaigns.frame import Report, run
from tests.campaigns.rig.samplers import SHORT, SampledPair, Table, mechanisms, streams
from tests.fixtures.draws import difference, is_reproducible, is_scalar, sample_many
from tests.fixtures.neighboring_data import (
    ASKED,
    RELATIONS,
    CampaignQuery,
    NeighboringSessions,
    Pair,
    campaign_queries,
    neighboring_sessions,
)

import hubbub.curator.query as query_module
from hubbub.accounting import gaussian_filter
from hubbub.accounting.cost import RENYI_UNIT, PrivacyCost, privacy_cost
from hubbub.answers.release import Release
from hubbub.audit.black_box import MIN_SAMPLES, BlackBoxResult, audit
from hubbub.core.events import from_facts
from hubbub.core.loss import ORDERS
from hubbub.curator.question import Question
from hubbub.mechanisms.binomial import Binomial
from hubbub.mechanisms.laplace import Laplace
from hubbub.mechanisms.metric import Space
from hubbub.noise.source import system

ALARM = 1e-6
#: Upper bound on the number of cases: each gets this share of the alarm.
MAX_CASES = 2000
SEED = 1
#: Coordinates that may change at the small scale for a worst case to be detectable.
FEW = 2


@dataclass
class Size:
    """Numbers of samples per side."""

    fast: int  #: for mechanisms that sample arrays
    worst: int  #: for worst cases
    slow: int  #: for mechanisms with one outcome per call
    choice: int  #: for worst cases with one outcome per call
    public: int  #: for the public path


@dataclass
class Tally:
    """Counts of what was audited, and the problems."""

    cases: int = 0
    million: int = 0  #: cases with at least a million samples per side
    samples: int = 0
    excess: list[str] = field(default_factory=list)
    other: list[str] = field(default_factory=list)  #: draws that the mechanism does not reproduce
    shares: dict[str, float] = field(default_factory=dict)  #: worst cases that must be detected
    kinds: Counter[str] = field(default_factory=Counter)

    def add(self, name: str, verdict: BlackBoxResult, drawn: int) -> None:
        self.cases += 1
        self.million += drawn >= 10**6
        self.samples += sum(verdict.samples)
        self.excess += [
            f"{name}: {b.tester}: {b.measure} ≥ {b.least:.4g} > {b.promised:.4g} ({b.event})" for b in verdict.excess
        ]


def examine(name: str, promise: PrivacyCost, draw: Callable[[int], Table]) -> BlackBoxResult:
    """Audit one pair of tables, padded to equal width if answers differ in length."""
    one, other = draw(0), draw(1)
    width = max(one.shape[1], other.shape[1])
    one, other = (np.pad(each, ((0, 0), (0, width - each.shape[1])), constant_values=SHORT) for each in (one, other))
    # the split into search and test must only be independent of the samples
    generator = np.random.default_rng(zlib.crc32(name.encode()))
    return audit(one, other, promise=promise, alarm=ALARM / MAX_CASES, generator=generator)


def of_sampled(case: SampledPair, size: Size, tally: Tally) -> None:
    """Audit a mechanism, a stream or a survey."""
    array = size.worst if case.worst else size.fast
    count = (size.choice if case.worst else size.slow) if case.slow else array
    verdict = examine(case.name, case.promise, lambda side: case.draw(side, count, system()))
    tally.add(case.name, verdict, count)
    tally.kinds["mechanism"] += 1
    if case.worst and count >= size.worst and (case.promise.pure is not None or size.worst >= 10**6):
        tally.shares[case.name] = verdict.share


def visible(promise: PrivacyCost, size: Size) -> int:
    """Return how many coordinates may change for most of a loss to be detectable with this many samples.

    Each coordinate uses a part of ε, and all must deviate in one direction at once. A share of a small divergence
    (Gaussian noise) takes more samples than there are.
    """
    if size.worst < 10**6:
        return FEW if promise.pure is not None and promise.pure >= 1 else 0
    if promise.pure is None:
        return 6 if promise.renyi[ORDERS.index(Fraction(2))] * RENYI_UNIT >= Fraction(1, 5) else 0
    return 6 if promise.pure >= 1 else 3


def epsilon_for(cost: PrivacyCost, delta: float) -> float:
    """Return the ε that a cost amounts to at a δ.

    It is the least of its pure loss, its curve by Proposition 12 of Canonne and others (2020), and its Gaussian pair.
    """
    rest = delta - float(cost.delta)
    pure = inf if cost.pure is None or rest < 0 else float(cost.pure)
    if rest <= 0:
        return pure
    curve = [(float(order), float(value * RENYI_UNIT)) for order, value in zip(ORDERS, cost.renyi, strict=True)]
    bounds = [value + log1p(-1 / a) - log(rest * a) / (a - 1) for a, value in curve if a > 1]
    if cost.gaussian is not None:
        slip = gaussian_filter.failure(cost.gaussian) / gaussian_filter.FAILURE_STEPS
        bounds.append(pair_epsilon(gaussian_filter.variance(cost.gaussian) / gaussian_filter.STEPS, rest - slip))
    return min(pure, *bounds)


def pair_epsilon(variance: float, delta: float) -> float:
    """Return the ε at which N(0, 1) and N(√v, 1) are (ε, δ)-DP, by Theorem 8 of Balle and Wang (2018).

    Bisection gives the upper end. Doubles carry an error of about 10⁻¹⁵ e^ε, and no δ here is that small.
    """
    if delta <= 0:
        return inf
    if variance == 0:
        return 0.0
    root = sqrt(variance)

    def least(epsilon: float) -> float:
        one, two = (erfc((epsilon / root + side * root / 2) / sqrt(2)) / 2 for side in (-1, 1))
        return one - exp(epsilon) * two

    low, high = 0.0, 50.0
    if least(high) > delta:
        return inf
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if least(middle) <= delta else (middle, high)
    return high


def of_pair(pair: Pair, size: Size, tally: Tally) -> None:
    """Audit a query from the draws of its two runs."""
    name = pair.question.name
    moved = [each for each in pair.draws if difference(*each).any()]
    one_by_one = sum(is_scalar(one.mechanism) for one, _ in moved)
    worst = pair.worst and not one_by_one and pair.moved <= visible(pair.promise, size)
    # binomial noise loses nearly its ε only where answers are about as rare as its δ
    worst = worst and not any(isinstance(one.mechanism, Binomial) for one, _ in pair.draws)
    # a selection in each of many groups is many draws: keep their total number
    slow = max(MIN_SAMPLES, min(size.slow, 4 * size.slow // max(1, one_by_one)))
    count = slow if one_by_one else size.worst if worst else size.fast
    verdict = examine(name, pair.promise, lambda side: sample_many(pair.draws, side, count, system()))
    tally.add(name, verdict, count)
    tally.other += [f"{name}: draw {i}" for i, (one, _) in enumerate(pair.draws) if not is_reproducible(one, SEED)]
    tally.kinds.update({type(one.mechanism).__name__ for one, _ in pair.draws})
    if epsilon_for(pair.promise, float(pair.releases[0].delta)) > float(pair.releases[0].epsilon) + 1e-12:
        tally.excess.append(f"{name}: the draws cost more than the release says")
    if worst:
        tally.shares[name] = verdict.share


def numbers(release: Release) -> list[float]:
    """Return everything a release shows as numbers; texts as checksums."""

    def number(cell: Any) -> float:
        if cell is None:
            return -1e9
        return float(cell) if isinstance(cell, bool | int | float | Fraction) else float(zlib.crc32(str(cell).encode()))

    shown = [number(cell) for row in release.rows for cell in row]
    return [*shown, *(number(end) for row in release.intervals for ends in row for end in ends)]


def table(rows: Sequence[Sequence[float]]) -> Table:
    """Put rows of different lengths into one table, padded."""
    width = max(map(len, rows))
    return np.array([[*row, *[SHORT] * (width - len(row))] for row in rows], dtype=np.float64)


def of_public(towns_: NeighboringSessions, question: CampaignQuery, count: int, tally: Tally) -> None:
    """Audit the public path itself: every sample is a charge, a run and a release."""
    sides = []
    promise = towns_.ask(question, key="promise", seed=SEED).promise
    for session in towns_.sessions(question.town, question.relation):
        session._curator._draws.sources = lambda _: system()
        sides.append(
            [
                numbers(
                    session.query(
                        question.text, key=f"public {zlib.crc32(question.name.encode())} {i}", **question.options
                    )
                )
                for i in range(count)
            ]
        )
    name = f"public path: {question.name}"
    tally.add(name, examine(name, promise, lambda side: table(sides[side])), count)
    tally.kinds["public path"] += 1


#: User-defined functions, each with its options: a metric and its sensitivity to one row.
OWN: tuple[tuple[Callable[[Any], Any], dict[str, Any]], ...] = (
    (lambda rows: float(np.nansum(rows["y"])), {"sensitivity": 6, "step": 1, "total": True}),
    (
        lambda rows: [np.sum(rows["y"] > 5), np.sum(rows["x"] > 3)],
        {"sensitivity": 2, "metric": "l1", "outputs": 2, "total": True},
    ),
    (lambda rows: [np.sum(rows["y"] > 5) % 2, False], {"sensitivity": 2, "metric": "hamming", "outputs": 2}),
    (
        lambda rows: int(np.sum(rows["y"] > 5) % 5),
        {"sensitivity": 4, "metric": Space.of([[abs(i - j) for j in range(5)] for i in range(5)]), "points": range(5)},
    ),
)


def of_own(towns_: NeighboringSessions, relation: str, place: int, count: int, tally: Tally) -> None:
    """Audit a user-defined function through the public path."""
    function, said = OWN[place]
    sides = []
    for session in towns_.sessions("pure", relation):
        session._curator._draws.sources = lambda _: system()
        found = [
            session.release(function, table="people", columns=["x", "y"], epsilon=2, key=f"own {place} {i}", **said)
            for i in range(count)
        ]
        sides.append([numbers(each) for each in found])
    promise = privacy_cost(from_facts(dict(found[0].receipt["event"])))
    name = f"own function {place}: {relation}"
    tally.add(name, examine(name, promise, lambda side: table(sides[side])), count)
    tally.kinds["own function"] += 1


def of_finish(towns_: NeighboringSessions, question: CampaignQuery, count: int, tally: Tally) -> None:
    """Audit the step that turns exact integers into an answer, by running it many times."""
    sides, promise = [], towns_.ask(question, key="promise", seed=SEED).promise
    for session in towns_.sessions(question.town, question.relation):
        curator = session._curator
        finish = vars(query_module)["finish"]  # as the curator calls it
        prepared = curator._plan("ana", Question(question.text, **question.options), salt=curator._salt)
        plan = prepared.plan
        assert plan is not None
        tables = {each.name: curator.engine.run(each.sql).through(dict) for each in plan.statements}
        answers = [finish(plan, tables, system(), raw=True) for _ in range(count)]
        sides.append(table([[*chain.from_iterable(v for v in a.values if v.dtype.kind in "if")] for a in answers]))
    name = f"finishing step: {question.name}"
    tally.add(name, examine(name, promise, sides.__getitem__), count)


#: Queries that are sampled through the whole public path.
PUBLIC = (
    CampaignQuery("pure", "add_remove", "SELECT count(*), sum(x) FROM visits", {"epsilon": 2, "raw": True}),
    CampaignQuery("pure", "replace", "SELECT b, count(*) FROM people GROUP BY b", {"epsilon": 2}),
    CampaignQuery(
        "small", "add_remove", "SELECT w, count(*) FROM people GROUP BY w", {"epsilon": 2, "delta": Fraction(1, 10**4)}
    ),
    *(CampaignQuery("pure", "replace", text.format(t="visits"), {"epsilon": 2}) for text in ASKED[21:]),
    *(
        CampaignQuery("town", relation, EXAMPLES[name], {"epsilon": 3})
        for relation in ("add_remove", "replace")
        for name in ("moments", "tabulate", "kmeans", "decision_tree", "min_cut", "mwem")
    ),
)


def search(size: Size, *, full: bool, tally: Tally, steps: Any = iter) -> None:
    """Audit everything."""
    cases = [*mechanisms(), *streams()]
    for case in steps([each for i, each in enumerate(cases) if full or each.worst or i % 3]):
        of_sampled(case, size, tally)
    with neighboring_sessions() as made:
        for question in steps(list(campaign_queries(dear=full))):
            of_pair(made.ask(question, seed=SEED), size, tally)
        for question in steps(list(PUBLIC if full else PUBLIC[:1])):
            of_public(made, question, size.public, tally)
        for relation, place in product(RELATIONS, range(len(OWN))) if full else [("add_remove", 0)]:
            of_own(made, relation, place, size.public, tally)


def planted(count: int) -> Iterator[tuple[str, bool]]:
    """Plant errors in the noise, and yield whether each is detected."""
    question = CampaignQuery("pure", "replace", "SELECT k, count(*) FROM people GROUP BY k", {"epsilon": 1})
    true = Laplace.sample

    def half(self: Laplace, value: Any, source: Any) -> Any:
        return true(Laplace(sensitivity=self.sensitivity, scale=self.scale / 2), value, source)

    def shared(self: Laplace, value: Any, source: Any) -> Any:
        if not isinstance(value, np.ndarray):
            return true(self, value, source)
        one = true(self, np.zeros((*value.shape[:-1], 1), dtype=np.int64), source)
        return value + one

    for name, wrong in (("noise of half the scale", half), ("one noise for all cells", shared)):
        tally = Tally()
        with neighboring_sessions() as made:
            try:
                Laplace.sample = wrong  # type: ignore[method-assign]
                of_pair(made.ask(question, seed=SEED), Size(count, count, count, count, 0), tally)
            finally:
                Laplace.sample = true  # type: ignore[method-assign]
        yield name, bool(tally.excess)


def detect() -> list[str]:
    """Audit the current code for a few seconds and return the problems."""
    size, tally = Size(fast=8_000, worst=16_000, slow=800, choice=800, public=0), Tally()
    for number, case in enumerate(mechanisms()):
        if case.worst or number % 7 == 0:
            of_sampled(case, size, tally)
    texts = [*ASKED[:2], ASKED[6], ASKED[9], ASKED[11], ASKED[26], ASKED[28]]
    with neighboring_sessions() as made:
        for relation in ("add_remove", "replace"):
            for table_ in ("people", "visits"):
                for text in texts:
                    question = CampaignQuery("pure", relation, text.format(t=table_), {"epsilon": 3})
                    of_pair(made.ask(question, seed=SEED), size, tally)
            for text in (ASKED[26], ASKED[9]):
                cheap = CampaignQuery("pure", relation, text.format(t="people"), {"epsilon": 1})
                of_finish(made, cheap, 1500, tally)
    return tally.excess + tally.other


def body(report: Report) -> None:
    size = Size(
        fast=report.scale(ci=3_000, full=10**6),
        worst=report.scale(ci=100_000, full=10**6),
        slow=report.scale(ci=400, full=30_000),
        choice=report.scale(ci=400, full=10**6),
        public=report.scale(ci=64, full=2_000),
    )
    tally = Tally()
    search(size, full=report.full, tally=tally, steps=lambda each: report.progress(each, "audit"))
    for text in [*tally.excess, *tally.other][:20]:
        report.say(text)
    least = sorted(tally.shares.items(), key=lambda each: each[1])
    for name, share in least[:8]:
        report.say(f"share {share:.3f}: {name}")
    report.figure("samples", tally.samples)
    report.figure("alarm of all bounds together", ALARM)
    report.figure("kinds", dict(sorted(tally.kinds.items())))
    report.target("cases", tally.cases, at_least=300)
    report.target("cases with a million samples a side", tally.million, at_least=report.scale(ci=0, full=300))
    report.target("lower bounds above the charge", len(tally.excess), at_most=0)
    report.target("draws that the sampled code does not repeat", len(tally.other), at_most=0)
    report.target("worst-case pairs", len(tally.shares), at_least=report.scale(ci=40, full=100))
    report.target("least share of the charge on worst-case pairs", least[0][1], at_least=0.85)
    for name, found in planted(report.scale(ci=20_000, full=10**6)):
        report.target(f"planted: {name}", found, at_least=1)


if __name__ == "__main__":
    run(body)
