"""Frequent itemsets and association rules from noisy counts."""

from collections.abc import Sequence

import numpy as np
import pytest
from tests.fixtures.program_tables import World, affords, charged

from hubbub.analyses.programs.inputs import one_cell
from hubbub.analyses.programs.itemsets import Itemsets, ItemsetsAnalysis, frequent_itemsets
from hubbub.core.schema import PrivacyUnit
from hubbub.core.unit import Relation
from hubbub.errors import ParameterError, QueryError
from hubbub.sql.measures import RowCount

PAGES = ("home", "news", "shop", "help")


def baskets(world: World, rows: int = 5_000, **how: object) -> None:
    """Bread goes with butter nine times of ten; jam is rare; size is large with butter."""
    draw = np.random.default_rng(9)
    bread = draw.uniform(size=rows) < 0.5
    butter = np.where(bread, draw.uniform(size=rows) < 0.9, draw.uniform(size=rows) < 0.1)
    jam = draw.uniform(size=rows) < 0.02
    size = np.where(butter, "large", np.where(draw.uniform(size=rows) < 0.5, "small", "large"))
    made = {"who": np.arange(rows) // 2, "bread": bread, "butter": butter, "jam": jam, "size": size}
    world.put("baskets", made, lists={"size": ("small", "large")}, **how)  # type: ignore[arg-type]


def visits(world: World, units: int = 3_000, relation: Relation = Relation.ADD_REMOVE) -> None:
    """Everybody sees home, often twice; two of three also news; who sees news sees the shop."""
    who, page = [], []
    for unit in range(units):
        seen = ["home", "home", *(["news", "shop"] if unit % 3 else ["help"] if unit % 2 else [])]
        who += [unit] * len(seen)
        page += seen
    world.put(
        "visits",
        {"who": who, "page": page},
        lists={"page": PAGES},
        unit=PrivacyUnit("who", groups=1, rows=1),
        relation=relation,
    )


@pytest.mark.row(55)
def test_rules_come_from_noisy_counts_one_query_a_level(world: World) -> None:
    """Counts at ε = 1 are off by some tens of 5,000; bread → butter has confidence 0.9, jam is not frequent."""
    baskets(world)
    columns = ["bread", "butter", "jam", "size"]
    prepared = frequent_itemsets(world.setting(1), table="baskets", columns=columns)
    _, release = world.run(prepared, "frequent_itemsets")
    assert len(world.asked) == 3
    assert world.drawn == charged(prepared.event)
    found = Itemsets.of(release)
    assert frozenset({"bread", "butter"}) in found.counts
    assert frozenset({"bread", "butter", "size = large"}) in found.counts
    assert not any("jam" in each for each in found.counts)
    rule = next(each for each in found.rules() if each.if_ == ("bread",) and each.then == ("butter",))
    assert rule.confidence == pytest.approx(0.9, abs=0.1)
    assert rule.lift == pytest.approx(1.8, abs=0.3)
    assert all(one.confidence >= other.confidence for one, other in zip(found.rules(), found.rules()[1:], strict=False))


def test_baskets_may_be_units(world: World) -> None:
    visits(world)
    prepared = frequent_itemsets(world.setting(2), table="visits", item="page", size=2)
    found = Itemsets.of(world.run(prepared, "frequent_itemsets")[1])
    assert found.counts[frozenset({"home"})] == pytest.approx(3_000, abs=150)
    assert found.counts[frozenset({"news", "shop"})] == pytest.approx(2_000, abs=150)
    assert frozenset({"help", "shop"}) not in found.counts


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("unit", [None, PrivacyUnit("who", groups=3, rows=2)])
@pytest.mark.parametrize("delta", ["0", "1e-6"])
def test_what_is_drawn_is_what_is_charged(
    world: World, relation: Relation, unit: PrivacyUnit | None, delta: str
) -> None:
    baskets(world, 200, unit=unit, relation=relation)
    prepared = frequent_itemsets(world.setting(1, delta), table="baskets", columns=["bread", "butter"], size=4)
    world.run(prepared, "frequent_itemsets")
    assert world.drawn == charged(prepared.event)
    assert affords(prepared)


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("unit", [None, PrivacyUnit("who", groups=3, rows=2)])
def test_counts_of_neighbors_are_within_the_sensitivities(
    world: World, relation: Relation, unit: PrivacyUnit | None
) -> None:
    """Exact counts of all single items, and of all pairs, with a unit taken away or changed."""
    baskets(world, 100, unit=unit, relation=relation)
    columns = ["bread", "butter", "jam", "size"]
    made = frequent_itemsets(world.setting(1), table="baskets", columns=columns, size=2, candidates=10)
    singles = [(), *((i,) for i in range(5))]
    pairs = [(i, j) for i in range(5) for j in range(i + 1, 5)]
    _within(world, made, [singles, pairs], relation, "who" if unit else "rowid")


@pytest.mark.parametrize("relation", list(Relation))
def test_counts_of_units_as_baskets_are_within_the_sensitivities(world: World, relation: Relation) -> None:
    visits(world, 50, relation)
    made = frequent_itemsets(world.setting(1), table="visits", item="page", size=2)
    singles = [(), *((i,) for i in range(4))]
    pairs = [(i, j) for i in range(4) for j in range(i + 1, 4)]
    _within(world, made, [singles, pairs], relation, "who")


def _within(
    world: World, made: ItemsetsAnalysis, levels: Sequence[Sequence[tuple[int, ...]]], relation: Relation, owner: str
) -> None:
    table = made.inputs.table.name
    change = "bread = NOT bread, jam = TRUE, size = 'small'" if table == "baskets" else "page = 'help'"
    limits = [noise.sensitivity for noise in made.allocation.noises]  # type: ignore[union-attr]

    def counts() -> list[np.ndarray[tuple[int, ...], np.dtype[np.int64]]]:
        return [
            made.inputs.integers(
                world, made.inputs.rows, one_cell(), [RowCount(where=made._holds(each)) for each in level]
            ).through(lambda found: found[:, 0])
            for level in levels
        ]

    before, furthest = counts(), 0.0
    for who in range(10):
        world.connection.execute(f"CREATE OR REPLACE TABLE kept AS SELECT * FROM {table}")
        verb = f"DELETE FROM {table}" if relation is Relation.ADD_REMOVE else f"UPDATE {table} SET {change}"
        world.connection.execute(f"{verb} WHERE {owner} = {who}")
        moved = [int(np.abs(new - old).sum()) for new, old in zip(counts(), before, strict=True)]
        world.connection.execute(f"CREATE OR REPLACE TABLE {table} AS SELECT * FROM kept")
        assert all(found <= limit for found, limit in zip(moved, limits, strict=True))
        furthest = max(furthest, moved[0] / limits[0])
    assert furthest >= 0.25


def test_what_cannot_be_is_refused_with_a_remedy(world: World) -> None:
    baskets(world, 20)
    setting = world.setting()
    with pytest.raises(QueryError, match="HB547"):
        frequent_itemsets(setting, table="baskets")
    with pytest.raises(QueryError, match="HB547"):
        frequent_itemsets(setting, table="baskets", columns=["bread"], item="size")
    with pytest.raises(QueryError, match="HB548"):
        frequent_itemsets(setting, table="baskets", item="size")
    with pytest.raises(QueryError, match="HB545"):
        frequent_itemsets(setting, table="baskets", columns=["bread"])
    with pytest.raises(ParameterError, match="HB103"):
        frequent_itemsets(setting, table="baskets", columns=["bread", "jam"], support=2)
