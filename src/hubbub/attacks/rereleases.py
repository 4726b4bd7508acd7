"""Repeated releases of almost unchanged data: averaging removes fresh noise (Chawla et al. 2005, § 7).

Publishing a table every month with fresh noise also publishes the average. A continual release is charged once for all
of its answers: they share their noise, and averaging reveals no more than ε allows.
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.streams.terms import Terms
from hubbub.analyses.streams.tree import TreeCounter
from hubbub.attacks.base import AttackFinding, AttackStudy, Progress, Score, ceiling, describe_findings, no_progress
from hubbub.attacks.game import Bits, flip, guess_from, score_guesses
from hubbub.attacks.table import AttackTable
from hubbub.core import numbers
from hubbub.core.unit import Relation
from hubbub.crowd.experiments import sweep_rereleases, uniform
from hubbub.errors import AttackError
from hubbub.mechanisms.laplace import Laplace
from hubbub.noise.source import system

Floats = NDArray[np.float64]

#: The crowd sanitizer: number of points and dimensions, its t, and the c of isolation.
_POINTS, _DIMENSIONS, _CROWD, _NEAR = 200, 5, 10, 4.0


def averaged(residuals: Floats, generator: np.random.Generator) -> Bits:
    """Guess each victim's bit from releases (a row each) minus everyone else: 1 if the mean is above ½."""
    return guess_from(residuals.mean(axis=0) - 0.5, generator)


def from_blocks(residuals: Floats, generator: np.random.Generator) -> Bits:
    """Return the best guess of the first arrival's bit from a tree's running counts.

    At times 1, 2, 4, … the answer is a single block that contains the first arrival, with independent noise. With
    Laplace noise every block is equally strong evidence for 1 or for 0, so the majority decides.
    """
    times = 2 ** np.arange(len(residuals).bit_length()) - 1
    return guess_from(np.sign(residuals[times] - 0.5).sum(axis=0), generator)


def continual(secrets: Bits, releases: int, epsilon: Fraction) -> Floats:
    """Return the running counts of a stream per victim, who arrives first, minus all later, known arrivals.

    It uses the counter of a real stream with this horizon and ε. All victims are bins of one run, with independent
    noise for each.
    """
    terms = Terms(name="victim", kind="count", epsilon=epsilon, horizon=releases, relation=Relation.REPLACE)
    counter = terms.counter
    if not isinstance(counter, TreeCounter):
        raise TypeError("a count without δ must use the tree")
    many = replace(counter, bins=len(secrets))
    arrivals = np.zeros((releases, len(secrets)), dtype=np.int64)
    arrivals[0] = secrets
    return many.estimates(many.take(many.start(system()), arrivals, system()))


def study(
    table: AttackTable | None = None,  # noqa: ARG001 - the victims are simulated
    *,
    epsilons: Sequence[Fraction],
    generator: np.random.Generator,
    progress: Progress = no_progress,
    releases: int = 64,
    each: float = 0.5,
    trials: int = 1000,
) -> AttackStudy:
    """Guess a person's unchanged bit by averaging many releases.

    releases   number of releases
    each       ε of each release of the naive target, as if it were the only one
    trials     number of people
    """
    count = numbers.integer(releases, "releases", 2, 4096)
    numbers.integer(trials, "trials", 1, 100_000)
    if not 0.001 <= each <= 100:
        raise AttackError(
            "HB643", "The setting each must be between 0.001 and 100.", "Use a value such as the default, 0.5."
        )
    secrets = flip(trials, generator)
    fresh = Laplace.from_epsilon(sensitivity=1, epsilon=each)
    noise = fresh.sample(np.zeros((count, trials), dtype=np.int64), system())
    drawn: Floats = noise.astype(np.float64) + secrets.astype(np.float64)
    spread = float(np.std(drawn[0] - secrets))
    findings = [
        AttackFinding(
            f"one release at ε = {each:g}",
            None,
            score_guesses(averaged(drawn[:1], generator), secrets),
            None,
            {"noise": spread},
        ),
        AttackFinding(
            f"{count} such releases, averaged",
            None,
            score_guesses(averaged(drawn, generator), secrets),
            None,
            {"noise": float(np.std(drawn.mean(axis=0) - secrets)), "total ε": each * count},
        ),
        *_sanitized(count, generator),
    ]
    for step, epsilon in enumerate(epsilons):
        progress(step / len(epsilons), f"a stream of {count} answers at ε = {float(epsilon):g} in total")
        answers = continual(secrets, count, epsilon)
        left = float(np.std(answers.mean(axis=0) - secrets))
        for name, guess in (("averaged", averaged), ("best guess", from_blocks)):
            findings.append(
                AttackFinding(
                    f"hubbub's continual release, {name}",
                    epsilon,
                    score_guesses(guess(answers, generator), secrets),
                    ceiling(epsilon),
                    {"noise": left},
                )
            )
    sentences = (
        f"Fresh noise at ε = {each:g} for each of {count} releases: averaging reduces its deviation from {spread:.3g}"
        f" to {float(findings[1].facts['noise']):.2g}, and the total loss is ε = {each * count:g}.",
        "A continual release is charged once: averaging all of its answers still leaves the noise that ε requires.",
    )
    return AttackStudy(
        "rereleases", "Averaging repeated releases", (*sentences, *describe_findings(findings)), tuple(findings)
    )


def _sanitized(count: int, generator: np.random.Generator) -> list[AttackFinding]:
    """Publish perturbed points (a crowd sanitizer without a guarantee) once, repeatedly with fresh noise, and kept."""
    points = uniform(_POINTS, _DIMENSIONS, generator)
    findings = []
    for keep, times in ((False, (1, count)), (True, (count,))):
        for most, isolated, *_ in sweep_rereleases(
            points, "gaussian", times, t=_CROWD, c=_NEAR, rng=generator, keep=keep
        ):
            name = (
                "perturbed points, kept" if keep else "perturbed points" if most == 1 else "perturbed points, averaged"
            )
            score = Score(round(isolated * _POINTS), _POINTS, 0.0)
            findings.append(
                AttackFinding(name, None, score, None, {"releases": int(most), "isolated": "c = 4, t = 10"})
            )
    return findings
