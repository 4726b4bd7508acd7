"""Which rule selects: permute-and-flip where caps have no δ, the exponential mechanism where they have one."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from hubbub.accounting.cost import privacy_cost
from hubbub.analyses.base import PreparedAnalysis, Setting
from hubbub.analyses.functions.sample_and_aggregate import AggregateRequest
from hubbub.analyses.programs.hyperplane import hyperplane
from hubbub.analyses.synthetic.mwem import mwem
from hubbub.core.events import Composed, SelectionEvent
from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.core.unit import Relation
from hubbub.sql.bounding import RenderOptions

RANGE = Bounds(Fraction(0), Fraction(100))
COLUMNS = (
    Column("x", Kind.REAL, RANGE),
    Column("y", Kind.REAL, RANGE),
    Column("big", Kind.BOOLEAN),
    Column("kind", Kind.TEXT, values=("a", "b")),
)
Make = Callable[[Setting], PreparedAnalysis]
CODE = "def f(rows): return rows['x'][0]"
ANALYSES: dict[str, Make] = {
    "hyperplane": lambda at: hyperplane(at, table="t", columns=["x", "y"], target="big", bins=4),
    "mwem": lambda at: mwem(at, table="t", columns=["kind", "big"], ways=1),
    "sample_and_aggregate": lambda at: AggregateRequest.of(
        CODE, "t", ["x"], bounds=(0, 100), blocks=5, how="median"
    ).prepare(at, None),
}


def made(name: str, relation: Relation, delta: Fraction) -> Any:
    table = Table("t", COLUMNS, PrivacyUnit(None), relation)
    return ANALYSES[name](Setting({"t": table}, Fraction(1), delta, RenderOptions("s")))


def selections(event: Any) -> list[SelectionEvent]:
    assert isinstance(event, Composed)
    return [part for part, _ in event.parts if isinstance(part, SelectionEvent)]


@pytest.mark.parametrize("name", ANALYSES)
@pytest.mark.parametrize("relation", Relation)
def test_the_delta_of_the_caps_decides_at_the_same_price(name: str, relation: Relation) -> None:
    pure, approximate = (made(name, relation, delta) for delta in (Fraction(0), Fraction(1, 10**6)))
    assert {each.rule for each in selections(pure.event)} == {"permute_and_flip"}
    assert {each.rule for each in selections(approximate.event)} == {"exponential"}
    assert privacy_cost(pure.event).pure == privacy_cost(approximate.event).pure
    assert Fraction(99, 100) <= (privacy_cost(pure.event).pure or 0) <= 1
    # what differs is the rule alone, and what a cap with δ charges for it
    rates = [
        [(each.sensitivity, each.monotone, each.rate) for each in selections(one.event)] for one in (pure, approximate)
    ]
    assert rates[0] == rates[1]
    assert sum(privacy_cost(approximate.event).gaussian or ()) < sum(privacy_cost(pure.event).gaussian or ())
    assert "permute-and-flip" in pure.noise
    assert "exponential mechanism" in approximate.noise
