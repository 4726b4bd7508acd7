"""Counts of places inside places: trees, least squares on them, and totals that add up."""

from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from hubbub.accounting.cost import privacy_cost
from hubbub.analyses.base import Published, Setting
from hubbub.analyses.tables.geography import Geography, geography
from hubbub.analyses.tables.hierarchy import Tree, least_squares_counts, nested, prefixed, whole
from hubbub.answers.release import Release
from hubbub.core.schema import Column, Kind, PrivacyUnit, Table
from hubbub.core.unit import Relation
from hubbub.errors import ParameterError, QueryError
from hubbub.sql.bounding import RenderOptions

CODES = ("0101", "0102", "0201", "0202", "0203", "1101", "1102")
TREE = {"North": {"n1": ["0101", "0102"], "n2": ["0201", "0202", "0203"]}, "South": {"s": ["1101", "1102"]}}
ROWS = (
    f"SELECT i AS who, {list(CODES)!r}[1 + CAST(floor(7 * sqrt(i / 3000.0)) AS INTEGER)] AS place,"
    " i % 3 = 0 AS female FROM range(3000) AS t(i)"
)


def setting(epsilon: str = "1", delta: str = "0", unit: PrivacyUnit | None = None) -> Setting:
    columns = (
        Column("who", Kind.INTEGER),
        Column("place", Kind.TEXT, values=CODES),
        Column("female", Kind.BOOLEAN),
    )
    table = Table("people", columns, unit or PrivacyUnit("who", 1, 1), Relation.ADD_REMOVE)
    return Setting({"people": table}, Fraction(epsilon), Fraction(delta), RenderOptions("salt"))


def model(published: Published) -> Geography:
    rows = len(published.outputs[0].values)
    given = Release(published.outputs, [None] * rows, Fraction(1), Fraction(0), {}, None, model=published.model)
    return Geography.of(given)


def exact() -> np.ndarray[Any, Any]:
    i = np.arange(3000)
    found = np.zeros((7, 2), dtype=int)
    np.add.at(found, (np.floor(7 * np.sqrt(i / 3000.0)).astype(int), (i % 3 == 0).astype(int)), 1)
    return found


@pytest.mark.parametrize("epsilon", ["0.01", "1"])
@pytest.mark.parametrize("delta", ["0", "1/1000000"])
@pytest.mark.parametrize("places", [TREE, [1, 2]])
def test_counts_add_up_at_every_place_whole_and_not_negative(
    bench: Any, epsilon: str, delta: str, places: object
) -> None:
    prepared = geography(setting(epsilon, delta), table="people", column="place", places=places, columns=["female"])
    published = prepared.run(bench({"people": ROWS}))
    levels = published.model["levels"]
    for above, below in pairwise(levels):
        upper, lower = np.array(above["counts"]), np.array(below["counts"])
        summed = np.zeros_like(upper)
        np.add.at(summed, np.array(below["parents"]), lower)
        assert summed.tolist() == upper.tolist()
        assert (lower >= 0).all()
        assert lower.dtype == np.int64
    count = published.outputs[-1]
    assert all(lo <= v <= hi for v, lo, hi in zip(count.values, count.low or (), count.high or (), strict=True))  # type: ignore[operator]
    assert len(count.values) == sum(2 * len(level["places"]) for level in levels)


def test_counts_are_those_of_the_data_where_noise_is_small(bench: Any) -> None:
    prepared = geography(
        setting("2000"),
        table="people",
        column="place",
        places=TREE,
        columns=["female"],
        levels=["region", "district", "ward"],
    )
    found = model(prepared.run(bench({"people": ROWS})))
    assert found.levels == ("total", "region", "district", "ward")
    assert [each.tolist() for each in found.level("ward").values()] == exact().tolist()
    assert found.level("region")["North"].tolist() == exact()[:5].sum(axis=0).tolist()
    assert found.level("total")[""].tolist() == [2000, 1000]
    with pytest.raises(ParameterError, match="HB171"):
        found.level("street")
    alone = model(
        geography(setting("2000"), table="people", column="place", places=[1, 2]).run(bench({"people": ROWS}))
    )
    assert alone.level("total") == {"": 3000}
    assert "level 1" in repr(alone)


def test_the_event_costs_what_was_asked() -> None:
    for unit in (PrivacyUnit("who", 1, 1), PrivacyUnit("who", 3, 2), PrivacyUnit(None)):
        prepared = geography(setting("0.9", unit=unit), table="people", column="place", places=TREE)
        pure = privacy_cost(prepared.event).pure
        assert pure is not None
        assert Fraction(9, 10) - Fraction(1, 10**20) <= pure <= Fraction(9, 10)
        assert len(prepared.mechanisms) == 4


def test_a_level_that_matters_more_is_measured_better() -> None:
    many = Column("place", Kind.TEXT, values=tuple(f"{code:04d}" for code in range(2000)))
    at = Setting(
        {"people": Table("people", (many,), PrivacyUnit(None))}, Fraction(1), Fraction(0), RenderOptions("salt")
    )

    def width(weights: Any, name: str) -> float:
        prepared = geography(at, table="people", column="place", places=[1, 2], weights=weights)
        return next(each.plus_minus for each in prepared.expected if each.name == name)

    assert width([1000, 1, 1, 1], "total") < width(None, "total") < width([1, 1, 1, 1000], "total")
    assert width([1, 1, 1, 1000], "place") < width([1000, 1, 1, 1], "place")


def design(tree: Tree) -> list[np.ndarray[Any, Any]]:
    leaves = np.eye(tree.levels[-1].size)
    found = [leaves]
    for level in range(len(tree.levels) - 1, 0, -1):
        found.insert(0, np.asarray(tree.up(found[0], level)))
    return found


@pytest.mark.parametrize("variances", [(1.0, 2.0, 3.0, 4.0), (9.0, 0.5, 7.0, 1.0)])
def test_least_squares_on_a_tree_are_those_of_the_design_matrix(variances: tuple[float, ...]) -> None:
    tree = nested(CODES, TREE)
    chance = np.random.default_rng(5)
    noisy = [chance.normal(size=(level.size, 2)) for level in tree.levels]
    values, spreads = least_squares_counts(tree, noisy, variances)
    rows = design(tree)
    matrix = np.vstack([each / v**0.5 for each, v in zip(rows, variances, strict=True)])
    seen = np.vstack([each / v**0.5 for each, v in zip(noisy, variances, strict=True)])
    leaves = np.linalg.lstsq(matrix, seen, rcond=None)[0]
    covariance = np.linalg.inv(matrix.T @ matrix)
    for each, value, spread in zip(rows, values, spreads, strict=True):
        assert value == pytest.approx(each @ leaves)
        assert spread == pytest.approx(np.diag(each @ covariance @ each.T))


def test_estimates_far_below_zero_still_give_counts_that_add_up() -> None:
    tree = prefixed(CODES, [1, 2])
    chance = np.random.default_rng(2)
    for _ in range(100):
        values, _ = least_squares_counts(
            tree, [chance.normal(0, 30, size=(level.size, 3)) for level in tree.levels], (1, 2, 3, 4)
        )
        counts = whole(tree, values)
        for level in range(1, 4):
            assert np.asarray(tree.up(counts[level], level)).tolist() == counts[level - 1].tolist()
            assert (counts[level] >= 0).all()


def test_neighbors_move_each_level_by_no_more_than_its_sensitivity() -> None:
    """Units with up to three places and two rows in each: every such unit, at every level."""
    prepared = geography(setting(unit=PrivacyUnit("who", 3, 2)), table="people", column="place", places=TREE)
    tree = nested(CODES, TREE)
    moved = [prepared.marginal.part(level.size) for level in tree.levels]
    worst = [[0, 0] for _ in moved]
    for rows in np.ndindex(*(3,) * 7):
        if np.count_nonzero(rows) > 3:
            continue
        for place, sums in enumerate(tree.sums(np.array(rows)[:, None])):
            worst[place] = [max(worst[place][0], int(sums.sum())), max(worst[place][1], int((sums**2).sum()))]
    assert [[each.l1, each.l2_squared] for each in moved] >= worst
    assert [each.l1 for each in moved] == [each[0] for each in worst]
    assert moved[0].l2_squared == worst[0][1] == 36


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"places": {"N": list(CODES[:-1])}}, "1102"),
        ({"places": {"N": list(CODES), "S": ["0101"]}}, "occurs twice"),
        ({"places": {"N": list(CODES[:-1]), "S": {"s": ["1102"]}}}, "same depth"),
        ({"places": {}}, "none of them empty"),
        ({"places": "N"}, "none of them empty"),
        ({"places": {"N": [["0101"]]}}, "must contain values"),
        ({"places": []}, "list of integers"),
        ({"places": [2, 2]}, "must increase"),
        ({"places": [5]}, "must increase"),
        ({"places": ["2"]}, "must increase"),
        ({"levels": ["a"]}, "3 levels"),
        ({"weights": [1]}, "4 numbers"),
        ({"columns": ["place"]}, "also listed"),
    ],
)
def test_trees_that_cannot_be_are_refused(how: dict[str, Any], says: str) -> None:
    asked: dict[str, Any] = {"table": "people", "column": "place", "places": TREE} | how
    with pytest.raises(QueryError, match=says) as refusal:
        geography(setting(), **asked)
    assert refusal.value.remedy
