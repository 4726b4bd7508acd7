"""Answering: the truth goes in, a randomized answer comes out, and only that is ever written down."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hubbub.errors import QueryError
from hubbub.mechanisms.randomized_response import RandomizedResponse
from hubbub.noise.source import Source
from hubbub.surveys.survey import Question, Survey

#: An answer, or the boxes that are ticked.
Truth = str | Sequence[str]


def respond(survey: Survey, truth: Mapping[str, Truth], source: Source) -> dict[str, Any]:
    """Randomize a person's answers to all questions; give what may be sent.

    One response a person: each further one of the same person costs as much again, for the noise would average out.
    """
    unknown = sorted(set(truth) - {each.name for each in survey.questions})
    missing = [each.name for each in survey.questions if each.name not in truth]
    if unknown or missing:
        # who may leave out questions could tell by that, so nobody does
        what = f"there is no question called {unknown[0]}" if unknown else f"{missing[0]} is not answered"
        raise QueryError("HB536", f"{what}.", "Answer every question: a lie of chance hides what you say.")
    return {
        "survey": survey.identity,
        "answers": {each.name: _randomized(each, truth[each.name], source) for each in survey.questions},
    }


def check(survey: Survey, response: object) -> dict[str, int | list[int]]:
    """Accept a response to this survey: for each question the number of an answer, or the numbers of boxes."""
    try:
        if not isinstance(response, dict) or set(response) != {"survey", "answers"}:
            raise ValueError
        given = response["answers"]
        if response["survey"] != survey.identity or list(given) != [each.name for each in survey.questions]:
            raise ValueError
        return {each.name: _possible(each, given[each.name]) for each in survey.questions}
    except (ValueError, TypeError, AttributeError):
        raise QueryError(
            "HB537", "this is not a response to this survey.", "Send what `hubbub survey answer` or the page made."
        ) from None


def _randomized(question: Question, truth: Truth, source: Source) -> int | list[int]:
    mechanism = question.mechanism
    if isinstance(mechanism, RandomizedResponse):
        if not isinstance(truth, str) or truth not in question.answers:
            raise _no_answer(question)
        return mechanism.sample(question.answers.index(truth), source)
    ticked = [truth] if isinstance(truth, str) else list(truth)
    most = len(question.answers) if question.most is None else question.most
    if not set(ticked) <= set(question.answers) or len(set(ticked)) > most:
        raise _no_answer(question)
    bits = np.array([each in ticked for each in question.answers], dtype=np.bool_)
    return [int(place) for place in np.flatnonzero(mechanism.sample(bits, source))]


def _no_answer(question: Question) -> QueryError:
    most = f", at most {question.most} of them" if question.most is not None else ""
    return QueryError(
        "HB536", f"that is no answer to {question.name}.", f"Choose of: {', '.join(question.answers)}{most}."
    )


def _possible(question: Question, given: object) -> int | list[int]:
    size = len(question.answers)
    if question.boxes:
        if not isinstance(given, list) or not all(type(each) is int and 0 <= each < size for each in given):
            raise ValueError
        if given != sorted(set(given)):
            raise ValueError
        return given
    if type(given) is not int or not 0 <= given < size:
        raise ValueError
    return given
