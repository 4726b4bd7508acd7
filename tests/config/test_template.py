"""`hubbub init`: what it writes can be checked at once, and says what is missing."""

import sqlite3
from pathlib import Path

import pytest
import yaml

from hubbub.config import examine
from hubbub.config.choices import ColumnChoice, TableChoice
from hubbub.config.template import BLANK, dataset_name, quoted, template
from hubbub.core.schema import Kind
from hubbub.engines.base import CSV_TEXT, DataSource, Field
from hubbub.errors import ConfigError

FIELDS = (
    Field("patient_id", "BIGINT", Kind.INTEGER),
    Field("on", "VARCHAR", Kind.TEXT),
    Field("1 odd: name#", "DATE", Kind.DATE),
    Field("flag", "BOOLEAN", Kind.BOOLEAN),
    Field("parts", "INTEGER[]", None),
    Field("names", "text[]", None),
    Field('"q"', "DOUBLE", Kind.REAL),
)


def test_the_unit_is_left_empty_and_every_column_that_can_be_asked_about_is_there() -> None:
    text = template([("visits", "visits.parquet", FIELDS)], analyst="ana", guessed=False)
    read = yaml.safe_load(text)["datasets"]["visits"]
    assert read["unit"] is None
    assert read["budget"] == {"epsilon": None}
    assert list(read["columns"]) == ["patient_id", "on", "1 odd: name#", "flag", '"q"']
    assert "# parts: INTEGER[]" in text
    assert "# names: text[] is not supported" in text
    assert "column: patient_id" in text
    assert text.count(BLANK) == 3


def test_a_list_is_proposed_with_the_number_of_its_elements() -> None:
    fields = (Field("id", "BIGINT", Kind.INTEGER), Field("tags", "VARCHAR[]", None, element=Kind.TEXT))
    text = template([("visits", "visits.parquet", fields)], analyst="ana", guessed=False)
    assert "# tags: {elements: 8}  # VARCHAR[]: the most elements of a list" in text
    without_mark = text.replace("# tags:", "tags:")
    assert yaml.safe_load(without_mark)["datasets"]["visits"]["columns"]["tags"] == {"elements": 8}


def test_what_is_written_is_checked_and_the_blanks_are_named(tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text("patient_id,age\n1,CANARY\n")
    text = template(
        [("v", "v.csv", (Field("patient_id", CSV_TEXT, None), Field("age", CSV_TEXT, None)))],
        analyst="ana",
        guessed=False,
    )
    (tmp_path / "hubbub.yaml").write_text(text)
    _, problems = examine(tmp_path / "hubbub.yaml")
    assert sorted(problem.code for problem in problems) == ["HB413", "HB418", "HB418"]


def test_filling_in_the_blanks_is_enough(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "v.sqlite") as lite:
        lite.execute("CREATE TABLE t (patient_id INTEGER, cost REAL)")
    lite.close()
    fields = (Field("patient_id", "INTEGER", Kind.INTEGER), Field("cost", "REAL", Kind.REAL))
    text = template([("v", "sqlite:v.sqlite#t", fields)], analyst="ana", guessed=False)
    text = text.replace(f"unit:                 {BLANK}", "unit: {column: patient_id, groups: 1, rows: 3}")
    text = text.replace(f"epsilon:            {BLANK}", "epsilon: 1").replace("{epsilon: }", "{epsilon: 1}")
    (tmp_path / "hubbub.yaml").write_text(text)
    config, problems = examine(tmp_path / "hubbub.yaml")
    assert problems == []
    assert config is not None


@pytest.mark.parametrize(
    ("place", "name"),
    [
        (DataSource("csv", Path("a b-c.csv")), "a_b_c"),
        (DataSource("duckdb", Path("x.duckdb"), "Stays"), "stays"),
        (DataSource("csv", Path("日本.csv")), "data"),
    ],
)
def test_names_are_names(place: DataSource, name: str) -> None:
    assert dataset_name(place) == name


def test_two_files_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigError):
        template([("v", "a/v.csv", FIELDS), ("v", "b/v.csv", FIELDS)], analyst="ana", guessed=False)


@pytest.mark.parametrize(
    ("names", "likely"),
    [
        (("age", "pid"), "pid"),
        (("paid", "patient_id"), "patient_id"),
        (("Größe", "Kundenid"), "Kundenid"),
        (("age", "sex"), "age"),
    ],
)
def test_the_example_of_a_unit_looks_like_an_identifier(names: tuple[str, ...], likely: str) -> None:
    text = template([("t", "t.csv", tuple(Field(name, "", None) for name in names))], analyst="ana", guessed=False)
    assert f"unit: {{column: {likely}, rows: auto}}" in text


def test_names_are_written_as_they_are() -> None:
    assert quoted("Größe (cm)") == '"Größe (cm)"'
    assert quoted("a\u0085b") == '"a\\u0085b"'


@pytest.mark.parametrize("end", ["\n", "\r", "\x85", "\u2028", "\0"])
def test_the_name_of_a_type_stays_in_its_comment(end: str) -> None:
    """Whoever makes a table chooses it: a type of PostgreSQL, or the fields of a record in a Parquet file."""
    hostile = f'STRUCT("x{end}    public: true #" INTEGER)'
    fields = (FIELDS[0], Field("s", hostile, None), Field("l", hostile, None, element=Kind.TEXT))
    for choices in (None, {"visits": TableChoice(columns={"patient_id": ColumnChoice(Kind.INTEGER, "filter")})}):
        read = yaml.safe_load(
            template([("visits", "v.parquet", fields)], analyst="ana", guessed=False, choices=choices)
        )
        assert set(read["datasets"]["visits"]) <= {"source", "unit", "relation", "columns", "budget"}
        assert list(read["datasets"]["visits"]["columns"]) == ["patient_id"]


@pytest.mark.parametrize("name", ["null", "on", "123", "1e5", "0x1f", "1_000"])
def test_the_name_of_a_dataset_is_always_a_text(name: str) -> None:
    read = yaml.safe_load(template([(name, f"{name}.csv", FIELDS)], analyst="ana", guessed=False))
    assert list(read["datasets"]) == list(read["analysts"]["ana"]) == [name]
