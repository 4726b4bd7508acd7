"""What holds of every analysis, whoever wrote it."""

import inspect
import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tests.analyses.conftest import IN_ADVANCE, settle

from hubbub.accounting.cost import privacy_cost
from hubbub.analyses.registry import ANALYSES, PAID_BEFORE, function
from hubbub.audit.receipt import check_receipt
from hubbub.core.call import AnalysisCall, parse_call
from hubbub.core.events import Composed, Event, SelectionEvent, from_facts
from hubbub.curator.session import Session, open_session
from hubbub.errors import HubbubError, QueryError, RunError
from hubbub.mechanisms.binomial import Binomial
from hubbub.mechanisms.exponential import Exponential
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.laplace import Laplace
from hubbub.mechanisms.noisy_max import NoisyMax
from hubbub.mechanisms.permute_and_flip import PermuteAndFlip
from hubbub.mechanisms.propose_test_release import ProposeTestRelease
from hubbub.mechanisms.smooth import SmoothNoise

PRICE: dict[str, Any] = {"epsilon": 1}

#: Selections that are made once in each of several cells that share no row: together they cost one (see its theorem).
BY_CELL = {"decision_tree"}


@pytest.fixture
def ana(town: Path) -> Iterator[Session]:
    with open_session(town / "hubbub.yaml", analyst="ana") as session:
        yield session


@pytest.fixture(scope="module")
def refusing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """One session for tests that change nothing: what they ask is refused, or only estimated."""
    with open_session(settle(tmp_path_factory.mktemp("refusing")) / "hubbub.yaml", analyst="ana") as session:
        yield session


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Counter[Event]:
    """Count what the mechanisms draw: one for each time that one is applied."""
    found: Counter[Event] = Counter()

    def watched(sample: Callable[..., Any]) -> Callable[..., Any]:
        def draw(self: Any, value: Any, source: Any) -> Any:
            found[self.event] += 1
            return sample(self, value, source)

        return draw

    for kind in (Binomial, Laplace, Gaussian, Exponential, NoisyMax, PermuteAndFlip, SmoothNoise, ProposeTestRelease):
        monkeypatch.setattr(kind, "sample", watched(kind.sample))
    return found


def parts(event: Event) -> Counter[Event]:
    """Take an event apart, down to single draws."""
    if not isinstance(event, Composed):
        return Counter({event: 1})
    found: Counter[Event] = Counter()
    for part, count in event.parts:
        for each, times in parts(part).items():
            found[each] += times * count
    return found


def test_every_analysis_has_an_example(examples: dict[str, str]) -> None:
    assert set(examples) == set(ANALYSES) - PAID_BEFORE


def test_an_analysis_draws_what_its_event_says(ana: Session, example: tuple[str, str], drawn: Counter[Event]) -> None:
    """No draw is left out of the charge, none is made more often than it was paid for, and nothing is paid in vain."""
    release = ana.query(example[1], **PRICE)
    charged = parts(from_facts(json.loads(json.dumps(release.receipt["event"]))))
    if example[0] in BY_CELL:
        assert drawn.keys() == charged.keys()
        assert all(isinstance(each, SelectionEvent) for each in drawn if drawn[each] != charged[each])
    else:
        assert drawn == (Counter() if example[0] in IN_ADVANCE else charged)


def test_the_price_of_an_analysis_is_what_was_offered_at_most(ana: Session, example: tuple[str, str]) -> None:
    release = ana.query(example[1], **PRICE)
    loss = privacy_cost(from_facts(json.loads(json.dumps(release.receipt["event"]))))
    assert release.epsilon <= 1
    if loss.pure is not None and not release.delta:
        assert loss.pure <= release.epsilon
    found = check_receipt(release.document())
    assert found.sound, found.problems
    assert found.loss


def test_an_estimate_says_the_same_price_and_touches_nothing(
    ana: Session, example: tuple[str, str], drawn: Counter[Event]
) -> None:
    found = ana.estimate(example[1], **PRICE)
    assert not drawn
    assert found.admitted
    assert found.derivation
    assert ana.query(example[1], **PRICE).epsilon == found.epsilon


def test_the_same_call_is_answered_from_the_ledger(ana: Session, example: tuple[str, str]) -> None:
    first = ana.query(example[1], **PRICE)
    again = ana.query(example[1].replace(" => ", "=>").replace(", ", ",\n"), **PRICE)
    assert again.replayed
    assert again.document() == first.document()


def test_an_analysis_that_fails_says_one_constant_and_its_charge_stays(
    ana: Session, example: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = [each.largest for each in ana.budget()]

    def fail(sql: str) -> None:
        raise ValueError("CANARY-7431")

    monkeypatch.setattr(ana._curator.engine, "run", fail)
    if example[0] in IN_ADVANCE:
        assert ana.query(example[1], **PRICE).rows
        return
    with pytest.raises(RunError) as failure:
        ana.query(example[1], **PRICE)
    assert "CANARY" not in str(failure.value)
    assert failure.value.__cause__ is None
    assert failure.value.__context__ is None
    assert sum(each.largest for each in ana.budget()) < sum(before)


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), "many", 10**30, Fraction(1, 10**40)])
def test_a_price_that_is_none_is_refused_before_anything(
    refusing: Session, example: tuple[str, str], epsilon: Any, drawn: Counter[Event]
) -> None:
    before = refusing.budget()
    with pytest.raises(HubbubError) as refusal:
        refusing.query(example[1], epsilon=epsilon)
    assert not isinstance(refusal.value, RunError)
    assert not drawn
    assert refusing.budget() == before


def test_progress_goes_from_start_to_end(ana: Session, example: tuple[str, str]) -> None:
    from hubbub.curator.question import Question

    steps: list[tuple[float, str]] = []
    ana._curator.query("ana", Question(example[1], **PRICE), progress=lambda done, what: steps.append((done, what)))
    assert all(0 <= done <= 1 and what for done, what in steps)
    assert [done for done, _ in steps] == sorted(done for done, _ in steps)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("CALL nothing(table => 'people')", "no analysis called nothing"),
        ("CALL nothing(", "HB581"),
        ("CALL nothing(table => 'people', table => 'people')", "given twice"),
        ("CALL nothing(a => [[[[[[[[[[1]]]]]]]]]])", "nested"),
        ("CALL nothing(a => DROP)", "neither a number"),
        ("CALL nothing(a => 1); DROP TABLE people", "unexpected text after the call"),
    ],
)
def test_a_call_that_is_none_is_refused(refusing: Session, text: str, words: str) -> None:
    with pytest.raises(QueryError, match=words):
        refusing.query(text, **PRICE)


def test_all_analyses_run_in_one_process(town: Path, examples: dict[str, str]) -> None:
    with ExitStack() as stack:
        session = stack.enter_context(open_session(town / "hubbub.yaml", analyst="ana"))
        for text in examples.values():
            assert session.query(text, epsilon=Fraction(1, 2)).receipt["analysis"] == text.split("(")[0].split()[1]


WRONG: tuple[object, ...] = (
    None,
    True,
    False,
    -1,
    0,
    10**30,
    Fraction(1, 4),
    -Fraction(1, 8),
    "",
    "x",
    "x'; DROP TABLE people; --",
    "\u202e",
    [],
    [[]],
    [None],
    [1, "x"],
    ["x", "x"],
    ["x"] * 300,
    {},
    {"x": 1},
    {"name": "x"},
    [{"name": "x", "bins": "many"}],
    [{"column": "x", "bins": -1}],
    [["x", "y"]],
    "people",
    "nobody",
    10**400,
)


def test_hostile_arguments_are_refused_frankly_or_answered(refusing: Session, example: tuple[str, str]) -> None:
    """Whatever stands in the place of an argument: an estimate, or an error of ours with a remedy."""
    call = parse_call(example[1])
    known = [
        each.name
        for each in inspect.signature(function(example[0])).parameters.values()
        if each.kind is each.KEYWORD_ONLY
    ]
    others = []
    for name in known:
        for value in WRONG:
            text = AnalysisCall(call.name, {**call.arguments, name: value}).text()
            try:
                refusing.estimate(text, **PRICE)
            except HubbubError as refusal:
                if not refusal.remedy:
                    others.append(f"{text}: no remedy")
            except Exception as error:  # noqa: BLE001
                others.append(f"{text[:160]}: {type(error).__name__}: {str(error)[:80]}")
    assert others == []
