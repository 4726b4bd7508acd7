"""The index of earlier releases: which are found, which are forgotten, and that looking them up stays cheap."""

from typing import Any

import pytest
from tests.sql.test_cuts import DATA, chosen, describe_text, source

from hubbub.sql import source_index
from hubbub.sql.cuts import cuts
from hubbub.sql.derived import derive
from hubbub.sql.measured import describe
from hubbub.sql.source_index import MOST_ALIKE, SourceIndex, candidates
from hubbub.sql.terms import Source

TOTAL = "SELECT COUNT(*) FROM v"
LOW, HIGH, OTHER = (f"{TOTAL} WHERE cost {each}" for each in ("< 10", "< 20", "< 30"))


def numbers(text: str, *earlier: str) -> list[int]:
    described = [describe_text(each) for each in earlier]
    return [each.number for each in chosen(describe_text(text), [source(d, n) for n, d in enumerate(described, 2)])]


def test_a_release_with_an_end_of_its_own_is_left_out() -> None:
    between = f"{TOTAL} WHERE cost >= 10 AND cost < 20"
    # nothing has the end at 20, so that nothing overlaps; the total has no condition, and may be added up
    assert numbers(between, TOTAL, LOW, OTHER) == [2]
    assert numbers(between, TOTAL, LOW, OTHER, HIGH) == [2, 3, 5]
    # a chain: the ends at 10 and 20 are shared, and that at 30 is not
    assert numbers(f"{TOTAL} WHERE cost < 10", HIGH, f"{TOTAL} WHERE cost >= 20 AND cost < 30", TOTAL) == [4]


def test_other_rows_other_data_and_other_bounds_are_left_out() -> None:
    described = describe_text(LOW)
    same = source(described, 2)
    for name, value in (("of", "'w' as 0"), ("tables", "other"), ("public", {"p": "1"}), ("given", [1, None])):
        changed = Source(3, {**same.facts, name: value}, same.noises)
        assert [each.number for each in chosen(described, [same, changed])] == [2], name


def test_what_is_hidden_or_removed_is_not_found() -> None:
    described = describe_text(f"{TOTAL} WHERE cost >= 10 AND cost < 20")
    index = SourceIndex()
    for number, text in enumerate((LOW, HIGH, TOTAL), 2):
        index.add(source(describe_text(text), number))

    def found(hidden: Any = frozenset()) -> list[int]:
        return [each.number for each in candidates(described, DATA, [(index, hidden)])]

    assert found() == [2, 3, 4]
    assert found({3}) == [2, 4]
    index.remove(3)
    index.remove(3)
    assert found() == [4]
    index.add(source(describe_text(HIGH), 9))
    assert found() == [2, 4, 9]


def test_sources_of_several_analysts_are_looked_at_together() -> None:
    described = describe_text(f"{TOTAL} WHERE cost >= 10 AND cost < 20")
    one, other = SourceIndex(), SourceIndex()
    one.add(source(describe_text(LOW), 2))
    other.add(source(describe_text(HIGH), 3))

    def found(*indexes: SourceIndex) -> list[int]:
        return [each.number for each in candidates(described, DATA, [(each, frozenset()) for each in indexes])]

    assert found(one) == []
    assert found(other) == [3]  # all of its rows fulfill a condition of the query
    assert found(one, other) == [2, 3]


def test_a_release_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 300 releases with ends of their own, a new question looks at none."""
    looked = list[bool]()
    original = cuts

    def counted(*args: Any, wanted: bool) -> Any:
        looked.append(wanted)
        return original(*args, wanted=wanted)

    monkeypatch.setattr(source_index, "cuts", counted)
    facts, noises = source(describe_text(LOW), 2).facts, source(describe_text(LOW), 2).noises
    index = SourceIndex()
    for number in range(2, 302):
        (condition,) = facts["where"]
        where = [condition.replace('"10"', f'"{30 + number}"').replace("10", str(30 + number))]
        index.add(Source(number, {**facts, "where": where}, noises))
    described = describe_text(HIGH)
    assert candidates(described, DATA, [(index, frozenset())]) == []
    assert looked == [False] * 300 + [True]
    assert candidates(described, DATA, [(index, frozenset())]) == []
    assert looked[301:] == [True]


def test_bounds_that_a_query_asks_for_are_compared() -> None:
    plain = describe_text(LOW)
    bounded = describe(plain.plan, (None, 1))
    assert bounded is not None
    assert chosen(plain, [source(bounded, 2)]) == []
    assert [each.number for each in chosen(bounded, [source(bounded, 2)])] == [2]


def test_of_releases_that_differ_in_nothing_the_first_are_enough() -> None:
    described = describe_text(TOTAL)
    same = source(described, 2)
    many = [Source(number, same.facts, same.noises) for number in range(2, 120)]
    assert [each.number for each in chosen(described, many)] == list(range(2, 2 + MOST_ALIKE))
    few = chosen(described, many)
    whole, part = derive(described, many), derive(described, few)
    assert whole is not None
    assert part is not None
    assert part.plan.measures == whole.plan.measures
    assert [many[place].number for place in whole.used] == [few[place].number for place in part.used]
