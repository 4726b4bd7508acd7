"""The parts around the path: public tables, questions, opening."""

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

import hubbub
from hubbub.audit import receipt
from hubbub.core.schema import Bounds
from hubbub.curator.question import Question
from hubbub.curator.session import Session, open_session
from hubbub.errors import ConfigError, ParameterError

Opener = Callable[..., Session]


def test_a_public_table_that_is_not_unique_as_declared_is_refused(clinic: Path) -> None:
    text = (clinic / "hubbub.yaml").read_text()
    (clinic / "hubbub.yaml").write_text(text.replace("public: true", "public: true, unique: [population]"))
    (clinic / "regions.csv").write_text("region,population\nNorth,100\nSouth,100\n")
    with pytest.raises(ConfigError, match="unique is not true"):
        open_session(clinic / "hubbub.yaml", analyst="ana")


def test_facts_of_public_tables_are_read_from_values(clinic: Path) -> None:
    text = (clinic / "hubbub.yaml").read_text().replace("regions.csv", "days.parquet")
    (clinic / "hubbub.yaml").write_text(text)
    with duckdb.connect() as made:
        made.execute(
            "COPY (SELECT DATE '1970-01-02' + i::INTEGER AS day, TIMESTAMP '1970-01-02' AS moment, i * 1.5 AS x,"
            f" i % 2 AS half, 'k' || i AS name FROM range(4) t(i)) TO '{clinic}/days.parquet'"
        )
    with open_session(clinic / "hubbub.yaml", analyst="ana") as session:
        columns = {column.name: column for column in session.describe("regions").columns}
        assert session.describe("regions").unique == ("day",)
    assert columns["day"].bounds == Bounds(Fraction(1), Fraction(4))
    assert columns["moment"].bounds == Bounds(Fraction(86_400 * 10**6), Fraction(86_400 * 10**6))
    assert columns["x"].bounds == Bounds(Fraction(0), Fraction(9, 2))
    assert columns["x"].values == (0, Fraction(3, 2), 3, Fraction(9, 2))
    assert columns["half"].values == (0, 1)
    assert columns["name"].values == ("k0", "k1", "k2", "k3")


def test_a_question_stands_in_the_ledger_with_all_that_makes_its_answer() -> None:
    plain = Question("select count(*)\n/* all of them */ from t", epsilon=1)
    assert plain.text() == "SELECT COUNT(*) FROM t"
    full = Question("SELECT COUNT(*) FROM t WHERE a = ?", parameters=["it's"], groups=2, raw=True)
    assert full.text() == 'SELECT COUNT(*) FROM t WHERE a = $1 -- $1 = "it\'s", groups = 2, raw'


def test_literals_that_differ_in_blanks_are_different_questions() -> None:
    one, two = (Question(f"SELECT COUNT(*) FROM t WHERE a = '{text}'") for text in ("a b", "a  b"))
    assert one.text() != two.text()


@pytest.mark.parametrize("options", [{}, {"epsilon": 1, "within": 5}])
def test_exactly_one_of_price_and_accuracy_is_given(options: dict[str, int]) -> None:
    with pytest.raises(ParameterError, match="HB132"):
        Question("SELECT 1", **options).wants_accuracy()  # type: ignore[arg-type]


def test_open_is_the_front_door(clinic: Path) -> None:
    with hubbub.open(clinic / "hubbub.yaml", analyst="ana") as session:
        assert session.datasets() == ("visits", "labs", "regions")
        assert session.describe("visits").unit is not None
        release = session.query("SELECT COUNT(*) AS n FROM visits", within="20%")
        assert release.rows[0][0] > 0  # type: ignore[operator]
    with pytest.raises(ParameterError, match="No analyst"):
        hubbub.open(clinic / "hubbub.yaml")
    with pytest.raises(ParameterError, match="HB121"):
        hubbub.open(clinic / "hubbub.yaml", analyst="anna")


def test_the_ledger_can_be_elsewhere(clinic: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("ledger")
    text = (clinic / "hubbub.yaml").read_text()
    places = json.dumps({"database": str(elsewhere / "l.db"), "anchor": str(elsewhere / "far" / "anchor")})
    (clinic / "hubbub.yaml").write_text(f"{text}\nledger: {places}\n")
    with hubbub.open(clinic / "hubbub.yaml", analyst="ana") as session:
        session.query("SELECT COUNT(*) AS n FROM visits", epsilon="0.1")
    assert (elsewhere / "l.db").exists()
    assert (elsewhere / "far" / "anchor").exists()
    assert not (clinic / "hubbub-ledger").exists()


def test_kinds_of_columns_and_frames_of_a_real_answer(session: Session) -> None:
    """Keys of grouping sets with their NULL, a key that is 0, 0.5 or 1, truth values and numbers."""
    release = session.query(
        "SELECT region, age / 100 > 0.5 AS old, round(cost / 500, 0) / 2 AS halves, count(*) AS n, avg(cost) AS mean,"
        " count(*) > 10 AS many FROM visits GROUP BY GROUPING SETS ((region), (old), (halves), ())",
        epsilon=1,
    )
    kinds = {each.name: each.kind for each in release.outputs}
    assert kinds == {
        "region": "text",
        "old": "boolean",
        "halves": "real",
        "n": "integer",
        "mean": "real",
        "many": "boolean",
    }
    assert [row[2] for row in release.rows if row[2] is not None] == [0.0, 0.5, 1.0]
    pandas, polars = release.to_pandas(), release.to_polars(intervals=False)
    assert polars.rows() == release.rows
    assert pandas["n"].tolist() == polars["n"].to_list()
    assert pandas["region"].isna().sum() == polars["region"].null_count() == len(release.rows) - 3
    assert pandas.attrs["hubbub"]["answer"] == release.receipt["answer"]


def test_groups_that_nobody_declared_have_quantiles_and_a_receipt_that_holds(session: Session) -> None:
    """300 patients and seven words; whichever words are shown, everything about them is answered and accounted for."""
    release = session.query(
        "SELECT word, count(DISTINCT age) AS ages, median(cost) AS middle, count(*) AS n FROM visits GROUP BY word",
        epsilon=5,
    )
    assert release.columns == ("word", "ages", "middle", "n")
    assert {row[0] for row in release.rows} <= {f"w{i}" for i in range(7)}
    assert all(0 <= row[2] <= 1000 for row in release.rows)  # type: ignore[operator]
    finding = receipt.check_receipt(release.document())
    assert finding.problems == []
    assert any("median" in line or "quantile" in line for line in finding.lines)
