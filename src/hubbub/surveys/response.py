"""Responses to a survey: randomize true answers, and validate randomized ones.

Tested in tests/surveys/test_survey.py.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hubbub.errors import QueryError
from hubbub.mechanisms.randomized_response import RandomizedResponse
from hubbub.noise.source import RandomSource
from hubbub.surveys.survey import Survey, SurveyQuestion

#: An answer, or the ticked boxes.
Truth = str | Sequence[str]


def respond(survey: Survey, truth: Mapping[str, Truth], source: RandomSource) -> dict[str, Any]:
    """Randomize a person's answers to all questions and return the response to send.

    Send one response per person: each further response costs as much again, because averaging removes the noise.
    """
    unknown = sorted(set(truth) - {each.name for each in survey.questions})
    missing = [each.name for each in survey.questions if each.name not in truth]
    if unknown or missing:
        # a skipped question could reveal something, so all must be answered
        if unknown:
            problem = f"The survey has no question named {unknown[0]}."
        else:
            problem = f"Question {missing[0]} was not answered."
        raise QueryError("HB536", problem, "Answer every question of the survey; each answer is randomized.")
    return {
        "survey": survey.identity,
        "answers": {each.name: _randomize(each, truth[each.name], source) for each in survey.questions},
    }


def check_response(survey: Survey, response: object) -> dict[str, int | list[int]]:
    """Validate a response to this survey: for each question the index of an answer, or the indexes of boxes."""
    try:
        if not isinstance(response, dict) or set(response) != {"survey", "answers"}:
            raise ValueError
        given = response["answers"]
        if response["survey"] != survey.identity or list(given) != [each.name for each in survey.questions]:
            raise ValueError
        return {each.name: _check_answer(each, given[each.name]) for each in survey.questions}
    except (ValueError, TypeError, AttributeError):
        raise QueryError(
            "HB537",
            "This is not a response to this survey.",
            "Send a response made by `hubbub survey answer` or by the page.",
        ) from None


def _randomize(question: SurveyQuestion, truth: Truth, source: RandomSource) -> int | list[int]:
    mechanism = question.mechanism
    if isinstance(mechanism, RandomizedResponse):
        if not isinstance(truth, str) or truth not in question.answers:
            raise _invalid_answer(question)
        return mechanism.sample(question.answers.index(truth), source)
    ticked = [truth] if isinstance(truth, str) else list(truth)
    most = len(question.answers) if question.most is None else question.most
    if not set(ticked) <= set(question.answers) or len(set(ticked)) > most:
        raise _invalid_answer(question)
    bits = np.array([each in ticked for each in question.answers], dtype=np.bool_)
    return [int(i) for i in np.flatnonzero(mechanism.sample(bits, source))]


def _invalid_answer(question: SurveyQuestion) -> QueryError:
    most = f", at most {question.most} of them" if question.most is not None else ""
    return QueryError(
        "HB536", f"Invalid answer to {question.name}.", f"Choose from: {', '.join(question.answers)}{most}."
    )


def _check_answer(question: SurveyQuestion, given: object) -> int | list[int]:
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
