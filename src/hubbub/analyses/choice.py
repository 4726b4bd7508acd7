"""Choose the candidate with the largest score, where the analyst writes the score in SQL."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm
from typing import Any, Literal

import numpy as np

from hubbub.analyses.base import PreparedAnalysis, Published, Run, Setting
from hubbub.analyses.scores import Score, joint_protection, plan_score
from hubbub.answers.estimate import Expected
from hubbub.answers.release import Output
from hubbub.core import deadline
from hubbub.core.events import Composed
from hubbub.core.numbers import brief
from hubbub.core.schema import Value
from hubbub.core.secret import Secret, combine_secrets
from hubbub.core.unit import Relation
from hubbub.errors import QueryError
from hubbub.mechanisms.exponential import Exponential
from hubbub.mechanisms.noisy_max import NoisyMax
from hubbub.mechanisms.permute_and_flip import PermuteAndFlip
from hubbub.mechanisms.selection import SCORE_LIMIT
from hubbub.sql.aggregates.formula import TYPICAL_ROWS

Rule = PermuteAndFlip | Exponential | NoisyMax
Method = Literal["permute_and_flip", "exponential", "noisy_max"]
Candidate = tuple[Value, ...]

MAX_CANDIDATES = 1000
_RULES: dict[str, type[Rule]] = {
    "permute_and_flip": PermuteAndFlip,
    "exponential": Exponential,
    "noisy_max": NoisyMax,
}
_LEVEL = Fraction(95, 100)
_KINDS = {bool: "boolean", int: "integer", Fraction: "real", str: "text"}


@dataclass(frozen=True, kw_only=True)
class ChoiceAnalysis(PreparedAnalysis):
    """A prepared choice.

    unit  what one step of a score stands for; scores are multiplied by `factors` to have it in common
    """

    candidates: tuple[Candidate, ...]
    scores: tuple[Score, ...]
    factors: tuple[int, ...]
    unit: Fraction
    rule: Rule

    def run(self, run: Run) -> Published:
        """Compute every score, then choose."""
        exact = []
        for place, one in enumerate(self.scores):
            run.progress(place / len(self.scores), f"score {place + 1} of {len(self.scores)}")
            exact.append(one.integer(run))
        chosen = _together(exact, self.factors, self.rule, run)
        run.progress(1.0, "chosen")
        values = self.candidates[chosen]
        names = ["candidate"] if len(values) == 1 else [f"candidate {place}" for place in range(1, len(values) + 1)]
        outputs = [
            Output(name, _KINDS[type(value)], [float(value) if isinstance(value, Fraction) else value])
            for name, value in zip(names, values, strict=True)
        ]
        model = {"place": chosen + 1, "candidates": len(self.candidates)}
        return Published((Output("place", "integer", [chosen + 1]), *outputs), model)


def _together(exact: Sequence[Secret[int]], factors: Sequence[int], rule: Rule, run: Run) -> int:
    """Let all scores into the selection at once: nothing but the chosen position comes out."""
    secrets = combine_secrets({str(place): one for place, one in enumerate(exact)})

    def best(values: Mapping[str, int]) -> int:
        scaled = [values[str(place)] * factor for place, factor in enumerate(factors)]
        limited = [min(max(each, -SCORE_LIMIT), SCORE_LIMIT) for each in scaled]
        return int(rule.sample(np.array(limited, dtype=np.int64), run.source))

    return secrets.through(best)


def choose(
    setting: Setting, *, candidates: list[Any] | str, score: str, method: Method = "permute_and_flip"
) -> ChoiceAnalysis:
    """Prepare the choice of the candidate with the largest score.

    candidates  constants, each the value of $1 in the score (or a list: the values of $1, $2, …); or 'table.column'
                for the declared values of a column
    score       SQL that returns one COUNT or SUM: 'SELECT COUNT(*) FROM visits WHERE region = $1'
    method      permute_and_flip (the smallest expected regret), exponential, or noisy_max

    Theorem (Choice by a score in SQL). Let no score move by more than D steps between neighbors. The chosen position
    is ε-private with the rate ε/(2D), and with ε/D where every score is monotone and neighbors differ in one unit more
    or less. Under replace monotone scores may move both ways: the rate stays ε/(2D), and Lap(1/ε), as it is often
    printed, would cost up to 2ε.
    Proof    D is the largest sensitivity of the scores in their common step (Scores), and each rule costs 2·rate·D, or
             rate·D where all scores move one way (Rate of a selection). Only the position leaves the secret; candidate
             and model follow from it and from the call.
    Assumes  candidates are constants of the call or declarations, not data.
    Charges  one SelectionEvent.
    Error    the score of the choice is at most `error` below the largest one, with 95% probability.
    Tested   tests/analyses/test_choice.py::test_enumerated_loss_over_all_neighbors_is_within_the_charge
             tests/analyses/test_choice.py::test_printed_noise_of_report_noisy_max_costs_up_to_twice_under_replace
    """
    values = _candidates(setting, candidates)
    scores = []
    for each in values:
        deadline.check()
        scores.append(plan_score(setting, score, each))
    protection = joint_protection(scores)
    unit = _common(tuple(each.step for each in scores))
    factors = tuple(int(each.step / unit) for each in scores)
    moved = max(each.sensitivity * factor for each, factor in zip(scores, factors, strict=True))
    monotone = all(each.monotone for each in scores)
    rule = _RULES[method].from_epsilon(
        candidates=len(values),
        sensitivity=moved,
        monotone=monotone,
        relation=protection.relation,
        epsilon=setting.epsilon,
    )
    half, row = float(rule.error(_LEVEL) * unit), max(each.row for each in scores)
    one_way = monotone and protection.relation is Relation.ADD_REMOVE
    return ChoiceAnalysis(
        protection=protection,
        epsilon=setting.epsilon,
        delta=Fraction(0),
        event=Composed(((rule.event, 1),)),
        noise=method.replace("_", " "),
        derivation=(
            f"{len(values)} candidates; score: {scores[0].measured}",
            f"one unit moves a score by at most {brief(moved * unit)}"
            + (", and all scores in one direction" if one_way else ", in either direction: twice the noise"),
            f"{method.replace('_', ' ')} with rate {brief(rule.rate / unit)} per unit of the score",
        ),
        expected=(Expected("score below the best", half, None, half / (TYPICAL_ROWS * float(row))),),
        cells=1,
        statements=tuple(each.sql for each in scores),
        candidates=values,
        scores=tuple(scores),
        factors=factors,
        unit=unit,
        rule=rule,
    )


def _common(steps: Sequence[Fraction]) -> Fraction:
    """Give the largest step of which all others are multiples.

    >>> _common((Fraction(1, 2), Fraction(3, 4)))
    Fraction(1, 4)
    """
    bottom = lcm(*(step.denominator for step in steps))
    unit = Fraction(gcd(*(int(step * bottom) for step in steps)), bottom)
    if max(steps) / unit > 1 << 20:
        raise QueryError(
            "HB670",
            "The scores of these candidates are too different in scale to be compared exactly.",
            "Use the same SUM for every candidate, and $1 only in the WHERE clause.",
        )
    return unit


def _candidates(setting: Setting, given: list[Any] | str) -> tuple[Candidate, ...]:
    """Read the candidates: a list of constants, or the declared values of a column."""
    if isinstance(given, str):
        given = list(_declared(setting, given))
    values = _same_numbers([tuple(each) if isinstance(each, list) else (each,) for each in given])
    shapes = {tuple(type(part) for part in each) for each in values}
    whole = all(kind in _KINDS for shape in shapes for kind in shape)
    if not 2 <= len(values) <= MAX_CANDIDATES or len(set(values)) < len(values) or len(shapes) != 1 or not whole:
        raise QueryError(
            "HB671",
            f"candidates must be 2 to {MAX_CANDIDATES} different constants of the same type.",
            "Use candidates => ['North', 'South'], or [[0, 18], [18, 65]] for a score with $1 and $2.",
        )
    return values


def _same_numbers(values: Sequence[tuple[Any, ...]]) -> tuple[Candidate, ...]:
    """Write whole numbers as fractions where other candidates have fractions.

    >>> _same_numbers([(1, "a"), (Fraction(1, 2), "b")])
    ((Fraction(1, 1), 'a'), (Fraction(1, 2), 'b'))
    """
    real = {place for each in values for place, part in enumerate(each) if isinstance(part, Fraction)}
    return tuple(
        tuple(Fraction(part) if place in real and type(part) is int else part for place, part in enumerate(each))
        for each in values
    )


def _declared(setting: Setting, name: str) -> tuple[Value, ...]:
    """Give the declared values of a column, named 'table.column'."""
    dataset, _, column = name.partition(".")
    table = setting.tables.get(dataset)
    declared = None if table is None else table.column(column)
    if declared is None or declared.hidden or not declared.values:
        raise QueryError(
            "HB671",
            f"{name!r} is not a column with declared values.",
            "Write candidates => 'visits.region' for a column with `values`, or list the candidates.",
        )
    return declared.values
