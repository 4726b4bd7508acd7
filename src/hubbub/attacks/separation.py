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
    """Return whether each value has an odd number of the mask's bits."""
    return np.asarray(np.bitwise_count(values & mask) % 2 == 1)


def simulate_values(sides: Bits, people: int, bits: int, mask: int, generator: np.random.Generator) -> Codes:
    """Simulate people's values, one row per game: all with odd parity if the side is 1, else all with even parity."""
    values = generator.integers(0, 1 << bits, (len(sides), people))
    wrong = odd(values, mask) != sides[:, None]
    # flipping one bit of the mask flips the parity and keeps the value uniform among values with that parity
    return np.where(wrong, values ^ (mask & -mask), values)


def study(
    table: AttackTable | None = None,  # noqa: ARG001 - people are simulated
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
    values = simulate_values(sides, count, width, mask, generator)
    findings = [
        AttackFinding(
            "values published unprotected",
            None,
            score_guesses(odd(values, mask)[:, 0], sides),
            None,
            {"difference": 1.0},
        )
    ]
    some = AttackTable("people", {"odd": np.array([0, 1])})
    for step, epsilon in enumerate(epsilons):
        progress(step / len(epsilons), f"{len(sides)} games at ε = {float(epsilon):g}")
        responses = (
            RandomizedResponse(answers=1 << width, epsilon=epsilon)
            .sample(values.ravel(), system())
            .reshape(values.shape)
        )
        votes = odd(np.asarray(responses, dtype=np.int64), mask).sum(axis=1)
        exact = row(width, count, epsilon)
        findings.append(
            AttackFinding(
                "randomized response, published",
                epsilon,
                score_guesses(guess_from(2 * votes - count, generator), sides),
                (1 + exact.response) / 2,
                {"difference": exact.response, "bound for any view": exact.bound, "people needed": exact.needed},
            )
        )
        noise = count_noise(some, "odd = 1", epsilon=epsilon)
        answers = noise.sample(np.where(sides, count, 0), system())
        findings.append(
            AttackFinding(
                "one private answer",
                epsilon,
                score_guesses(guess_from(2 * answers - count, generator), sides),
                (1 + exact.asked) / 2,
                {"difference": exact.asked, "mean error": exact.error},
            )
        )
    intro = (
        f"Either all of {count} people have an odd parity of their {width} bits, or none has. The maxima are exact:"
        " one half plus half of the statistical distance.",
        *(sentences(epsilon=epsilons[len(epsilons) // 2])[:2] if epsilons else ()),
    )
    return AttackStudy(
        "separation", "Publishing compared with querying", (*intro, *describe_findings(findings)), tuple(findings)
    )
