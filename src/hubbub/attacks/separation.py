"""Publishing against asking, as a game: does everybody satisfy a parity, or nobody? (Dwork et al. 2006, § 4)

What can be said exactly is in `hubbub.attacks.separations` and shown by `hubbub explain separation`; here it is played.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hubbub.attacks.base import Finding, Progress, Study, compared, unheard
from hubbub.attacks.game import Bits, flip, scored, settled
from hubbub.attacks.separations.table import row, sentences
from hubbub.attacks.table import Table
from hubbub.attacks.target import counting
from hubbub.core import numbers
from hubbub.mechanisms.randomized_response import RandomizedResponse
from hubbub.noise.source import system

Codes = NDArray[np.int64]


def odd(values: Codes, mask: int) -> Bits:
    """Say of each value whether it has an odd number of the mask's bits."""
    return np.asarray(np.bitwise_count(values & mask) % 2 == 1)


def drawn(sides: Bits, people: int, bits: int, mask: int, generator: np.random.Generator) -> Codes:
    """Draw people's values, a row for each game: all with the parity odd where the side is 1, or all with it even."""
    values = generator.integers(0, 1 << bits, (len(sides), people))
    wrong = odd(values, mask) != sides[:, None]
    # turning one bit of the mask turns the parity, and leaves the value uniform among those with it
    return np.where(wrong, values ^ (mask & -mask), values)


def study(
    table: Table | None = None,  # noqa: ARG001 - people are made up
    *,
    epsilons: Sequence[Fraction],
    generator: np.random.Generator,
    progress: Progress = unheard,
    bits: int = 6,
    people: int = 100,
    trials: int = 1000,
) -> Study:
    """Tell whether all people or none satisfy a parity of their bits, from what is published or from one answer.

    bits     how many each person has
    people   how many there are
    trials   how many games are played
    """
    width = numbers.integer(bits, "bits", 2, 20)
    count = numbers.integer(people, "people", 1, 2000)
    sides = flip(numbers.integer(trials, "trials", 1, 10_000), generator)
    mask = int(generator.integers(1, 1 << width))
    values = drawn(sides, count, width, mask, generator)
    findings = [Finding("values in the open", None, scored(odd(values, mask)[:, 0], sides), None, {"difference": 1.0})]
    some = Table("people", {"odd": np.array([0, 1])})
    for step, epsilon in enumerate(epsilons):
        progress(step / len(epsilons), f"{len(sides)} games at ε = {float(epsilon):g}")
        answers = (
            RandomizedResponse(answers=1 << width, epsilon=epsilon)
            .sample(values.ravel(), system())
            .reshape(values.shape)
        )
        votes = odd(np.asarray(answers, dtype=np.int64), mask).sum(axis=1)
        found = row(width, count, epsilon)
        findings.append(
            Finding(
                "randomized response, published",
                epsilon,
                scored(settled(2 * votes - count, generator), sides),
                (1 + found.response) / 2,
                {"difference": found.response, "bound of any view": found.bound, "people needed": found.needed},
            )
        )
        noise = counting(some, "odd = 1", epsilon=epsilon)
        told = noise.sample(np.where(sides, count, 0), system())
        findings.append(
            Finding(
                "one private answer",
                epsilon,
                scored(settled(2 * told - count, generator), sides),
                (1 + found.asked) / 2,
                {"difference": found.asked, "mean error": found.error},
            )
        )
    said = (
        f"Either all of {count} people have a parity of their {width} bits odd, or none has: which is it? The ceilings"
        " here are exact: one half, and half of the statistical difference.",
        *(sentences(epsilon=epsilons[len(epsilons) // 2])[:2] if epsilons else ()),
    )
    return Study("separation", "Publishing against asking", (*said, *compared(findings)), tuple(findings))
