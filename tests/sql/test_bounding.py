"""What the engine gives before noise: on random small tables neighbors are never further apart than is stated."""

import random
from fractions import Fraction

import pytest
from tests.fixtures.visits_table import (
    AGE,
    COST,
    FLAG,
    REGION,
    REGIONS,
    Row,
    arrays,
    connect,
    fill,
    integers,
    query,
    run,
    visits,
)

from hubbub.audit.sensitivity import excess
from hubbub.core.schema import Kind, PrivacyUnit
from hubbub.core.unit import Relation
from hubbub.sql import bounding
from hubbub.sql.expressions import FunctionCall, Literal
from hubbub.sql.finish import exact_results
from hubbub.sql.plan import Plan, plan
from hubbub.sql.query import Aggregate, Key

HALF = Fraction(1, 2)
YOUNG = FunctionCall("lt", (AGE, Literal(40, Kind.INTEGER)), Kind.BOOLEAN)
AGGREGATES = (
    Aggregate("n", "count"),
    Aggregate("nx", "count", (COST,), YOUNG),
    Aggregate("u", "count_units"),
    Aggregate("d", "count_distinct", (AGE,)),
    Aggregate("ds", "sum_distinct", (AGE,)),
    Aggregate("dv", "var_pop_distinct", (COST,), YOUNG),
    Aggregate("s", "sum", (COST,)),
    Aggregate("a", "avg", (AGE,)),
    Aggregate("v", "var_samp", (COST,), YOUNG),
    Aggregate("r", "corr", (COST, AGE)),
    Aggregate("q", "quantile", (COST,), None, HALF),
    Aggregate("p", "quantile", (AGE,), None, Fraction(9, 10)),
    Aggregate("lo", "min", (AGE,)),
    Aggregate("hi", "max", (COST,)),
    Aggregate("mo", "mode", (REGION,)),
)
KEYS = (Key("region", REGION), Key("flag", FLAG))
NASTY: tuple[float | None, ...] = (
    None,
    float("nan"),
    float("inf"),
    float("-inf"),
    -0.0,
    0.0,
    2.0**53,
    -(2.0**53) - 2,
    1e300,
    5e-324,
    199.99999,
    0.1,
)
WHOLE: tuple[int | None, ...] = (None, 0, -1, 2**53 + 1, 2**63 - 1, -(2**63), 110, 111, 39, 40, 41)


def rows_at_random(rng: random.Random, units: int) -> list[Row]:
    made: list[Row] = []
    for unit in range(units):
        for _ in range(rng.choice((0, 1, 1, 2, 5, 12))):
            cost = rng.choice(NASTY) if rng.random() < 0.4 else rng.uniform(-80, 250)
            age = rng.choice(WHOLE) if rng.random() < 0.4 else rng.randrange(0, 100)
            region = rng.choice((*REGIONS, None, "north", "Çá va"))
            row = (unit, region, cost, age, rng.choice((True, False, None)))
            made += [row] * rng.choice((1, 1, 1, 3))
    made += [(None, "North", 1.0, 1, True)] * 3
    rng.shuffle(made)
    return made


UNITS = {
    "row": PrivacyUnit(None),
    "one row in one group": PrivacyUnit("patient", groups=1, rows=1),
    "two rows in three groups": PrivacyUnit("patient", groups=3, rows=2),
    "more than anyone has": PrivacyUnit("patient", groups=8, rows=1000),
}
SETS = {"none": ((), ((),)), "two keys": (KEYS, ((0, 1),)), "cube": (KEYS, ((0, 1), (0,), (1,), ()))}


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("grouping", SETS)
@pytest.mark.parametrize("unit", UNITS)
def test_neighbors_are_within_the_stated_sensitivity(unit: str, grouping: str, relation: Relation) -> None:
    rng = random.Random(f"{unit} {grouping} {relation}")
    keys, sets = SETS[grouping]
    table = visits(UNITS[unit], relation)
    made = plan(query(table, AGGREGATES, keys=keys, sets=sets), epsilon=Fraction(1), delta=Fraction(0), salt="s")
    connection, other = connect(1), connect(2)
    rows = rows_at_random(rng, 6)
    fill(connection, rows)
    whole = integers(connection, made)
    for gone in range(2):
        left = _without(rows, gone, by_row=unit == "row", rng=rng, relation=relation)
        rng.shuffle(left)
        fill(other, left)
        assert excess(made, whole, integers(other, made)) == []


def _without(rows: list[Row], gone: int, *, by_row: bool, rng: random.Random, relation: Relation) -> list[Row]:
    """A neighbor: one row or all rows of a unit gone, or others in their place."""
    if by_row:
        place = rng.randrange(len(rows))
        others = rows_at_random(rng, 2)[:1] if relation is Relation.REPLACE else []
        return rows[:place] + rows[place + 1 :] + others
    kept = [row for row in rows if row[0] != gone]
    if relation is Relation.REPLACE:
        kept += [(gone, *row[1:]) for row in rows_at_random(rng, 3) if row[0] is not None]
    return kept


def _plan(unit: PrivacyUnit, **options: object) -> Plan:
    asked = query(visits(unit), AGGREGATES, keys=KEYS)
    return plan(asked, epsilon=Fraction(1), delta=Fraction(0), salt="pepper", **options)  # type: ignore[arg-type]


def test_order_of_rows_and_number_of_threads_change_nothing() -> None:
    rng = random.Random(5)
    rows = rows_at_random(rng, 40)
    made = _plan(UNITS["two rows in three groups"])
    found = []
    for threads in (1, 2, 4):
        connection = connect(threads)
        rng.shuffle(rows)
        fill(connection, rows)
        measures, histograms = integers(connection, made)
        found.append([each.tolist() for each in (*measures, *histograms)])
    assert found[0] == found[1] == found[2]


def test_a_unit_keeps_at_most_its_groups_and_rows() -> None:
    connection = connect(2)
    fill(connection, [(7, region, 1.0, age, flag) for region in REGIONS for flag in (True, False) for age in range(50)])
    made = _plan(PrivacyUnit("patient", groups=3, rows=10))
    rows = next(i for i, noised in enumerate(made.measures) if noised.measure == made.formulas["n"].measures[0])
    counts = integers(connection, made)[0][rows]
    assert sorted(counts.tolist()) == [0] * 5 + [10] * 3
    units = next(i for i, noised in enumerate(made.measures) if noised.measure == made.formulas["u"].measures[0])
    assert sorted(integers(connection, made)[0][units].tolist()) == [0] * 5 + [1] * 3


def test_a_unit_of_a_hundred_thousand_rows_is_bounded() -> None:
    connection = connect(2)
    connection.execute("INSERT INTO visits SELECT 1, 'North', range % 100, range % 90, TRUE FROM range(100000)")
    connection.execute("INSERT INTO visits VALUES (2, 'North', 5, 5, TRUE)")
    made = _plan(PrivacyUnit("patient", groups=2, rows=4))
    whole = integers(connection, made)
    connection.execute("DELETE FROM visits WHERE patient = 1")
    assert excess(made, whole, integers(connection, made)) == []
    assert whole[0][0].sum() == 5


def test_copies_of_a_row_are_as_likely_as_others() -> None:
    """One row in ten is unlike the rest; over 4,000 units it is picked one time in ten (false alarm below 1e-6)."""
    connection = connect(2)
    connection.execute(
        "INSERT INTO visits SELECT u, 'North', CASE WHEN k = 0 THEN 100 ELSE 0 END, 1, TRUE "
        "FROM range(4000) AS a(u), range(10) AS b(k)"
    )
    made = plan(
        query(visits(PrivacyUnit("patient", groups=1, rows=1)), [Aggregate("s", "sum", (COST,))]),
        epsilon=Fraction(1),
        delta=Fraction(0),
        salt="pepper",
    )
    picked = integers(connection, made)[0][0][0] * float(made.measures[0].measure.step) / 100  # type: ignore[union-attr]
    # binomial(4000, 1/10): sd 19; five and a half of them
    assert abs(picked - 400) < 105


def test_another_salt_picks_other_rows() -> None:
    connection = connect(1)
    connection.execute("INSERT INTO visits SELECT u, 'North', k, 1, TRUE FROM range(50) AS a(u), range(10) AS b(k)")
    asked = query(visits(PrivacyUnit("patient", groups=1, rows=1)), [Aggregate("s", "sum", (COST,))])
    found = {
        int(integers(connection, plan(asked, epsilon=Fraction(1), delta=Fraction(0), salt=salt))[0][0][0])
        for salt in ("a", "b", "it's")
    }
    assert len(found) == 3


def test_the_portable_hash_bounds_as_well_and_the_same_everywhere() -> None:
    rng = random.Random(8)
    rows = rows_at_random(rng, 12)
    made = _plan(UNITS["two rows in three groups"], hashing="portable")
    assert "md5(" in made.statements[0].sql
    connection, other = connect(1), connect(2)
    fill(connection, rows)
    whole = integers(connection, made)
    fill(other, [row for row in rows if row[0] != 3])
    assert excess(made, whole, integers(other, made)) == []


def test_values_that_the_engine_takes_for_one_key_count_once() -> None:
    key = Key("age", AGE.__class__("age", Kind.INTEGER, AGE.facts.__class__(values=(2**53, 2**53 + 1, 7))))
    table = visits(PrivacyUnit(None))
    connection = connect(1)
    asked = query(table, [Aggregate("n", "count")], keys=[key])
    made = plan(asked, epsilon=Fraction(1), delta=Fraction(0), salt="s")
    # the scan clamps ages, so the key is tried on a view that has none
    sql = made.statements[0].sql.replace("110e0", "1e300")
    connection.execute("INSERT INTO visits VALUES (1, 'North', 1, 9007199254740993, TRUE), (2, 'North', 1, 7, TRUE)")
    found = connection.execute(sql).fetchnumpy()
    assert sorted(zip(found["cell"].tolist(), found["m0"].tolist(), strict=True)) == [(0, 1), (2, 1)]


# --- planted errors: each must be caught by the same comparison ----------------------------------------------------


def _tells(made: Plan, old: str, new: str) -> bool:
    """Rewrite the engine's text as a careless author would have, and see whether neighbors tell."""
    spoiled = {each.name: each.sql.replace(old, new) for each in made.statements}
    assert list(spoiled.values()) != [each.sql for each in made.statements]
    rng = random.Random(1)
    connection = connect(2)
    for _ in range(20):
        rows = rows_at_random(rng, 5)
        worlds = []
        for world in (rows, [row for row in rows if row[0] != 1]):
            rng.shuffle(world)
            fill(connection, world)
            worlds.append(exact_results(made, {name: arrays(connection, sql) for name, sql in spoiled.items()}))
        if excess(made, worlds[0], worlds[1]):
            return True
    return False


def test_planted_rows_without_a_bound_are_caught() -> None:
    made = _plan(UNITS["two rows in three groups"])
    assert _tells(made, 'FROM "$order" WHERE place <= 2)', 'FROM "$order" WHERE place <= 200)')


@pytest.mark.parametrize(
    ("bound", "none"),
    [
        ('"$bounded") WHERE place <= 1)', '"$bounded") WHERE place <= 300)'),
        ("HAVING count(*) > 1", "HAVING count(*) > 300"),
    ],
    ids=["sums", "picked rows"],
)
def test_planted_groups_without_a_bound_are_caught(bound: str, none: str) -> None:
    made = _plan(UNITS["one row in one group"])
    assert _tells(made, bound, none)


def test_planted_choice_by_the_rows_of_others_is_caught() -> None:
    """A choice that follows how many pairs there are in all moves units that both neighbors have."""
    made = _plan(UNITS["one row in one group"])
    order = "ORDER BY hash('pepper', u, c), c"
    assert _tells(made, order, """ORDER BY hash((SELECT count(*) FROM "$bounded"), u, c), c""")


def test_planted_missing_clamp_is_caught() -> None:
    made = _plan(UNITS["row"])
    connection, nothing = connect(1), connect(1)
    fill(connection, [(1, "North", 1e6, 500, True)])
    tables = run(connection, made)
    sql = made.statements[0].sql
    # without the scan's clamp the measure's own clamp still holds
    scan = sql.replace("200e0", "1e300").replace("110e0", "1e300")
    assert scan != sql
    tables = {**tables, "sums0": arrays(connection, scan)}
    assert excess(made, exact_results(made, tables), integers(nothing, made)) == []
    both = scan.replace("greatest(least(", "greatest(greatest(")
    tables = {**tables, "sums0": arrays(connection, both)}
    assert excess(made, exact_results(made, tables), integers(nothing, made)) != []


def test_planted_sensitivity_of_adding_under_replace_is_caught() -> None:
    made = _plan(UNITS["row"])
    connection = connect(1)
    fill(connection, [(1, "North", 1.0, 50, True)])
    one = integers(connection, made)
    fill(connection, [(1, "South", 1.0, 50, True)])
    assert excess(made, one, integers(connection, made)) != []


def test_salt_is_quoted() -> None:
    assert bounding.RenderOptions("it's").hash(("u", Kind.TEXT)) == "hash('it''s', u)"
