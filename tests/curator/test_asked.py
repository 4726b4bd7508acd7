"""Plans that are kept for an analyst: the same as without a cache, and no way to find out what others asked."""

import pkgutil
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from importlib import import_module
from inspect import signature
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.sql.corpus.queries import Entry, entries
from tests.sql.corpus.worlds import WORLDS

import hubbub.curator
import hubbub.sql
from hubbub.config import load
from hubbub.core.asked import Asked, asking
from hubbub.core.events import to_facts
from hubbub.curator import query, reuse
from hubbub.curator.planner import Planner
from hubbub.curator.question import Question
from hubbub.curator.session import Session
from hubbub.engines.base import EngineLimits
from hubbub.engines.duckdb import connection
from hubbub.errors import HubbubError
from hubbub.sql import bind, parse
from hubbub.sql.derived import derive
from hubbub.sql.plan import plan

_NUMBER = re.compile(r"(?<![\w$.'])\d+(?:\.\d+)?(?![\w.'])")


def planner(world: str) -> Planner:
    tables = WORLDS[world]().tables
    policy = SimpleNamespace(analysts={"ana": set(tables)}, groups={}, caps=lambda _, __: [])
    config: Any = SimpleNamespace(policy=policy, max_cells=10**6, hashing="engine", limits=EngineLimits())
    engine: Any = SimpleNamespace(dialect="duckdb")
    blocks: Any = SimpleNamespace(of=dict)
    return Planner(config, tables, engine, blocks)


def asked_in(entry: Entry, text: str, epsilon: str) -> Question:
    options: dict[str, Any] = {name: int(entry.options[name]) for name in ("groups", "rows") if name in entry.options}
    delta, dialect = entry.options.get("delta", "0"), entry.options.get("dialect", "duckdb")
    return Question(text, epsilon=epsilon, delta=delta, parameters=entry.parameters, dialect=dialect, **options)


def outcome(plans: Planner, question: Question) -> Any:
    """Everything that a plan decides, or the whole error."""
    try:
        planned = plans.plan("ana", question, salt="corpus")
    except HubbubError as error:
        return str(error)
    return (
        planned.statements,
        to_facts(planned.event),
        (planned.epsilon, planned.delta, planned.noise, planned.cells, planned.limits, planned.relation),
        planned.expected,
        planned.derivation,
        planned.receipt(),
        planned.left_out(),
        question.text(),
    )


@pytest.mark.parametrize("world", sorted(WORLDS))
def test_cached_plans_are_the_plans_without_a_cache(world: str) -> None:
    """Every query of the corpus, with its own constants, with others, and at another price; all in one cache."""
    plans, kept, others = planner(world), Asked(most=10**6, room=10**9), 0
    for entry in entries(world):
        varied = _NUMBER.sub(lambda number: str(int(number[0]) + 1) if number[0].isdigit() else number[0], entry.text)
        asked = [asked_in(entry, *each) for each in ((entry.text, "1"), (varied, "1"), (entry.text, "2"))]
        fresh = [outcome(plans, question) for question in asked]
        others += fresh[0][0] != fresh[1][0]
        with asking(kept):
            assert [outcome(plans, question) for question in asked] == fresh, entry.id
            assert [outcome(plans, question) for question in asked] == fresh, entry.id
    assert others > 20  # constants that change the SQL, so that mixing two of them up would show


@pytest.fixture
def worked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """List what is parsed and planned."""
    done: list[str] = []
    parsing, planning = parse._parse, Planner._plan_in_time

    def parsed(text: str, *args: Any, **options: Any) -> Any:
        done.append("parse")
        return parsing(text, *args, **options)

    def planned(self: Planner, *args: Any, **options: Any) -> Any:
        done.append("plan")
        return planning(self, *args, **options)

    monkeypatch.setattr(parse, "_parse", parsed)
    monkeypatch.setattr(Planner, "_plan_in_time", planned)
    return done


SQL = "SELECT region, COUNT(*) FROM visits GROUP BY region"


def test_nobody_finds_what_others_asked(session: Session, worked: list[str]) -> None:
    """How much work a question is depends on what this analyst asked before, and on nobody else."""
    curator = session._curator
    work = list[list[str]]()

    def ask(analyst: str) -> None:
        worked.clear()
        curator.estimate(analyst, Question(SQL, epsilon="0.1"))
        work.append(list(worked))

    for analyst in ("ana", "ana", "ben", "ben", "ana"):
        ask(analyst)
    assert work == [["parse", "plan"], [], ["parse", "plan"], [], []]


def test_an_answer_is_parsed_and_planned_once(session: Session, worked: list[str]) -> None:
    session.query(SQL, epsilon="0.1")
    assert worked == ["parse", "plan"]
    assert session.query(SQL, epsilon="0.1").replayed
    assert worked == ["parse", "plan"]
    session.query(SQL, epsilon="0.2")
    assert worked == ["parse", "plan", "plan"]


def test_nobody_finds_by_an_answer_what_others_asked(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Like plans, what the engine parsed is kept for the analyst who asked."""
    parsed, real = list[str](), connection._parse

    def parse_one(cursor: Any, sql: str) -> Any:
        parsed.append(sql)
        return real(cursor, sql)

    monkeypatch.setattr(connection, "_parse", parse_one)
    work = list[int]()
    for number, analyst in enumerate(("ana", "ana", "ben", "ben", "ana")):
        parsed.clear()
        session._curator.query(analyst, Question(SQL, epsilon="0.1"), key=f"key {number}")
        work.append(len(parsed))
    assert work == [1, 0, 1, 0, 0]


def test_an_estimate_that_was_made_before_plans_nothing(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    planned = list[bool]()

    def counted(*args: Any, **options: Any) -> Any:
        planned.append(True)
        return plan(*args, **options)

    monkeypatch.setattr(query, "plan", counted)
    first = session.estimate(SQL, epsilon="0.1")
    assert len(planned) == 3  # and at two other prices
    again = session.estimate(SQL, epsilon="0.1")
    assert len(planned) == 3
    assert again.scaling == first.scaling
    assert [epsilon for epsilon, _ in again.scaling] == [Fraction(1, 40), Fraction(1, 10), Fraction(2, 5)]


def test_a_free_answer_is_worked_out_once_for_the_same_releases(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An offer is kept until there is another release, and for the analyst who asked alone."""
    worked = list[int]()

    def counted(described: Any, sources: Any) -> Any:
        worked.append(len(sources))
        return derive(described, sources)

    monkeypatch.setattr(reuse, "derive", counted)

    def offer(analyst: str) -> tuple[Any, int]:
        worked.clear()
        return session._curator.estimate(analyst, Question(SQL, epsilon="0.1")).free, len(worked)

    assert offer("ana") == (None, 0)
    first = session.query(SQL, epsilon="0.1").receipt["ledger"][0]["sequence"]
    one, times = offer("ana")
    assert (one.releases, times > 0) == ((first,), True)
    assert offer("ana") == (one, 0)
    assert offer("ben") == (None, 0)
    second = session.query(SQL, epsilon="0.2", key="new noise").receipt["ledger"][0]["sequence"]
    two, times = offer("ana")
    assert (two.releases, times > 0) == ((first, second), True)
    assert offer("ana") == (two, 0)
    session._curator.query("ben", Question(SQL, epsilon="0.1"), key="his own")
    assert offer("ben")[1] > 0
    assert offer("ben")[1] == 0
    assert offer("ana") == (two, 0)


def test_a_changed_hubbub_yaml_forgets_what_was_planned(session: Session, clinic: Path) -> None:
    before = session.estimate(SQL, epsilon="0.1")
    path = clinic / "hubbub.yaml"
    path.write_text(path.read_text().replace("groups: 3, rows: 4", "groups: 1, rows: 1"))
    curator, config = session._curator, load(path)
    tables = {name: dataset.table for name, dataset in config.datasets.items()}
    after = curator.under(config, tables, curator.engine).estimate("ana", Question(SQL, epsilon="0.1"))
    assert after.expected[0].plus_minus < before.expected[0].plus_minus / 5


VALUES: list[Any] = [1, True, 1.0, Fraction(1), Decimal(1), Decimal("1.0"), "1", None, b"1"]


@pytest.mark.parametrize("name", ["epsilon", "within", "delta", "parameters", "groups", "weights"])
def test_equal_values_of_different_types_are_different_questions(name: str) -> None:
    wrap: dict[str, Callable[[Any], Any]] = {
        "parameters": lambda value: (value,),
        "weights": lambda value: {"n": value},
    }
    keys = {Question("SELECT 1", **{name: wrap.get(name, lambda value: value)(value)}).exact() for value in VALUES}
    assert len(keys) == len(VALUES)


def test_options_cannot_take_each_others_places() -> None:
    """A parameter is no weight, and a value in one option is not the same value in another."""
    questions = [
        Question("q", parameters=("n", 1)),
        Question("q", weights={"n": 1}),
        Question("q", parameters=("n",), weights={1: "n"}),  # type: ignore[dict-item]
        Question("q", epsilon=1),
        Question("q", within=1),
        Question("q", delta=1),
        Question("q", groups=1),
        Question("q", rows=1),
        Question("q", raw=True),
        Question("q", intervals="joint"),
        Question("q", dialect="postgres"),
        Question("q", user_function=lambda _: None),  # type: ignore[arg-type,return-value]
        Question("q"),
    ]
    assert len({question.exact() for question in questions}) == len(questions)


def caches() -> Iterator[tuple[str, Any]]:
    for room in (hubbub.sql, hubbub.curator):
        for found in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
            for name, value in vars(import_module(found.name)).items():
                if hasattr(value, "cache_info") and value.__module__ == found.name:
                    yield f"{found.name}.{name}", value


def test_no_shared_cache_is_keyed_by_what_analysts_write() -> None:
    """Caches for all analysts at once have numbers as keys, or what an owner declared; never a text of an analyst."""
    keys = {name: {str(each.annotation) for each in signature(cache).parameters.values()} for name, cache in caches()}
    assert "hubbub.sql.split.zcdp_budget" in keys
    by_text = {name for name, kinds in keys.items() if any("str" in kind or "Expr" in kind for kind in kinds)}
    assert by_text == set()


def test_binding_has_no_memory_of_its_own(worked: list[str]) -> None:
    """Whoever binds outside of a curator parses each time."""
    tables = WORLDS["health"]().tables
    for _ in range(2):
        bind.bind("SELECT COUNT(*) FROM health", tables=tables)
    assert worked == ["parse", "parse"]
