"""What randomized answers say about the crowd: unbiased counts with intervals, of one question or of several."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import prod, sqrt

import numpy as np
from numpy.typing import NDArray

from hubbub.core.interval import exp
from hubbub.errors import QueryError
from hubbub.mechanisms.bit_flips import Flips
from hubbub.surveys.survey import Question, Survey

Doubles = NDArray[np.float64]
Answers = dict[str, int | list[int]]

#: Cells of a joint table.
MOST_CELLS = 1_000_000

_Z = 1.959964


@dataclass(frozen=True, slots=True)
class Estimated:
    """How many of those who answered truly have these answers: an unbiased estimate with its 95% interval.

    price   what a person paid for this table to be made: the sum over its questions
    """

    questions: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    people: int
    count: Doubles
    low: Doubles
    high: Doubles
    price: Fraction


def single(survey: Survey, name: str, responses: Sequence[Answers]) -> Estimated:
    """Estimate how many have each answer to one question, or each box.

    Theorem (Estimate from randomized answers). If a true answer shows as itself with probability p and any other
    person's as it with q, then (shown − n·q)/(p − q) has the true count as its mean, and variance
    (m·p(1 − p) + (n − m)·q(1 − q))/(p − q)² where m is the true count. The interval holds all m for which what was
    shown lies within 1.96 of its standard deviations (the roots of a quadratic).
    Proof    What shows is the sum of independent indicators, m with mean p and n − m with mean q.
    Error    of the order √n: see `hubbub.mechanisms.randomized_response`.
    Tested   tests/surveys/test_estimate.py::test_estimates_are_unbiased_exactly
             tests/surveys/test_estimate.py::test_intervals_hold_the_truth_as_often_as_they_say
    """
    question, people = survey.question(name), len(responses)
    shown, (p, q) = _shown(question, responses).sum(axis=0).astype(np.float64), _odds(question)
    gap, here, there = p - q, p * (1 - p), q * (1 - q)
    # (shown − nq − m·gap)² ≤ z²(m·here + (n − m)·there), solved for m
    rest, spread = shown - people * q, _Z**2 * (here - there)
    middle = 2 * gap * rest + spread
    root = np.sqrt(np.maximum(middle**2 - 4 * gap**2 * (rest**2 - _Z**2 * people * there), 0))
    low, high = ((middle + sign * root) / (2 * gap**2) for sign in (-1, 1))
    cells = tuple((answer,) for answer in question.answers)
    return Estimated((name,), cells, people, rest / gap, low, high, question.epsilon)


def joint(survey: Survey, names: Sequence[str], responses: Sequence[Answers]) -> Estimated:
    """Estimate how many have each combination of answers to several questions; boxes are taken as they are ticked.

    Theorem (Joint estimates). Let Wᵢ be the inverse of the matrix of odds of the i-th answer (or box). Giving each
    person the weight Πᵢ Wᵢ[cᵢ, rᵢ] for cell c, where r is what they sent, has the true count of c as its mean; the sum
    of the squared weights less the estimate has its variance as its mean.
    Proof    Answers are randomized independently, so a weight's mean is Πᵢ 1{cᵢ is true}, that is 1 for those who are
             in c and 0 for the others. Persons are independent: the variance is the sum over persons of the mean
             square less the square of the mean, and that square is the mean itself, for it is 0 or 1.
    Charges  nothing beyond what answering cost: the sum of the questions' prices (`Survey.epsilon`), not the largest.
    Tested   tests/surveys/test_estimate.py::test_joint_estimates_are_unbiased_exactly
             tests/surveys/test_estimate.py::test_joint_intervals_hold_the_truth_as_often_as_they_say
    """
    questions = [survey.question(name) for name in names]
    if not 2 <= len(set(names)) == len(names):
        raise QueryError("HB538", "a joint estimate needs two questions or more.", "Name different ones.")
    axes = [axis for question in questions for axis in _axes(question, responses)]
    shape = tuple(len(inverse) for _, inverse in axes)
    if prod(shape) > MOST_CELLS:
        raise QueryError("HB538", f"the joint table has more than {MOST_CELLS} cells.", "Take fewer questions.")
    places = np.zeros(len(responses), dtype=np.int64)
    for size, (sent, _) in zip(shape, axes, strict=True):
        places = places * size + sent
    counts = np.bincount(places, minlength=prod(shape)).astype(np.float64).reshape(shape)
    estimated, squares = counts, counts
    for axis, (_, inverse) in enumerate(axes):
        estimated = np.moveaxis(np.tensordot(inverse, estimated, axes=(1, axis)), 0, axis)
        squares = np.moveaxis(np.tensordot(inverse**2, squares, axes=(1, axis)), 0, axis)
    found = estimated.ravel()
    half = _Z * np.sqrt(np.maximum(squares.ravel() - found, 0))
    cells = tuple(product(*map(_cells, questions)))
    price = sum((question.epsilon for question in questions), Fraction(0))
    return Estimated(tuple(names), cells, len(responses), found, found - half, found + half, price)


def deviation(question: Question, people: int) -> float:
    """Give the standard deviation of one answer's estimate at its worst, for planning."""
    p, q = _odds(question)
    return sqrt(people * max(p * (1 - p), q * (1 - q))) / (p - q)


def _odds(question: Question) -> tuple[float, float]:
    """Give the probabilities with which a true answer, and another one, shows as this answer (or a box as ticked)."""
    mechanism = question.mechanism
    rate = mechanism.rate if isinstance(mechanism, Flips) else mechanism.epsilon
    others = 1 if question.boxes else len(question.answers) - 1
    low = float(exp(-rate).high)
    return 1 / (1 + others * low), low / (1 + others * low)


def _shown(question: Question, responses: Sequence[Answers]) -> NDArray[np.bool_]:
    """Give a row for each person and a column for each answer or box: what was sent."""
    size = len(question.answers)
    if not question.boxes:
        sent = np.array([each[question.name] for each in responses], dtype=np.int64)
        return np.equal(sent[:, None], np.arange(size))
    rows = np.zeros((len(responses), size), dtype=np.bool_)
    lists = [np.asarray(each[question.name], dtype=np.int64) for each in responses]
    if lists:
        rows[np.repeat(np.arange(len(lists)), [len(each) for each in lists]), np.concatenate(lists)] = True
    return rows


def _axes(question: Question, responses: Sequence[Answers]) -> list[tuple[NDArray[np.int64], Doubles]]:
    """Give what each person sent, and the inverse of its odds: for a question, or for each of its boxes."""
    p, q = _odds(question)
    shown = _shown(question, responses)
    if not question.boxes:
        return [(shown.argmax(axis=1).astype(np.int64), (np.eye(len(question.answers)) - q) / (p - q))]
    return [(column.astype(np.int64), (np.eye(2) - q) / (p - q)) for column in shown.T]


def _cells(question: Question) -> tuple[str, ...]:
    """Name the cells of a question, in the order of its axes."""
    if not question.boxes:
        return question.answers
    ticks = product((False, True), repeat=len(question.answers))
    return tuple(
        "+".join(box for box, on in zip(question.answers, each, strict=True) if on) or "none" for each in ticks
    )
