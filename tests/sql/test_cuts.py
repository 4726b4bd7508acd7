"""Cuts: what is left out of the search for free answers could not have helped."""

import random
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import pytest

from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.sql import cuts as cuts_module
from hubbub.sql import source_index
from hubbub.sql.atoms import expression_columns, parts
from hubbub.sql.bind import bind
from hubbub.sql.coarser import query_grouping
from hubbub.sql.cuts import cuts
from hubbub.sql.derived import Derivation, derive
from hubbub.sql.measured import Described, describe, measured
from hubbub.sql.noise import variance_of
from hubbub.sql.plan import plan
from hubbub.sql.source_index import SourceIndex, candidates
from hubbub.sql.terms import Source

TABLE = Table(
    "v",
    (
        Column("site", Kind.TEXT, values=("a", "b", "c"), required=True),
        Column("ward", Kind.TEXT, values=("x", "y")),
        Column("word", Kind.TEXT),
        Column("age", Kind.INTEGER, bounds=Bounds(Fraction(0), Fraction(9)), required=True),
        Column("height", Kind.INTEGER, bounds=Bounds(Fraction(0), Fraction(2500))),
        Column("cost", Kind.REAL, bounds=Bounds(Fraction(0), Fraction(100)), step=Fraction(1, 2)),
        Column("day", Kind.DATE),
    ),
    PrivacyUnit(None),
)
DATA = {"tables": "t", "public": dict[str, str]()}
#: Few literals, so that releases overlap often.
CONDITIONS = (
    "site = 'a'",
    "site <> 'a'",
    "site IN ('b', 'c')",
    "ward = 'x'",
    "ward IS NULL",
    "word = 'u'",
    "word <> 'u'",
    "word < 'm'",
    "word IS NOT NULL",
    "age < 4",
    "age >= 4",
    "age BETWEEN 4 AND 6",
    "age * 2 > 13",
    "height < 1500",
    "height >= 1500",
    "height <= 1499",
    "cost < 10",
    "cost >= 10",
    "cost < 20",
    "cost BETWEEN 10 AND 20",
    "cost IS NULL",
    "day < DATE '2020-01-01'",
    "day >= DATE '2020-01-01'",
    "(site = 'a' OR age < 4)",
    "(cost < 10 OR cost >= 20)",
)
KEYS = ("", "", "site", "ward", "age", "site, ward")


def describe_text(text: str) -> Described:
    made = plan(bind(text, tables={"v": TABLE}), epsilon=Fraction(1), delta=Fraction(0), salt="s")
    described = describe(made, (None, None))
    assert described is not None, text
    return described


def source(described: Described, number: int) -> Source:
    facts = measured(described)
    assert facts is not None
    noises = tuple((each.mechanism,) * len(facts["sets"]) for each in described.plan.measures)
    return Source(number, facts | DATA, noises)


@cache
def pool() -> list[Described]:
    """Random counts with up to two conditions and two keys, always the same."""
    chance, texts = random.Random(7), dict[str, None]()
    for where in CONDITIONS:
        texts[f"SELECT COUNT(*) FROM v WHERE {where}"] = None
    while len(texts) < 90:
        tests, keys = chance.sample(CONDITIONS, chance.randrange(3)), chance.choice(KEYS)
        text = f"SELECT {f'{keys}, ' if keys else ''}COUNT(*) FROM v"
        text += f" WHERE {' AND '.join(tests)}" if tests else ""
        texts[text + (f" GROUP BY {keys}" if keys else "")] = None
    return [describe_text(each) for each in texts]


def chosen(described: Described, sources: Sequence[Source]) -> list[Source]:
    index = SourceIndex()
    for each in sources:
        index.add(each)
    return candidates(described, DATA, [(index, frozenset())])


def variance(found: Derivation | None) -> float | None:
    """How exactly a query is answered; None if it is not."""
    return None if found is None else float(variance_of(found.plan.measures[0].mechanism))


def differences(worlds: int) -> tuple[int, int, int]:
    """Count how often leaving out lost exactness, how often there was one, and how many sources were left out."""
    chance, every = random.Random(11), pool()
    columns = [_columns(each) for each in every]
    changed = answered = left_out = 0
    for _ in range(worlds):
        # conditions on few columns, so that many queries follow
        about = chance.sample(("site", "ward", "word", "age", "height", "cost", "day"), 2)
        near = [each for each, own in zip(every, columns, strict=True) if own <= set(about)]
        made = chance.sample(near, min(len(near), chance.randrange(2, 9))) + chance.sample(every, 3)
        described = chance.choice(near)
        sources = [source(each, number) for number, each in enumerate(made, 2)]
        few = chosen(described, sources)
        whole, part = variance(derive(described, sources)), variance(derive(described, few))
        answered += whole is not None
        left_out += len(sources) - len(few)
        # it may be more exact: what cannot help leaves room for what can
        changed += whole is not None and (part is None or part > whole * (1 + 1e-6))
    return changed, answered, left_out


def _columns(described: Described) -> set[str]:
    keys = [*described.rows.where.values(), *described.keys]
    return {name.removeprefix("0.") for each in keys for name, _ in parts(each)}


def test_what_is_left_out_changes_no_derivation() -> None:
    changed, answered, left_out = differences(80)
    assert changed == 0
    assert answered > 40
    assert left_out > 150


def test_a_forgotten_change_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted error: a release that alone has one end of an interval is left out, also if the query has it."""
    original = cuts

    def planted(*args: Any, wanted: bool) -> Any:
        found = original(*args, wanted=wanted)
        return cuts_module.Cuts(frozenset(), found.sharp, frozenset()) if wanted else found

    monkeypatch.setattr(source_index, "cuts", planted)
    assert differences(80)[0] > 0


def test_cuts_lie_where_rows_enter_and_leave() -> None:
    columns = expression_columns(TABLE.columns)

    def places(text: str, *, wanted: bool = True) -> tuple[set[Any], set[Any], set[str]]:
        described = describe_text(text)
        (groups,) = described.plan.cells
        keys = [described.keys[place] for place in groups.places]
        found = cuts(query_grouping(described.rows.where.values(), keys, groups), columns, wanted=wanted)
        return set(found.every), set(found.sharp), set(found.loose)

    assert places("SELECT COUNT(*) FROM v") == (set(), set(), set())
    assert places("SELECT COUNT(*) FROM v WHERE cost < 10") == ({("0.cost", 10.0)}, {("0.cost", 10.0)}, set())
    # NULL is not above 10, so that there is a cut above all values
    assert places("SELECT COUNT(*) FROM v WHERE cost >= 10")[1] == {("0.cost", 10.0), ("0.cost", None)}
    assert places("SELECT COUNT(*) FROM v WHERE age >= 4")[1] == {("0.age", 4.0)}
    assert places("SELECT COUNT(*) FROM v WHERE site = 'b'")[1] == {("0.site", "b"), ("0.site", "c")}
    by_site = "SELECT site, COUNT(*) FROM v WHERE age < 4 GROUP BY site"
    ends = {("0.site", "b"), ("0.site", "c")}
    assert places(by_site) == ({("0.age", 4.0)} | ends, {("0.age", 4.0)} | ends, set())
    # a release by site may be added up over sites
    assert places(by_site, wanted=False)[1] == {("0.age", 4.0)}
    assert places("SELECT COUNT(*) FROM v WHERE word < 'm'") == (set(), set(), {"0.word"})
    # either part may be true where the other is false
    assert places("SELECT COUNT(*) FROM v WHERE site = 'a' OR age < 4") == (
        {("0.site", "b"), ("0.age", 4.0)},
        set(),
        set(),
    )
