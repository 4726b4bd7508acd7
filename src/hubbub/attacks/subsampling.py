"""Subsampling attack: answers from a sample chosen by the text of the query, defeated by rewording.

The same text always gets the same sample, so repeating it does not help; an equivalent text gets another sample, and
the average over texts is exact (Dwork 2011).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from hubbub.attacks.base import AttackFinding, AttackStudy, Fact, Progress, ceiling, describe_findings, no_progress
from hubbub.attacks.bits import share
from hubbub.attacks.game import Bits, flip, guess_from, score_guesses
from hubbub.attacks.simulated import clinic
from hubbub.attacks.table import AttackTable
from hubbub.attacks.target import count, laplace, open_protected
from hubbub.core import numbers
from hubbub.core.numbers import brief
from hubbub.noise.source import system

WHERE = "diagnosis = 'asthma'"
_REAL = 12


@dataclass(frozen=True, slots=True)
class Subsampled:
    """The toy system: counts a sample of the rows, chosen by a keyed hash of the query's text, and scales up.

    It is not private: each text fixes its sample, and anyone can send many texts.
    """

    key: bytes
    rate: float

    def count(self, rows: NDArray[np.uint64], texts: Sequence[str]) -> NDArray[np.float64]:
        """Answer each text with the scaled count of these rows in its sample."""
        seeds = b"".join(blake2b(text.encode(), key=self.key, digest_size=8).digest() for text in texts)
        words = _mixed(np.frombuffer(seeds, dtype=np.uint64)[:, None] ^ _mixed(rows)[None, :])
        kept = np.count_nonzero(words < np.uint64(int(self.rate * 2**64)), axis=1)
        return np.asarray(kept / self.rate)


def _mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix 64-bit words (the finalizer of splitmix64), so that the sample looks random."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def reworded(where: str, times: int) -> list[str]:
    """Write a condition in many equivalent ways.

    >>> reworded("age > 17", 2)
    ['age > 17 AND 0 = 0', 'age > 17 AND 1 = 1']
    """
    return [f"{where} AND {number} = {number}" for number in range(times)]


def redrawn(everybody: NDArray[np.float64], without: NDArray[np.float64], generator: np.random.Generator) -> Bits:
    """Guess each person's bit from the answers to many wordings (a row each) of a count with and one without."""
    return guess_from(everybody.mean(axis=1) - without.mean(axis=1) - 0.5, generator)


def study(
    table: AttackTable | None = None,  # noqa: ARG001 - all studies have the same signature
    *,
    epsilons: Sequence[Fraction],
    generator: np.random.Generator,
    progress: Progress = no_progress,
    wordings: int = 1000,
    people: int = 12,
    trials: int = 200,
) -> AttackStudy:
    """Send one count in many equivalent wordings, each answered from a different sample.

    The toy system answers from half of the rows, chosen by a keyed hash of the query's text. Each trial counts a group
    of `people` with and without one person, in `wordings` wordings, and subtracts the averages. hubbub charges every
    wording that it does not recognize as one already answered, so all of them share one ε.
    """
    wordings, trials = numbers.integer(wordings, "wordings", 1, 10**5), numbers.integer(trials, "trials", 1, 10**4)
    people = numbers.integer(people, "people", 2, 10**4)
    coins = flip(trials, generator)
    toy = Subsampled(generator.bytes(16), 0.5)
    texts = [reworded(f"{WHERE} AND {part}", wordings) for part in ("TRUE", "name <> 'Mr X'")]
    with_person, without = np.empty((trials, wordings)), np.empty((trials, wordings))
    for trial, coin in enumerate(coins.tolist()):
        others = generator.integers(0, 2**63, people - 1).astype(np.uint64)
        person = generator.integers(0, 2**63, int(coin)).astype(np.uint64)
        with_person[trial] = toy.count(np.concatenate([others, person]), texts[0])
        without[trial] = toy.count(others, texts[1])
        if trial % 20 == 0:
            progress(trial / trials / 2, "toy system")
    once = guess_from(with_person[:, 0] - without[:, 0] - 0.5, generator)
    findings = [
        AttackFinding(
            "query-keyed sample of half, one wording", None, score_guesses(once, coins), None, {"wordings": 1}
        ),
        AttackFinding(
            "query-keyed sample of half, many wordings",
            None,
            score_guesses(redrawn(with_person, without, generator), coins),
            None,
            {"wordings": wordings},
        ),
    ]
    patients = clinic(500, generator)
    for step, epsilon in enumerate(epsilons):
        progress(0.5 + step / len(epsilons) / 2, f"hubbub at ε = {brief(epsilon)}")
        answers, facts = _hubbub(patients, epsilon, coins, people - 1, wordings)
        score = score_guesses(redrawn(*answers, generator), coins)
        findings.append(AttackFinding("hubbub, many wordings", epsilon, score, ceiling(epsilon), facts))
    progress(1.0, "done")
    return AttackStudy("subsampling", "Rewording a query", describe_findings(findings), tuple(findings))


def _hubbub(
    patients: AttackTable, epsilon: Fraction, coins: Bits, others: int, wordings: int
) -> tuple[tuple[NDArray[np.float64], NDArray[np.float64]], dict[str, Fact]]:
    """Query hubbub in some wordings, and sample the noise of all wordings, which share ε."""
    per_wording = share(epsilon, 2 * wordings)
    charged = 0
    with open_protected(patients, epsilon=_REAL * per_wording) as session:
        for text in (WHERE, *reworded(WHERE, _REAL - 1)):
            release = count(session, text, epsilon=per_wording, fresh=True)  # it means what was released before
            charged += release.epsilon > 0 and not release.replayed
    counts = (others + coins.astype(np.int64), np.full(len(coins), others))
    noise = laplace(release)
    drawn = [noise.sample(np.repeat(true[:, None], wordings, axis=1), system()).astype(np.float64) for true in counts]
    facts: dict[str, Fact] = {
        "wordings": wordings,
        "ε per wording": float(per_wording),
        f"charged of {_REAL} sent": charged,
    }
    return (drawn[0], drawn[1]), facts
