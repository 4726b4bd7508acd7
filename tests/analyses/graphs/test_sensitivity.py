"""How far one edge, one unit or one node moves each function: brute force over all small graphs and neighbors."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from itertools import combinations, combinations_with_replacement, product
from typing import Any

import networkx as nx
import numpy as np
import pytest
from numpy.typing import NDArray

from hubbub.analyses.base import Setting
from hubbub.analyses.graphs import answers
from hubbub.analyses.graphs.answers import GraphStatistic
from hubbub.analyses.graphs.cuts import minimum_cut
from hubbub.analyses.graphs.degrees import at_least, projected, triangles, truncated
from hubbub.analyses.graphs.edges import Graph, graph
from hubbub.analyses.graphs.properties import PROPERTIES
from hubbub.analyses.graphs.trees import tree_weight
from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.core.unit import Relation
from hubbub.sql.bounding import RenderOptions

NODES = 4
PAIRS = list(combinations(range(NODES), 2))

Prepare = Callable[..., Any]


def made(weights: tuple[int, ...], nodes: int = NODES, missing: int = 0) -> Graph:
    """A graph with a weight for each pair; `missing` stands for a pair that has no row."""
    pairs = np.array(list(combinations(range(nodes), 2)))
    weight = np.array(weights)
    there = weight != missing
    return graph(nodes, pairs[there, 0], pairs[there, 1], weight[there])


def setting(relation: Relation, *, rows: int = 1) -> Setting:
    unit = PrivacyUnit(None) if rows == 1 else PrivacyUnit("who", 1, rows)
    ends = tuple(Column(name, Kind.INTEGER, Bounds(Fraction(0), Fraction(NODES - 1))) for name in "ab")
    weight = Column("w", Kind.REAL, Bounds(Fraction(0), Fraction(1)), Fraction(1, 2))
    table = Table("links", (*ends, weight, Column("who", Kind.INTEGER)), unit, relation)
    return Setting({"links": table}, Fraction(1), Fraction(0), RenderOptions("salt"))


DISTANCES: list[tuple[Prepare, dict[str, object]]] = [
    (answers.graph_distance, {"property": name}) for name in PROPERTIES
]
BOUNDED: list[tuple[Prepare, dict[str, object]]] = [
    (prepare, {"most": most}) for prepare in (answers.triangle_count, answers.degree_histogram) for most in (2, 3, 4)
]
ANSWERS: list[tuple[Prepare, dict[str, object]]] = [
    (answers.min_cut, {}),
    (answers.spanning_tree, {}),
    (answers.degree_histogram, {"most": 1}),
    (answers.star_count, {"k": 2, "most": 2}),
    (answers.star_count, {"k": 2, "most": 3}),
    (answers.star_count, {"k": 3, "most": 3}),
    *DISTANCES,
    *BOUNDED,
]


def subsets() -> Iterator[frozenset[int]]:
    for bits in product((0, 1), repeat=len(PAIRS)):
        yield frozenset(i for i, bit in enumerate(bits) if bit)


def neighbors(edges: frozenset[int], relation: Relation) -> Iterator[frozenset[int]]:
    if relation is Relation.ADD_REMOVE:
        yield from (edges | {i} for i in range(len(PAIRS)) if i not in edges)
    else:
        # another row may stand where there is one already, so nothing may be gained by a replacement
        yield from ((edges - {i}) | {j} for i in edges for j in range(len(PAIRS)))


@pytest.mark.parametrize(("prepare", "arguments"), ANSWERS)
@pytest.mark.parametrize("relation", Relation)
def test_brute_force_stays_within_what_is_declared(
    prepare: Prepare, arguments: dict[str, object], relation: Relation
) -> None:
    prepared: GraphStatistic = prepare(setting(relation), table="links", ends=["a", "b"], **arguments)

    @cache
    def value(edges: frozenset[int]) -> NDArray[np.int64]:
        return prepared.compute(made(tuple(int(i in edges) for i in range(len(PAIRS)))))

    farthest = max(
        int(np.abs(value(one) - value(other)).sum()) for one in subsets() for other in neighbors(one, relation)
    )
    declared = prepared.mechanism.sensitivity
    assert farthest <= declared
    if relation is Relation.ADD_REMOVE and prepare not in (answers.triangle_count, answers.spanning_tree):
        assert farthest == declared, "nothing is given away"


NAN = float("nan")
#: Rows as an engine gives them: both directions, two weights, a loop, an end that is none, weights that are NULL.
ROWS: list[tuple[float, float, float]] = [
    (0, 1, 0.0),
    (0, 1, 1.0),
    (1, 0, 0.5),
    (1, 2, 0.0),
    (1, 2, 1.0),
    (0, 2, 0.0),
    (2, 3, 0.0),
    (2, 3, 1.0),
    (1, 1, 1.0),
    (0, NAN, 1.0),
    (0, 3, NAN),
    (9, 1, 1.0),
]
WEIGHED: list[tuple[Prepare, dict[str, object]]] = [
    (answers.min_cut, {"weight": "w"}),
    (answers.spanning_tree, {"weight": "w"}),
    *ANSWERS,
]
#: What is reached in this universe under add/remove and replace, worked out by hand; all that is declared if not here.
REACHED: dict[str, tuple[int, int]] = {
    # without weights every tree weighs the same; cycles and triangles need more rows than there are here
    "spanning_tree{}": (0, 0),
    "triangle_count{'most': 2}": (1, 1),
    "triangle_count{'most': 3}": (1, 1),
    "triangle_count{'most': 4}": (1, 1),
    "graph_distance{'property': 'disconnected'}": (1, 1),
    # an edge of node 2, which gets its third, to a node that gets its second; no other node has three
    "star_count{'k': 2, 'most': 3}": (3, 3),
    "star_count{'k': 3, 'most': 3}": (1, 1),
    # four counts move where an edge of two lone nodes goes, and one between two nodes of degree 1 comes: six nodes
    "degree_histogram{'most': 2}": (2, 3),
}


def exact(prepared: GraphStatistic, rows: tuple[tuple[float, float, float], ...]) -> NDArray[np.int64]:
    """Compute on rows as the engine would give them, the weight last where one is read."""
    columns = np.array(rows, dtype=np.float64).reshape(-1, 3)
    found = {f"v{i}": columns[:, i] for i in range(3 if prepared.edges.weight is not None else 2)}
    return prepared.compute(prepared.edges.graph(found))


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize(("prepare", "arguments"), WEIGHED, ids=lambda each: getattr(each, "__name__", str(each)))
def test_tables_with_weights_and_several_rows_a_pair_stay_within_the_declared(
    prepare: Prepare, arguments: dict[str, object], relation: Relation
) -> None:
    """All tables of up to four rows, and all neighbors: a row more or less, or another row in its place."""
    prepared = prepare(setting(relation), table="links", ends=["a", "b"], **arguments)

    @cache
    def value(chosen: tuple[int, ...]) -> NDArray[np.int64]:
        return exact(prepared, tuple(ROWS[i] for i in chosen))

    farthest = 0
    for size in range(4):
        for rest in combinations_with_replacement(range(len(ROWS)), size):
            values = [value(tuple(sorted((*rest, i)))) for i in range(len(ROWS))]
            if relation is Relation.ADD_REMOVE:
                farthest = max(farthest, *(int(np.abs(each - value(rest)).sum()) for each in values))
            else:
                farthest = max(farthest, *(int(np.abs(a - b).sum()) for a, b in combinations(values, 2)))
    declared = prepared.mechanism.sensitivity
    assert farthest <= declared
    reached = REACHED.get(f"{prepare.__name__}{arguments}", (declared, declared))
    assert farthest == reached[relation is Relation.REPLACE]


def test_a_replaced_row_moves_a_spanning_tree_by_twice_the_largest_weight() -> None:
    """Take away the heavier of two rows of one pair, and join another pair: 2 + 2 steps, where 2 was once declared."""
    prepared = answers.spanning_tree(setting(Relation.REPLACE), table="links", ends=["a", "b"], weight="w")
    assert isinstance(prepared, GraphStatistic)
    kept = ((0.0, 1.0, 0.0), (1.0, 2.0, 0.0))
    before, after = exact(prepared, (*kept, (0.0, 1.0, 1.0))), exact(prepared, (*kept, (2.0, 3.0, 0.0)))
    assert (before.tolist(), after.tolist()) == ([4], [0])
    assert prepared.mechanism.sensitivity == 4
    added = answers.spanning_tree(setting(Relation.ADD_REMOVE), table="links", ends=["a", "b"], weight="w")
    assert isinstance(added, GraphStatistic)
    assert added.mechanism.sensitivity == 2


def test_triangles_move_by_what_is_declared_on_a_graph_that_attains_it() -> None:
    """An edge between two triangles pushes an edge out of each, under some orders, where degrees are at most 2."""
    ends = np.array([(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5), (0, 3)])
    joined = graph(6, ends[:, 0], ends[:, 1], np.ones(7, dtype=np.int64))
    apart = joined.only(joined.codes != 3)
    moved = [triangles(truncated(apart, 2, f"{i}")) - triangles(truncated(joined, 2, f"{i}")) for i in range(60)]
    asked = answers.triangle_count(setting(Relation.ADD_REMOVE), table="links", ends=["a", "b"], most=2)
    assert isinstance(asked, GraphStatistic)
    assert max(moved) == 2 == asked.mechanism.sensitivity


def test_a_planted_error_is_found_by_the_brute_force() -> None:
    """Without truncation one edge closes two triangles of four nodes, and a bound of 2 would be too small by far."""
    whole, but_one = made((1,) * 6), made((0,) + (1,) * 5)
    assert triangles(whole) - triangles(but_one) == 2
    histogram = [np.bincount(each.degrees(), minlength=4) for each in (whole, but_one)]
    assert int(np.abs(histogram[0] - histogram[1]).sum()) == 4, "the histogram itself moves by 4, not by 2"


@pytest.mark.parametrize("relation", Relation)
def test_a_unit_of_several_edges_moves_as_much_as_its_edges_together(relation: Relation) -> None:
    for prepare, arguments in ANSWERS:
        one = prepare(setting(relation), table="links", ends=["a", "b"], **arguments).mechanism.sensitivity
        five = prepare(setting(relation, rows=5), table="links", ends=["a", "b"], **arguments).mechanism.sensitivity
        assert five == 5 * one


@pytest.mark.row(51)
@pytest.mark.row(52)
def test_perturbing_any_edge_moves_cut_and_tree_by_at_most_one() -> None:
    """Weights in steps of a half: any pair of the four nodes gets any other weight in [0, 1]."""
    cuts, trees = {}, {}
    for weights in product((0, 1, 2), repeat=6):
        cuts[weights] = minimum_cut(made(weights))
        trees[weights] = tree_weight(made(weights, missing=-1), 2)
    moved = [0, 0]
    for weights in cuts:
        for i, other in product(range(6), (0, 1, 2)):
            changed = (*weights[:i], other, *weights[i + 1 :])
            for place, values in enumerate((cuts, trees)):
                moved[place] = max(moved[place], abs(values[weights] - values[changed]))
    assert moved == [2, 2], "one, in steps of a half, and it is attained"


@pytest.mark.row(51)
def test_perturbing_any_edge_of_the_karate_club_moves_its_cut_by_at_most_one() -> None:
    edges = np.array(nx.karate_club_graph().edges())
    for place in range(len(edges)):
        weight = np.full(len(edges), 4)
        base = minimum_cut(graph(34, edges[:, 0], edges[:, 1], weight))
        weight[place] = 0
        assert base - 4 <= minimum_cut(graph(34, edges[:, 0], edges[:, 1], weight)) <= base


@pytest.mark.usefixtures("few_rounds")
@pytest.mark.parametrize("most", [1, 2, 3])
def test_changing_all_edges_of_a_node_stays_within_the_bounds(most: int) -> None:
    """Node privacy: all graphs of four nodes, all edges of one node there or gone, or any others in their place."""
    own = [i for i, pair in enumerate(PAIRS) if 3 in pair]
    gone, other_ones = 0, 0
    for salt in ("one", "two", "three"):

        def counts(edges: frozenset[int], salt: str = salt) -> NDArray[np.int64]:
            return at_least(projected(made(tuple(int(i in edges) for i in range(6))), most, salt), most)

        values = {edges: counts(edges) for edges in subsets()}
        for edges in values:
            rest = edges - set(own)
            gone = max(gone, int(np.abs(values[edges] - values[rest]).sum()))
            for size in range(4):
                for chosen in combinations(own, size):
                    other_ones = max(other_ones, int(np.abs(values[edges] - values[rest | set(chosen)]).sum()))
    declared = [
        answers.degree_histogram(setting(each), table="links", ends=["a", "b"], most=most, protects="node")
        for each in (Relation.ADD_REMOVE, Relation.REPLACE)
    ]
    assert gone == 2 * most == declared[0].mechanism.sensitivity, "it is attained"
    assert other_ones == 2 * most == declared[1].mechanism.sensitivity, "it is attained"


@pytest.mark.usefixtures("few_rounds")
@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("most", [1, 2])
def test_node_privacy_of_tables_with_repeats_loops_and_nulls(most: int, relation: Relation) -> None:
    """All rows of node 3 go, or others come in their place; rows repeat, run both ways, end nowhere or in a loop."""
    others: list[tuple[float, float, float]] = [(0, 1, 1), (1, 0, 1), (1, 2, 1), (0, 2, 1), (2, 2, 1), (0, NAN, 1)]
    own: list[tuple[float, float, float]] = [(3, 0, 1), (0, 3, 1), (1, 3, 1), (3, 2, 1), (3, 3, 1), (3, NAN, 1)]
    prepared = answers.degree_histogram(setting(relation), table="links", ends=["a", "b"], most=most, protects="node")
    farthest = 0
    for base in combinations_with_replacement(others, 3):
        values = [exact(prepared, (*base, *rows)) for size in (0, 1, 2, 3) for rows in combinations(own, size)]
        if relation is Relation.ADD_REMOVE:
            farthest = max(farthest, *(int(np.abs(each - values[0]).sum()) for each in values))
        else:
            farthest = max(farthest, *(int(np.abs(a - b).sum()) for a, b in combinations(values, 2)))
    declared = prepared.mechanism.sensitivity
    assert declared == 2 * most
    assert farthest == declared


def test_without_the_projection_a_node_moves_the_counts_by_more() -> None:
    """The planted error: a star of 20 nodes, capped at degree 1, loses all its nodes with its centre."""
    star = graph(21, np.zeros(20, dtype=np.int64), np.arange(1, 21), np.ones(20, dtype=np.int64))
    nothing = star.only(np.zeros(20, dtype=np.bool_))
    assert int(np.abs(at_least(star, 1) - at_least(nothing, 1)).sum()) == 21
    assert int(np.abs(at_least(projected(star, 1, "s"), 1) - at_least(nothing, 1)).sum()) == 2


@pytest.mark.usefixtures("few_rounds")
def test_random_graphs_keep_the_bound_of_node_privacy() -> None:
    random = np.random.default_rng(8)
    for _ in range(150):
        ends = random.integers(0, 12, (60, 2))
        whole = graph(12, ends[:, 0], ends[:, 1], np.ones(60, dtype=np.int64))
        without = whole.only((whole.a != 5) & (whole.b != 5))
        counts = [at_least(projected(each, 3, "salt"), 3) for each in (whole, without)]
        assert int(np.abs(counts[0] - counts[1]).sum()) <= 6


def test_one_edge_moves_at_most_three_edges_of_a_truncated_graph() -> None:
    random = np.random.default_rng(9)
    most_in = most_out = 0
    for seed in range(300):
        ends = random.integers(0, 10, (25, 2))
        whole = graph(10, ends[:, 0], ends[:, 1], np.ones(25, dtype=np.int64))
        less = whole.only(np.arange(whole.size) != random.integers(whole.size))
        after, before = (set(truncated(each, 3, f"{seed}").codes.tolist()) for each in (whole, less))
        assert truncated(whole, 3, f"{seed}").degrees().max() <= 3
        most_in, most_out = max(most_in, len(after - before)), max(most_out, len(before - after))
    assert (most_in, most_out) == (1, 2)
