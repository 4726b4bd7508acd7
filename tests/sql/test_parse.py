"""Parsing: any text is parsed or rejected with a `QueryError`, in bounded time."""

import random
import re
import time
from collections.abc import Mapping
from typing import Any

import pytest
from tests.sql.corpus.queries import entries

from hubbub.core.schema import Table
from hubbub.errors import QueryError
from hubbub.sql.bind import bind
from hubbub.sql.lexer import MAX_NESTING, MAX_TEXT, MAX_TOKENS
from hubbub.sql.parse import parse

Tables = Mapping[str, Table]
SAME = [entry.text for entry in entries("made")]


def refused(text: str, **options: Any) -> QueryError:
    with pytest.raises(QueryError) as caught:
        parse(text, **options)
    assert len(str(caught.value)) < 900
    return caught.value


@pytest.mark.parametrize(
    "hidden",
    [
        "\0",
        "\x1b",
        "\x7f",
        "\u00a0",
        "\u00ad",
        "\u200b",
        "\u202e",
        "\u2066",
        "\u2028",
        "\ufeff",
        "\ue000",
        "\ud800",
        "\U000e0041",
    ],
)
def test_characters_that_hide_text_are_refused_where_they_stand(hidden: str) -> None:
    for text in (f"SELECT{hidden} count(*) FROM t", f"SELECT 'a{hidden}' FROM t", f"SELECT 1 -- {hidden}\n FROM t"):
        error = refused(text)
        assert error.code == "HB500"
        assert error.position == (1, text.index(hidden) + 1)


def test_letters_of_any_language_are_text() -> None:
    tree, _ = parse('SELECT count(*) FROM "Größe" WHERE "naïve" = \'日本 – ß\' -- ünïcode')
    assert tree.key == "select"


def test_an_empty_text_a_long_one_and_something_else_are_refused() -> None:
    assert refused(" \n\t ").code == "HB500"
    assert refused("SELECT " + "x" * MAX_TEXT).code == "HB500"
    assert refused("SELECT 1" + " + 1" * MAX_TOKENS).code == "HB500"
    with pytest.raises(QueryError, match="HB500"):
        parse(b"SELECT 1")  # type: ignore[arg-type]
    assert refused("SELECT 1 FROM t", dialect="oracle").code == "HB500"


NESTS = [
    ("(", "1", ")"),
    ("abs(", "1", ")"),
    ("CASE WHEN 1 = 1 THEN ", "1", " END"),
    ("(SELECT ", "1", ")"),
    ("[", "1", "]"),
    ("CAST(", "1", " AS INT)"),
    ("((a, ", "1", "))"),
    ("(a = 1 OR ", "b", ")"),
    ("EXISTS(", "1", ")"),
    ("NOT ", "a", ""),
    ("- ", "a", ""),
    ("a + ", "a", ""),
    ("a AND ", "a", ""),
    ("", "a", "::INT"),
    ("{", "1", "}"),
    ("INTERVAL ", "1", ""),
    ("", "x", ".y"),
    ("a = ", "b", ""),
    ("a || ", "b", ""),
    ("SELECT ", "1", ""),
    ("f(", "", ""),
    ("/*", "", ""),
    ("'", "", ""),
    ("a IN (", "1", ")"),
    ("SELECT * FROM (", "SELECT 1", ")"),
    ("x -> ", "x", ""),
    ("count(", "*", ")"),
    ("DISTINCT ", "a", ""),
    ("a BETWEEN b AND ", "c", ""),
    ("WITH c AS (", "SELECT 1", ")"),
]


@pytest.mark.parametrize("nest", NESTS, ids=lambda nest: nest[0] or nest[2])
@pytest.mark.parametrize("depth", [MAX_NESTING - 1, 60, 1_000, 3_000])
def test_any_nesting_is_read_or_refused_in_good_time(nest: tuple[str, str, str], depth: int) -> None:
    """No recursion error and no timeout, although sqlglot alone fails at about forty parentheses."""
    opens, core, closes = nest
    started = time.process_time()
    for text in (f"SELECT {opens * depth}{core}{closes * depth} FROM t", f"{opens * depth}{core}{closes * depth}"):
        try:
            parse(text)
        except QueryError as error:
            assert error.code in ("HB500", "HB501", "HB502", "HB503", "HB504", "HB505")  # noqa: PT017
    assert time.process_time() - started < 5


def test_a_caller_that_is_deep_in_the_stack_gets_a_refusal_too() -> None:
    def down(n: int) -> None:
        if n:
            down(n - 1)
        else:
            parse("SELECT " + "(" * 20 + "1" + ")" * 20 + " FROM t")

    with pytest.raises(QueryError, match="nested too deeply"):
        down(880)


@pytest.mark.parametrize(
    ("text", "code", "position"),
    [
        ("SELECT a FROM t;; ", "HB502", None),
        ("SELECT a FROM t; SELECT b FROM t", "HB502", (1, 25)),
        ("DROP TABLE t", "HB502", (1, 1)),
        ("SELECT sum(a)\n OVER (w ORDER BY a) FROM t WINDOW w AS (PARTITION BY a)", "HB503", (2, 8)),
        ("INSERT INTO t VALUES (1)", "HB502", (1, 1)),
        ("EXPLAIN SELECT 1", "HB502", (1, 1)),
        ("PRAGMA database_list", "HB502", (1, 1)),
        ("SET threads = 1", "HB502", (1, 1)),
        ("COPY t TO 'x.csv'", "HB502", (1, 1)),
        ("ATTACH 'x.db'", "HB502", (1, 1)),
        ("CALL pragma_version()", "HB502", (1, 1)),
        ("SELECT a INTO b FROM t", "HB502", (1, 10)),
        ("VALUES (1)", "HB501", (1, 1)),
        ("TABLE t", "HB503", (1, 1)),
    ],
)
def test_what_is_not_one_question_is_refused(text: str, code: str, position: tuple[int, int] | None) -> None:
    error = refused(text)
    assert (error.code, error.position) == (code, position)


DROPPED = """
SELECT a FROM t USING SAMPLE 10%
SELECT a FROM t TABLESAMPLE 10
SELECT a FROM t LIMIT 10%
SELECT a FROM t FETCH FIRST 3 ROWS WITH TIES
SELECT * EXCLUDE (a) FROM t
SELECT * REPLACE (1 AS a) FROM t
SELECT COLUMNS('a') FROM t
SELECT sum(a ORDER BY b) FROM t
SELECT first(a IGNORE NULLS) FROM t
SELECT a COLLATE nocase FROM t
SELECT a FROM t AT (VERSION => 1)
SELECT a FROM t FOR UPDATE
SELECT a FROM t, LATERAL (SELECT 1)
SELECT a FROM t POSITIONAL JOIN u
SELECT a FROM t ASOF JOIN u ON t.a >= u.a
SELECT a FROM t PIVOT (sum(b) FOR c IN (1, 2))
SELECT a FROM t WINDOW w AS ()
SELECT sum(a) OVER w FROM t
SELECT sum(a) OVER (ORDER BY b ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE TIES) FROM t
SELECT sum(a) OVER (ORDER BY b GROUPS 1 PRECEDING) FROM t
SELECT a IGNORE NULLS FROM t
SELECT a SIMILAR TO 'x' ESCAPE '!' ESCAPE '!' FROM t
SELECT trim(BOTH 'x' FROM a) FROM t
SELECT a BETWEEN SYMMETRIC 1 AND 2 FROM t
SELECT E'a\\nb' FROM t
SELECT X'ff' FROM t
SELECT 0x1F FROM t
SELECT 1a FROM t
SELECT $$a$$ FROM t
SELECT /*+ HINT */ a FROM t
SELECT /*!50000 a */ b FROM t
SELECT a FROM t 'x'
SELECT a AS 'x' FROM t
SELECT a ,, b FROM t
SELECT , a FROM t
SELECT count(,) FROM t
SELECT a FROM t * GROUP BY a
SELECT a FROM t // GROUP BY a
SELECT CASE WHEN a 1 END FROM t
SELECT a BETWEEN 1 2 FROM t
SELECT a BETWEEN b c AND d FROM t
SELECT max(a FROM t
SELECT FROM t
SELECT a FROM t GROUP BY
SELECT a FROM t GROUP BY DISTINCT a
SELECT count(ALL a) FROM t
SELECT INT 1 FROM t
SELECT a.b.c.d FROM t
SELECT a = b = c FROM t
SELECT a < b < c FROM t
SELECT a = NOT b FROM t
SELECT a IS DISTINCT FROM b = c FROM t
WITH c (SELECT 1) SELECT a FROM c
+ SELECT a FROM t
SELECT AS a FROM t
SELECT a -> b FROM t
SELECT a[1][2] FROM t
SELECT {'a': 1} FROM t
SELECT lambda x: x FROM t
SELECT a FROM t WHERE a = ANY (SELECT 1)
SELECT :name FROM t
SELECT $name FROM t
SELECT a FROM t UNION BY NAME SELECT a FROM t
SELECT current_date FROM t
SELECT a FROM read_csv('/etc/passwd')
SELECT a FROM '/etc/passwd'
SELECT a FROM glob('*')
SELECT a FROM unnest(b)
SELECT a FROM t WITH ORDINALITY
SELECT a FROM t PREWHERE a
SELECT a FROM t OFFSET 3 ROWS FETCH NEXT 3 ROWS ONLY
""".strip().splitlines()


@pytest.mark.parametrize("text", DROPPED)
def test_nothing_is_dropped_or_guessed(text: str) -> None:
    """sqlglot accepts all of these, or nearly all; each is rejected before any name is resolved."""
    error = refused(text)
    assert re.fullmatch(r"HB50[0-5]", error.code)
    assert error.remedy
    assert error.message.endswith("Nothing was run or charged.")


def test_plain_comments_are_read_over(clinic: Tables) -> None:
    plain = bind("SELECT count(*) FROM people", tables=clinic)
    assert bind("SELECT -- how many\n count(*) /* all */ FROM people -- ;", tables=clinic) == plain


WORDS = """
( ) , . * = < > <> || // % ^ :: ; ? $1 ' " -- /* */ [ ] { } : @ # ~ -> select from where group by having order limit
offset with recursive as on using join left right full cross natural lateral union all except intersect distinct and or
not is null in between like ilike case when then else end cast interval date timestamp extract filter over partition
within exists any some values table into pivot qualify window sample tablesample rollup cube grouping sets asc desc
nulls first last fetch rows only for update collate escape similar to true false person people visits sites logs age
health count sum avg median quantile_cont floor round lower date_trunc error read_csv 1 2 0.5 1e999 'x' '2020-01-01'
"a" é
""".split()  # noqa: SIM905
NAMES = ["age", "income", "year", "site", "health", "female", "spending", "day", "person", "cost", "city"]


def test_random_texts_are_bound_or_refused(clinic: Tables) -> None:
    """Words in random order, and valid queries with changed words, are bound or rejected, quickly."""
    rng = random.Random(3)
    outcomes = {True: 0, False: 0}
    for n in range(1_500):
        if n % 3 == 0:
            words = [rng.choice(WORDS) for _ in range(rng.randint(1, 25))]
        else:
            words, others = (re.findall(r"[\w$.]+|'[^']*'|[<>=!|:*/]+|\S", rng.choice(SAME)) for _ in "ab")
            for _ in range(rng.randint(1, 2)):
                index, other = rng.randrange(len(words)), rng.randrange(len(others))
                words[index : index + 1] = rng.choice((others[other : other + 1], [rng.choice(WORDS)]))
            if rng.random() < 0.5:
                words = [
                    rng.choice(NAMES) if word in NAMES else word for word in re.findall(r"\w+|\W+", rng.choice(SAME))
                ]
        started = time.process_time()
        try:
            bind(" ".join(words), tables=clinic, dialect=rng.choice(["duckdb", "postgres"]))
            outcomes[True] += 1
        except QueryError as error:
            assert len(str(error)) < 900  # noqa: PT017
            outcomes[False] += 1
        assert time.process_time() - started < 2
    assert min(outcomes.values()) > 20


@pytest.mark.parametrize(
    "word",
    ["percent", "index", "view", "format", "comment", "session", "function", "Percent", "temp", "next", "schema"],
)
def test_words_of_other_statements_are_names_here(word: str, clinic: Tables) -> None:
    query = bind(f"SELECT health, count(*) AS {word} FROM people GROUP BY health ORDER BY {word} DESC", tables=clinic)
    assert [name for name, _ in query.select] == ["health", word]
    assert query.order[0].descending


@pytest.mark.parametrize("clause", ["LIMIT 10 PERCENT", "LIMIT 10%", "FETCH FIRST 10 PERCENT ROWS ONLY"])
def test_a_share_of_all_rows_is_refused(clause: str, clinic: Tables) -> None:
    with pytest.raises(QueryError):
        bind(f"SELECT health, count(*) FROM people GROUP BY health {clause}", tables=clinic)
