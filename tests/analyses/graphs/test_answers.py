"""Graphs asked for as an analyst does: through the ledger, with receipts. A large ε makes the noise vanish."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hubbub.accounting.cost import privacy_cost
from hubbub.analyses.base import Arrays, Setting
from hubbub.analyses.graphs.answers import spanning_tree, triangle_count
from hubbub.audit.receipt import check_receipt
from hubbub.core.events import Composed, LaplaceEvent, from_facts
from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.core.secret import Secret
from hubbub.curator.session import Session, open_session
from hubbub.errors import ParameterError, QueryError
from hubbub.noise.source import RandomSource, system
from hubbub.sql.bounding import RenderOptions

Opener = Callable[..., Session]

LASTFM = Path(__file__).parents[4] / "shared" / "data" / "lastfm_asia_edges.csv"

#: Noise of scale s/ε at s = 1 is other than 0 with probability 2·e⁻⁵⁰⁰.
CERTAIN = 500
ENDS = ["a", "b"]


def test_exact_values_come_out_where_the_noise_is_nothing(town: Opener) -> None:
    h = town()
    assert h.min_cut("links", ENDS, epsilon=CERTAIN).rows == [(2,)]
    assert h.min_cut("links", ENDS, weight="w", epsilon=4 * CERTAIN).rows == [(0.5,)]
    assert h.spanning_tree("links", ENDS, weight="w", epsilon=4 * CERTAIN).rows == [(0.25 + 1 + 1 + 0.5,)]
    assert h.graph_distance("links", ENDS, property="acyclic", epsilon=CERTAIN).rows == [(3,)]
    assert h.graph_distance("links", ENDS, property="connected", epsilon=CERTAIN).rows == [(0,)]
    assert h.triangle_count("links", ENDS, most=5, epsilon=8 * CERTAIN).rows == [(2,)]
    degrees = h.degree_histogram("links", ENDS, most=3, epsilon=2 * CERTAIN)
    assert degrees.columns == ("degree", "nodes", "at_least")
    assert degrees.rows == [(0, 0, 5), (1, 0, 5), (2, 1, 5), (3, 4, 4)]


def test_a_row_without_a_weight_is_an_edge_where_weights_are_not_asked_for(town: Opener) -> None:
    h = town()
    assert h.graph_distance("links", ENDS, property="empty", epsilon=CERTAIN).rows == [(7,)]
    assert h.min_cut("links", ENDS, weight="w", epsilon=4 * CERTAIN).rows == [(0.5,)]


def test_nodes_can_be_names(town: Opener) -> None:
    h = town()
    assert h.graph_distance("links", ["x", "y"], property="empty", epsilon=CERTAIN).rows == [(6,)]
    assert h.min_cut("links", ["x", "y"], weight="w", epsilon=4 * CERTAIN).rows == [(0.5,)]


def test_only_so_many_edges_of_one_unit_count(town: Opener) -> None:
    h = town(unit="{column: who, groups: 1, rows: 1}")
    found = h.graph_distance("links", ENDS, property="empty", epsilon=CERTAIN)
    assert found.rows[0][0] == 4, "one edge each of four units"
    assert found.receipt["bounds"] == {"groups": 1, "rows": 1}
    wider = town(unit="{column: who, groups: 1, rows: 3}")
    assert wider.graph_distance("links", ENDS, property="empty", epsilon=3 * CERTAIN).rows == [(7,)]
    assert wider.graph_distance("links", ENDS, property="empty", epsilon=CERTAIN, rows=1).rows == [(4,)]


def test_which_edges_of_a_unit_count_does_not_depend_on_others(town: Opener) -> None:
    alone = "who,a,b,w,x,y\n9,0,1,1.0,,\n9,1,2,1.0,,\n9,2,3,1.0,,\n9,3,4,1.0,,\n"
    unit = "{column: who, groups: 1, rows: 2}"
    both = alone + "".join(f"{i},{i % 5},{(i + 2) % 5},1.0,,\n" for i in range(10, 15))
    lone = town(unit=unit, rows=alone).graph_distance("links", ENDS, property="empty", epsilon=2 * CERTAIN).rows[0][0]
    assert lone == 2
    assert (
        town(unit=unit, rows=both).graph_distance("links", ENDS, property="empty", epsilon=2 * CERTAIN).rows[0][0]
        == 2 + 5
    )


@dataclass
class Charged:
    """What a run is given, with rows that stand here."""

    rows: dict[str, NDArray[Any]]
    source: RandomSource = field(default_factory=system)
    asked: list[str] = field(default_factory=list)

    def ask(self, sql: str) -> Secret[Arrays]:
        self.asked.append(sql)
        return Secret(self.rows)

    def progress(self, done: float, what: str) -> None:
        assert 0 <= done <= 1, what


def test_an_answer_is_the_exact_integers_with_the_noise_that_was_charged(town: Opener) -> None:
    """2,000 answers at ε = 1 about a tree of weight ½, counted in quarters: the noise has a mean size of about 1.

    That of 2,000 draws is within 0.12 of that of the distribution but for 1 in 10⁶ runs (its standard error is 0.022);
    noise of half or twice the scale misses by more than 0.4.
    """
    table = town().describe("links")
    setting = Setting({"links": table}, Fraction(1), Fraction(0), RenderOptions("salt"))
    prepared = spanning_tree(setting, table="links", ends=["a", "b"], weight="w")
    assert prepared.event == Composed(((LaplaceEvent(4, Fraction(4)), 1),))
    rows = {"v0": np.arange(4.0), "v1": np.arange(1.0, 5.0), "v2": np.array([0.25, 0.0, 0.25, 0.0])}
    run = Charged(rows)
    found = [prepared.run(run).outputs[0] for _ in range(2000)]
    middles = np.array([(low + high) / 2 for each in found for low, high in zip(each.low, each.high, strict=True)])  # type: ignore[arg-type, operator]
    assert set(np.mod(middles * 4, 1)) == {0.0}, "whole steps"
    assert np.mean(np.abs(middles - 0.5)) == pytest.approx(1.0, abs=0.12)
    assert prepared.expected[0].plus_minus == found[0].high[0] - middles[0]  # type: ignore[index]
    assert min(each.values[0] for each in found) == 0, "no weight is shown below 0"  # type: ignore[type-var]
    assert len(run.asked) == 2000


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_every_answer_is_charged_what_it_says_and_its_receipt_is_sound(town: Opener, relation: str) -> None:
    h = town(relation=relation)
    asked = [
        h.min_cut("links", ENDS, weight="w", epsilon="0.5"),
        h.spanning_tree("links", ENDS, epsilon="0.5"),
        h.graph_distance("links", ENDS, property="tree", epsilon="0.5"),
        h.degree_histogram("links", ENDS, most=3, epsilon="0.5"),
        h.degree_histogram("links", ENDS, most=3, protects="node", epsilon="0.5"),
        h.triangle_count("links", ENDS, most=3, epsilon="0.5"),
        h.triangle_count("links", ENDS, protects="node", epsilon="0.5"),
        h.star_count("links", ENDS, 2, most=3, epsilon="0.5"),
        h.star_count("links", ENDS, 2, protects="node", epsilon="0.5"),
    ]
    for release in asked:
        assert release.epsilon == Fraction(1, 2)
        assert release.delta == 0
        finding = check_receipt(release.document())
        assert finding.sound, finding.problems
    assert 100000 - sum(each.epsilon for each in asked) == h.budget()[0].largest


def test_the_price_is_the_whole_epsilon(town: Opener) -> None:
    h = town()
    release = h.degree_histogram("links", ENDS, most=2, protects="node", epsilon="0.7")
    assert privacy_cost(from_facts(release.receipt["event"])).pure == Fraction(7, 10)
    assert any("one node with all its edges" in line for line in release.receipt["derivation"])


def test_the_same_question_is_answered_from_the_ledger(town: Opener) -> None:
    h = town()
    first = h.triangle_count("links", ENDS, most=3, epsilon=1)
    again = h.query("call triangle_count(most => 3, ends => ['a', 'b'], table => 'links')", epsilon=1)
    assert again.replayed
    assert again.rows == first.rows


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"ends": ["a"]}, "two columns"),
        ({"ends": ["a", "a"]}, "two columns"),
        ({"ends": ["a", "q"]}, "no column"),
        ({"ends": ["a", "w"]}, "does not declare the nodes"),
        ({"ends": ["a", "x"]}, "do not declare the same nodes"),
        ({"ends": ["a", "z"]}, "does not declare the nodes"),
        ({"ends": ENDS, "weight": "z"}, "needs declared bounds"),
        ({"ends": ENDS, "weight": "w", "step": 2}, "too large"),
    ],
)
def test_what_makes_no_graph_is_refused_before_a_charge(town: Opener, arguments: dict[str, object], says: str) -> None:
    h = town()
    with pytest.raises((QueryError, ParameterError), match=says):
        h.call("min_cut", {"table": "links", **arguments}, epsilon=1)
    assert h.releases() == ()


def test_node_privacy_is_refused_where_units_own_edges(town: Opener) -> None:
    h = town(unit="{column: who, groups: 1, rows: 2}")
    with pytest.raises(QueryError, match="HB596"):
        h.degree_histogram("links", ENDS, most=3, protects="node", epsilon=1)
    with pytest.raises(QueryError, match="HB595"):
        town().degree_histogram("links", ENDS, most=3, protects="everything", epsilon=1)


def test_lastfm_takes_seconds(tmp_path: Path) -> None:
    if not LASTFM.exists():
        pytest.skip("needs the lastfm graph, which is no part of the project")
    (tmp_path / "hubbub.yaml").write_text(
        f"""
version: 1
datasets:
  friends:
    source: {LASTFM}
    unit: row
    columns:
      node_1: {{type: integer, bounds: [0, 7623]}}
      node_2: {{type: integer, bounds: [0, 7623]}}
    budget: {{epsilon: 10000}}
analysts: {{ana: {{friends: {{epsilon: 10000}}}}}}
"""
    )
    ends = ["node_1", "node_2"]
    with open_session(tmp_path / "hubbub.yaml") as h:
        start = time.perf_counter()
        assert h.min_cut("friends", ends, epsilon=CERTAIN).rows == [(1,)]
        assert h.spanning_tree("friends", ends, epsilon=CERTAIN).rows == [(7623,)]
        assert h.graph_distance("friends", ends, property="connected", epsilon=CERTAIN).rows == [(0,)]
        counted = h.triangle_count("friends", ends, most=217, epsilon=1)
        h.degree_histogram("friends", ends, most=217, epsilon=1)
        h.degree_histogram("friends", ends, most=50, protects="node", epsilon=1)
        h.star_count("friends", ends, 2, protects="node", epsilon=1)
        assert time.perf_counter() - start < 30
        low, high = counted.intervals[0][0]
        assert low is not None
        assert high is not None
        # noise of scale 432 is beyond 15 times that with probability e⁻¹⁵ < 10⁻⁶
        assert abs((low + high) / 2 - 40433) < 15 * 432


def test_an_end_that_is_not_declared_is_no_node(tmp_path: Path) -> None:
    """Such a row was once an edge of the first or last node, so that a stranger was counted as that node."""
    rows = "0,1\n1,2\n0,9\n-3,2\n1,1e300\n1,nan\n2,1.5\n"
    (tmp_path / "links.csv").write_text("a,b\n" + rows)
    (tmp_path / "hubbub.yaml").write_text(
        """
version: 1
datasets:
  links:
    source: links.csv
    unit: row
    columns:
      a: {type: integer, bounds: [0, 5]}
      b: {type: integer, bounds: [0, 5]}
    budget: {epsilon: 10000}
analysts: {ana: {links: {epsilon: 10000}}}
"""
    )
    with open_session(tmp_path / "hubbub.yaml") as h:
        assert h.graph_distance("links", ENDS, property="empty", epsilon=CERTAIN).rows == [(2,)]


def test_nodes_that_doubles_cannot_tell_apart_are_refused() -> None:
    bounds = Bounds(Fraction(2**53), Fraction(2**53 + 9))
    table = Table("links", tuple(Column(end, Kind.INTEGER, bounds) for end in ENDS), PrivacyUnit(None))
    setting = Setting({"links": table}, Fraction(1), Fraction(0), RenderOptions("salt"))
    with pytest.raises(QueryError, match="HB595"):
        triangle_count(setting, table="links", ends=ENDS, most=2)
