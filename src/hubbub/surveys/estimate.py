"""Unbiased estimates with confidence intervals from randomized answers to one question or several."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import prod, sqrt

import numpy as np
from numpy.typing import NDArray

from hubbub.core.interval import exp
from hubbub.errors import QueryError
from hubbub.mechanisms.bit_flips import BitFlips
from hubbub.surveys.survey import Survey, SurveyQuestion

Doubles = NDArray[np.float64]
Answers = dict[str, int | list[int]]

#: Maximum number of cells of a joint table.
MAX_CELLS = 1_000_000

_Z = 1.959964


@dataclass(frozen=True, slots=True)
class SurveyEstimate:
    """Unbiased estimates of how many respondents have each answer, with 95% confidence intervals.

    epsilon   privacy cost per person of this table: the sum over its questions
    """

    questions: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    people: int
    count: Doubles
    low: Doubles
    high: Doubles
    epsilon: Fraction


def estimate_question(survey: Survey, name: str, responses: Sequence[Answers]) -> SurveyEstimate:
    """Estimate how many respondents have each answer to one question, or each box.

    Theorem (Estimate from randomized answers). If an answer is sent with probability p by those for whom it is true and
    with probability q by the others, then (sent − n·q)/(p − q) has the true count as its mean, and variance
    (m·p(1 − p) + (n − m)·q(1 − q))/(p − q)² where m is the true count. The interval holds all m for which the number
    sent lies within 1.96 of its standard deviations (the roots of a quadratic).
    Proof    The number sent is the sum of independent indicators, m with mean p and n − m with mean q.
    Error    of the order √n: see `hubbub.mechanisms.randomized_response`.
    Tested   tests/surveys/test_estimate.py::test_estimates_are_unbiased_exactly
             tests/surveys/test_estimate.py::test_intervals_hold_the_truth_as_often_as_they_say
    """
    question, people = survey.question(name), len(responses)
    sent, (p, q) = _sent(question, responses).sum(axis=0).astype(np.float64), _probabilities(question)
    gap, here, there = p - q, p * (1 - p), q * (1 - q)
    # (sent − nq − m·gap)² ≤ z²(m·here + (n − m)·there), solved for m
    rest, spread = sent - people * q, _Z**2 * (here - there)
    middle = 2 * gap * rest + spread
    root = np.sqrt(np.maximum(middle**2 - 4 * gap**2 * (rest**2 - _Z**2 * people * there), 0))
    low, high = ((middle + sign * root) / (2 * gap**2) for sign in (-1, 1))
    cells = tuple((answer,) for answer in question.answers)
    return SurveyEstimate((name,), cells, people, rest / gap, low, high, question.epsilon)


def estimate_joint(survey: Survey, names: Sequence[str], responses: Sequence[Answers]) -> SurveyEstimate:
    """Estimate how many respondents have each combination of answers to several questions, or of ticked boxes.

    Theorem (Joint estimates). Let Wᵢ be the inverse of the transition matrix of the i-th answer (or box). The sum over
    all people of the weight Πᵢ Wᵢ[cᵢ, rᵢ] for cell c, where r is what they sent, has the true count of c as its mean;
    the sum of the squared weights minus the estimate has its variance as its mean.
    Proof    Answers are randomized independently, so a weight's mean is Πᵢ 1{cᵢ is true}, that is 1 for people in c and
             0 for the others. People are independent: the variance is the sum over people of the mean square minus the
             square of the mean, and that square equals the mean, because the mean is 0 or 1.
    Charges  nothing beyond the cost of answering: the sum of the questions' ε (`Survey.epsilon`), not the largest.
    Tested   tests/surveys/test_estimate.py::test_joint_estimates_are_unbiased_exactly
             tests/surveys/test_estimate.py::test_joint_intervals_hold_the_truth_as_often_as_they_say
    """
    questions = [survey.question(name) for name in names]
    if not 2 <= len(set(names)) == len(names):
        raise QueryError("HB538", "A joint estimate needs at least two distinct questions.", "Name more questions.")
    axes = [axis for question in questions for axis in _axes(question, responses)]
    shape = tuple(len(inverse) for _, inverse in axes)
    if prod(shape) > MAX_CELLS:
        raise QueryError("HB538", f"The joint table would have more than {MAX_CELLS} cells.", "Use fewer questions.")
    index = np.zeros(len(responses), dtype=np.int64)
    for size, (sent, _) in zip(shape, axes, strict=True):
        index = index * size + sent
    counts = np.bincount(index, minlength=prod(shape)).astype(np.float64).reshape(shape)
    estimated, squares = counts, counts
    for axis, (_, inverse) in enumerate(axes):
        estimated = np.moveaxis(np.tensordot(inverse, estimated, axes=(1, axis)), 0, axis)
        squares = np.moveaxis(np.tensordot(inverse**2, squares, axes=(1, axis)), 0, axis)
    count = estimated.ravel()
    half = _Z * np.sqrt(np.maximum(squares.ravel() - count, 0))
    cells = tuple(product(*map(_cells, questions)))
    epsilon = sum((question.epsilon for question in questions), Fraction(0))
    return SurveyEstimate(tuple(names), cells, len(responses), count, count - half, count + half, epsilon)


def deviation(question: SurveyQuestion, people: int) -> float:
    """Return the largest standard deviation of one answer's estimate, for planning."""
    p, q = _probabilities(question)
    return sqrt(people * max(p * (1 - p), q * (1 - q))) / (p - q)


def _probabilities(question: SurveyQuestion) -> tuple[float, float]:
    """Return the probabilities of sending an answer (or a ticked box) if it is true, and if it is not."""
    mechanism = question.mechanism
    rate = mechanism.rate if isinstance(mechanism, BitFlips) else mechanism.epsilon
    others = 1 if question.boxes else len(question.answers) - 1
    low = float(exp(-rate).high)
    return 1 / (1 + others * low), low / (1 + others * low)


def _sent(question: SurveyQuestion, responses: Sequence[Answers]) -> NDArray[np.bool_]:
    """Return the sent answers: one row per person, one column per answer or box."""
    size = len(question.answers)
    if not question.boxes:
        sent = np.array([each[question.name] for each in responses], dtype=np.int64)
        return np.equal(sent[:, None], np.arange(size))
    rows = np.zeros((len(responses), size), dtype=np.bool_)
    lists = [np.asarray(each[question.name], dtype=np.int64) for each in responses]
    if lists:
        rows[np.repeat(np.arange(len(lists)), [len(each) for each in lists]), np.concatenate(lists)] = True
    return rows


def _axes(question: SurveyQuestion, responses: Sequence[Answers]) -> list[tuple[NDArray[np.int64], Doubles]]:
    """Return what each person sent and the inverse transition matrix, for a question or for each of its boxes."""
    p, q = _probabilities(question)
    sent = _sent(question, responses)
    if not question.boxes:
        return [(sent.argmax(axis=1).astype(np.int64), (np.eye(len(question.answers)) - q) / (p - q))]
    return [(column.astype(np.int64), (np.eye(2) - q) / (p - q)) for column in sent.T]


def _cells(question: SurveyQuestion) -> tuple[str, ...]:
    """Name the cells of a question, in the order of its axes."""
    if not question.boxes:
        return question.answers
    ticks = product((False, True), repeat=len(question.answers))
    return tuple(
        "+".join(box for box, on in zip(question.answers, each, strict=True) if on) or "none" for each in ticks
    )
