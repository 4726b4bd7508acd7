"""A look into the state: the density's table passes, Count-Min and reservoir sampling do not."""

import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from hubbub.analyses.streams import state as states
from hubbub.analyses.streams.audit import worst_snapshot
from hubbub.analyses.streams.density import Density
from hubbub.analyses.streams.examples import CountMin, Reservoir
from hubbub.analyses.streams.stream import create_stream
from hubbub.analyses.streams.terms import Terms
from hubbub.cli import main
from hubbub.core.finite import FiniteDistribution, exact_distribution
from hubbub.mechanisms.enumeration import SLACK
from hubbub.noise.source import RandomSource


@pytest.mark.row(60)
def test_the_density_table_passes_and_the_sketches_fail() -> None:
    """State at every moment, and the answer: at most 2 for the table at ε = 2, infinite for the sketches."""
    assert worst_snapshot(Density.from_epsilon(size=2, epsilon=2, outputs=1), length=3).bounds[1] <= 2 + SLACK
    for size in (2, 3):
        assert worst_snapshot(CountMin(size), length=2).bounds[0] == math.inf
        assert worst_snapshot(Reservoir(size), length=2).bounds[0] == math.inf


class Biased(Density):
    """A planted error: the coin of an arrival is further from fair than the state was paid for."""

    def steps(self, bits: tuple[bool, ...], element: int | None) -> FiniteDistribution[tuple[bool, ...]]:
        if element is None:
            return exact_distribution({bits: Fraction(1)})
        one, zero = ((*bits[:element], bit, *bits[element + 1 :]) for bit in (True, False))
        return exact_distribution({one: Fraction(9, 10), zero: Fraction(1, 10)})


def test_a_planted_error_is_found() -> None:
    table = Density.printed(size=2, epsilon=1)
    planted = Biased(size=2, bias=table.bias, scale=table.scale, outputs=1)
    assert worst_snapshot(planted, length=2).bounds[0] > 2


@pytest.mark.row(60)
@pytest.mark.parametrize("moment", [0, 1, 2, 3])
def test_the_table_that_is_stored_has_the_distribution_that_was_audited(
    moment: int, tmp_path: Path, seeded: Callable[[int], RandomSource]
) -> None:
    """The bits of 2·10⁵ elements in the file itself, dumped at some moment of the stream a, b, a of two halves.

    Each half has ones with probability ½ before its first arrival and ½ + ε/4 after it, and two elements of one half
    are independent: 5.2 standard errors each, fixed words (a fresh source would fail once in 10⁶ runs).
    """
    half, source = 100_000, seeded(60 + moment)
    terms = Terms(name="dump", kind="density", epsilon=Fraction(2), universe=(0, 2 * half - 1), classic=True)
    first, second = (list(map(str, range(start, start + half))) for start in (0, half))
    with create_stream(tmp_path, terms, source) as stream:
        for arrivals in (first, second, first)[:moment]:
            for start in range(0, half, 50_000):
                stream.feed(arrivals[start : start + 50_000], feeder="test", source=source)
    stored = states.load(tmp_path / "dump.stream")
    bits = np.unpackbits(stored.arrays["bits"].astype(np.uint8), count=2 * half).reshape(2, half)
    for ones, arrived in zip(bits, (moment >= 1, moment >= 2), strict=True):
        chance = 0.75 if arrived else 0.5
        assert ones.mean() == pytest.approx(chance, abs=5.2 * math.sqrt(chance * (1 - chance) / half))
        together = (ones[::2] & ones[1::2]).mean()
        assert together == pytest.approx(chance**2, abs=5.2 * math.sqrt(chance**2 / (half / 2)))
    # and nothing else in the file depends on who arrived
    assert set(stored.facts) == {"stream", "id", "terms", "paid", "arrivals", "feeders", "told"}
    assert list(stored.arrays) == ["bits"]


def test_the_audit_is_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stream", "audit", "--epsilon", "1"]) == 0
    shown = capsys.readouterr().out
    assert "density (hubbub)" in shown
    assert shown.count("inf") == 2
