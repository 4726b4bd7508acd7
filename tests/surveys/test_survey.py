"""The questionnaire, its price, and the randomizer in Python."""

import json
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from hubbub.accounting.cost import privacy_cost
from hubbub.cli import main
from hubbub.core.reals import floor_to, log
from hubbub.errors import HubbubError
from hubbub.mechanisms.additive import independent
from hubbub.mechanisms.bit_flips import BitFlips
from hubbub.mechanisms.enumeration import SLACK, worst_ratio
from hubbub.mechanisms.randomized_response import RandomizedResponse
from hubbub.noise.source import RandomSource, system
from hubbub.surveys.response import check_response, respond
from hubbub.surveys.survey import TEMPLATE, Survey, SurveyQuestion

LN_3 = floor_to(log(Fraction(3))[0], 24)


def choice(answers: int, epsilon: Fraction, name: str = "q") -> SurveyQuestion:
    return SurveyQuestion(name=name, text="", answers=tuple(map(str, range(answers))), epsilon=epsilon)


def boxes(count: int, epsilon: Fraction, most: int | None = None, name: str = "b") -> SurveyQuestion:
    return SurveyQuestion(
        name=name, text="", answers=tuple(map(str, range(count))), epsilon=epsilon, boxes=True, most=most
    )


def truths(question: SurveyQuestion) -> Iterator[Any]:
    """Every answer that a person can have."""
    if not question.boxes:
        yield from range(len(question.answers))
        return
    most = len(question.answers) if question.most is None else question.most
    yield from (bits for bits in product((False, True), repeat=len(question.answers)) if sum(bits) <= most)


@pytest.mark.parametrize(
    "question",
    [
        choice(2, LN_3),
        choice(5, Fraction(1)),
        boxes(3, Fraction(2)),
        boxes(4, Fraction(1), 1),
        boxes(4, Fraction(3), 2),
    ],
)
def test_every_answer_of_every_question_keeps_its_price_exactly(question: SurveyQuestion) -> None:
    mechanism: Any = question.mechanism
    worst = max(
        worst_ratio(mechanism.distribution(one), mechanism.distribution(other))[1]
        for one, other in product(truths(question), repeat=2)
    )
    assert question.epsilon - Fraction(1, 10**20) <= worst <= question.epsilon + SLACK


def test_fewer_ticks_mean_less_noise() -> None:
    free, few = boxes(10, Fraction(2)).mechanism, boxes(10, Fraction(2), 2).mechanism
    assert isinstance(free, BitFlips)
    assert isinstance(few, BitFlips)
    assert (free.rate, few.rate) == (Fraction(1, 5), Fraction(1, 2))


@pytest.mark.row(41)
def test_two_boxes_with_coins_of_three_quarters_cost_ln_9() -> None:
    """Each of two boxes told truly with ¾: the price that the survey states is ln 9 = 2.197, not ln 3."""
    question = boxes(2, 2 * LN_3)
    mechanism = question.mechanism
    assert isinstance(mechanism, BitFlips)
    assert float(mechanism.distribution((True, True)).mass[(True, True)][0]) == pytest.approx(9 / 16)
    assert float(mechanism.distribution((False, False)).mass[(True, True)][0]) == pytest.approx(1 / 16)
    assert float(question.epsilon) == pytest.approx(math.log(9))
    assert float(
        worst_ratio(mechanism.distribution((True, True)), mechanism.distribution((False, False)))[0]
    ) == pytest.approx(2.197, abs=5e-4)


@pytest.mark.row(41)
def test_a_joint_answer_costs_the_sum_and_not_the_largest() -> None:
    """Two yes/no questions at ln 3 each: the pair of answers loses ln 9 between (yes, yes) and (no, no)."""
    asked = Survey("two", (choice(2, LN_3, "a"), choice(2, LN_3, "b")))
    one, other = (independent([each.mechanism.distribution(bit) for each in asked.questions]) for bit in (0, 1))  # type: ignore[arg-type]
    low, high = worst_ratio(one, other)
    assert float(low) == pytest.approx(math.log(9))
    assert high <= asked.epsilon + SLACK
    assert float(asked.epsilon) == pytest.approx(2.197, abs=5e-4)
    paid = privacy_cost(asked.event).pure
    assert paid is not None
    assert paid == asked.epsilon


def test_the_template_is_a_survey(survey: Survey) -> None:
    assert [each.name for each in survey.questions] == ["smoke", "region", "news"]
    assert survey.questions[0].answers == ("no", "yes")
    assert Survey.read(json.loads(json.dumps(survey.to_json()))) == survey
    mechanism = survey.questions[0].mechanism
    assert isinstance(mechanism, RandomizedResponse)
    assert float(mechanism.distribution(0).mass[0][0]) == pytest.approx(0.75, abs=1e-4)


def test_a_changed_promise_is_another_survey(survey: Survey) -> None:
    changed = Survey.parse(TEMPLATE.replace("epsilon: 2", "epsilon: 3"))
    assert changed.identity != survey.identity


@pytest.mark.parametrize(
    "text",
    [
        "",
        "7",
        "survey: 2",
        "survey: 1\ntitle: x",
        "survey: 1\ntitle: x\nquestions: {}",
        "a: [",
        "survey: 1\nmore: 2",
        "survey: 1\ntitle: x\nquestions: {q: {answers: [a], epsilon: 1}}",
        "survey: 1\ntitle: x\nquestions: {q: {answers: [a, a], epsilon: 1}}",
        "survey: 1\ntitle: x\nquestions: {q: {answers: [a, b]}}",
        "survey: 1\ntitle: x\nquestions: {q: {answers: [a, b], epsilon: nan}}",
        "survey: 1\ntitle: x\nquestions: {q: {answers: [a, b], epsilon: 0}}",
        "survey: 1\ntitle: x\nquestions: {q: {answers: [a, b], boxes: [c], epsilon: 1}}",
        "survey: 1\ntitle: x\nquestions: {q: {answers: [a, b], most: 1, epsilon: 1}}",
        "survey: 1\ntitle: x\nquestions: {q: {boxes: [a, b], most: 3, epsilon: 1}}",
        "survey: 1\ntitle: x\nquestions: {q: {answers: [a, b], epsilon: 1, price: 2}}",
        "survey: 1\ntitle: x\nquestions: {'a b': {answers: [a, b], epsilon: 1}}",
    ],
)
def test_a_questionnaire_that_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(HubbubError) as refusal:
        Survey.parse(text)
    assert refusal.value.remedy


def test_yaml_words_for_truth_are_the_words_that_people_mean() -> None:
    asked = Survey.parse("survey: 1\ntitle: x\nquestions: {q: {answers: [no, yes], epsilon: 1}}")
    assert asked.questions[0].answers == ("no", "yes")


TRUTH: dict[str, Any] = {"smoke": "yes", "region": "East", "news": ["web", "radio"]}


def test_a_response_holds_numbers_and_the_survey_it_answers(survey: Survey) -> None:
    for _ in range(50):
        response = json.loads(json.dumps(respond(survey, TRUTH, system())))
        assert check_response(survey, response) == response["answers"]


def test_the_randomiser_lies_as_often_as_it_says(survey: Survey, seeded: Callable[[int], RandomSource]) -> None:
    """4,000 responses of one person, fixed words: 5 standard errors."""
    source = seeded(3)
    sent = [respond(survey, TRUTH, source)["answers"] for _ in range(4000)]
    assert sum(each["smoke"] == 1 for each in sent) / 4000 == pytest.approx(0.75, abs=5 * math.sqrt(0.1875 / 4000))
    keep = math.e / (math.e + 3)
    assert sum(each["region"] == 2 for each in sent) / 4000 == pytest.approx(
        keep, abs=5 * math.sqrt(keep * (1 - keep) / 4000)
    )
    stay = 1 / (1 + math.exp(-0.5))
    for box, ticked in ((0, False), (1, True), (2, False), (3, True)):
        share = sum(box in each["news"] for each in sent) / 4000
        assert share == pytest.approx(stay if ticked else 1 - stay, abs=5 * math.sqrt(stay * (1 - stay) / 4000))


@pytest.mark.parametrize(
    "change",
    [
        {"smoke": "maybe"},
        {"region": ["East"]},
        {"news": ["web", "radio", "paper"]},
        {"news": ["gossip"]},
        {"more": "x"},
    ],
)
def test_answers_that_are_none_are_refused(survey: Survey, change: dict[str, Any]) -> None:
    with pytest.raises(HubbubError, match="HB536"):
        respond(survey, {**TRUTH, **change}, system())
    with pytest.raises(HubbubError, match="was not answered"):
        respond(survey, {"smoke": "yes"}, system())


@pytest.mark.parametrize(
    "response",
    [
        None,
        [],
        {},
        {"survey": "x", "answers": {}},
        {"survey": "", "answers": {"smoke": 0, "region": 0, "news": []}},
        *(
            {"answers": answers}
            for answers in (
                {"smoke": 2, "region": 0, "news": []},
                {"smoke": True, "region": 0, "news": []},
                {"smoke": 0, "region": -1, "news": []},
                {"smoke": 0, "region": 0, "news": [1, 1]},
                {"smoke": 0, "region": 0, "news": [2, 1]},
                {"smoke": 0, "region": 0, "news": 1},
                {"smoke": 0, "region": 0},
                {"smoke": 0, "region": 0, "news": [9]},
                {"smoke": "0", "region": 0, "news": []},
            )
        ),
    ],
)
def test_what_is_no_response_is_refused(survey: Survey, response: Any) -> None:
    if isinstance(response, dict) and set(response) == {"answers"}:
        response = {"survey": survey.identity, **response}
    with pytest.raises(HubbubError, match="HB537"):
        check_response(survey, response)


def test_the_commands_ask_answer_and_estimate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, kept = str(tmp_path / "survey.yaml"), tmp_path / "responses.jsonl"
    assert main(["survey", "init", file]) == 0
    assert main(["survey", "init", file]) == 1
    assert main(["survey", "check", file, "--people", "5000"]) == 0
    shown = capsys.readouterr().out
    assert "ε = 4.0986" in shown
    assert "±" in shown
    for _ in range(30):
        assert (
            main(["survey", "answer", file, "--set", "smoke=yes", "--set", "region=East", "--set", "news=web,radio"])
            == 0
        )
    kept.write_text(capsys.readouterr().out + "nonsense\n")
    assert main(["survey", "estimate", file, str(kept)]) == 0
    shown = capsys.readouterr().out
    assert "30 people responded; 1 lines are not responses" in shown
    assert main(["survey", "estimate", file, str(kept), "--joint", "smoke,region", "--csv"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "questions,answers,count,low,high"
    assert len(lines) == 9
    assert main(["survey", "estimate", file, str(kept), "--joint", "smoke,nothing"]) == 1
    assert main(["survey", "page", file, "--output", str(tmp_path / "page.html"), "--to", "https://example.org/r"]) == 0
    assert "connect-src https://example.org" in (tmp_path / "page.html").read_text()
    assert main(["survey", "page", file, "--output", str(tmp_path / "other.html"), "--to", "http://example.org/r"]) == 1
