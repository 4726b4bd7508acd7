"""Attribute attack: an adversary who knows some attributes of a person learns another one from a sanitized table.

Chawla and others (2005, remark 4) hold their theorem on histograms to extend to an adversary who knows a constant
fraction of a row's attributes. Not being isolated is no protection of the attribute that is missing.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from hubbub.attacks.base import AttackFinding, AttackStudy, Fact, Progress, describe_findings, no_progress, percent
from hubbub.attacks.game import flip, guess_from, informed_at, score_guesses
from hubbub.attacks.linkage import COIN
from hubbub.attacks.table import AttackTable
from hubbub.attacks.target import count_noises
from hubbub.core import numbers
from hubbub.crowd.histogram import RecursiveHistogram, build_histogram
from hubbub.crowd.isolation import isolates_target
from hubbub.crowd.neighbors import Floats, NeighborIndex
from hubbub.crowd.perturbation import perturb
from hubbub.errors import AttackError


def by_cells(histogram: RecursiveHistogram, people: Floats, known: int) -> Floats:
    """Weigh the last coordinate's sign by the cells that fit the first `known` coordinates of each person.

    Given the histogram, a row of a cell is uniform in it: a fitting cell has weight count/side^known.
    """
    low, side, count = histogram.leaves
    sign = np.where(low[:, -1] >= 0, 1.0, -1.0)
    weight = sign * count * np.exp(-known * np.log(side / side.max()))
    evidence = np.zeros(len(people))
    for row, person in enumerate(people[:, :known]):
        inside = ((low[:, :known] <= person) & (person <= low[:, :known] + side[:, None])).all(axis=1)
        evidence[row] = weight[inside].sum()
    return evidence


def by_nearest(moved: Floats, people: Floats, known: int) -> Floats:
    """Take the last coordinate of the published row that is nearest in the first `known` coordinates."""
    if not known:
        return np.zeros(len(people))
    nearest = NeighborIndex(moved[:, :known]).query(people[:, :known], t=1).which
    return np.asarray(moved[nearest, -1])


def study(
    table: AttackTable | None = None,  # noqa: ARG001 - the rows are simulated
    *,
    epsilons: Sequence[Fraction],
    generator: np.random.Generator,
    progress: Progress = no_progress,
    known: tuple[str, ...] = ("0", "50", "75", "100"),
    people: int = 500,
    dimension: int = 12,
    crowd: int = 10,
) -> AttackStudy:
    """Guess a person's secret attribute from a crowd sanitizer, knowing a percentage of the others.

    Each of `people` rows has `dimension` uniform attributes and a fair coin, which is a further attribute. The
    adversary knows the given percentages (`known`) of a person's attributes, and guesses the coin from a recursive
    histogram or from rows of the ball sanitizer (`crowd` is t). The study also reports how often the completed row
    isolates the person (c = 4): hardly ever, although the coin is known. Against hubbub, the adversary knows everything
    but the coin, and asks for one noisy count.
    """
    n, d = numbers.integer(people, "people", 100, 5000), numbers.integer(dimension, "dimension", 1, 60)
    t = numbers.integer(crowd, "crowd", 2, n // 4)
    percentages = [_percentage(text) for text in known]
    coins = flip(n, generator)
    rows = generator.uniform(-1, 1, (n, d + 1))
    rows[:, -1] = np.where(coins, 1, -1) * generator.random(n)
    progress(0.1, "sanitizers")
    histogram, moved, index = build_histogram(rows, t=t), perturb(rows, "ball", t=t, rng=generator), NeighborIndex(rows)
    findings = []
    for release in ("recursive histogram", "perturbed rows"):
        for percentage in percentages:
            count = round(d * percentage / 100)
            by_histogram = release == "recursive histogram"
            evidence = by_cells(histogram, rows, count) if by_histogram else by_nearest(moved, rows, count)
            guesses = guess_from(evidence, generator)
            completed = np.zeros_like(rows)
            completed[:, :count], completed[:, -1] = rows[:, :count], np.where(guesses, 0.5, -0.5)
            isolated = isolates_target(index, completed, rows, c=4, t=t)
            facts: dict[str, Fact] = {"isolated by the completed row": float(isolated.mean())}
            name = f"{release}, {percentage}% known"
            findings.append(AttackFinding(name, None, score_guesses(guesses, coins), None, facts))
    progress(0.5, "hubbub")
    noises = count_noises(AttackTable("people", {COIN: coins}), COIN, epsilons=epsilons)
    others = np.zeros(n, dtype=np.int64)
    findings += informed_at("hubbub, everything else known", epsilons, noises, others, coins)
    progress(1.0, "done")
    bare = [each for each in findings if each.ceiling is None]
    best = max(bare, key=lambda each: each.score.share - float(each.facts["isolated by the completed row"]))
    isolated_share = percent(float(best.facts["isolated by the completed row"]))
    words = (
        f"{best.target}: {percent(best.score.share)} of the secret attributes are right, and {isolated_share} of the "
        "people are isolated. Isolation does not measure this loss.",
        *describe_findings(findings),
    )
    return AttackStudy("attributes", "A person's attributes are known in part", words, tuple(findings))


def _percentage(text: str) -> int:
    if not text.isdigit() or int(text) > 100:
        raise AttackError("HB643", "The setting known must list percentages from 0 to 100.", "Use 0,50,75,100")
    return int(text)
