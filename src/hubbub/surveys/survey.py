"""A survey: its questions, their answers, and the privacy cost of each answer."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from typing import Any, NoReturn, Self

import yaml

from hubbub.core import numbers
from hubbub.core.events import Composed, Event
from hubbub.core.reals import floor_to
from hubbub.errors import QueryError
from hubbub.mechanisms.bit_flips import BitFlips
from hubbub.mechanisms.randomized_response import RandomizedResponse

#: Maximum questions per survey, answers per question, and characters per text.
MAX_QUESTIONS = 100
MAX_ANSWERS = 1000
MAX_TEXT = 2000

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}")
#: Decimal places of a rate, rounded down so that a question never costs more than its ε.
_PLACES = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyQuestion:
    """One question: a choice of one answer, or boxes to tick.

    most   maximum number of ticked boxes; a smaller maximum needs less noise
    """

    name: str
    text: str
    answers: tuple[str, ...]
    epsilon: Fraction
    boxes: bool = False
    most: int | None = None

    def __post_init__(self) -> None:
        least = 1 if self.boxes else 2
        if not _NAME.fullmatch(self.name):
            _refuse(
                f"Invalid question name {self.name!r}",
                "Use 1 to 63 letters, digits and _, starting with a letter.",
            )
        distinct = least <= len(self.answers) == len(set(self.answers)) <= MAX_ANSWERS
        if not distinct or not all(0 < len(each) <= MAX_TEXT for each in self.answers):
            _refuse(
                f"The answers of {self.name} are not distinct, or too few, too many or too long",
                f"List {least} to {MAX_ANSWERS} distinct answers of at most {MAX_TEXT} characters.",
            )
        if len(self.text) > MAX_TEXT:
            _refuse(f"The text of {self.name} is longer than {MAX_TEXT} characters", "Shorten it.")
        numbers.epsilon(self.epsilon, f"{self.name}.epsilon")
        if self.most is not None and not (self.boxes and 1 <= self.most <= len(self.answers)):
            _refuse(
                f"{self.name}.most must be between 1 and the number of boxes",
                "Correct it, or remove it to allow any number of ticks.",
            )

    @property
    def mechanism(self) -> RandomizedResponse | BitFlips:
        """The mechanism that randomizes an answer.

        Theorem (Price of boxes). Flipping each of b bits with probability 1/(1 + e^(ε/S)) is ε-private for the
        respondent, where two answers of one person can differ in S = b bits, or in S = 2·most if at most `most` are
        ticked. Two boxes with coins of ¾ cost ln 9, and not ln 3.
        Tested   tests/surveys/test_survey.py::test_two_boxes_with_coins_of_three_quarters_cost_ln_9
                 tests/surveys/test_survey.py::test_every_answer_of_every_question_keeps_its_price_exactly
        """
        if not self.boxes:
            return RandomizedResponse(answers=len(self.answers), epsilon=self.epsilon)
        distance = len(self.answers) if self.most is None else min(len(self.answers), 2 * self.most)
        return BitFlips(bits=len(self.answers), distance=distance, rate=floor_to(self.epsilon / distance, _PLACES))

    def to_json(self) -> dict[str, Any]:
        """Return the question as JSON or YAML values."""
        entry: dict[str, Any] = {"text": self.text, "boxes" if self.boxes else "answers": list(self.answers)}
        return entry | ({} if self.most is None else {"most": self.most}) | {"epsilon": str(self.epsilon)}


@dataclass(frozen=True, slots=True)
class Survey:
    """A list of questions. Answering all of them costs the sum of their ε, not the largest."""

    title: str
    questions: tuple[SurveyQuestion, ...]

    def __post_init__(self) -> None:
        if not 1 <= len({each.name for each in self.questions}) == len(self.questions) <= MAX_QUESTIONS:
            _refuse(f"A survey must have 1 to {MAX_QUESTIONS} questions with distinct names", "Rename or remove some.")

    @property
    def event(self) -> Event:
        """The privacy event of answering every question once."""
        return Composed(tuple((each.mechanism.event, 1) for each in self.questions))

    @property
    def epsilon(self) -> Fraction:
        """The privacy cost of answering all questions.

        Theorem (Price of several questions). Answers that are randomized independently cost together the sum of their
        ε, and for some pair of people the whole sum is lost. The same holds for every joint estimate.
        Proof    The log-ratio of all answers is the sum of the single ones. For two people who differ in every answer,
                 at answers that are true for one and not for the other, all of them are largest at once.
        Tested   tests/surveys/test_survey.py::test_a_joint_answer_costs_the_sum_and_not_the_largest
        """
        return sum((each.epsilon for each in self.questions), Fraction(0))

    @property
    def identity(self) -> str:
        """Hash of the survey, which a response repeats to state which survey it answers."""
        return sha256(json.dumps(self.to_json(), sort_keys=True, ensure_ascii=True).encode()).hexdigest()[:32]

    def question(self, name: str) -> SurveyQuestion:
        """Find a question by its name."""
        for each in self.questions:
            if each.name == name:
                return each
        raise QueryError(
            "HB536",
            f"The survey has no question named {name}.",
            f"Use one of: {', '.join(each.name for each in self.questions)}.",
        )

    def to_json(self) -> dict[str, Any]:
        """Return the survey as JSON or YAML values."""
        return {
            "survey": 1,
            "title": self.title,
            "questions": {each.name: each.to_json() for each in self.questions},
        }

    @classmethod
    def read(cls, document: object) -> Self:
        """Read a survey from parsed YAML; reject unknown keys."""
        top = _mapping(document, "The file", {"survey", "title", "questions"})
        if top.get("survey") != 1 or not isinstance(top.get("title"), str):
            _refuse(
                "The file is not a survey", "Add `survey: 1` and a `title`, or create a file with `hubbub survey init`."
            )
        questions = _mapping(top.get("questions"), "questions", None)
        return cls(str(top["title"])[:MAX_TEXT], tuple(_question(name, each) for name, each in questions.items()))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read YAML (or JSON, which is also YAML)."""
        try:
            return cls.read(yaml.safe_load(text))
        except (yaml.YAMLError, RecursionError):
            _refuse("The file is not valid YAML", "Check indentation, colons and quotes.")


def _question(name: str, value: object) -> SurveyQuestion:
    entry = _mapping(value, name, {"text", "answers", "boxes", "most", "epsilon"})
    boxes = "boxes" in entry
    answers = entry.get("boxes" if boxes else "answers")
    if not isinstance(answers, list) or ("answers" in entry and boxes) or "epsilon" not in entry:
        _refuse(
            f"{name} must have either `answers` or `boxes`, and an `epsilon`",
            "Add, for example, `answers: [no, yes]` and `epsilon: 1`.",
        )
    words = tuple(_WORDS[each] if isinstance(each, bool) else str(each) for each in answers)
    most = entry.get("most")
    return SurveyQuestion(
        name=name,
        text=str(entry.get("text", name)),
        answers=words,
        boxes=boxes,
        epsilon=numbers.epsilon(entry["epsilon"], f"{name}.epsilon"),
        most=None if most is None else numbers.integer(most, f"{name}.most", 1, MAX_ANSWERS),
    )


#: YAML reads no and yes as truth values; a survey means the words.
_WORDS = {False: "no", True: "yes"}


def _mapping(value: object, path: str, known: set[str] | None) -> Mapping[str, Any]:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        _refuse(f"{path} must be a mapping of names to values", "See the file that `hubbub survey init` creates.")
    if known is not None and (unknown := sorted(set(value) - known)):
        _refuse(f"{path} has the unknown key {unknown[0]!r}", f"Use only: {', '.join(sorted(known))}.")
    return value


def _refuse(problem: str, remedy: str) -> NoReturn:
    raise QueryError("HB535", f"{problem}.", remedy)


TEMPLATE = """\
# Questions and the privacy cost of each answer. True answers never leave the respondent's device.
survey: 1
title: Habits
questions:
  smoke:
    text: Do you smoke?
    answers: ["no", "yes"]
    epsilon: 1.0986        # the true answer is sent with probability 3/4
  region:
    text: Where do you live?
    answers: [North, South, East, West]
    epsilon: 1
  news:
    text: Where do you get news from? (at most two)
    boxes: [paper, radio, television, web]
    most: 2
    epsilon: 2
"""
