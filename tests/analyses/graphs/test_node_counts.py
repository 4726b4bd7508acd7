"""Triangles and stars under node privacy: bounds, their choice, and answers through the ledger."""

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import combinations
from math import comb, exp

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.analyses.graphs.test_node_truncation import Pairs, made, small_graphs

from hubbub.analyses.base import Setting
from hubbub.analyses.graphs import answers
from hubbub.analyses.graphs.degrees import projected, stars
from hubbub.analyses.graphs.node_counts import NodeCount, NodeLevels, star_levels, triangle_levels
from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.core.unit import Relation
from hubbub.curator.session import Session
from hubbub.errors import ParameterError, QueryError
from hubbub.sql.bounding import RenderOptions
from hubbub.sql.owner_levels import RESOLUTION

Opener = Callable[..., Session]

NODES = 5
PAIRS = list(combinations(range(NODES), 2))
ENDS = ["a", "b"]
COUNTS = [("triangle_count", {}), ("star_count", {"k": 2}), ("star_count", {"k": 3})]


def prepared(name: str, arguments: dict[str, int], relation: Relation, epsilon: Fraction = Fraction(2)) -> NodeCount:
    ends = tuple(Column(end, Kind.INTEGER, Bounds(Fraction(0), Fraction(NODES - 1))) for end in ENDS)
    table = Table("links", ends, PrivacyUnit(None), relation)
    setting = Setting({"links": table}, epsilon, Fraction(0), RenderOptions("salt"))
    found = getattr(answers, name)(setting, table="links", ends=ENDS, protects="node", **arguments)
    assert isinstance(found, NodeCount)
    return found


def without(pairs: Pairs, node: int) -> Pairs:
    return frozenset(pair for pair in pairs if node not in pair)


def numbers(levels: NodeLevels, nodes: int) -> Callable[[Pairs], NDArray[np.int64]]:
    """Give the number at each bound, computed once for each graph."""

    @cache
    def number(pairs: Pairs) -> NDArray[np.int64]:
        return np.array(levels.totals(made(nodes, pairs)))

    return number


@pytest.mark.usefixtures("few_rounds")
@pytest.mark.parametrize("leaves", [2, 3])
def test_a_node_or_an_edge_moves_stars_by_at_most_what_is_declared(leaves: int) -> None:
    for salt in ("one", "two"):
        levels = star_levels(6, leaves, 5, salt)
        number = numbers(levels, 6)
        rises = falls = np.zeros(len(levels.bounds), dtype=np.int64)
        for _, pairs in small_graphs(6):
            for less in (*(without(pairs, node) for node in range(6)), *(pairs - {pair} for pair in pairs)):
                moved = number(pairs) - number(less)
                rises, falls = np.maximum(rises, moved), np.maximum(falls, -moved)
        assert (rises <= levels.rises).all()
        assert (falls <= levels.falls).all()
        # six nodes with all edges are in this many stars each
        assert rises[-1] == levels.rises[-1] == (leaves + 1) * comb(5, leaves)


def test_without_the_projection_a_node_moves_stars_by_more() -> None:
    """The planted error: degrees are cut at each node by itself, so that a hub frees all its neighbors at once."""
    hub = frozenset((0, leaf) for leaf in range(1, 15))
    ring = frozenset((a, b) for a in range(1, 15) for b in range(a + 1, 15) if (b - a) % 13 == 1)
    arcs = ring - {(1, 2), (5, 6), (9, 10)}

    def cut(pairs: Pairs) -> int:
        return sum(comb(min(degree, 2), 2) for degree in made(15, pairs).degrees().tolist())

    def kept(pairs: Pairs) -> int:
        return stars(projected(made(15, pairs), 2, "salt"), 2)

    assert abs(kept(hub | arcs) - kept(arcs)) <= 3 * comb(2, 2) < abs(cut(hub | arcs) - cut(arcs))


@pytest.mark.usefixtures("few_rounds")
@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize(("name", "arguments"), COUNTS)
def test_a_node_moves_scores_by_at_most_their_sensitivity(
    name: str, arguments: dict[str, int], relation: Relation
) -> None:
    """All graphs of five nodes of one shape, each node taken out, or given any other edges."""
    count = prepared(name, arguments, relation)
    number = numbers(count.levels, NODES)
    moved, scaled = 0, 0
    for _, pairs in small_graphs(5):
        for node in range(0, NODES, relation.units_changed):
            rest, own = without(pairs, node), [pair for pair in PAIRS if node in pair]
            sizes = (0,) if relation is Relation.ADD_REMOVE else (0, 2, 4)
            for other in (rest | frozenset(chosen) for size in sizes for chosen in combinations(own, size)):
                one, two = number(pairs).tolist(), number(other).tolist()
                moved = max(moved, int(np.abs(count.scores(one) - count.scores(two)).max()))
                scaled = max(scaled, *(abs(count.scaled(one, i) - count.scaled(two, i)) for i in range(len(one))))
    assert RESOLUTION // 3 < moved <= count.choice.sensitivity == relation.units_changed * RESOLUTION
    assert RESOLUTION // 2 < scaled <= count.mechanism.sensitivity == RESOLUTION


@pytest.mark.usefixtures("few_rounds")
@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize(("name", "arguments"), COUNTS[:2])
def test_the_enumerated_loss_of_choice_and_noise_is_within_the_charge(
    name: str, arguments: dict[str, int], relation: Relation
) -> None:
    """The choice is enumerated; Laplace noise loses exactly what its two numbers are apart, in its scale."""
    count = prepared(name, arguments, relation)
    complete = frozenset(PAIRS)
    rest = without(complete, 0)
    pairs = [(complete, rest), (complete, complete - {(0, 1)}), (rest | {(0, 1), (0, 2)}, rest)]
    if relation is Relation.REPLACE:
        pairs += [(complete, rest | {(0, 1), (0, 2)}), (rest | {(0, 1), (0, 2)}, rest | {(0, 3), (0, 4)})]
    worst = 0.0
    for one, two in pairs:
        totals = [count.levels.totals(made(NODES, each)) for each in (one, two)]
        here, there = (count.choice.distribution(count.scores(each).tolist()).mass for each in totals)
        for place in here:
            apart = abs(count.scaled(totals[0], place) - count.scaled(totals[1], place))
            ratio = max(here[place][1] / there[place][0], there[place][1] / here[place][0])
            worst = max(worst, float(ratio) * exp(apart / count.mechanism.scale))
    assert 1.5 < worst <= exp(2) * (1 + 1e-9)


def test_bounds_reach_what_any_node_can_have() -> None:
    assert triangle_levels(7624).bounds[-1] == comb(7623, 2)
    levels = star_levels(1000, 2, 999, "salt")
    assert (levels.bounds[0], levels.bounds[-1]) == (2, 999)
    ratios = [high / low for low, high in zip(levels.rises[2:], levels.rises[3:], strict=False)]
    assert max(ratios) < 3, "from one bound to the next the noise is about doubled"
    assert star_levels(1000, 3, 50, "salt").bounds[-1] == 50


def test_answers_are_the_exact_numbers_where_the_noise_is_nothing(town: Opener) -> None:
    """Five nodes and seven edges: the triangles 0 1 2 and 1 2 3 …, counted by hand in test_answers."""
    h = town()
    for release, truth in (
        (h.triangle_count("links", ENDS, protects="node", epsilon=20000), 2),
        (h.star_count("links", ENDS, 2, protects="node", epsilon=20000), 4 * comb(3, 2) + comb(2, 2)),
        (h.star_count("links", ENDS, 3, protects="node", epsilon=20000), 4),
        (h.star_count("links", ENDS, 3, most=3, epsilon=2000), 4),
    ):
        assert release.rows == [(truth,)]
        low, high = release.intervals[0][0]
        assert low is not None
        assert low <= truth
        assert (high is None) == ("no upper end" in release.left_out.sentence())  # type: ignore[union-attr]


def test_an_estimate_tells_the_noise_and_what_is_not_known(town: Opener) -> None:
    call = "CALL triangle_count(table => 'links', ends => ['a', 'b'], protects => 'node')"
    estimate = town().estimate(call, epsilon=1)
    text = " ".join(estimate.derivation)
    assert "one node with all its edges" in text
    assert "what a bound leaves out is not in it" in text
    assert estimate.left_out is not None
    assert "how many triangles of each node count" in estimate.left_out.sentence()


@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        ("triangle_count", {"most": 3, "protects": "node"}, "HB680"),
        ("triangle_count", {"sensitivity": "smooth", "protects": "node"}, "HB680"),
        ("triangle_count", {"protects": "person"}, "HB595"),
        ("star_count", {"k": 2}, "HB680"),
        ("star_count", {"k": 1, "protects": "node"}, "HB10"),
        ("star_count", {"k": 3, "most": 2, "protects": "node"}, "HB10"),
    ],
)
def test_what_cannot_be_counted_is_refused_before_a_charge(
    town: Opener, name: str, arguments: dict[str, object], code: str
) -> None:
    h = town()
    with pytest.raises((QueryError, ParameterError), match=code):
        h.call(name, {"table": "links", "ends": ENDS, **arguments}, epsilon=1)
    assert h.releases() == ()


def test_node_privacy_is_refused_where_units_own_edges(town: Opener) -> None:
    h = town(unit="{column: who, groups: 1, rows: 2}")
    for name, arguments in COUNTS[:2]:
        with pytest.raises(QueryError, match="HB596"):
            h.call(name, {"table": "links", "ends": ENDS, "protects": "node", **arguments}, epsilon=1)


def test_more_stars_than_an_integer_holds_are_refused() -> None:
    with pytest.raises(QueryError, match="HB680"):
        star_levels(100_000, 5, 99_999, "salt")
    assert star_levels(100_000, 5, 1000, "salt").bounds[-1] == 1000
