"""A questionnaire and its promise: what is asked, and with which odds each answer is kept. No I/O here."""

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
from hubbub.mechanisms.bit_flips import Flips
from hubbub.mechanisms.randomized_response import RandomizedResponse

#: Questions of a survey, answers of a question, characters of a text.
MOST_QUESTIONS = 100
MOST_ANSWERS = 1000
LONGEST = 2000

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}")
#: Places of a rate, so that the price of a question is never above what it says.
_PLACES = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question: one of several answers, or any of several boxes to tick.

    most   of boxes: at most so many are ticked, and no more are let through; fewer ticks, less noise
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
            _refuse(f"{self.name!r} is not a question's name", "A name has 1 to 63 letters, digits and _.")
        good = least <= len(self.answers) == len(set(self.answers)) <= MOST_ANSWERS
        if not good or not all(0 < len(each) <= LONGEST for each in self.answers):
            _refuse(f"{self.name} has no list of different answers", f"Name {least} to {MOST_ANSWERS}, as texts.")
        if len(self.text) > LONGEST:
            _refuse(f"{self.name} is longer than {LONGEST} characters", "Shorten it.")
        numbers.epsilon(self.epsilon, f"{self.name}.epsilon")
        if self.most is not None and not (self.boxes and 1 <= self.most <= len(self.answers)):
            _refuse(f"{self.name}.most is not a number of its boxes", "Leave it out, or say how many may be ticked.")

    @property
    def mechanism(self) -> RandomizedResponse | Flips:
        """What randomizes an answer.

        Theorem (Price of boxes). Flipping each of b bits with probability 1/(1 + e^(ε/S)) is ε-private for whoever
        answers, where two answers of one person can differ in S = b bits, or in S = 2·most where at most so many are
        ticked. Two boxes with coins of ¾ cost ln 9, and not ln 3.
        Tested   tests/surveys/test_survey.py::test_two_boxes_with_coins_of_three_quarters_cost_ln_9
                 tests/surveys/test_survey.py::test_every_answer_of_every_question_keeps_its_price_exactly
        """
        if not self.boxes:
            return RandomizedResponse(answers=len(self.answers), epsilon=self.epsilon)
        apart = len(self.answers) if self.most is None else min(len(self.answers), 2 * self.most)
        return Flips(bits=len(self.answers), distance=apart, rate=floor_to(self.epsilon / apart, _PLACES))

    def form(self) -> dict[str, Any]:
        """Give it for JSON and YAML."""
        said: dict[str, Any] = {"text": self.text, "boxes" if self.boxes else "answers": list(self.answers)}
        return said | ({} if self.most is None else {"most": self.most}) | {"epsilon": str(self.epsilon)}


@dataclass(frozen=True, slots=True)
class Survey:
    """Questions in their order. Whoever answers all of them pays the sum of their prices, and not the largest."""

    title: str
    questions: tuple[Question, ...]

    def __post_init__(self) -> None:
        if not 1 <= len({each.name for each in self.questions}) == len(self.questions) <= MOST_QUESTIONS:
            _refuse(f"a survey has 1 to {MOST_QUESTIONS} questions of different names", "Rename or leave out some.")

    @property
    def event(self) -> Event:
        """What answering does: every question, once."""
        return Composed(tuple((each.mechanism.event, 1) for each in self.questions))

    @property
    def epsilon(self) -> Fraction:
        """What answering all of it costs.

        Theorem (Price of several questions). Answers that are randomized independently cost together the sum of their
        prices, and some pair of persons loses all of it: so does every joint estimate.
        Proof    The log-ratio of all answers is the sum of the single ones; two persons who differ in every answer, at
                 answers that are true for one and not for the other, have them all at their largest at once.
        Tested   tests/surveys/test_survey.py::test_a_joint_answer_costs_the_sum_and_not_the_largest
        """
        return sum((each.epsilon for each in self.questions), Fraction(0))

    @property
    def identity(self) -> str:
        """A hash of all that is asked and promised: a response says which survey it answers."""
        return sha256(json.dumps(self.form(), sort_keys=True, ensure_ascii=True).encode()).hexdigest()[:32]

    def question(self, name: str) -> Question:
        """Find a question."""
        for each in self.questions:
            if each.name == name:
                return each
        raise QueryError(
            "HB536", f"there is no question called {name}.", f"There are: {', '.join(e.name for e in self.questions)}."
        )

    def form(self) -> dict[str, Any]:
        """Give it for JSON and YAML."""
        return {
            "survey": 1,
            "title": self.title,
            "questions": {each.name: each.form() for each in self.questions},
        }

    @classmethod
    def read(cls, document: object) -> Self:
        """Read what a file says; unknown words are refused."""
        top = _mapping(document, "the file", {"survey", "title", "questions"})
        if top.get("survey") != 1 or not isinstance(top.get("title"), str):
            _refuse("the file is not a survey", "Write `survey: 1` and a `title`, or begin with: hubbub survey init")
        asked = _mapping(top.get("questions"), "questions", None)
        return cls(str(top["title"])[:LONGEST], tuple(_question(name, each) for name, each in asked.items()))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read YAML (or JSON, which is YAML too)."""
        try:
            return cls.read(yaml.safe_load(text))
        except (yaml.YAMLError, RecursionError):
            _refuse("the file is not YAML", "Check indentation, colons and quotes.")


def _question(name: str, value: object) -> Question:
    said = _mapping(value, name, {"text", "answers", "boxes", "most", "epsilon"})
    boxes = "boxes" in said
    answers = said.get("boxes" if boxes else "answers")
    if not isinstance(answers, list) or ("answers" in said and boxes) or "epsilon" not in said:
        _refuse(f"{name} needs `answers` or `boxes`, and an `epsilon`", "Write `answers: [no, yes]` and `epsilon: 1`.")
    words = tuple(_WORDS[each] if isinstance(each, bool) else str(each) for each in answers)
    most = said.get("most")
    return Question(
        name=name,
        text=str(said.get("text", name)),
        answers=words,
        boxes=boxes,
        epsilon=numbers.epsilon(said["epsilon"], f"{name}.epsilon"),
        most=None if most is None else numbers.integer(most, f"{name}.most", 1, MOST_ANSWERS),
    )


#: YAML takes the words no and yes for truth values; people mean the words.
_WORDS = {False: "no", True: "yes"}


def _mapping(value: object, place: str, known: set[str] | None) -> Mapping[str, Any]:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        _refuse(f"{place} is not a list of `name: value`", "Begin with: hubbub survey init")
    if known is not None and (unknown := sorted(set(value) - known)):
        _refuse(f"{place} has the unknown word {unknown[0]!r}", f"It knows: {', '.join(sorted(known))}.")
    return value


def _refuse(why: str, remedy: str) -> NoReturn:
    raise QueryError("HB535", f"{why}.", remedy)


TEMPLATE = """\
# What is asked, and how surely each answer is hidden. Nobody but who answers ever has a true answer.
survey: 1
title: Habits
questions:
  smoke:
    text: Do you smoke?
    answers: ["no", "yes"]
    epsilon: 1.0986        # told truly with probability 3/4
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
