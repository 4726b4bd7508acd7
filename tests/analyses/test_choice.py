"""`choose`: the candidate with the largest score, where the score is the analyst's own SQL."""

from fractions import Fraction
from functools import cache
from itertools import product
from pathlib import Path

import pytest

from hubbub.accounting.cost import privacy_cost
from hubbub.analyses.base import Setting
from hubbub.analyses.choice import ChoiceAnalysis, choose
from hubbub.core.events import from_facts
from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.core.unit import Relation
from hubbub.curator.session import open_session
from hubbub.errors import QueryError
from hubbub.mechanisms.enumeration import worst_over
from hubbub.mechanisms.noisy_max import NoisyMax
from hubbub.sql.bounding import RenderOptions

ADD, REPLACE = Relation.ADD_REMOVE, Relation.REPLACE
COUNT = "SELECT COUNT(*) FROM t WHERE k = $1"
COLUMNS = (
    Column("k", Kind.TEXT, values=("a", "b", "c")),
    Column("v", Kind.INTEGER, Bounds(Fraction(-1), Fraction(2))),
    Column("secret", Kind.TEXT, values=("x", "y"), hidden=True),
)
Rows = tuple[tuple[str, int], ...]


def prepared(
    relation: Relation, score: str = COUNT, epsilon: Fraction = Fraction(1), method: str = "noisy_max"
) -> ChoiceAnalysis:
    table = Table("t", COLUMNS, PrivacyUnit(None), relation)
    setting = Setting({"t": table}, epsilon, Fraction(0), RenderOptions("salt"))
    return choose(setting, candidates=["a", "b", "c"], score=score, method=method)  # type: ignore[arg-type]


def scores(rows: Rows, *, values: bool) -> tuple[int, ...]:
    """Compute the scores by hand."""
    return tuple(sum(v if values else 1 for k, v in rows if k == name) for name in "abc")


def neighbors(relation: Relation, *, values: bool) -> set[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Give the scores of all neighboring tables with up to two rows."""
    universe = list(product("abc", (-1, 2)))
    tables = [(), *((row,) for row in universe)]
    pairs = set()
    for rows, one in product(tables, universe):
        more = scores((*rows, one), values=values)
        if relation is ADD:
            pairs.add((scores(rows, values=values), more))
        else:
            pairs |= {(more, scores((*rows, two), values=values)) for two in universe}
    return pairs


@pytest.mark.parametrize("method", ["noisy_max", "exponential", "permute_and_flip"])
@pytest.mark.parametrize(("relation", "values"), [(ADD, False), (REPLACE, False), (ADD, True), (REPLACE, True)])
@pytest.mark.row(110)
def test_enumerated_loss_over_all_neighbors_is_within_the_charge(
    relation: Relation, *, values: bool, method: str
) -> None:
    analysis = prepared(relation, "SELECT SUM(v) FROM t WHERE k = $1" if values else COUNT, Fraction(4), method)
    cost = privacy_cost(analysis.event).pure
    assert analysis.unit == 1
    worst = worst_over(neighbors(relation, values=values), cache(analysis.rule.distribution))
    assert cost is not None
    assert worst.bounds[1] <= cost + Fraction(1, 10**20)
    assert cost <= 4
    assert worst.bounds[0] > Fraction(8, 5)


@pytest.mark.row(42)
def test_printed_noise_of_report_noisy_max_costs_up_to_twice_under_replace() -> None:
    """Lap(1/ε) is enough for counts where one row comes or goes; the planted error under replace is caught."""
    right, wrong = prepared(REPLACE).rule, prepared(ADD).rule
    assert (right.rate, wrong.rate) == (Fraction(1, 2), Fraction(1))
    planted = NoisyMax(candidates=3, sensitivity=1, monotone=True, rate=wrong.rate)
    far = ((0, 8, 8), (1, 7, 8))
    assert worst_over([far], planted.distribution).bounds[0] > Fraction(13, 10)
    assert worst_over([far], lambda each: right.distribution(each)).bounds[1] <= 1


def test_steps_of_different_candidates_are_brought_to_one() -> None:
    table = Table("t", (Column("v", Kind.REAL, Bounds(Fraction(0), Fraction(1)), Fraction(1, 4)),), PrivacyUnit(None))
    setting = Setting({"t": table}, Fraction(1), Fraction(0), RenderOptions("salt"))
    analysis = choose(setting, candidates=[0, Fraction(1, 2)], score="SELECT SUM(v) FROM t WHERE v >= $1")
    assert analysis.unit == Fraction(1, 4)
    assert (analysis.rule.sensitivity, analysis.rule.monotone) == (4, True)


@pytest.mark.parametrize(
    ("candidates", "score", "code"),
    [
        (["a"], COUNT, "HB671"),
        (["a", "a"], COUNT, "HB671"),
        (["a", 1], COUNT, "HB671"),
        ([["a", 1], ["b"]], COUNT, "HB671"),
        (["a", None], COUNT, "HB671"),
        ([str(each) for each in range(1001)], COUNT, "HB671"),
        ("t.secret", COUNT, "HB671"),
        ("t.v", COUNT, "HB671"),
        ("nowhere.k", COUNT, "HB671"),
        (["a", "b"], "SELECT COUNT(*) FROM t", "HB509"),
        (["a", "b"], "SELECT AVG(v) FROM t WHERE k = $1", "HB670"),
    ],
)
def test_calls_that_cannot_be_answered_are_refused(candidates: list[object] | str, score: str, code: str) -> None:
    setting = Setting({"t": Table("t", COLUMNS, PrivacyUnit(None))}, Fraction(1), Fraction(0), RenderOptions("salt"))
    with pytest.raises(QueryError) as refused:
        choose(setting, candidates=candidates, score=score)
    assert refused.value.code == code


@pytest.mark.row(42, 110)
def test_an_analyst_chooses_by_a_score_of_their_own(town: Path) -> None:
    """All 40 rows of one region are far above the noise at ε = 5: wrong with probability below e⁻¹⁰⁰."""
    regions = ["North"] * 3 + ["West"] * 40 + ["East"] * 2
    rows = [f"0,0,0,{age},no,{region},N1" for age, region in enumerate(regions)]
    (town / "people.csv").write_text("x,y,z,age,sick,region,town\n" + "\n".join(rows) + "\n")
    with open_session(town / "hubbub.yaml", analyst="ana") as h:
        sql = "SELECT COUNT(*) FROM people WHERE region = $1"
        release = h.choose("people.region", sql, epsilon=5)
        again = h.choose("people.region", sql, epsilon=5)
        ages = h.choose([(0, 5), (5, 99)], "SELECT COUNT(*) FROM people WHERE age >= $1 AND age < $2", epsilon=5)
    assert release.rows == [(4, "West")]
    assert ages.rows == [(2, 5, 99)]
    assert (again.replayed, again.rows) == (True, release.rows)
    event = from_facts(release.receipt["event"])
    assert privacy_cost(event).pure == 5
    assert (release.receipt["analysis"], release.epsilon) == ("choose", Fraction(5))
