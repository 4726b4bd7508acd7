"""An analyst who refines a histogram where there is something to see (Dwork, McSherry, Nissim and Smith 2006, §3.1)."""

import itertools
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from hubbub.accounting.ledger import Ledger
from hubbub.core.events import LaplaceEvent
from hubbub.errors import HubbubError
from hubbub.mechanisms.laplace import Laplace
from hubbub.noise.source import Keystream

if TYPE_CHECKING:
    from tests.accounting.conftest import Desk

Ages = Sequence[int]
Query = tuple[int, ...]  # the borders of a histogram: cells [b0, b1), [b1, b2), …

POLICY = """
version: 1
datasets: {visits: {budget: {epsilon: 1, per_query: 0.6}}}
analysts: {ana: {visits: {epsilon: 1}}}
"""
#: Every query is a histogram of sensitivity 1 and the budget is ε = 1, so λ = max_t S(f_t)/ε = 2 pays for two of them.
SCALE = Fraction(2)


def histogram(ages: Ages, query: Query) -> tuple[int, ...]:
    return tuple(int(n) for n in np.histogram(ages, bins=[*query[:-1], np.nextafter(query[-1], 0)])[0])


def refine(query: Query, answer: Sequence[int]) -> Query:
    """Look closer at the fullest cell."""
    fullest = max(range(len(answer)), key=lambda cell: (answer[cell], -cell))
    low, high = query[fullest], query[fullest + 1]
    return (low, (low + high) // 2, high)


def ask(desk: "Desk", ledger: Ledger, query: Query, scale: Fraction = SCALE) -> str:
    """Charge for one histogram; what the analyst hears before any answer."""
    event = Laplace(sensitivity=1, scale=scale).event
    try:
        ledger.charge(desk.request(event=event, query=f"histogram {query}", key=f"{query} {scale}"))
    except HubbubError as refusal:
        return str(refusal)
    return "granted"


def interact(desk: "Desk", ledger: Ledger, ages: Ages) -> tuple[list[Query], list[str]]:
    """Refine adaptively, by the answers, until refused; give the queries and what was said to each."""
    queries: list[Query] = [(0, 64, 128)]
    said = []
    source = Keystream()
    while True:
        said.append(ask(desk, ledger, queries[-1]))
        if said[-1] != "granted":
            return queries, said
        answer = Laplace(sensitivity=1, scale=SCALE).sample(np.array(histogram(ages, queries[-1])), source)
        queries.append(refine(queries[-1], answer.tolist()))


@pytest.fixture
def fresh(tmp_path: Path) -> Callable[[], tuple["Desk", Ledger]]:
    """A new ledger under the policy of these tests, as often as asked."""
    from tests.accounting.conftest import Desk

    numbers = itertools.count()

    def make() -> tuple[Desk, Ledger]:
        folder = tmp_path / f"{next(numbers)}"
        folder.mkdir()
        desk = Desk(folder)
        return desk, desk.open(policy=POLICY)

    return make


@pytest.mark.row(30)
def test_refusals_depend_on_the_queries_alone(fresh: Callable[[], tuple["Desk", Ledger]]) -> None:
    """Without the data, from the queries, one can tell every grant and every refusal to the letter."""
    populations: list[Ages] = [[], [17] * 1000, list(range(128)), [100, 101, 102], [3, 90] * 500]
    for ages in populations:
        desk, ledger = fresh()
        queries, said = interact(desk, ledger, ages)
        desk.close()
        assert said[:2] == ["granted", "granted"]
        assert len(said) == 3
        desk, blind = fresh()
        assert [ask(desk, blind, query) for query in queries] == said
        desk.close()


@pytest.mark.row(30)
def test_the_same_requests_on_different_data_are_answered_alike(fresh: Callable[[], tuple["Desk", Ledger]]) -> None:
    script: list[tuple[Query, Fraction]] = [
        ((0, 64, 128), Fraction(4)),
        ((0, 32, 64), Fraction(1)),
        ((0, 16, 32), Fraction(2)),
        ((0, 8), Fraction(8)),
        ((8, 16), Fraction(4)),
        ((0, 16, 32), Fraction(2)),
        ((0, 1), Fraction(8)),
        ((1, 2), Fraction(8)),
    ]
    transcripts = []
    for ages in ([], [40] * 10_000):
        desk, ledger = fresh()
        heard = []
        for query, scale in script:
            heard.append(ask(desk, ledger, query, scale))
            histogram(ages, query)  # the data is looked at, and has no way into what is said next
        transcripts.append(heard)
        desk.close()
    assert transcripts[0] == transcripts[1]
    assert [said == "granted" for said in transcripts[0]] == [True, False, True, True, False, True, True, False]


WINDOW = range(-2, 4)  # a log-ratio does not change further out: all values here are 0 or 1


def log_ratio(answers: Sequence[int], here: Sequence[int], there: Sequence[int], scale: Fraction) -> Fraction:
    """ln(Pr[answers | here] / Pr[answers | there]), exactly: the normalisers of the noise are equal."""
    return sum((abs(a - t) - abs(a - h) for a, h, t in zip(answers, here, there, strict=True)), 0) / scale


def worst(here: Ages, there: Ages, scale: Fraction) -> Fraction:
    """The largest loss over all transcripts of two rounds, where the second query depends on the first answer."""
    first: Query = (0, 64, 128)
    most = Fraction(0)
    for one in itertools.product(WINDOW, repeat=2):
        second = refine(first, one)
        loss = log_ratio(one, histogram(here, first), histogram(there, first), scale)
        for two in itertools.product(WINDOW, repeat=2):
            more = log_ratio(two, histogram(here, second), histogram(there, second), scale)
            most = max(most, abs(loss + more))
    return most


@pytest.mark.row(30)
def test_the_loss_of_every_transcript_is_at_most_the_budget() -> None:
    """Enumerated exactly; with λ = S/ε it is attained, and half of that λ would cost twice the budget."""
    for here, there in (([10], []), ([], [100]), ([10, 100], [10])):
        assert worst(here, there, SCALE) == 1
        assert worst(here, there, SCALE / 2) == 2
    assert LaplaceEvent(1, SCALE) == Laplace(sensitivity=1, scale=SCALE).event


@pytest.mark.row(30)
def test_a_refusal_that_looks_at_the_data_would_be_caught() -> None:
    """The planted error: an auditor that refuses where a cell is empty tells two neighbors apart for certain."""

    def audited(ages: Ages, query: Query) -> str:
        return "refused" if 0 in histogram(ages, query) else "granted"

    here, there = [10, 100], [10]
    assert audited(here, (0, 64, 128)) != audited(there, (0, 64, 128))
