"""Lemma 1 of Dwork, McSherry, Nissim and Smith (2006), as it holds and as printed; and why there is no converse."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from hubbub.analyses.functions.sample_complexity import (
    Data,
    Outcome,
    ReedSolomon,
    distances,
    looks_uniform,
    measure_complexity,
    sensitivity_from_samples,
)
from hubbub.errors import ParameterError

HALF = Fraction(1, 2)


def far(data: Data) -> Fraction:
    """A function that one entry moves by a thousand."""
    return Fraction(1000 * data[0])


Algorithm = Callable[[Data], Iterator[Outcome]]


def guessing(alpha: Fraction) -> Algorithm:
    """Read the one entry with probability α, else guess one of the two values."""

    def algorithm(data: Data) -> Iterator[Outcome]:
        yield alpha, frozenset({0}), far(data)
        yield (1 - alpha) / 2, frozenset(), Fraction(0)
        yield (1 - alpha) / 2, frozenset(), Fraction(1000)

    return algorithm


@pytest.mark.row(53)
@pytest.mark.parametrize("alpha", [Fraction(0), Fraction(1, 10), HALF, Fraction(9, 10)])
def test_printed_lemma_fails_at_the_bound_itself(alpha: Fraction) -> None:
    """With β = (1+α)/2 exactly, as printed, the sensitivity is 1,000 and not 2σ = 0."""
    found = measure_complexity(guessing(alpha), far, values=(0, 1), size=1, within=Fraction(0))
    assert found.reads == alpha
    assert found.succeeds == (1 + alpha) / 2
    assert found.sensitivity == 1000 > 2 * 0
    with pytest.raises(ParameterError, match="HB195"):
        sensitivity_from_samples(reads=alpha, succeeds=found.succeeds, within=0)


@pytest.mark.row(53)
@pytest.mark.parametrize("within", [Fraction(1, 5), Fraction(2, 5), Fraction(3, 5)])
def test_sensitivity_follows_from_success_above_the_bound(within: Fraction) -> None:
    """The mean of five bits from one of them, or from none: wherever the premise holds, so does 2σ."""

    def mean(data: Data) -> Fraction:
        return Fraction(sum(data), len(data))

    def few(reads: int) -> Algorithm:
        def run(data: Data) -> Iterator[Outcome]:
            for i in range(5):
                chosen = frozenset({i, (i + 1) % 5}) if reads == 2 else frozenset({i})
                seen = sum(data[i] for i in chosen)
                yield Fraction(1, 5), chosen, (seen + HALF * (5 - len(chosen))) / 5

        return run

    followed = 0
    for reads in (1, 2):
        found = measure_complexity(few(reads), mean, values=(0, 1), size=5, within=within)
        assert found.reads == Fraction(reads, 5)
        if found.succeeds > (1 + found.reads) / 2:
            followed += 1
            bound = sensitivity_from_samples(reads=found.reads, succeeds=found.succeeds, within=within)
            assert found.sensitivity <= bound == 2 * within
    assert (followed > 0) == (within >= Fraction(2, 5)), "the premise is met, or not, as it should be"


@pytest.mark.row(53)
def test_no_algorithm_of_a_small_universe_breaks_the_corrected_lemma() -> None:
    """All algorithms that read the entry with probability α and else say 0, 1 or 2 with chances in tenths."""

    def algorithm(alpha: Fraction, shares: list[Fraction]) -> Algorithm:
        def run(data: Data) -> Iterator[Outcome]:
            yield alpha, frozenset({0}), Fraction(data[0])
            for said, share in enumerate(shares):
                yield (1 - alpha) * share, frozenset(), Fraction(said)

        return run

    checked = 0
    for tenths, p, q in product(range(0, 11, 2), range(11), range(11)):
        if p + q <= 10:
            alpha, shares = Fraction(tenths, 10), [Fraction(each, 10) for each in (p, q, 10 - p - q)]
            for within in (Fraction(0), HALF, Fraction(1)):
                run = algorithm(alpha, shares)
                found = measure_complexity(run, lambda data: Fraction(data[0]), values=(0, 1, 2), size=1, within=within)
                if found.succeeds > (1 + found.reads) / 2:
                    checked += 1
                    assert found.sensitivity <= 2 * within
    assert checked > 10


@pytest.mark.row(54)
@pytest.mark.parametrize(("field", "length", "dimension"), [(5, 5, 3), (5, 4, 2), (7, 5, 3), (3, 3, 2)])
def test_few_reads_tell_nothing_of_a_distance_from_a_code(field: int, length: int, dimension: int) -> None:
    code = ReedSolomon(field, length, dimension)
    assert len(code.words) == field**dimension
    for axis in range(length):
        moved = code.distance.max(axis=axis) - code.distance.min(axis=axis)
        assert moved.max() == 1, "one letter, whatever it becomes, moves the distance by one"
    farthest = tuple(int(place) for place in np.unravel_index(np.argmax(code.distance), code.distance.shape))
    away = code.shifted(farthest)
    assert code.distance.max() == length - dimension
    assert set(code.distance[tuple(code.words.T)].tolist()) == {0}
    assert set(code.distance[tuple(away.T)].tolist()) == {length - dimension}
    for reads in range(1, dimension + 1):
        assert looks_uniform(code.words, field=field, reads=reads)
        assert looks_uniform(away, field=field, reads=reads)
    assert not looks_uniform(code.words, field=field, reads=dimension + 1), "one place more tells"


def test_distances_are_those_of_brute_force() -> None:
    random = np.random.default_rng(4)
    for _ in range(20):
        member = random.random((3, 2, 4)) < 0.1
        member[0, 1, 2] = True
        found = distances(member)
        points = [tuple(point) for point in np.argwhere(member)]
        for place in np.ndindex(member.shape):
            assert found[place] == min(sum(a != b for a, b in zip(place, point, strict=True)) for point in points)


def test_what_is_no_code_or_no_run_is_refused() -> None:
    for bad in ({"field": 4, "length": 3, "dimension": 1}, {"field": 5, "length": 6, "dimension": 1}):
        with pytest.raises(ParameterError):
            ReedSolomon(**bad)
    with pytest.raises(ParameterError, match="HB195"):
        distances(np.zeros((2, 2), dtype=np.bool_))
    with pytest.raises(ParameterError, match="HB195"):
        measure_complexity(lambda _: [(HALF, frozenset(), HALF)], far, values=(0, 1), size=1, within=HALF)
