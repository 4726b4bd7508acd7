"""Every analysis, with what can be reached of each noise that it buys.

`reach` is written by hand: for each noise of the charged event, by its place there, which share of the stated
sensitivity some pair of neighbors uses; 1 where nothing is said. Less than 1 is stated where the theorem's bound is
not tight, and the reason is beside it. What is reached less than this fails the test, as it could not notice noise
that is too small.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations, permutations
from typing import Any

from tests.contract.search import Begin, Subject
from tests.contract.small_graphs import BOOK, PATH, RING, TWINS, WEIGHED, one_each
from tests.contract.tables import DELTA, FEW, ROW, World, analysis, families, links, people

from hubbub.analyses.graphs.properties import PROPERTIES
from hubbub.core.unit import Relation

ADD, REPLACE = Relation.ADD_REMOVE, Relation.REPLACE
NONE = Fraction(0)
#: Each pair of unit, relation and δ; at full scale all eight.
FOUR = ((ROW, ADD, NONE), (ROW, REPLACE, DELTA), (FEW, REPLACE, NONE), (FEW, ADD, DELTA))
ALL = tuple((unit, relation, delta) for unit in (ROW, FEW) for relation in Relation for delta in (NONE, DELTA))

Reach = Mapping[int, float]
PEOPLE, LINKS, FAMILIES = people(), links(), families()


@dataclass(frozen=True)
class Case:
    """An analysis with arguments, where to begin, and what is reached."""

    name: str
    arguments: Mapping[str, Any]
    used: str
    world: World = PEOPLE
    by_cell: bool = False
    begin: tuple[Begin, ...] = ()
    reach: Mapping[Relation, Reach] = field(default_factory=dict)
    few: Mapping[Relation, Reach] = field(default_factory=dict)  #: where units have several rows, if that is otherwise
    units: bool = False  #: asked of units with several rows alone
    by_row: bool = False  #: asked of units with one row alone
    with_delta: bool = False  #: cannot be asked without δ

    def subjects(self, *, full: bool) -> Iterator[tuple[Subject, Reach]]:
        """Try it under each unit, relation and δ."""
        for unit, relation, offered in ALL if full else FOUR:
            delta = DELTA if self.with_delta else offered
            if not (self.units and unit == ROW) and not (self.by_row and unit == FEW):
                subject = analysis(
                    self.name,
                    self.world,
                    self.arguments,
                    self.used,
                    unit=unit,
                    relation=relation,
                    delta=delta,
                    by_cell=self.by_cell,
                    begin=self.begin,
                )
                reach = {**self.reach, **(self.few if unit == FEW else {})}
                yield subject, reach.get(relation, {})


#: Many rows in one place: what is found there is far from whoever stands elsewhere.
CROWD = (((0.0, 0.0),),) * 150
CORNERS: tuple[Begin, ...] = (
    (CROWD, ((1.0, 1.0),), ((-1.0, -1.0),)),
    (CROWD, ((1.0, 0.0),), ((0.0, 1.0),)),
    (CROWD, ((1.0, 1.0), (-1.0, -1.0)), ((None, None),)),
    (CROWD, ((1.0, 1.0),), ((None, None),)),
)
#: Squares lie in [0, 1] and products in one cone, so one that comes takes back what one that goes has moved; and the
#: L2 norm of squares is less than their L1 norm, for which the corner is the worst.
OF_MOMENTS: dict[Relation, Reach] = {
    # integers are bought with a little for roundings
    ADD: {1: 0.99, 2: 0.49, 4: 0.75, 5: 0.45, 6: 0.99, 7: 0.75},
    # two units in two cells of k-means add up in squares, not in norms
    REPLACE: {1: 0.99, 2: 0.12, 4: 0.5, 5: 0.1, 6: 0.99, 7: 0.2},
}
#: Units in different cells of a grid over the crowd, each with as many rows as are kept.
FOUR_CORNERS: tuple[Begin, ...] = (
    (CROWD, ((1.0, 1.0), (-1.0, -1.0)) * 2, ((1.0, -1.0), (-1.0, 1.0)) * 2),
    (CROWD, ((1.0, 1.0), (1.0, -1.0)) * 2, ((-1.0, -1.0), (-1.0, 1.0)) * 2),
)
#: Counts in cells are reached whole; sums in a round are of differences from a center, of which few are longest.
OF_GRID: dict[Relation, Reach] = {
    ADD: {1: 0.99, 2: 0.49, 5: 0.75},
    REPLACE: {1: 0.99, 2: 0.12, 5: 0.2},
}
#: Corners of the L1 ball, alone and among many at another corner.
BALL: tuple[Begin, ...] = (
    ((), ((1.0, 0.0),), ((None, None),)),
    ((), ((1.0, 0.0),), ((-1.0, 0.0),)),
    ((((-1.0, 0.0),),) * 12, ((1.0, 0.0),), ((0.0, 1.0),)),
)
#: Integers are bought with a little for roundings; of a covariance with public n only the upper triangle is released.
OF_BALL: dict[Relation, Reach] = {ADD: {1: 0.99, 2: 0.99}, REPLACE: {0: 0.75, 1: 0.99, 2: 0.99}}
SIDES: tuple[Begin, ...] = (
    ((), ((-1.0, False), (1.0, True)), ((-1.0, True), (1.0, False))),
    ((((-1.0, True),),) * 20 + (((1.0, False),),) * 20, ((-1.0, False), (1.0, True)), ((-1.0, True), (1.0, False))),
)
#: A unit in two cells, and another in two others; in an empty table, and among others.
CELLS: tuple[Begin, ...] = (
    ((), (("a", True), ("b", True)), (("b", False), ("c", False))),
    ((), (("a", True), ("b", True)), ((None, None),)),
)
CUBE: tuple[Begin, ...] = tuple(
    (base, (("a", True, True), ("a", True, False)), (("b", False, False), ("c", False, True)))
    for base in ((), ((("a", True, True),),) * 9)
)
#: A person with two rows in one cell, beside nobody, and one whose columns all differ; few rows and many.
HOMES: tuple[Begin, ...] = tuple(
    (base, (("a", True),) * 2, other)
    for base in ((), ((("b", False),),) * 9, ((("c", True),) * 2,) * 5)
    for other in ((("b", False),) * 2, (("c", False),), (("b", False), ("c", False)))
)
BITS: tuple[Begin, ...] = (((), ((True, True), (True, False)), ((False, False), (False, True))),)
ENDS: tuple[Begin, ...] = tuple(
    ((), one, two) for one, two in permutations((((0,), (1,)), ((2,), (3,)), ((1,),), ((0,), (3,))), 2)
)
#: Two rows of a unit in one cell, and those of another in a cell that differs in both columns, or in two cells.
SQUARES: tuple[Begin, ...] = tuple(
    ((), one, two)
    for one, two in permutations((((0, True),) * 2, ((3, False),) * 2, ((1, True), (2, True)), ((None, None),)), 2)
)
#: A bin that both are in, and a sum that holds both, moves less; a unit's rows lie in two bins, not all in one.
OF_RANGES: dict[str, Any] = {
    "reach": {REPLACE: {0: 0.55}},
    "few": {ADD: {0: 0.2}, REPLACE: {0: 0.35}},
}
#: Nothing is replaced by something, or the other way round.
SOME: tuple[Begin, ...] = (((), (("a", True, True), ("b", False, True)), ((None, None, None),)),)


#: Units at the ends of different buckets of rows, with no group at all, or with several.
HOLDERS: tuple[Begin, ...] = (
    ((), ((1.0, None),) * 3, ((-1.0, None),) * 5),
    ((), ((7.0, None),) * 4, ((None, None),) * 2),
    ((), ((1.0, "a"), (1.0, "b")), ((0.0, "c"),)),
)
LISTED: tuple[Begin, ...] = tuple(
    (base, tuple((k,) for _, k in one), tuple((k,) for _, k in two)) for base, one, two in HOLDERS
)

DISTANCES: tuple[Begin, ...] = (
    (tuple((row[:2],) for (row,) in RING), ((5, 0), (5, 1)), ((0, 1),)),
    (PATH, ((0, 2), (1, 3)), ((3, 4), (4, 5))),
    (PATH, ((0, 1),), ((3, 4), (4, 5))),
    (one_each((0, 2), (2, 1)), ((0, 1),), ((3, 4), (5, 2))),
    ((), ((0, 1), (2, 3)), ((4, 4),)),
)

#: The middle of a few rows, which one unit takes from one end of the range to the other.
CENTER: tuple[Begin, ...] = (
    ((((0,),), ((3,),)), ((0,), (0,)), ((3,), (3,))),
    ((((0,),), ((0,),), ((3,),), ((3,),)), ((3,),), ((0,),)),
)

#: Bounds for several pairs are those for one times their number, and scales move by less than a level.
LOOSE: dict[Relation, Reach] = {ADD: {0: 0.25, 1: 0.0}, REPLACE: {0: 0.1, 1: 0.0}}

#: All edges but two of one node, the last to be cut off; and paths that two edges close to triangles.
NEAR: tuple[Begin, ...] = (
    (
        one_each(*(pair for pair in combinations(range(6), 2) if pair not in ((0, 5), (1, 5)))),
        ((0, 5), (1, 5)),
        ((None, 1),),
    ),
    (one_each((0, 1), (1, 2), (3, 4), (4, 5)), ((0, 2), (3, 5)), ((None, 1),)),
)

#: A unit with all its rows in one cell, beside nothing and beside another in a cell that differs in both columns.
OF_CUBE: tuple[Begin, ...] = tuple(
    ((), ((k, f, 1.0),), other)
    for k in "abc"
    for f in (True, False)
    for other in (((None, None, None),), (("b" if k == "a" else "a", not f, 1.0),), ((k, not f, -1.0),))
)

#: Two units at the ends of an outcome, in different groups and in one, in an empty table and among others.
ENDS_OF_GROUPS: tuple[Begin, ...] = tuple(
    (base, ((one, "a"),), ((other, group),))
    for base in ((), (((0.0, "a"),),) * 9)
    for one, other, group in ((1.0, -1.0, "b"), (-1.0, 1.0, "a"), (1.0, 1.0, "b"), (1.0, None, "b"))
)
#: One unit, and another of the other kind or with nothing, at every time.
OF_TIMES: tuple[Begin, ...] = tuple(
    ((), ((i, True),), ((other, False if other is not None else None),)) for i in range(4) for other in (i, None)
)
OF_TIMES_BY_GROUP: tuple[Begin, ...] = tuple(
    ((), ((i, True, "a"),), ((other, None if other is None else False, "b"),)) for i in range(4) for other in (i, None)
)
#: Integers are bought with one more for roundings.
OF_MEANS: dict[str, Any] = {"begin": ENDS_OF_GROUPS, "reach": {ADD: {0: 0.99}, REPLACE: {0: 0.99}}}
_RIGHT = ((1.0, "a", True),) * 2 + ((1.0, "a", False),) * 2
BUCKETS: tuple[Begin, ...] = (((), _RIGHT, ((-1.0, "b", True),) * 2 + ((-1.0, "b", False),) * 2),)
CASES = (
    Case("chi_square", {"columns": ["k", "f"]}, "k f", begin=CELLS),
    Case("chi_square", {"columns": ["k"], "shares": [1, 2, 3]}, "k", begin=(((), (("a",),), (("b",),)),)),
    Case("difference_of_means", {"outcome": "x", "group": "k", "between": ["a", "b"]}, "x k", **OF_MEANS),
    Case(
        "difference_of_means",
        {"outcome": "f", "group": "g"},
        "f g",
        begin=(((), ((True, True),), ((False, False),)), ((), ((True, True),), ((None, True),))),
        reach={ADD: {0: 0.99}, REPLACE: {0: 0.99}},
    ),
    Case("anova", {"outcome": "x", "group": "k"}, "x k", by_row=True, **OF_MEANS),
    Case(
        "cube",
        {"columns": ["k", "f"], "measures": ["count", "sum(x)"]},
        "k f x",
        with_delta=True,
        begin=OF_CUBE,
        # roundings of the basis leave columns a little shorter than the longest; under `replace` the bound is twice
        # the norm of one unit, which only columns that are opposite to each other reach
        reach={
            ADD: {1: 0.99, 3: 0.99, 5: 0.99, 7: 0.99},
            REPLACE: {0: 0.25, 1: 0.66, 2: 0.7, 3: 0.7, 5: 0.99, 6: 0.7, 7: 0.4},
        },
    ),
    Case(
        "decision_tree",
        {"columns": ["x"], "target": "f", "depth": 1, "bins": 2},
        "x f",
        by_cell=True,
        begin=SIDES,
        # a row that leaves a large child raises its score by a little less than one that comes
        reach={REPLACE: {0: 0.9}},
    ),
    Case(
        "decision_tree",
        {"columns": ["x"], "target": "f", "depth": 2, "bins": 2, "score": "max"},
        "x f",
        by_cell=True,
        begin=SIDES,
    ),
    Case(
        "explainable_boosting",
        {"columns": ["x"], "target": "f", "bins": 2, "rounds": 2},
        "x f",
        begin=(
            ((((1.0, True),) * 2,) * 60, ((1.0, False),) * 2, ((None, True),)),
            (
                (((1.0, True),) * 2,) * 60 + (((-1.0, False),) * 2,) * 60,
                ((1.0, False),) * 2,
                ((-1.0, True),) * 2,
            ),
            (
                (((1.0, True),) * 2,) * 60 + (((-1.0, False),) * 2,) * 60,
                ((1.0, False),) * 2 + ((-1.0, True),) * 2,
                ((None, True),),
            ),
        ),
        # counts that go and counts that come add up in squares, and shapes that are sure of both buckets are rare
        reach={ADD: {1: 0.95}, REPLACE: {0: 0.5, 1: 0.45}},
        few={ADD: {1: 0.505}},  # more than half: else noise for one bucket would go unnoticed
    ),
    Case(
        "frequent_itemsets",
        {"columns": ["f", "g", "k"], "size": 3, "support": Fraction(1, 100)},
        "f g k",
        begin=(((((True, True, "a"),),) * 2, ((True, True, "a"),), ((False, False, "b"),)),),
        # a flag that is false is no item: two rows of which one has all items have few others between them
        reach={REPLACE: {0: 0.25, 1: 0.25, 2: 0.25}},
    ),
    Case(
        "frequent_itemsets",
        {"item": "k", "size": 2, "support": Fraction(1, 100)},
        "k",
        units=True,
        begin=(((((("a",), ("b",), ("c",)),) * 2, (("a",), ("b",), ("c",)), ((None,),))),),
        # baskets are 0 or 1 in each count, so a replaced one moves a count by 1 and not by 2
        reach={REPLACE: {0: 0.25, 1: 0.25}},
    ),
    Case(
        "hyperplane",
        {"columns": ["x", "y"], "target": "f", "bins": 2, "slopes": 1},
        "x y f",
        begin=(
            ((), ((-1.0, -1.0, False), (1.0, 1.0, True)), ((-1.0, -1.0, True), (1.0, 1.0, False))),
            ((), ((-1.0, -1.0, False), (1.0, 1.0, True)), ((None, 1.0, True),)),
        ),
        # rows that go and rows that come do not add up in either count
        reach={REPLACE: {1: 0.5}},
    ),
    Case("kmeans", {"columns": ["x", "y"], "k": 2, "rounds": 1}, "x y", begin=CORNERS + FOUR_CORNERS, reach=OF_GRID),
    Case(
        "kmeans",
        {"columns": ["x", "y"], "k": 2, "rounds": 1, "method": "moments"},
        "x y",
        begin=CORNERS,
        reach=OF_MOMENTS,
    ),
    Case(
        "kmeans",
        {"columns": ["x", "y"], "k": 2, "rounds": 1, "method": "classic"},
        "x y",
        begin=CORNERS,
        few={REPLACE: {1: 0.45}},
    ),  # of two units in one cell the sums of one take back those of the other
    Case("median", {"column": "i"}, "i", begin=CENTER, reach={REPLACE: {1: 0.0}, ADD: {1: 0.0}}),
    Case("linear_regression", {"columns": ["x"], "target": "y"}, "x y", begin=CORNERS, reach=OF_MOMENTS),
    Case(
        "logistic_regression",
        {"columns": ["x"], "target": "f", "rounds": 2},
        "x f",
        begin=(
            ((((0.0, True),),) * 150, ((1.0, False),), ((-1.0, True),)),
            ((((0.0, True),),) * 150, ((1.0, False),), ((None, True),)),
        ),
        # weights that are sure of a row, and wrong, come by chance alone; and see `OF_MOMENTS`
        reach={
            ADD: {1: 0.99, 2: 0.9, 4: 0.8, 5: 0.7, 6: 0.4, 7: 0.4, 8: 0.5},
            REPLACE: {1: 0.4, 2: 0.1, 4: 0.4, 5: 0.1, 6: 0.1, 7: 0.1, 8: 0.1},
        },
    ),
    Case(
        "poisson_regression",
        {"columns": ["x"], "target": "i", "rounds": 2},
        "x i",
        begin=(
            ((((0.0, 0),),) * 150, ((1.0, 3),), ((None, 3),)),
            ((((0.0, 1),),) * 150, ((1.0, 3),), ((-1.0, 3),)),
        ),
        # see `OF_MOMENTS`, and the weights come by chance as in a logistic regression
        reach={ADD: {1: 0.99, 2: 0.99, 4: 0.99, 5: 0.99, 6: 0.99}, REPLACE: {1: 0.6, 2: 0.12, 4: 0.7, 5: 0.12, 6: 0.2}},
        few={ADD: {1: 0.99, 2: 0.49, 4: 0.7, 5: 0.5, 6: 0.8}, REPLACE: {1: 0.6, 2: 0.4, 4: 0.7, 5: 0.3, 6: 0.4}},
    ),
    Case(
        "naive_bayes",
        {"columns": ["x", "k"], "target": "f", "bins": 2},
        "x k f",
        begin=BUCKETS,
        # counts that go and counts that come add up in squares, not in norms
        reach={REPLACE: {0: 0.5}},
    ),
    Case(
        "random_forest",
        {"columns": ["x", "k"], "target": "f", "bins": 2, "trees": 2, "leaves": 4},
        "x k f",
        begin=BUCKETS,
        reach={REPLACE: {0: 0.5, 1: 0.5}},
    ),
    Case("mean_vector", {"columns": ["x", "y"], "gamma": 1}, "x y", begin=BALL, reach=OF_BALL),
    Case("covariance", {"columns": ["x", "y"], "gamma": 1}, "x y", begin=BALL, reach=OF_BALL),
    Case("moments", {"columns": ["x", "y"]}, "x y", begin=CORNERS, reach=OF_MOMENTS),
    Case("pca", {"columns": ["x", "y"]}, "x y", begin=CORNERS, reach=OF_MOMENTS),
    Case(
        "perceptron",
        {"columns": ["x"], "target": "f", "rounds": 2},
        "x f",
        begin=(
            ((((1.0, True),),) * 20, ((1.0, True), (1.0, True)), ((None, True),)),
            ((((1.0, True),),) * 20, ((1.0, True),), ((1.0, False),)),
        ),
        # of a row that goes and one that comes, both misclassified, the counts take each other back
        reach={ADD: {0: 0.95}, REPLACE: {0: 0.6}},
        few={ADD: {0: 0.45}, REPLACE: {0: 0.3}},
    ),
    Case("geography", {"column": "k", "places": {"N": ["a", "b"], "S": ["c"]}, "columns": ["f"]}, "k f", begin=CELLS),
    *(
        Case("ranges", {"column": "i", "strategy": name, "workload": workload}, "i", begin=ENDS, **OF_RANGES)
        for name, workload in (
            ("identity", "ranges"),
            ("tree", "ranges"),
            ("groups", "ranges"),
            ("root", "prefixes"),
            ("dense", "ranges"),
        )
    ),
    Case("ranges", {"columns": ["i", "f"]}, "i f", begin=SQUARES, **OF_RANGES),
    Case("mwem", {"columns": ["k", "f", "g"], "rounds": 2}, "k f g", begin=CUBE + SOME),
    Case("small_database", {"columns": ["f", "g"], "size": 2}, "f g", begin=BITS),
    Case("small_database", {"columns": ["f", "g"], "size": 2, "total": 3, "ways": 1}, "f g", begin=BITS),
    Case(
        "synthetic",
        {"columns": ["k", "f", "g"], "pairs": 2, "rounds": 1},
        "k f g",
        begin=CUBE + SOME,
        # the rows of a unit lie in two cells, and the report is about rows that are drawn by chance
        few={ADD: {3: 0.5, 4: 0.5, 5: 0.4}, REPLACE: {3: 0.5, 4: 0.5}},
    ),
    Case(
        "synthetic_tables",
        {
            "table": "p",
            "columns": ["ill"],
            "child": "t",
            "child_columns": ["k"],
            "child_rows": 2,
            "pairs": 1,
            "child_pairs": 1,
            "rounds": 1,
        },
        "k f",
        FAMILIES,
        begin=HOMES,
        units=True,
    ),
    Case("synthetic", {"columns": ["k"]}, "k", begin=(((), (("a",), ("b",)), (("c",), ("b",))),)),
    Case("survival", {"time": "i", "event": "f"}, "i f", begin=OF_TIMES, by_row=True),
    Case("survival", {"time": "i", "event": "f", "group": "k"}, "i f k", begin=OF_TIMES_BY_GROUP),
    Case("tabulate", {"columns": ["k", "f"]}, "k f", begin=CELLS),
    Case("tabulate", {"columns": ["k", "f"], "count": "units"}, "k f", units=True, begin=CELLS),
    # of two units with at most six rows only one fills its bucket: four rows, and six of the eight of the next one
    Case("profile", {"columns": ["x", "k"]}, "x k", begin=HOLDERS, few={REPLACE: {4: 0.87}}),
    Case("profile", {"columns": ["k"], "max_rows": 9}, "k", units=True, begin=LISTED, few={REPLACE: {3: 0.87}}),
    Case(
        "binomial_count",
        {"query": "SELECT COUNT(*) FROM t WHERE k = 'a'"},
        "k",
        begin=(((), (("a",),), (("b",),)),),
        with_delta=True,
    ),
    *(
        Case(
            "choose",
            {"table": None, "candidates": ["a", "b", "c"], "score": score, "method": method},
            used,
            begin=begin,
        )
        for score, method, used, begin in (
            ("SELECT COUNT(*) FROM t WHERE k = $1", "permute_and_flip", "k", (((), (("a",),), (("b",),)),)),
            ("SELECT SUM(i - 1) FROM t WHERE k = $1", "noisy_max", "k i", (((), (("a", 3),), (("a", 0),)),)),
        )
    ),
    Case("min_cut", WEIGHED, "a b v", LINKS, begin=((RING, ((5, 0, 1.0), (5, 1, 1.0)), ((0, 1, 0.0),)),)),
    Case(
        "spanning_tree",
        WEIGHED,
        "a b v",
        LINKS,
        begin=((one_each((0, 1, 0.0), (1, 2, 0.0)), ((0, 1, 1.0), (1, 2, 1.0)), ((2, 3, 0.0), (3, 4, 0.0))),),
    ),
    Case(
        "spanning_tree",
        {**WEIGHED, "sensitivity": "smooth"},
        "a b v",
        LINKS,
        begin=((one_each((0, 1, 0.0), (1, 2, 0.0)), ((0, 1, 1.0), (1, 2, 1.0)), ((2, 3, 0.0), (3, 4, 0.0))),),
        # a tree moves by the largest weight with each pair, and the scale of its noise seldom by a whole level
        reach=LOOSE,
        few=LOOSE,
    ),
    Case(
        "single_linkage",
        {**WEIGHED, "clusters": 3},
        "a b v",
        LINKS,
        begin=((one_each((0, 1, 0.0), (1, 2, 0.0), (2, 3, 0.0)), ((3, 4, 0.0), (4, 5, 0.0)), ((None, 1, 0.0),)),),
        # the scale seldom moves by a whole level
        reach={ADD: {1: 0.0}, REPLACE: {1: 0.0}},
    ),
    Case(
        "triangle_count",
        {"ends": ["a", "b"], "sensitivity": "smooth"},
        "a b",
        LINKS,
        begin=((one_each((0, 1), (1, 2), (0, 3), (3, 2)), ((0, 2),), ((None, 1),)),),
        reach=LOOSE,
        few=LOOSE,
    ),
    *(
        Case("graph_distance", {"ends": ["a", "b"], "property": name}, "a b", LINKS, begin=DISTANCES, few=few)
        # eight nodes of odd degree would be needed
        for name, few in ((name, {REPLACE: {0: 0.5}} if name == "even" else {}) for name in PROPERTIES)
    ),
    Case(
        "graph_distance",
        {"ends": ["a", "b"], "property": "non_expansive", "threshold": Fraction(1, 2)},
        "a b",
        LINKS,
        begin=NEAR,
    ),
    Case(
        "graph_distance",
        {"ends": ["a", "b"], "property": "poorly_clustered", "threshold": Fraction(1, 4), "most": 2},
        "a b",
        LINKS,
        begin=NEAR,
        # an edge that goes and one that comes would have to bring it nearer both times
        reach={REPLACE: {0: 0.5}},
    ),
    Case(
        "degree_histogram",
        {"ends": ["a", "b"], "most": 3},
        "a b",
        LINKS,
        few={REPLACE: {0: 0.5}},  # of eight nodes
        begin=((one_each((2, 4), (3, 5)), ((0, 1),), ((2, 3),)),),
    ),
    Case("degree_histogram", {"ends": ["a", "b"], "most": 1}, "a b", LINKS, begin=(((), ((0, 1), (2, 3)), ((4, 4),)),)),
    Case(
        "triangle_count",
        {"ends": ["a", "b"], "most": 2},
        "a b",
        LINKS,
        begin=tuple((TWINS, ((i, j),), ((None, 1),)) for i in (0, 1, 2) for j in (3, 4, 5)),
        # an edge that goes gives two triangles back, and one that comes closes one; more need more nodes
        reach={REPLACE: {0: 0.5}},
        few={ADD: {0: 0.5}, REPLACE: {0: 0.25}},
    ),
    # neighbors here are single edges, which move less than a node: those are tried in test_node_counts
    Case(
        "triangle_count",
        {"ends": ["a", "b"], "protects": "node"},
        "a b",
        LINKS,
        by_row=True,
        # at the bound 1 a second triangle makes one of a little less than one
        begin=((TWINS[:-1], ((3, 5),), ((None, 1),)), (BOOK, ((0, 1),), ((None, 1),))),
        reach={ADD: {0: 0.1}, REPLACE: {0: 0.1, 1: 0.5}},
    ),
    Case(
        "star_count",
        {"ends": ["a", "b"], "k": 2, "protects": "node"},
        "a b",
        LINKS,
        by_row=True,
        begin=((one_each((0, 1), (2, 3)), ((1, 2),), ((None, 1),)),),
        # with two edges of each node, two stars come with an edge; three with a node, which takes two from others
        reach={ADD: {0: 0.1, 1: 0.66}, REPLACE: {0: 0.05, 1: 0.39}},
    ),
    Case(
        "star_count",
        {"ends": ["a", "b"], "k": 2, "most": 3},
        "a b",
        LINKS,
        begin=((one_each((0, 1), (0, 2), (3, 4), (3, 5)), ((0, 3),), ((None, 1),)),),
        few={ADD: {0: 0.5}, REPLACE: {0: 0.5}},  # of six nodes
    ),
)
