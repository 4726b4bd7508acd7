"""Numbers with noise by local sensitivity, through the one path."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hubbub.analyses.base import EngineRun, PreparedAnalysis, Setting
from hubbub.analyses.programs.median import median
from hubbub.audit.receipt import check_receipt
from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.core.secret import Secret
from hubbub.core.unit import Relation
from hubbub.curator.session import Session, open_session
from hubbub.errors import QueryError
from hubbub.mechanisms.smooth import SmoothNoise
from hubbub.sql.bounding import RenderOptions

WIDTHS = (("age", 99), ("a", 999), ("b", 999))
CALLS = (
    "CALL single_linkage(table => 'edges', ends => ['a', 'b'], weight => 'weight', clusters => 9)",
    "CALL median(table => 'people', column => 'z')",
    "CALL median(table => 'visits', column => 'x', level => 0.9)",
    "CALL median(table => 'people', column => 'age', sensitivity => 'propose', bound => 5)",
    "CALL triangle_count(table => 'edges', ends => ['a', 'b'], sensitivity => 'smooth')",
    "CALL triangle_count(table => 'edges', ends => ['a', 'b'], sensitivity => 'propose', bound => 10)",
    "CALL spanning_tree(table => 'edges', ends => ['a', 'b'], weight => 'weight', sensitivity => 'smooth')",
    "CALL spanning_tree(table => 'edges', ends => ['a', 'b'], weight=>'weight', sensitivity=>'propose', bound=>0.5)",
)


@pytest.fixture
def setting() -> Setting:
    """Declare people with ages, and a graph of many nodes; each row is its own unit, and there is no δ."""
    whole = {name: Column(name, Kind.INTEGER, Bounds(Fraction(0), Fraction(high))) for name, high in WIDTHS}
    people = Table("people", (whole["age"],), PrivacyUnit(None), Relation.ADD_REMOVE)
    wide = Table("wide", (whole["a"], whole["b"]), PrivacyUnit(None), Relation.ADD_REMOVE)
    return Setting({"people": people, "wide": wide}, Fraction(1), Fraction(0), RenderOptions("salt"))


@pytest.mark.row(20, 113)
@pytest.mark.parametrize("call", CALLS)
def test_each_is_charged_with_a_receipt_that_an_independent_checker_accepts(town: Path, call: str) -> None:
    with open_session(town / "hubbub.yaml", analyst="ana") as session:
        estimate = session.estimate(call, epsilon=2)
        release = session.query(call, epsilon=2)
    assert estimate.epsilon == release.epsilon == 2
    assert any("global sensitivity" in line for line in estimate.derivation)
    checked = check_receipt(release.document())
    assert checked.sound, checked.problems
    assert (release.delta > 0) == ("propose" in call)


def test_neither_estimate_nor_receipt_depends_on_the_data(town: Path) -> None:
    """What is shown before the charge, and the receipt but for its hashes, are the same for other rows."""

    def shown(session: Session) -> tuple[Any, ...]:
        estimate = session.estimate(CALLS[1], epsilon=1)
        receipt = session.query(CALLS[1], epsilon=1).receipt
        return estimate.derivation, estimate.expected, receipt["event"], receipt["derivation"]

    with open_session(town / "hubbub.yaml", analyst="ana") as session:
        spread = shown(session)
    people = (town / "people.csv").read_text().splitlines()
    same = [",".join((*line.split(",")[:2], "5", *line.split(",")[3:])) for line in people[1:]]
    (town / "people.csv").write_text("\n".join([people[0], *same]) + "\n")
    with open_session(town / "hubbub.yaml", analyst="ana") as session:
        assert shown(session) == spread


def run_median(setting: Setting, values: list[float], source: Any) -> tuple[float, float, float]:
    prepared = median(setting, table="people", column="age")
    columns = {"v0": np.array(values, dtype=np.float64)}
    (output,) = prepared.run(EngineRun(lambda _: Secret(columns), source, lambda *_: None)).outputs
    assert output.low is not None
    assert output.high is not None
    return output.values[0], output.low[0], output.high[0]  # type: ignore[return-value]


@pytest.mark.row(113)
def test_intervals_cover_although_the_scale_is_a_secret(
    setting: Setting, seeded: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """150 draws at 95%: fewer than 127 inside has probability below 1e-6 (binomial). A twentieth of the width fails."""
    values = list(np.random.default_rng(5).normal(50, 12, 400).clip(0, 99).round())
    truth = sorted(values)[199]

    def inside() -> int:
        source = seeded(11)
        return sum(low <= truth <= high for _, low, high in (run_median(setting, values, source) for _ in range(150)))

    assert inside() >= 127
    width = SmoothNoise.half_width
    monkeypatch.setattr(SmoothNoise, "half_width", lambda self, smooth, level: width(self, smooth, level) // 20)
    assert inside() < 127


@pytest.mark.parametrize(
    ("call", "code"),
    [
        ("triangle_count(table => 'edges', ends => ['a', 'b'])", "HB680"),
        ("triangle_count(table => 'edges', ends => ['a', 'b'], most => 3, sensitivity => 'smooth')", "HB680"),
        ("spanning_tree(table => 'edges', ends => ['a', 'b'], sensitivity => 'propose', bound => 1)", "HB678"),
    ],
)
def test_what_cannot_be_prepared_is_refused(town: Path, call: str, code: str) -> None:
    with open_session(town / "hubbub.yaml", analyst="ana") as session, pytest.raises(QueryError, match=code):
        session.estimate(f"CALL {call}", epsilon=1)


def test_without_delta_nothing_is_proposed(setting: Setting) -> None:
    with pytest.raises(QueryError, match="HB678"):
        median(setting, table="people", column="age", sensitivity="propose", bound=Fraction(5))


def test_too_many_nodes_are_refused(setting: Setting) -> None:
    from hubbub.analyses.graphs.answers import spanning_tree

    with pytest.raises(QueryError, match="HB680"):
        spanning_tree(setting, table="wide", ends=["a", "b"], sensitivity="smooth")


def test_a_replaced_unit_changes_twice_as_many_pairs(setting: Setting) -> None:
    from hubbub.analyses.graphs.edges import edge_table
    from hubbub.analyses.graphs.local_bounds import changes_per_unit

    edges = edge_table(setting, table="wide", ends=["a", "b"])
    assert changes_per_unit(edges) == 1
    assert changes_per_unit(replace(edges, table=replace(edges.table, relation=Relation.REPLACE))) == 2


def holds(prepared: PreparedAnalysis, source: Any, truth: float, *columns: Any) -> bool:
    """Run it on these columns, and tell whether the interval contains the truth."""
    read = {f"v{i}": np.array(column, dtype=np.float64) for i, column in enumerate(columns)}
    (output,) = prepared.run(EngineRun(lambda _: Secret(read), source, lambda *_: None)).outputs
    assert output.low is not None
    assert output.high is not None
    low, high = output.low[0], output.high[0]
    assert low is not None
    assert high is not None
    return low - 1e-9 <= truth <= high + 1e-9


@pytest.mark.parametrize(("low", "high", "step"), [("1", "10", "3"), ("0.5", "10", "1"), ("0", "1", "0.4")])
def test_intervals_cover_what_steps_round_away(setting: Setting, seeded: Any, low: str, high: str, step: str) -> None:
    """With hardly any noise, the interval still contains the true number, also at the ends of the bounds."""
    column = Column("x", Kind.REAL, Bounds(Fraction(low), Fraction(high)))
    table = Table("t", (column,), PrivacyUnit(None), Relation.ADD_REMOVE)
    at = replace(setting, epsilon=Fraction(2_000), tables={"t": table})
    prepared = median(at, table="t", column="x", step=Fraction(step))
    for truth in np.linspace(float(low), float(high), 11):
        assert holds(prepared, seeded(1), truth, [truth] * 9), truth


@pytest.mark.parametrize("step", ["0.25", "0.4"])
def test_intervals_cover_what_weights_round_away(setting: Setting, seeded: Any, step: str) -> None:
    """A path of five nodes whose weights are all rounded one way; a pair without an edge has the largest weight."""
    from hubbub.analyses.graphs.answers import single_linkage, spanning_tree

    ends = [Column(name, Kind.INTEGER, Bounds(Fraction(0), Fraction(4))) for name in "ab"]
    weight = Column("w", Kind.REAL, Bounds(Fraction(0), Fraction(1)))
    table = Table("t", (*ends, weight), PrivacyUnit(None), Relation.ADD_REMOVE)
    at = replace(setting, epsilon=Fraction(2_000), tables={"t": table})
    how: Any = {"table": "t", "ends": ["a", "b"], "weight": "w", "step": Fraction(step), "sensitivity": "smooth"}
    tree, linkage = spanning_tree(at, **how), single_linkage(at, **how, clusters=2)
    for missing, each in ((0, 0.12), (0, 0.37), (1, 0.6), (4, 0.0)):
        path = np.arange(4 - missing)
        edges = path, path + 1, [each] * len(path)
        assert holds(tree, seeded(1), len(path) * each + missing, *edges), (missing, each)
        assert holds(linkage, seeded(1), 1.0 if missing else each, *edges), (missing, each)


@pytest.mark.parametrize(("sensitivity", "epsilon"), [("smooth", "0.01"), ("propose", "0.1")])
def test_too_much_work_is_refused_before_the_charge(setting: Setting, sensitivity: Any, epsilon: str) -> None:
    """A unit of 10,000 rows, the maximum where bounds are found: what is looked at does not depend on the data."""
    columns = (Column("who", Kind.INTEGER), Column("age", Kind.INTEGER, Bounds(Fraction(0), Fraction(99))))
    table = Table("t", columns, PrivacyUnit("who", 1, 10_000), Relation.ADD_REMOVE)
    at = replace(setting, epsilon=Fraction(epsilon), delta=Fraction("1e-9"), tables={"t": table})
    how: Any = {"table": "t", "column": "age", "sensitivity": sensitivity}
    how |= {"bound": Fraction(5)} if sensitivity == "propose" else {}
    with pytest.raises(QueryError, match="too much work"):
        median(at, **how)
    median(replace(at, rows=10), **how)
