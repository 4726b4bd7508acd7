"""Keys that occur together in a public table are joint keys: their groups are its rows."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.fixtures.insert_rows import insert_rows
from tests.fixtures.visits_table import arrays

import hubbub
from hubbub.core.schema import Column, Kind, PrivacyUnit, Table, Value
from hubbub.sql import joint_keys
from hubbub.sql.bind import bind
from hubbub.sql.finish import declared_keys, exact_results
from hubbub.sql.plan import Plan, plan

BOOKS: list[tuple[Value | None, ...]] = [
    (1, "Emma", "Austen", 1815),
    (2, "Persuasion", "Austen", 1817),
    (3, "Emma", "Abbott", 1815),
    (4, "Middlemarch", "Eliot", 1871),
    (5, "Anonymous", None, 1871),
]
NAMES = ("isbn", "title", "author", "year")
ROWS = dict(zip(NAMES, map(tuple, zip(*BOOKS, strict=True)), strict=True))


def column(name: str) -> Column:
    values = tuple(sorted({value for value in ROWS[name] if value is not None}))
    return Column(name, Kind.TEXT if name in ("title", "author") else Kind.INTEGER, values=values)


PUBLIC = Table("books", tuple(map(column, NAMES)), None, unique=("isbn",), size=5, repeats={"isbn": 1}, rows=ROWS)
LOANS = Table(
    "loans",
    (
        Column("reader", Kind.INTEGER),
        Column("isbn", Kind.INTEGER),
        Column("branch", Kind.TEXT, values=("East", "West")),
    ),
    PrivacyUnit("reader", groups=50, rows=50),
)
TABLES = {"books": PUBLIC, "loans": LOANS}

#: Queries with their number of groups, counted by hand.
QUERIES = {
    "b.title, b.author, b.isbn FROM loans AS l JOIN books AS b ON l.isbn = b.isbn": 5,
    "b.title, b.author FROM loans AS l JOIN books AS b ON l.isbn = b.isbn": 5,
    "b.title, b.year FROM loans AS l JOIN books AS b ON l.isbn = b.isbn": 4,
    "l.isbn, b.title FROM loans AS l JOIN books AS b ON l.isbn = b.isbn": 5,
    "isbn, title FROM loans JOIN books USING (isbn)": 5,
    "b.title, b.author, l.branch FROM loans AS l JOIN books AS b ON l.isbn = b.isbn": 10,
    "upper(b.title), b.year % 10 FROM loans AS l JOIN books AS b ON l.isbn = b.isbn": 4,
    "b.title, b.author FROM loans AS l JOIN books AS b ON l.isbn = b.isbn WHERE b.author IN ('Austen', 'Eliot')": 3,
    "b.title, b.author FROM loans AS l LEFT JOIN books AS b ON l.isbn = b.isbn": 6,
    "b.title, l.branch FROM loans AS l JOIN books AS b ON l.isbn = b.isbn": 8,
    "b.title, c.title FROM loans AS l JOIN books AS b ON l.isbn = b.isbn JOIN books AS c ON l.isbn = c.isbn": 16,
    "b.title FROM loans AS l JOIN books AS b ON l.isbn = b.isbn WHERE b.year > 1816": 3,
    "b.title, b.author FROM loans AS l JOIN books AS b ON l.isbn = b.isbn WHERE b.year = 1871": 2,
    "b.title, l.branch FROM loans AS l JOIN books AS b USING (isbn) WHERE b.author = 'Austen' AND b.year < 1816": 2,
    "b.title FROM loans AS l LEFT JOIN (SELECT * FROM books WHERE year = 1815) AS b ON l.isbn = b.isbn": 2,
    "b.title FROM loans AS l LEFT JOIN books AS b ON l.isbn = b.isbn WHERE b.year > 1816": 3,
    "b.title FROM loans AS l LEFT JOIN books AS b ON l.isbn = b.isbn WHERE b.year > 1816 OR b.isbn IS NULL": 4,
    "b.title, c.title FROM loans AS l JOIN books AS b USING (isbn) JOIN books AS c USING (isbn) WHERE c.year = 1815": 4,
    "t FROM (SELECT reader, title AS t, year AS y FROM loans JOIN books USING (isbn)) AS s WHERE y = 1815": 1,
    "t, a FROM (SELECT reader, title AS t, author AS a FROM loans JOIN books USING (isbn)) AS s": 5,
    "t, a FROM (SELECT reader, title AS t, author AS a FROM loans JOIN books USING (isbn) GROUP BY reader, t, a)": 5,
}


@pytest.fixture(scope="module")
def library() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("CREATE TABLE books (isbn BIGINT, title VARCHAR, author VARCHAR, year BIGINT)")
        insert_rows(connection, "books", BOOKS)
        connection.execute(
            "CREATE TABLE loans AS SELECT i % 9 AS reader, 1 + i % 7 AS isbn, ['East', 'West'][1 + i % 2] AS branch "
            "FROM range(100) AS r(i)"
        )
        yield connection


def planned(text: str, tables: dict[str, Table] = TABLES) -> Plan:
    keys, _, rest = text.partition(" FROM ")
    count = len(bind(f"SELECT {keys}, count(*) FROM {rest} GROUP BY ALL", tables=tables).keys)
    positions = ", ".join(str(i + 1) for i in range(count))
    query = bind(f"SELECT {keys}, count(*) FROM {rest} GROUP BY {positions}", tables=tables)
    return plan(query, epsilon=Fraction(1), delta=Fraction(0), salt="s")


def counted(made: Plan, connection: duckdb.DuckDBPyConnection) -> dict[tuple[Any, ...], int]:
    measures, _ = exact_results(made, {each.name: arrays(connection, each.sql) for each in made.statements})
    shown = declared_keys(made).shown
    keys = [shown[key.name] for key in made.query.keys]
    return {tuple(row[:-1]): int(row[-1]) for row in zip(*keys, measures[0], strict=True) if row[-1]}


@pytest.mark.parametrize("text", QUERIES)
def test_keys_of_one_public_table_are_joint(library: duckdb.DuckDBPyConnection, text: str) -> None:
    """As many groups as counted by hand, and DuckDB's exact counts in them."""
    made = planned(text)
    assert made.size == QUERIES[text]
    keys, _, rest = text.partition(" FROM ")
    theirs = library.execute(f"SELECT {keys}, count(*) FROM {rest} GROUP BY ALL").fetchall()
    assert counted(made, library) == {tuple(row[:-1]): row[-1] for row in theirs}


def test_joint_keys_reach_beyond_the_product_of_their_values(library: duckdb.DuckDBPyConnection) -> None:
    """Three keys of 2,000 values have 8·10⁹ combinations, but 2,000 groups."""
    many = [(i, f"title {i}", f"author {i}", i) for i in range(2000)]
    rows = dict(zip(NAMES, map(tuple, zip(*many, strict=True)), strict=True))
    columns = tuple(replace(c, values=rows[c.name]) for c in PUBLIC.columns)
    wide = replace(PUBLIC, columns=columns, rows=rows, size=2000)
    text = "b.title, b.author, b.year FROM loans AS l JOIN books AS b ON l.isbn = b.isbn"
    made = planned(text, {"books": wide, "loans": LOANS})
    assert made.size == 2000
    library.execute("BEGIN; DELETE FROM books")
    insert_rows(library, "books", many)
    ours = counted(made, library)
    theirs = library.execute("SELECT title, author, year, count(*) FROM loans JOIN books USING (isbn) GROUP BY ALL")
    assert ours == {tuple(row[:-1]): row[-1] for row in theirs.fetchall()}
    library.execute("ROLLBACK")


def test_a_row_that_the_public_table_did_not_have_is_in_no_group(library: duckdb.DuckDBPyConnection) -> None:
    text = "b.title, b.author FROM loans AS l JOIN books AS b ON l.isbn = b.isbn"
    made = planned(text)
    before = counted(made, library)
    library.execute("BEGIN; INSERT INTO books VALUES (7, 'Persuasion', 'Eliot', 1815)")
    assert counted(made, library) == before
    library.execute("ROLLBACK")


def test_a_planted_wrong_origin_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take two readings of a table for one: combinations of different rows are lost."""
    text = "b.title, c.year FROM loans AS l JOIN books AS b ON l.isbn = b.isbn JOIN books AS c ON l.branch = c.title"
    tables = {"books": replace(PUBLIC, repeats={**dict.fromkeys(NAMES, 2), "isbn": 1}), "loans": LOANS}
    assert planned(text, tables).size == 4 * 3
    right = joint_keys._public_columns

    def wrong(rel: Any, count: list[int], found: Any = None) -> Any:
        return {name: replace(each, scan=1) for name, each in right(rel, count, found).items()}

    monkeypatch.setattr(joint_keys, "_public_columns", wrong)
    assert planned(text, tables).size == 4


def test_a_condition_below_a_left_join_that_would_hold_for_all_rows_is_seen(
    library: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Take it for one above the join: rows without a match lose their group."""
    text = "b.title FROM loans AS l LEFT JOIN (SELECT * FROM books WHERE year = 1815) AS b ON l.isbn = b.isbn"
    right = joint_keys.public_conditions
    monkeypatch.setattr(
        joint_keys, "public_conditions", lambda rel: [replace(each, matched=False) for each in right(rel)]
    )
    with pytest.raises(AssertionError):
        test_keys_of_one_public_table_are_joint(library, text)


@pytest.mark.parametrize("text", QUERIES)
def test_neighbors_move_by_no_more_than_stated(library: duckdb.DuckDBPyConnection, text: str) -> None:
    """Without each reader in turn, with bounds that cut, the cells that are kept move within the sensitivity."""
    made = planned(text, {**TABLES, "loans": replace(LOANS, unit=PrivacyUnit("reader", groups=3, rows=2))})
    whole, _ = exact_results(made, {each.name: arrays(library, each.sql) for each in made.statements})
    moved = []
    for reader in range(9):
        library.execute(f"BEGIN; DELETE FROM loans WHERE reader = {reader}")
        rest, _ = exact_results(made, {each.name: arrays(library, each.sql) for each in made.statements})
        library.execute("ROLLBACK")
        moved.append(int(abs(whole[0] - rest[0]).sum()))
    assert 0 < max(moved) <= made.measures[0].sensitivity.l1


def test_an_owner_declares_nothing_about_a_public_table(tmp_path: Path) -> None:
    """The rows are read when the table is opened: `hubbub plan` shows 5 groups, not 4 · 4 · 5."""
    shown = ["isbn,title,author,year", *(",".join("" if v is None else str(v) for v in row) for row in BOOKS)]
    (tmp_path / "books.csv").write_text("\n".join(shown) + "\n")
    (tmp_path / "loans.csv").write_text("reader,isbn\n1,1\n2,2\n3,2\n")
    (tmp_path / "hubbub.yaml").write_text(
        "version: 1\ndatasets:\n  loans: {source: loans.csv, unit: {column: reader, groups: 3, rows: 1},\n"
        "    columns: {isbn: {type: integer}}, budget: {epsilon: 5}}\n"
        "  books: {source: books.csv, public: true, columns: {isbn: {type: integer}, title: {}, author: {}}}\n"
        "analysts: {ana: {loans: {epsilon: 5}}}\n"
    )
    with hubbub.open(tmp_path / "hubbub.yaml", analyst="ana") as session:
        text = (
            "SELECT title, author, isbn, COUNT(*) AS n FROM loans JOIN books USING (isbn) GROUP BY title, author, isbn"
        )
        estimate = session.estimate(text, epsilon="0.5")
        assert estimate.cells == 5
        assert "5 groups" in repr(estimate)
        assert len(session.query(text, epsilon="0.5").rows) == 5
