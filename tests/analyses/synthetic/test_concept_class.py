"""Small databases for any class of predicates: the class, the size that γ asks for, and the loss."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hubbub.analyses.base import Setting
from hubbub.analyses.synthetic.blr import SmallDatabase, databases, scores, small_database
from hubbub.analyses.synthetic.concept_class import size_for
from hubbub.audit.receipt import check_receipt
from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.core.unit import Relation
from hubbub.curator.session import open_session
from hubbub.errors import QueryError
from hubbub.mechanisms.enumeration import worst_ratio
from hubbub.sql.bounding import RenderOptions

COLUMNS = (
    Column("who", Kind.INTEGER),
    Column("sick", Kind.BOOLEAN),
    Column("region", Kind.TEXT, values=("North", "South")),
    Column("age", Kind.INTEGER, Bounds(Fraction(0), Fraction(9))),
)
WIDE = ["far", "age", "sick", "region"]
AGES = ["age >= 3", "age >= 6", "age < 6", "age BETWEEN 3 AND 9"]


def setting(epsilon: int = 1, relation: Relation = Relation.ADD_REMOVE) -> Setting:
    table = Table("t", COLUMNS, PrivacyUnit("who", 2, 1), relation)
    return Setting({"t": table}, Fraction(epsilon), Fraction(0), RenderOptions("salt"))


def prepared(at: Setting | None = None, **how: Any) -> SmallDatabase:
    return small_database(at or setting(), table="t", **{"columns": ["age"], "predicates": AGES, **how})


@pytest.mark.row(111)
def test_a_class_is_evaluated_on_every_cell_by_hand() -> None:
    """age >= 3 and BETWEEN 3 AND 9 are one question, age >= 6 and age < 6 opposites: two questions, three atoms."""
    asked = prepared(columns=["age"]).asked
    assert asked is not None
    assert asked.size == 2
    truth = {tuple(asked.asks[asked.atoms[age]].tolist()) for age in range(10)}
    assert truth == {(0, 0), (1, 0), (1, 1)}
    assert [int(asked.atoms[age]) for age in (0, 1, 2)] == [int(asked.atoms[0])] * 3
    mixed = prepared(columns=["sick", "region"], predicates=["sick AND region = 'North'", "NOT sick"]).asked
    assert mixed is not None
    cells = list(product((False, True), ("North", "South")))
    expected = [[sick and region == "North", not sick] for sick, region in cells]
    assert mixed.asks[mixed.atoms].tolist() == np.array(expected, dtype=int).tolist()


@pytest.mark.row(111)
def test_some_small_database_is_accurate_for_every_dataset() -> None:
    """All datasets of up to five rows over three atoms: the best of all databases of the stated size is within γ."""
    gamma = Fraction(1, 4)
    size = size_for(gamma, 2)
    assert 2 * 2 * np.exp(-2 * size * float(gamma) ** 2) < 1 <= 2 * 2 * np.exp(-2 * (size - 1) * float(gamma) ** 2)
    asked = prepared(accuracy=gamma).asked
    assert prepared(accuracy=gamma).size == size == 12
    assert asked is not None
    every = databases(3, size)
    for n in range(1, 6):
        for rows in combinations_with_replacement(range(3), n):
            truth = np.bincount(rows, minlength=3)
            best = -int(scores(truth, every, asked.asks, n).max())
            assert Fraction(best, size * n) <= gamma
    # a single row is not enough: half of the people are on either side
    one = -int(scores(np.array([1, 0, 1]), databases(3, 1), asked.asks, 2).max())
    assert Fraction(one, 2) > gamma


@pytest.mark.row(111)
@pytest.mark.parametrize("relation", list(Relation))
def test_the_choice_is_private_by_enumeration(relation: Relation) -> None:
    """All neighbors of all datasets of two units of one or two rows over three atoms."""
    small = prepared(setting(1, relation), size=2, total=4)
    assert small.asked is not None
    every, asks = databases(3, 2), small.asked.asks
    units = [np.bincount(rows, minlength=3) for n in (0, 1, 2) for rows in combinations_with_replacement(range(3), n)]
    others = units if relation is Relation.REPLACE else units[:1]
    pairs = {
        tuple(tuple(scores(base + own, every, asks, 4).tolist()) for own in both)
        for base in units[::2]
        for both in product(units, others)
    }
    choice = small.selection.distribution
    worst = max(float(worst_ratio(choice(one), choice(two))[1]) for one, two in pairs)
    assert 0.3 < worst <= 1


@pytest.mark.row(111)
def test_a_call_with_predicates_is_charged_and_accurate(town: Path) -> None:
    """At ε = 500 the chosen database is the best one; its shares are within γ of the truth."""
    text = (
        "CALL small_database(table => 'people', columns => ['sick', 'age'], accuracy => 0.2,"
        " predicates => ['age >= 65', 'sick = ''yes''', 'age < 18 AND sick = ''no'''])"
    )
    with open_session(town / "hubbub.yaml", analyst="ana") as session:
        estimate = session.estimate(text, epsilon=20)
        release = session.query(text, epsilon=20)
    assert any("by ln of the number of questions" in line for line in estimate.derivation)
    assert release.epsilon == 20
    assert check_receipt(release.document()).sound
    lines = [line.split(",") for line in (town / "people.csv").read_text().splitlines()[1:]]
    truth = [(line[4], int(line[3])) for line in lines]
    sick, age = (output.values for output in release.outputs)
    synthetic = list(zip(sick, age, strict=True))
    assert len(synthetic) == size_for(Fraction(1, 5), 3)
    for question in (
        lambda row: row[1] >= 65,
        lambda row: row[0] == "yes",
        lambda row: row[1] < 18 and row[0] == "no",
    ):
        shares = [sum(map(question, rows)) / len(rows) for rows in (truth, synthetic)]
        # γ, and what the exponential mechanism adds: below 0.01 at ε = 20 but for a chance of 1e-9
        assert abs(shares[0] - shares[1]) <= 0.21


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ({"predicates": []}, "HB682"),
        ({"predicates": ["who = 3"]}, "HB516"),
        ({"predicates": ["sick"]}, "HB682"),
        ({"columns": [{"column": "age", "bins": 2}]}, "HB682"),
        ({"predicates": ["age > 3) GROUP BY (age"]}, "HB682"),
        ({"predicates": ["age IN (SELECT age FROM t)"]}, "HB"),
        ({"predicates": ["age >"]}, "HB"),
        ({"size": 3, "accuracy": Fraction(1, 4)}, "HB683"),
        ({"ways": 1}, "HB683"),
        ({"accuracy": Fraction(1, 40)}, "HB594"),
        ({"predicates": [f"age = {i}" for i in range(10)], "size": 12}, "HB594"),
    ],
)
def test_what_cannot_be_is_refused_before_the_charge(how: dict[str, Any], code: str) -> None:
    with pytest.raises(QueryError, match=code):
        prepared(**how)


def test_hundreds_of_cells_are_a_few_atoms() -> None:
    """The same predicates over ten times as many cells give as many databases: what matters is what they tell apart."""
    wide = prepared(columns=["age", "sick", "region"], size=12)
    assert wide.marginal.size == 40
    assert wide.selection.candidates == prepared(size=12).selection.candidates == 91


@pytest.mark.parametrize(
    "how",
    [
        {"columns": WIDE, "size": 1},  # 40,000 databases of one row over as many cells
        {"columns": ["age"], "predicates": ["age >= 3"], "accuracy": Fraction(2, 1000)},  # 86,644 rows of two atoms
        {"columns": WIDE, "predicates": [f"far >= {i}" for i in range(900)], "size": 1},
    ],
)
def test_what_does_not_fit_into_memory_is_refused_before_the_charge(how: dict[str, Any]) -> None:
    far = Column("far", Kind.INTEGER, Bounds(Fraction(0), Fraction(999)))
    table = Table("t", (*COLUMNS, far), PrivacyUnit("who", 2, 1), Relation.ADD_REMOVE)
    with pytest.raises(QueryError, match="HB594"):
        small_database(replace(setting(), tables={"t": table}), table="t", **how)
