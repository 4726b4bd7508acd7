"""Publishing compared with querying, as a game: do all people satisfy a parity, or none? (Dwork et al. 2006, § 4)

The exact results are in `hubbub.attacks.separations`, and `hubbub explain separation` shows them; this is a simulation.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hubbub.attacks.base import AttackFinding, AttackStudy, Progress, describe_findings, no_progress
from hubbub.attacks.game import Bits, flip, guess_from, score_guesses
from hubbub.attacks.separations.table import row, sentences
from hubbub.attacks.table import AttackTable
from hubbub.attacks.target import count_noise
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
    table: AttackTable | None = None,  # noqa: ARG001 - people are made up
    *,
    epsilons: Sequence[Fraction],
    generator: np.random.Generator,
    progress: Progress = no_progress,
    bits: int = 6,
    people: int = 100,
    trials: int = 1000,
) -> AttackStudy:
    """Guess whether all people or none satisfy a parity of their bits, from published data or from one answer.

    bits     number of bits per person
    people   number of people
    trials   number of games
    """
    width = numbers.integer(bits, "bits", 2, 20)
    count = numbers.integer(people, "people", 1, 2000)
    sides = flip(numbers.integer(trials, "trials", 1, 10_000), generator)
    mask = int(generator.integers(1, 1 << width))
    values = drawn(sides, count, width, mask, generator)
    findings = [
        AttackFinding(
            "values in the open", None, score_guesses(odd(values, mask)[:, 0], sides), None, {"difference": 1.0}
        )
    ]
    some = AttackTable("people", {"odd": np.array([0, 1])})
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
            AttackFinding(
                "randomized response, published",
                epsilon,
                score_guesses(guess_from(2 * votes - count, generator), sides),
                (1 + found.response) / 2,
                {"difference": found.response, "bound of any view": found.bound, "people needed": found.needed},
            )
        )
        noise = count_noise(some, "odd = 1", epsilon=epsilon)
        told = noise.sample(np.where(sides, count, 0), system())
        findings.append(
            AttackFinding(
                "one private answer",
                epsilon,
                score_guesses(guess_from(2 * told - count, generator), sides),
                (1 + found.asked) / 2,
                {"difference": found.asked, "mean error": found.error},
            )
        )
    said = (
        f"Either all of {count} people have an odd parity of their {width} bits, or none has. The maxima are exact:"
        " one half plus half of the statistical distance.",
        *(sentences(epsilon=epsilons[len(epsilons) // 2])[:2] if epsilons else ()),
    )
    return AttackStudy(
        "separation", "Publishing compared with querying", (*said, *describe_findings(findings)), tuple(findings)
    )
