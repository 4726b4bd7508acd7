"""Plans: what is charged, how it is split, what is expected, what is refused."""

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from tests.fixtures.visits_table import (
    AGE,
    COST,
    COUNT,
    FLAG,
    NONE,
    ONE,
    REGION,
    ROW,
    bounds,
    connect,
    fill,
    integers,
    of,
    query,
    run,
    visits,
)

from hubbub.accounting.cost import ZERO, privacy_cost
from hubbub.accounting.filters import Budget, admits
from hubbub.audit.sensitivity import excess
from hubbub.core.events import (
    Composed,
    GaussianEvent,
    LaplaceEvent,
    SelectionEvent,
)
from hubbub.core.schema import Kind, PrivacyUnit
from hubbub.core.unit import Relation
from hubbub.errors import HubbubError, ParameterError, QueryError
from hubbub.noise.source import system
from hubbub.sql.allocation import deviations_at_level
from hubbub.sql.epsilon_search import solve
from hubbub.sql.expressions import Col, Facts, FunctionCall, Literal
from hubbub.sql.finish import exact_results, finish
from hubbub.sql.measures import Sensitivity
from hubbub.sql.noise import standard_deviation
from hubbub.sql.noise_budget import noise_budgets
from hubbub.sql.query import Aggregate, Key, OrderTerm, Query
from hubbub.sql.relations import Filter
from hubbub.sql.split import portions, shares, zcdp_budget

EVERYTHING = (
    COUNT,
    Aggregate("s", "sum", (COST,)),
    Aggregate("a", "avg", (COST,)),
    Aggregate("r", "corr", (COST, AGE)),
    Aggregate("q", "quantile", (AGE,), None, Fraction(1, 2)),
    Aggregate("m", "mode", (REGION,)),
    Aggregate("d", "count_distinct", (AGE,)),
)


@pytest.mark.row(33)
def test_a_count_of_those_over_50_who_smoke_has_sensitivity_one() -> None:
    """Two conditions, one row: the conjunction is counted by one number, which one row moves by one."""
    smoker = FLAG
    old = FunctionCall("gt", (AGE, Literal(50, Kind.INTEGER)), Kind.BOOLEAN)
    both = FunctionCall("and", (old, smoker), Kind.BOOLEAN)
    asked = query(visits(ROW), [COUNT])
    for one in (
        Query(asked.tables, Filter(asked.relation, both), (), ((),), (COUNT,), asked.select, None, (), None, top=False),
        query(visits(ROW), [Aggregate("n", "count", (), both)]),
    ):
        made = of(one)
        assert [n.sensitivity.l1 for n in made.measures] == [1]
        assert made.event == Composed(((LaplaceEvent(1, ONE), 1),))
        assert any("L1 sensitivity 1," in line for line in made.derivation)
    # the engine agrees: whichever row is added, the count moves by 0 or 1, and by 1 for some
    connection, moved = connect(), set()
    for age, flag in itertools.product((None, 50, 51, 2**62), (None, True, False)):
        fill(connection, [(1, "North", 1.0, 60, True)])
        before = integers(connection, made)
        fill(connection, [(1, "North", 1.0, 60, True), (2, "North", 1.0, age, flag)])
        after = integers(connection, made)
        assert excess(made, before, after) == []
        moved.add(int(after[0][0][0] - before[0][0][0]))
    assert moved == {0, 1}


@pytest.mark.row(35)
def test_an_average_is_a_noisy_sum_over_a_noisy_count_or_a_sum_over_a_public_number() -> None:
    zero_or_one = Facts(bounds=bounds(0, 1), step=ONE)
    bit = FunctionCall("case", (FLAG, Literal(1, Kind.INTEGER), Literal(0, Kind.INTEGER)), Kind.INTEGER, zero_or_one)
    # n public, one row replaced: the sum of bits moves by 1, so the average by 1/n
    public = query(
        visits(ROW, Relation.REPLACE),
        [Aggregate("s", "sum", (bit,))],
        select=[("a", FunctionCall("div", (Col("s", Kind.REAL), Literal(1000, Kind.INTEGER)), Kind.REAL))],
    )
    made = of(public)
    assert [n.sensitivity.l1 for n in made.measures] == [1]
    connection = connect()
    fill(connection, [(i, "North", 1.0, 1, i < 300) for i in range(1000)])
    tables = run(connection, made)
    drawn = [finish(made, tables, system()).rows[0][0] for _ in range(100)]
    # 100 averages with noise of scale 1/1000: the mean of |error| is below 2/1000 (false alarm far below 1e-6)
    assert np.mean(np.abs(np.array(drawn) - 0.3)) < 2 / 1000
    # n private: two measures, together ε, and the answer stays between 0 and 1
    private = of(query(visits(ROW), [Aggregate("a", "avg", (bit,))]))
    assert len(private.measures) == 2
    assert privacy_cost(private.event).pure == ONE
    assert 0 <= finish(private, run(connection, private), system()).rows[0][0] <= 1


@pytest.mark.row(43)
def test_the_most_liked_page_is_one_selection_whatever_people_like() -> None:
    """50 pages; everyone likes some, one person likes all. Bounding each person's likes would cost 50 times as much."""
    pages = tuple(range(50))
    page = Key("page", Col("age", Kind.INTEGER, Facts(values=pages, bounds=AGE.facts.bounds)))
    table = visits(PrivacyUnit("patient", groups=50, rows=1))
    top = query(
        table,
        [COUNT],
        keys=[page],
        select=[("page", Col("page", Kind.INTEGER))],
        order=[OrderTerm(Col("n", Kind.INTEGER), descending=True, nulls_first=False)],
        limit=1,
        top=True,
    )
    made = of(top)
    assert made.event == Composed(((SelectionEvent("exponential", 1, monotone=True, rate=ONE), 1),))
    assert privacy_cost(made.event).pure == ONE
    # the same question by noisy counts: one person moves 50 of them
    counts = of(query(table, [COUNT], keys=[page]))
    assert counts.measures[0].sensitivity.l1 == 50
    connection = connect(2)
    connection.execute(
        "INSERT INTO visits SELECT u, 'North', 1, p, TRUE FROM range(2000) AS a(u), range(50) AS b(p) "
        "WHERE u = 0 OR hash(u, p) % 50 < p"
    )
    whole = exact_results(made, run(connection, made))[0][0]
    connection.execute("DELETE FROM visits WHERE patient = 0")
    moved = whole - exact_results(made, run(connection, made))[0][0]
    assert (moved == 1).all()
    best = sorted(whole.tolist(), reverse=True)
    assert whole.tolist().index(best[0]) == 49
    # the regret is at most ln(50/β)/ε with probability 1 − β; β = 1e-6: 17.7 likes
    chosen = finish(made, run(connection, made), system()).rows[0][0]
    assert best[0] - whole[chosen] <= 18


def test_three_most_liked_pages_cost_the_same_in_all() -> None:
    page = Key("page", Col("age", Kind.INTEGER, Facts(values=tuple(range(20)))))
    top = query(
        visits(PrivacyUnit("patient", groups=3, rows=4), Relation.REPLACE),
        [COUNT],
        keys=[page],
        select=[("page", Col("page", Kind.INTEGER))],
        order=[OrderTerm(Col("n", Kind.INTEGER), descending=True, nulls_first=False)],
        limit=3,
        top=True,
    )
    made = of(top)
    spent = privacy_cost(made.event).pure
    assert spent is not None
    assert ONE - Fraction(1, 10**20) < spent <= ONE
    assert made.top is not None
    assert made.event == Composed(((SelectionEvent("exponential", 4, monotone=False, rate=made.top.one.rate), 3),))
    assert len(finish(made, run(connect(), made), system()).rows) == 3


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("unit", [ROW, PrivacyUnit("patient", groups=3, rows=7)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction(1, 10), Fraction(7), Fraction(1, 1000)])
def test_the_parts_of_a_query_cost_no_more_than_its_epsilon(
    epsilon: Fraction, unit: PrivacyUnit, relation: Relation
) -> None:
    asked = query(visits(unit, relation), EVERYTHING, keys=[Key("f", FLAG)], sets=[(0,), ()])
    made = of(asked, epsilon)
    spent = privacy_cost(made.event).pure
    assert spent is not None
    assert epsilon * Fraction(999, 1000) < spent <= epsilon
    assert admits(Budget(epsilon, NONE), ZERO, privacy_cost(made.event))


@pytest.mark.parametrize("delta", [Fraction(1, 10**5), Fraction(1, 10**9)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), ONE, Fraction(4)])
def test_gaussian_plans_pass_the_filter_of_their_own_budget(epsilon: Fraction, delta: Fraction) -> None:
    asked = query(visits(PrivacyUnit("patient", groups=8, rows=5)), EVERYTHING, keys=[Key("r", REGION), Key("f", FLAG)])
    made = of(asked, epsilon, delta, noise="gaussian")
    assert made.noise == "gaussian"
    assert admits(Budget(epsilon, delta), ZERO, privacy_cost(made.event))
    # and hardly more would pass: the same plan at 5 % more does not
    more = of(asked, epsilon * Fraction(105, 100), delta, noise="gaussian")
    assert not admits(Budget(epsilon, delta), ZERO, privacy_cost(more.event))


def test_no_delta_leaves_no_room_for_gaussian_noise() -> None:
    assert zcdp_budget(ONE, NONE) == 0
    with pytest.raises(ParameterError, match="HB553"):
        of(query(visits(ROW), [COUNT]), noise="gaussian")


def test_the_noise_with_the_smaller_error_is_taken() -> None:
    few = query(visits(ROW), [COUNT])
    assert of(few, ONE, Fraction(1, 10**6)).noise == "laplace"
    region = Key("a", Col("age", Kind.INTEGER, Facts(values=tuple(range(100)))))
    many = query(visits(PrivacyUnit("patient", groups=60, rows=1)), [COUNT], keys=[region])
    made = of(many, ONE, Fraction(1, 10**6))
    assert made.noise == "gaussian"
    assert made.delta == Fraction(1, 10**6)
    assert isinstance(made.event.parts[0][0], GaussianEvent)  # type: ignore[union-attr]
    other = of(many, ONE, Fraction(1, 10**6), noise="laplace")
    assert made.expected[0].plus_minus < other.expected[0].plus_minus


def test_count_sum_and_average_of_a_column_share_two_measures() -> None:
    aggregates = [Aggregate("n", "count", (COST,)), Aggregate("s", "sum", (COST,)), Aggregate("a", "avg", (COST,))]
    made = of(query(visits(ROW), aggregates))
    assert len(made.measures) == 2
    alone = of(query(visits(ROW), aggregates[1:2]))
    assert len(alone.measures) == 1
    # a third of ε for the sum alone would be worse than what sharing gives
    third = of(query(visits(ROW), aggregates[1:2]), Fraction(1, 3))
    assert made.expected[1].plus_minus < third.expected[0].plus_minus


def test_relative_errors_are_equal_and_weights_tilt_them() -> None:
    aggregates = [COUNT, Aggregate("s", "sum", (COST,)), Aggregate("d", "count_distinct", (AGE,))]
    even = of(query(visits(ROW), aggregates))
    assert [each.relative for each in even.expected] == pytest.approx([even.expected[0].relative] * 3, rel=0.1)
    tilted = of(query(visits(ROW), aggregates), weights={"n": Fraction(3)})
    ratio = tilted.expected[2].relative / tilted.expected[0].relative
    assert ratio == pytest.approx(3, rel=0.15)
    with pytest.raises(ParameterError, match="HB558"):
        of(query(visits(ROW), aggregates), weights={"nobody": ONE})


def test_a_sum_of_two_laplace_noises_stays_within_the_factor_of_one() -> None:
    """For scales 1 and r < 1, Pr[X > t] = (e^(−t) − r²·e^(−t/r))/(2(1 − r²)); at r = 1 it is e^(−t)(2 + t)/4."""
    for r in np.linspace(0.001, 0.999, 500):
        t = deviations_at_level("laplace") * np.sqrt(2 * (1 + r * r))
        assert 2 * (np.exp(-t) - r * r * np.exp(-t / r)) / (2 * (1 - r * r)) <= 0.05
    t = deviations_at_level("laplace") * 2
    assert 2 * np.exp(-t) * (2 + t) / 4 <= 0.05


def test_shares_add_up_and_portions_never_exceed_the_whole() -> None:
    errors = np.array([[1.0, 0.0, 0.2], [0.0, 5.0, 0.0], [0.3, 0.3, 0.3]])
    for power in (1.0, 0.5):
        found = shares(errors, [1.0, 1.0, 2.0], power=power)
        assert sum(found) == pytest.approx(1)
        parts = portions(Fraction(1, 3), found)
        assert Fraction(1, 3) - Fraction(1, 10**20) < sum(parts) <= Fraction(1, 3)


def test_expected_errors_scale_with_epsilon() -> None:
    asked = query(visits(ROW), [COUNT, Aggregate("a", "avg", (COST,))])
    one, tenth = of(asked, ONE), of(asked, Fraction(1, 10))
    for a, b in zip(one.expected, tenth.expected, strict=True):
        assert b.plus_minus == pytest.approx(10 * a.plus_minus, rel=0.15)
    assert one.expected[0].rows is None
    assert one.expected[1].rows == 1000


@pytest.mark.parametrize("within", [50, "5%", "0.5%", 2.5])
def test_within_finds_the_least_epsilon(within: str | float) -> None:
    asked = query(visits(PrivacyUnit("patient", groups=2, rows=3)), [COUNT], keys=[Key("r", REGION)])
    epsilon = solve(asked, within=within, delta=NONE)
    goal = float(within[:-1]) * 10 if isinstance(within, str) else within
    assert of(asked, epsilon).expected[0].plus_minus <= goal
    assert of(asked, epsilon * Fraction(98, 100)).expected[0].plus_minus > goal


def test_within_refuses_what_no_epsilon_gives() -> None:
    asked = query(visits(ROW), [COUNT])
    with pytest.raises(ParameterError, match="HB103"):
        solve(asked, within="0%", delta=NONE)
    with pytest.raises(ParameterError, match="HB567"):
        solve(query(visits(ROW), [Aggregate("m", "max", (AGE,))]), within=3, delta=NONE)
    with pytest.raises(ParameterError, match="HB566"):
        solve(query(visits(ROW), [Aggregate("s", "sum", (COST,))]), within="1e-7", delta=NONE)


def test_a_query_may_tighten_the_owners_bounds_and_not_widen_them() -> None:
    asked = query(visits(PrivacyUnit("patient", groups=3, rows=4)), [COUNT], keys=[Key("r", REGION)])
    assert of(asked).measures[0].sensitivity.l1 == 12
    assert of(asked, groups=1, rows=2).measures[0].sensitivity.l1 == 2
    for options in ({"groups": 4}, {"rows": 5}, {"rows": 0}):
        with pytest.raises(ParameterError, match="HB556"):
            of(asked, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("epsilon", [NONE, -ONE, Fraction(10**7), Fraction(1, 10**12)])
def test_an_epsilon_of_absurd_size_is_refused(epsilon: Fraction) -> None:
    with pytest.raises(HubbubError):
        of(query(visits(ROW), [COUNT]), epsilon)


def test_a_tiny_epsilon_is_refused_where_its_noise_is_beyond_use() -> None:
    asked = query(visits(PrivacyUnit("patient", groups=1000, rows=10**6)), EVERYTHING, keys=[Key("r", REGION)])
    with pytest.raises(QueryError, match="HB557"):
        of(asked, Fraction(1, 10**6))


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), ONE, Fraction(10**6)])
def test_wide_bounds_on_units_still_fit_the_samplers(epsilon: Fraction) -> None:
    unit = PrivacyUnit("patient", groups=1000, rows=10_000)
    region = Key("a", Col("age", Kind.INTEGER, Facts(values=tuple(range(2000)))))
    aggregates = [Aggregate("s", "sum", (COST,)), Aggregate("v", "var_pop", (COST,))]
    made = of(query(visits(unit, Relation.REPLACE), aggregates, keys=[region]), epsilon, Fraction(1, 10**6))
    assert privacy_cost(made.event).pure is None or privacy_cost(made.event).pure <= epsilon  # type: ignore[operator]


def test_the_derivation_follows_the_query_operator_by_operator() -> None:
    asked = query(
        visits(PrivacyUnit("patient", groups=2, rows=3)),
        [COUNT, Aggregate("a", "avg", (COST,))],
        keys=[Key("r", REGION)],
    )
    filtered = Query(
        asked.tables,
        Filter(asked.relation, FLAG),
        asked.keys,
        asked.sets,
        asked.aggregates,
        asked.select,
        None,
        (),
        None,
        top=False,
    )
    lines = of(filtered).derivation
    assert [line.split(" ")[0] for line in lines[:5]] == ["scan", "filter", "neighbors:", "contribution", "grouping"]
    assert sum("Laplace noise of scale" in line for line in lines) == len(of(filtered).measures)


def test_plans_are_pure() -> None:
    asked = query(visits(PrivacyUnit("patient", groups=2, rows=3)), EVERYTHING, keys=[Key("r", REGION)])
    one, two = of(asked), of(asked)
    assert one.statements == two.statements
    assert one.event == two.event
    assert one.derivation == two.derivation


def test_a_huge_epsilon_for_a_selection_is_more_than_it_takes() -> None:
    page = Key("page", Col("age", Kind.INTEGER, Facts(values=tuple(range(20)))))
    for relation in Relation:
        made = of(
            query(
                visits(PrivacyUnit("patient", groups=3, rows=4), relation),
                [COUNT],
                keys=[page],
                select=[("page", Col("page", Kind.INTEGER))],
                order=[OrderTerm(Col("n", Kind.INTEGER), descending=True, nulls_first=False)],
                limit=3,
                top=True,
            ),
            Fraction(10**6),
        )
        spent = privacy_cost(made.event).pure
        assert spent is not None
        assert spent <= 12_000


def test_a_plan_needs_one_private_table_and_no_other_beside_a_row_level_one() -> None:
    """Binding refuses both before; a plan made by hand is checked again."""
    asked = query(visits(ROW), [COUNT])
    (table,) = asked.tables
    with pytest.raises(QueryError, match="HB554"):
        of(replace(asked, tables=(replace(table, unit=None),)))
    with pytest.raises(QueryError, match="HB555"):
        of(replace(asked, tables=(table, replace(table, name="others"))))


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), ONE, Fraction(3), Fraction(12)])
@pytest.mark.parametrize("moved", [1, 2, 30, 10_000])
def test_the_deviation_that_is_stated_is_that_of_the_noise_that_is_drawn(epsilon: Fraction, moved: int) -> None:
    for budget in noise_budgets(epsilon, Fraction(1, 10**6)):
        for shares_of in ([1.0], [0.25, 0.75]):
            (drawn, *_) = budget.mechanisms([Sensitivity(moved, moved)] * len(shares_of), shares_of)
            stated = budget.deviation(Sensitivity(moved, moved), shares_of[0])
            assert stated >= standard_deviation(drawn) * (1 - 1e-6)
