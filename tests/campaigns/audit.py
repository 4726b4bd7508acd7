"""The audit from outside: lower bounds on ε from samples, never above the charge, and near it where the worst is asked.

Every mechanism on its neighbors; every aggregate, kind of group and kind of noise, every program and release, asked
through the public API of two neighboring datasets under both relations, with and without bounds on what a unit
contributes; streams and surveys. No case may have a lower bound above what was charged. Where two neighbors lose all
that is charged (which the exact integers before noise tell), most of it must be seen.

A query takes a hundredth of a second, so a million of them are not asked. The public path is run once on each neighbor
with every draw noted: the mechanism object and the exact value that it was applied to. Then `sample` of that object is
called on that value a million times, in one array (thirty thousand times where answers are drawn one by one and the
pair is not a worst case: a million of all of those would take eight hours). That this is the code which made the answer
is checked for each draw of each case: called with the words of the run it gives bit by bit what the run got. What comes
after the draws is computed from them alone, which the grey box shows; it can lose nothing more. The public path itself
is sampled too.

    HUBBUB_CAMPAIGN=full .venv/bin/python -m tests.campaigns.audit

All bounds of one run hold at once but with probability 10⁻⁶.
"""

import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import chain, product
from typing import Any

import numpy as np
from tests.analyses.conftest import EXAMPLES
from tests.campaigns.frame import Report, run
from tests.campaigns.rig.draws import differ, many, repeats, scalar
from tests.campaigns.rig.pairs import ASKED, RELATIONS, Pair, Question, Towns, asked, towns
from tests.campaigns.rig.sampled import SHORT, Sampled, Table, mechanisms, streams

import hubbub.curator as curator_module
from hubbub.accounting.cost import RENYI_UNIT, PrivacyCost, privacy_cost
from hubbub.answers.release import Release
from hubbub.audit.black_box import FEWEST, Verdict, audit
from hubbub.core.events import from_facts
from hubbub.core.loss import ORDERS
from hubbub.curator.question import Question as Asked
from hubbub.errors import QueryError
from hubbub.mechanisms.laplace import Laplace
from hubbub.mechanisms.metric import Space
from hubbub.noise.source import system

ALARM = 1e-6
#: More bounds than a run makes: each case gets this part of the alarm.
MOST_CASES = 2000
SEED = 1
#: So many coordinates may move at the small scale for a worst case to be seen.
FEW = 2


@dataclass
class Size:
    """How many samples a side."""

    fast: int  #: of what is drawn in arrays
    worst: int  #: of worst cases
    slow: int  #: of what is drawn one by one
    choice: int  #: of worst cases that are drawn one by one
    public: int  #: of the public path


@dataclass
class Tally:
    """What was found."""

    cases: int = 0
    million: int = 0  #: cases with a million samples a side, or more
    samples: int = 0
    excess: list[str] = field(default_factory=list)
    other: list[str] = field(default_factory=list)  #: draws that the mechanism does not repeat
    shares: dict[str, float] = field(default_factory=dict)  #: of worst cases that must be seen
    kinds: Counter[str] = field(default_factory=Counter)

    def add(self, name: str, verdict: Verdict, drawn: int) -> None:
        self.cases += 1
        self.million += drawn >= 10**6
        self.samples += sum(verdict.samples)
        self.excess += [
            f"{name}: {b.tester}: {b.measure} ≥ {b.least:.4g} > {b.promised:.4g} ({b.event})" for b in verdict.excess
        ]


def examined(name: str, promise: PrivacyCost, draw: Callable[[int], Table]) -> Verdict:
    """Audit one pair of tables, the columns cut to the wider where answers differ in length."""
    one, other = draw(0), draw(1)
    width = max(one.shape[1], other.shape[1])
    one, other = (np.pad(each, ((0, 0), (0, width - each.shape[1])), constant_values=SHORT) for each in (one, other))
    # what is split into looking and counting need not be secret, only independent of the samples
    generator = np.random.default_rng(zlib.crc32(name.encode()))
    return audit(one, other, promise=promise, alarm=ALARM / MOST_CASES, generator=generator)


def of_sampled(case: Sampled, size: Size, tally: Tally) -> None:
    """Audit a mechanism, a stream or a survey."""
    array = size.worst if case.worst else size.fast
    count = (size.choice if case.worst else size.slow) if case.slow else array
    verdict = examined(case.name, case.promise, lambda side: case.draw(side, count, system()))
    tally.add(case.name, verdict, count)
    tally.kinds["mechanism"] += 1
    if case.worst and count >= size.worst and (case.promise.pure is not None or size.worst >= 10**6):
        tally.shares[case.name] = verdict.share


def visible(promise: PrivacyCost, size: Size) -> int:
    """Say how many coordinates may move for most of a loss to be seen in so many samples.

    Each takes a part of ε, and all must go one way at once. A share of a small divergence (Gaussian noise) takes more
    samples than there are.
    """
    if size.worst < 10**6:
        return FEW if promise.pure is not None and promise.pure >= 1 else 0
    if promise.pure is None:
        return 6 if promise.renyi[ORDERS.index(Fraction(2))] * RENYI_UNIT >= Fraction(1, 5) else 0
    return 6 if promise.pure >= 1 else 3


def of_pair(pair: Pair, size: Size, tally: Tally) -> None:
    """Audit a question from the draws of its two runs."""
    name = pair.question.name
    moved = [each for each in pair.draws if differ(*each).any()]
    one_by_one = sum(scalar(one.mechanism) for one, _ in moved)
    worst = pair.worst and not one_by_one and pair.moved <= visible(pair.promise, size)
    # a choice in each of many groups is many draws: as many in all
    slow = max(FEWEST, min(size.slow, 4 * size.slow // max(1, one_by_one)))
    count = slow if one_by_one else size.worst if worst else size.fast
    verdict = examined(name, pair.promise, lambda side: many(pair.draws, side, count, system()))
    tally.add(name, verdict, count)
    tally.other += [f"{name}: draw {i}" for i, (one, _) in enumerate(pair.draws) if not repeats(one, SEED)]
    tally.kinds.update({type(one.mechanism).__name__ for one, _ in pair.draws})
    if float(pair.promise.pure or 0) > float(pair.releases[0].epsilon) + 1e-12:
        tally.excess.append(f"{name}: the draws cost more than the release says")
    if worst:
        tally.shares[name] = verdict.share


def numbers(release: Release) -> list[float]:
    """Give everything that a release shows as numbers; a text by its checksum."""

    def number(cell: Any) -> float:
        if cell is None:
            return -1e9
        return float(cell) if isinstance(cell, bool | int | float | Fraction) else float(zlib.crc32(str(cell).encode()))

    shown = [number(cell) for row in release.rows for cell in row]
    return [*shown, *(number(end) for row in release.intervals for ends in row for end in ends)]


def table(rows: Sequence[Sequence[float]]) -> Table:
    """Put rows of different lengths into one table."""
    width = max(map(len, rows))
    return np.array([[*row, *[SHORT] * (width - len(row))] for row in rows], dtype=np.float64)


def of_public(towns_: Towns, question: Question, count: int, tally: Tally) -> None:
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
    tally.add(name, examined(name, promise, lambda side: table(sides[side])), count)
    tally.kinds["public path"] += 1


#: Functions that who holds the data hands in, with what is said of each: a metric and how far one row moves it.
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


def of_own(towns_: Towns, relation: str, place: int, count: int, tally: Tally) -> None:
    """Audit a function of an owner's own, through the public path."""
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
    tally.add(name, examined(name, promise, lambda side: table(sides[side])), count)
    tally.kinds["own function"] += 1


def of_finish(towns_: Towns, question: Question, count: int, tally: Tally) -> None:
    """Audit what makes an answer of the engine's integers: the curator's own finishing step, again and again."""
    sides, promise = [], towns_.ask(question, key="promise", seed=SEED).promise
    for session in towns_.sessions(question.town, question.relation):
        curator = session._curator
        finish = vars(curator_module)["finish"]  # as the curator has it
        made = curator._plan("ana", Asked(question.text, **question.options), salt=curator._salt)
        tables = {each.name: curator.engine.run(each.sql).through(dict) for each in made.statements}  # type: ignore[union-attr]
        answers = [finish(made, tables, system(), raw=True) for _ in range(count)]
        sides.append(table([[*chain.from_iterable(v for v in a.values if v.dtype.kind in "if")] for a in answers]))
    name = f"finishing step: {question.name}"
    tally.add(name, examined(name, promise, sides.__getitem__), count)


#: Asked again and again through the whole path.
PUBLIC = (
    Question("pure", "add_remove", "SELECT count(*), sum(x) FROM visits", {"epsilon": 2, "raw": True}),
    Question("pure", "replace", "SELECT b, count(*) FROM people GROUP BY b", {"epsilon": 2}),
    Question(
        "small", "add_remove", "SELECT w, count(*) FROM people GROUP BY w", {"epsilon": 2, "delta": Fraction(1, 10**4)}
    ),
    *(Question("pure", "replace", text.format(t="visits"), {"epsilon": 2}) for text in ASKED[21:]),
    *(
        Question("town", relation, EXAMPLES[name], {"epsilon": 3})
        for relation in ("add_remove", "replace")
        for name in ("moments", "tabulate", "kmeans", "decision_tree", "min_cut", "mwem")
    ),
)


def searched(size: Size, *, full: bool, tally: Tally, steps: Any = iter) -> None:
    """Audit everything."""
    cases = [*mechanisms(), *streams()]
    for case in steps([each for i, each in enumerate(cases) if full or each.worst or i % 3]):
        of_sampled(case, size, tally)
    with towns() as made:
        for question in steps(list(asked(dear=full))):
            try:
                pair = made.ask(question, seed=SEED)
            except QueryError:
                tally.kinds["refused"] += 1
                continue
            of_pair(pair, size, tally)
        for question in steps(list(PUBLIC if full else PUBLIC[:1])):
            of_public(made, question, size.public, tally)
        for relation, place in product(RELATIONS, range(len(OWN))) if full else [("add_remove", 0)]:
            of_own(made, relation, place, size.public, tally)


def planted(count: int) -> Iterator[tuple[str, bool]]:
    """Spoil the noise as a careless author would have, and say whether that is found."""
    question = Question("pure", "replace", "SELECT k, count(*) FROM people GROUP BY k", {"epsilon": 1})
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
        with towns() as made:
            try:
                Laplace.sample = wrong  # type: ignore[method-assign]
                of_pair(made.ask(question, seed=SEED), Size(count, count, count, count, 0), tally)
            finally:
                Laplace.sample = true  # type: ignore[method-assign]
        yield name, bool(tally.excess)


def detect() -> list[str]:
    """Look at the product as it is now, in a few seconds; give what is wrong with it."""
    size, tally = Size(fast=8_000, worst=16_000, slow=800, choice=800, public=0), Tally()
    for number, case in enumerate(mechanisms()):
        if case.worst or number % 7 == 0:
            of_sampled(case, size, tally)
    texts = [*ASKED[:2], ASKED[6], ASKED[9], ASKED[11], ASKED[26], ASKED[28]]
    with towns() as made:
        for relation in ("add_remove", "replace"):
            for table_ in ("people", "visits"):
                for text in texts:
                    question = Question("pure", relation, text.format(t=table_), {"epsilon": 3})
                    of_pair(made.ask(question, seed=SEED), size, tally)
            for text in (ASKED[26], ASKED[9]):
                cheap = Question("pure", relation, text.format(t="people"), {"epsilon": 1})
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
    searched(size, full=report.full, tally=tally, steps=lambda each: report.progress(each, "audit"))
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
