"""Numbers of triangles and stars under node privacy: all edges of a node are added or removed at once.

The number is truncated at bounds on what one node counts for; one of the bounds is chosen privately, as for rows with
two owners (`sql.owner_levels`), and noise covers that bound. Tested in tests/analyses/graphs/test_node_counts.py.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, comb

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.base import PreparedAnalysis, Published, Run, Setting
from hubbub.analyses.graphs.degrees import projected, stars
from hubbub.analyses.graphs.edges import EdgeTable, Graph
from hubbub.analyses.graphs.node_truncation import below, truncated_triangles
from hubbub.answers.estimate import Expected, significant
from hubbub.answers.left_out import LeftOut
from hubbub.answers.release import Output
from hubbub.core.events import Composed
from hubbub.core.reals import floor_to
from hubbub.core.secret import Secret
from hubbub.core.unit import Relation
from hubbub.errors import QueryError
from hubbub.mechanisms.laplace import Laplace
from hubbub.mechanisms.permute_and_flip import PermuteAndFlip
from hubbub.sql.owner_levels import CAUTION, RESOLUTION, SHARE, bounds_up_to, level_scores

LEVEL = Fraction(95, 100)
#: The most stars that a graph may have: what fits into an integer of an answer.
_MAX_COUNT = 1 << 62
#: Digits of the shares of ε.
_PLACES = 24


@dataclass(frozen=True, slots=True)
class NodeLevels:
    """Bounds on what one node counts for, in increasing order, and how far a node moves the number at each.

    what     what is bounded: "triangles" or "edges"
    rises    by how much the number rises at most where a node comes, and
    falls    by how much it falls at most
    totals   returns the truncated number at each bound
    """

    what: str
    bounds: tuple[int, ...]
    rises: tuple[int, ...]
    falls: tuple[int, ...]
    totals: Callable[[Graph], list[int]]

    def apart(self, one: int, other: int) -> int:
        """Return how far a node moves the difference of the numbers at two bounds."""
        rises, falls = self.rises, self.falls
        return max(rises[one] + falls[other], rises[other] + falls[one]) if one != other else 1

    def moved(self, relation: Relation) -> tuple[int, ...]:
        """Return how far neighbors are apart at each bound: with and without a node, or with another in its place."""
        if relation is Relation.ADD_REMOVE:
            return self.rises
        return tuple(rise + fall for rise, fall in zip(self.rises, self.falls, strict=True))


@dataclass(frozen=True, kw_only=True)
class NodeCount(PreparedAnalysis):
    """A number with noise for one node: a bound is chosen, and the number truncated at it is released.

    Theorem (Numbers under node privacy). Let T_i be integers that rise by at most r_i and fall by at most s_i ≤ r_i
    where a node comes. Choosing i by permute-and-flip with the scores −c_i − max_j (p_i − T_i − p_j + T_j)/m_ij, where
    m_ij = max(r_i + s_j, r_j + s_i) and c and p are constants, and releasing ⌊R·T_i/d_i⌋ with Laplace noise of scale
    R/ε₂, where d_i = r_i, or r_i + s_i under replace, costs ε₁ + ε₂.
    Proof    T_i − T_j rises by at most r_i + s_j and falls by at most s_i + r_j, so each quotient moves by at most 1,
             and so does the largest; by at most 2 where one node goes and another comes. Rounding down to parts of
             1/R keeps a change by a whole number of parts. T_i changes by at most d_i: both numbers of a replacement
             lie between that without either node less s_i, and that plus r_i. So R·T_i/d_i changes by at most R, and
             rounded down, as R is whole, it does so too. (Raskhodnikova and Smith 2016, as in `sql.owner_levels`.)
    Assumes  r and s by the theorems of `truncated_triangles` and `stars`, which cover single edges as well.
    Charges  a selection of sensitivity R (2R under replace), and Laplace noise of sensitivity R.
    Tested   tests/analyses/graphs/test_node_counts.py::test_a_node_moves_scores_by_at_most_their_sensitivity
             tests/analyses/graphs/test_node_counts.py::test_the_enumerated_loss_of_choice_and_noise_is_within_the_charge
    """

    edges: EdgeTable
    label: str  #: the name of the released column
    levels: NodeLevels
    penalties: tuple[int, ...]  #: what the noise at each bound weighs against what is left out
    choice: PermuteAndFlip
    mechanism: Laplace

    def scores(self, totals: Sequence[int]) -> NDArray[np.int64]:
        """Return the score of each bound from the number at each."""
        costs = [penalty - total for penalty, total in zip(self.penalties, totals, strict=True)]
        return level_scores(costs, self.levels.apart, self.choice.rate)

    def scaled(self, totals: Sequence[int], place: int) -> int:
        """Return the number at a bound in parts of what neighbors are apart there."""
        return totals[place] * RESOLUTION // self.levels.moved(self.relation)[place]

    def run(self, run: Run) -> Published:
        """Read the edges, truncate at all bounds, choose one, add noise."""
        run.progress(0.0, "reading edges")
        totals: Secret[list[int]] = run.ask(self.edges.read.sql).through(
            lambda found: Secret(self.levels.totals(self.edges.graph(found)))
        )
        place = totals.through(lambda exact: self.choice.sample(self.scores(exact), run.source))
        noisy = totals.through(lambda exact: self.mechanism.sample(self.scaled(exact, place), run.source))
        part = Fraction(self.levels.moved(self.relation)[place], RESOLUTION)
        low = float((noisy - self.mechanism.error(LEVEL)) * part)
        # the truncated number is never above the truth, and nothing bounds the truth from above
        shown = max(0, round(noisy * part))
        # rounding down must not show a number below its own lower end; a lower end that is lower holds as well
        cell = Output(self.label, "integer", [shown], [max(0.0, min(low, float(shown)))], [None])
        bound = self.levels.bounds[place]
        return Published((cell,), left_out=self._left_out(bound))

    def left_out(self) -> LeftOut:
        """State that a bound will be chosen."""
        return self._left_out(None)

    def _left_out(self, bound: int | None) -> LeftOut:
        return LeftOut(self.edges.table.name, per_node=self.levels.what, rows=bound)


def triangle_levels(nodes: int) -> NodeLevels:
    """Bound how many triangles of one node count: up to all pairs of other nodes."""
    bounds = bounds_up_to(comb(nodes - 1, 2), 1)
    falls = tuple(map(below, bounds))
    return NodeLevels("triangles", bounds, bounds, falls, lambda graph: truncated_triangles(graph, bounds))


def star_levels(nodes: int, leaves: int, most: int, salt: str) -> NodeLevels:
    """Bound how many edges of one node count, so that the noise is halved from one bound to the next."""
    check_stars(nodes, leaves, most)
    largest = comb(most, leaves)
    bounds: list[int] = []
    for degree in range(most, leaves - 1, -1):
        if comb(degree, leaves) <= largest >> len(bounds):
            bounds.append(degree)
    bounds.reverse()

    def totals(graph: Graph) -> list[int]:
        return [stars(projected(graph, bound, salt), leaves) for bound in bounds]

    falls = tuple(leaves * comb(bound, leaves) for bound in bounds)
    rises = tuple((leaves + 1) * comb(bound, leaves) for bound in bounds)
    return NodeLevels("edges", tuple(bounds), rises, falls, totals)


def node_count(setting: Setting, edges: EdgeTable, label: str, levels: NodeLevels) -> NodeCount:
    """Prepare a number under node privacy."""
    require_rows(edges)
    relation = edges.table.relation
    chosen_by, left = (floor_to(setting.epsilon * share, _PLACES) for share in (SHARE, 1 - SHARE))
    choice = PermuteAndFlip.from_epsilon(
        candidates=len(levels.bounds),
        sensitivity=RESOLUTION * relation.units_changed,
        monotone=False,
        relation=relation,
        epsilon=chosen_by,
    )
    mechanism = Laplace.from_epsilon(sensitivity=RESOLUTION, epsilon=left)
    moved = levels.moved(relation)
    halves = [float(mechanism.error(LEVEL) * Fraction(each, RESOLUTION)) for each in moved]
    # before the data is read nothing is known of its degrees: the middle of the bounds, on a logarithmic scale
    middle = next(place for place, each in enumerate(moved) if each * each >= moved[0] * moved[-1])
    some = [f"±{significant(halves[i])} at {levels.bounds[i]:,}" for i in sorted({0, middle, len(halves) - 1})]
    return NodeCount(
        protection=edges.protection,
        epsilon=setting.epsilon,
        delta=Fraction(0),
        event=Composed(((choice.event, 1), (mechanism.event, 1))),
        noise="permute-and-flip, laplace",
        derivation=(
            f"{edges.nodes} nodes are declared and public; rows are read into the curator's memory",
            f"protected: one node with all its edges ({relation.value}), and every single edge",
            f"of each node only so many {levels.what} count; the bound is one of {len(halves)} up to"
            f" {levels.bounds[-1]:,}, chosen by what it leaves out and by its noise, which costs ε = {chosen_by}",
            f"Laplace noise in proportion to the bound costs ε = {left}: {', '.join(some)} {levels.what}",
            f"the expected error is that of the bound {levels.bounds[middle]:,}; what a bound leaves out is not in it",
        ),
        expected=(Expected(label, halves[middle], None, 0.0),),
        edges=edges,
        label=label,
        levels=levels,
        penalties=tuple(ceil(CAUTION * each / left) for each in moved),
        choice=choice,
        mechanism=mechanism,
    )


def require_rows(edges: EdgeTable) -> None:
    """Raise an error unless each row is its own unit."""
    if not edges.by_row:
        raise QueryError(
            "HB596",
            "Node privacy requires a table in which each row is its own privacy unit.",
            "Use protects => 'edge', which protects all counted edges of one unit.",
        )


def check_stars(nodes: int, leaves: int, most: int) -> None:
    """Raise an error if a number of stars might not fit into an answer."""
    if nodes * comb(most, leaves) > _MAX_COUNT:
        raise QueryError(
            "HB680",
            f"{nodes} nodes of up to {most} edges can have more {leaves}-stars than an integer holds.",
            "Use a smaller k, or a smaller most: the largest number of edges of one node that may count.",
        )
