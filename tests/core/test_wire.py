"""Values survive a round trip through JSON: from_json(to_json(x)) == x."""

import json
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any, Protocol, Self, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.answers import options
from hubbub.answers.budget import BudgetOverview, CapState, PastCharge
from hubbub.answers.estimate import Estimate, Expected
from hubbub.answers.options import Options
from hubbub.answers.release import Output, Release
from hubbub.core import wire
from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.core.unit import Relation
from hubbub.errors import ParameterError, QueryError


class Serializable(Protocol):
    def to_json(self) -> dict[str, Any]: ...

    @classmethod
    def from_json(cls, form: dict[str, Any]) -> Self: ...


T = TypeVar("T", bound=Serializable)


def sent(thing: T) -> T:
    """Send it through JSON, as strict as a server writes it."""
    return type(thing).from_json(json.loads(json.dumps(thing.to_json(), allow_nan=False)))


texts = st.text(st.characters(codec="utf-8"), max_size=12)
integers = st.integers(-(10**40), 10**40)
fractions = st.fractions() | st.fractions(max_denominator=10**30)
reals = st.floats(allow_nan=False, allow_infinity=False)
ends = st.none() | reals
timestamps = st.datetimes().map(lambda each: each.replace(fold=0))  # a time without zone has no fold
values = st.booleans() | integers | fractions | texts | st.dates() | timestamps
nothing = st.none()


def columns_of(count: int) -> st.SearchStrategy[Output]:
    def column(kind: str, cells: st.SearchStrategy[Any]) -> st.SearchStrategy[Output]:
        many = st.lists(nothing | cells, min_size=count, max_size=count)
        bounds = nothing | st.lists(ends, min_size=count, max_size=count)
        return st.builds(Output, texts, st.just(kind), many, bounds, bounds)

    return st.one_of(
        column("boolean", st.booleans()),
        column("integer", integers),
        column("real", reals),
        column("text", texts),
        column("date", st.dates()),
        column("timestamp", timestamps),
    )


@st.composite
def releases(draw: st.DrawFn) -> Release:
    count = draw(st.integers(0, 4))
    outputs: Sequence[Output] = draw(st.lists(columns_of(count), max_size=4))
    ratio = draw(st.lists(ends, min_size=count, max_size=count))
    receipt = draw(st.dictionaries(texts, texts | integers | st.lists(reals)))
    left, replayed = draw(nothing | fractions), draw(st.booleans())
    return Release(tuple(outputs), ratio, draw(fractions), draw(fractions), receipt, left, replayed)


expected = st.builds(Expected, texts, reals, nothing | st.integers(0), reals, st.sampled_from(["value", "rank"]))
many_expected = st.lists(expected, max_size=3).map(tuple)
words = st.lists(texts, max_size=3).map(tuple)
estimates = st.builds(
    Estimate,
    words,
    fractions,
    fractions,
    texts,
    st.integers(0),
    many_expected,
    words,
    st.booleans(),
    fractions,
    st.lists(st.tuples(fractions, many_expected), max_size=3).map(tuple),
    words,
)
scopes = st.sampled_from(["query", "analyst", "group", "dataset"])
caps = st.builds(
    CapState,
    scopes,
    texts,
    st.sampled_from([None, "day", "month"]),
    fractions,
    fractions,
    nothing | fractions,
    fractions,
)
overviews = st.builds(
    BudgetOverview,
    texts,
    texts,
    st.lists(caps, max_size=3).map(tuple),
    fractions,
    nothing | texts,
    nothing | st.integers(0),
)
pasts = st.builds(
    PastCharge,
    st.integers(1),
    timestamps.map(lambda each: each.replace(tzinfo=UTC)),
    texts,
    texts,
    texts,
    fractions,
    fractions,
    st.booleans(),
)
bounds = st.tuples(fractions, fractions).map(lambda pair: Bounds(min(pair), max(pair)))
columns = st.builds(
    Column,
    texts,
    st.sampled_from(Kind),
    nothing | bounds,
    nothing | fractions,
    nothing | st.lists(values, max_size=4).map(tuple),
    nothing | values,
    st.booleans(),
)
units = st.builds(PrivacyUnit, nothing | texts, st.integers(1), st.integers(1), texts)
tables = st.builds(
    Table, texts, st.lists(columns, max_size=4).map(tuple), nothing | units, st.sampled_from(Relation), nothing | words
)


def same(one: object, other: object) -> bool:
    """Say whether both are equal and of equal types throughout: 1, 1.0 and True are equal to Python."""
    return one == other and repr(one) == repr(other)


@given(releases())
def test_a_release_comes_back_the_same(release: Release) -> None:
    again = sent(release)
    assert again == release
    assert repr(again.outputs) == repr(release.outputs)
    assert again.document() == release.document()


@given(estimates)
def test_an_estimate_comes_back_the_same(estimate: Estimate) -> None:
    assert sent(estimate) == estimate


@given(overviews)
def test_an_overview_comes_back_the_same(overview: BudgetOverview) -> None:
    assert same(sent(overview), overview)


@given(pasts)
def test_a_past_charge_comes_back_the_same(past: PastCharge) -> None:
    assert same(sent(past), past)


@given(tables)
def test_a_table_comes_back_the_same(table: Table) -> None:
    assert same(sent(table), table)


def test_what_a_server_says_beside_a_table_is_left_alone() -> None:
    table = Table("t", (), None)
    assert Table.from_json(table.to_json() | {"protected": "each person"}) == table


numbers = (
    st.integers(-1000, 1000) | fractions | st.decimals(allow_nan=False, allow_infinity=False, places=5) | st.text()
)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "epsilon": nothing | numbers,
            "within": nothing | numbers,
            "delta": nothing | numbers,
            "parameters": st.lists(values, max_size=4).map(tuple),
            "groups": nothing | st.integers(),
            "rows": nothing | st.integers(),
            "weights": nothing | st.dictionaries(texts, numbers),
            "raw": st.booleans(),
            "dialect": texts,
        },
    )
)
def test_options_come_back_with_the_same_meaning(given: Options) -> None:
    def meaning(found: Any) -> Any:
        plain = (lambda x: str(Fraction(x))) if not isinstance(found, str) else str
        return plain(found) if isinstance(found, int | Fraction | Decimal) else found

    again: dict[str, Any] = dict(options.from_json(json.loads(json.dumps(options.to_json(given), allow_nan=False))))
    assert again.keys() == given.keys()
    for name, found in dict(given).items():
        if name == "weights" and found is not None:
            assert isinstance(found, dict)
            assert {k: meaning(v) for k, v in found.items()} == {k: meaning(v) for k, v in again[name].items()}
        elif name == "parameters":
            assert same(again[name], found)
        else:
            assert meaning(again[name]) == meaning(found)


def test_a_float_is_taken_as_the_decimal_that_it_shows() -> None:
    form = options.to_json({"epsilon": 0.1, "parameters": [0.1, Decimal("2.50")]})
    assert form == {"epsilon": 0.1, "parameters": [{"number": "1/10"}, {"number": "5/2"}]}
    assert wire.read_value(0.1) == Fraction(1, 10)


@pytest.mark.parametrize(
    "form",
    [
        None,
        [],
        {},
        {"date": "31.1.2020"},
        {"date": "2020-01-31", "number": "1"},
        {"number": "1/0"},
        {"number": 3},
        {"timestamp": ""},
        float("nan"),
        {"bytes": "00"},
    ],
)
def test_a_value_of_another_form_is_refused(form: object) -> None:
    with pytest.raises(ParameterError):
        wire.read_value(form)


@pytest.mark.parametrize("value", [None, b"x", [1], datetime(2020, 1, 1, tzinfo=UTC), 1j])
def test_a_parameter_that_cannot_be_sent_is_refused_as_the_binder_does(value: Any) -> None:
    with pytest.raises(QueryError, match="HB509"):
        options.to_json({"parameters": [value]})


@pytest.mark.parametrize(("value", "code"), [(float("nan"), "HB102"), (True, "HB101"), ([1], "HB101"), (1j, "HB101")])
def test_what_is_no_number_is_refused_before_it_is_sent(value: Any, code: str) -> None:
    asked: tuple[Options, ...] = ({"epsilon": value}, {"weights": {"n": value}})
    for each in asked:
        with pytest.raises(ParameterError, match=code):
            options.to_json(each)


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(ParameterError, match="HB139"):
        options.from_json({"epsilon": 1, "eps": 2})


def test_the_first_day_of_all_travels_too() -> None:
    assert wire.read_value(wire.value(date.min)) == date.min
