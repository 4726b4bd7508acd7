"""The page docs/sql.md: every clause, function and aggregate of the allow-lists (`make sql` writes it)."""

from collections.abc import Iterable
from pathlib import Path

from sqlglot import exp

from hubbub.core.schema import Kind
from hubbub.sql import rules
from hubbub.sql.aggregates.table import AGGREGATES
from hubbub.sql.bind_arg_extremes import ARG_EXTREMES
from hubbub.sql.bind_unit_aggregates import UNIT_FUNCTIONS
from hubbub.sql.dialects.base import Dialect
from hubbub.sql.dialects.duckdb import DUCKDB
from hubbub.sql.dialects.postgres import POSTGRES
from hubbub.sql.dialects.spark import SPARK
from hubbub.sql.functions import FUNCTIONS, Function
from hubbub.sql.nodes import AGGREGATE_NAMES, AGGREGATE_NODES, FUNCTION_NAMES, FUNCTION_NODES
from hubbub.sql.spellings import DEFAULT_SCHEMAS, DIALECTS

PAGE = Path(__file__).parents[2] / "docs" / "sql.md"
ENGINES: tuple[Dialect, ...] = (DUCKDB, POSTGRES, SPARK)

FORM = """# SQL reference

What a query can contain. `make sql` writes this page from the allow-lists of the parser, and a test compares both.
A query is one SELECT over declared tables. Everything else is refused before anything is charged, with a reason and a
remedy; `hubbub plan` shows for free how a query is understood.

## How to write it

{recipes}
## Dialects

A query is read in the dialect of `dialect=` or `--dialect`: {dialects}.
It runs on any engine. What a dialect means differently and hubbub does not compute is refused by name (HB747). Text is
compared byte by byte in every dialect. [0054](decisions/0054-spellings-and-functions.md) lists the differences.

## Clauses

{clauses}
## Aggregates

The noise of an aggregate is calibrated to what one privacy unit can change: its number of groups and rows (`groups`,
`rows`), times the width of the bounds for sums. `hubbub plan` derives the number for a query, line by line.
`FILTER (WHERE …)` and `DISTINCT` are supported where SQL has them. All engines have all aggregates.

{aggregates}
### Within one person

In a subquery that groups by the privacy ID, these read the rows of one person and add no noise: {within}. `ARG_MIN(x,
y)` is the x of the row with the least y; of rows that tie, the least x. Rows in which x or y is NULL do not count,
or in those with `_null` (`MIN_BY` and `MAX_BY` in Spark, BigQuery and Snowflake) rows in which y is NULL.

## Functions and operators

Every function is total: no value of a row can raise an error. Unless stated otherwise, NULL gives NULL. An engine
that lacks a function refuses it by name before anything is charged (HB574), as it does with some types of arguments.

{functions}"""

#: How to write what is refused, or what is written in another way.
RECIPES = (
    ("a share of the total", "`SUM(CASE WHEN region = 'North' THEN 1 ELSE 0 END) * 1.0 / COUNT(*)`"),
    ("a ratio of two sums", "`SUM(a) / SUM(b)`: both sums are noisy, and the interval follows from them"),
    ("a weighted average", "`SUM(w * x) / SUM(w)`, with bounds for `w` and `x`"),
    (
        "an expression without bounds",
        "`AVG(x)` with `WHERE x BETWEEN 0 AND 100`, or `AVG(GREATEST(0, LEAST(x, 100)))`, in which NULL counts as 100, "
        "or declare `bounds` in hubbub.yaml",
    ),
    ("one value for each person", "`SELECT AVG(n) FROM (SELECT id, COUNT(*) AS n FROM visits GROUP BY id)`"),
    ("the distance of two timestamps", "`EXTRACT(EPOCH FROM a - b)`, `date_diff('day', b, a)`"),
    ("groups of a number", "`GROUP BY width_bucket(age, 0, 100, 10)` or `floor(age / 10)`"),
    ("parts of a text", "`left(x, 3)`, `split_part(x, '-', 1)`, `replace(x, 'a', 'b')`"),
    ("text from others", "`lpad(x, 5, '0')`, `a || '-' || n`, `strftime(d, '%Y-%m')`"),
    ("a small table of one's own", "`FROM visits JOIN (VALUES (0, 'man'), (1, 'woman')) AS t(code, label) ON …`"),
    (
        "groups chosen by everybody's rows",
        "`WHERE site IN (SELECT site FROM visits GROUP BY site HAVING COUNT(*) > 50)`",
    ),
    ("the last value up to a row (ASOF)", "`SELECT a.id, a.day, ARG_MAX(b.x, b.day) … GROUP BY a.id, a.day`"),
    ("the last 30 days of a person", "`SUM(x) OVER (PARTITION BY id ORDER BY day RANGE INTERVAL 30 DAY PRECEDING)`"),
    ("months between two dates", "`MONTHS_BETWEEN(a, b)`, or `date_diff('month', b, a)` for months that begin"),
    ("a shifted date", "`d + n`, `d + INTERVAL 3 MONTH`, `d + n * INTERVAL 1 DAY`, `make_date(y, m, d)`"),
    (
        "a part of a text by a pattern",
        "`regexp_extract(x, '^[A-Z]+')`, `regexp_replace(x, '[0-9]+', '')`, `x SIMILAR TO '(A|B)[0-9]'`",
    ),
    ("numbers of distinct combinations", "`COUNT(DISTINCT a, b)`; with the privacy ID, rows of SELECT DISTINCT id, a"),
    ("sub-totals of groups that nobody declared", "`GROUP BY ROLLUP (dest)`: each set has an equal share of ε and δ"),
    ("skewness, kurtosis", "`AVG(GREATEST(-99, LEAST(99, POWER((x - 3) / 5, 3))))`, with the noisy mean and deviation"),
    ("today", "write the date, or pass it as a parameter: the answer can then be repeated"),
    ("another schema", f"leave it out; only {', '.join(sorted(DEFAULT_SCHEMAS))} can be written"),
)

#: Clauses, and what one privacy unit can change in them.
CLAUSES = (
    ("SELECT", "expressions over keys and aggregates; computed from noisy results, free"),
    (
        "FROM, JOIN",
        "declared tables. Two private tables are joined on the privacy ID or along declared keys, so that every row "
        "keeps one owner; a private table and a public one on any condition",
    ),
    (
        "FULL JOIN, LEFT JOIN … WHERE b.id IS NULL",
        "of two private tables: all rows of both sides, or the rows of one person without a match. The privacy ID of a "
        "side that may be missing can be tested for NULL and counted; `COALESCE(a.id, b.id)` is the privacy ID",
    ),
    (
        "FROM a, b WHERE …",
        "the same: equalities in WHERE are the conditions of the joins, in any order of the tables",
    ),
    (
        "USING, NATURAL, CROSS JOIN, parentheses",
        "as in SQL; a cross join repeats each row of a person for every row of the public table",
    ),
    ("WHERE", "conditions on rows; comparisons with constants narrow the bounds and keys of columns"),
    (
        "GROUP BY",
        "up to 16 expressions, ROLLUP, CUBE, GROUPING SETS, ALL. Keys with declared values are all shown; others are "
        "selected privately, which needs δ",
    ),
    (
        "HAVING, ORDER BY, LIMIT, TOP",
        "work on noisy results, free. `ORDER BY COUNT(*) DESC LIMIT k` with keys alone is a private selection",
    ),
    ("WITH, subqueries", "rows of which each has one owner, or results of aggregates"),
    (
        "EXISTS, IN, (SELECT …) as a value",
        "of one person's rows: they are compared with the outer row by = on the privacy ID, and at most once by <, <=, "
        ">, >= or <>. A value is one aggregate without GROUP BY",
    ),
    (
        "(SELECT …) about everybody",
        "one aggregate, or one for each value of a public or declared key: a release of its own, with an equal share "
        "of ε",
    ),
    (
        "UNION, INTERSECT, EXCEPT, each also with ALL, and DISTINCT",
        "of rows with one kind of owner. INTERSECT, EXCEPT and DISTINCT compare the rows of one person, so both sides "
        "select the privacy ID. UNION ALL alone also takes rows without it",
    ),
    (
        "OVER, WINDOW, QUALIFY, DISTINCT ON",
        "in a subquery, over the rows of one person: PARTITION BY names the privacy ID. Ranks, NTILE, LAG, LEAD, "
        "FIRST_VALUE, LAST_VALUE, NTH_VALUE, COUNT, SUM, AVG, MIN, MAX. IGNORE NULLS in LAG and LEAD by one row, and "
        "in FIRST_VALUE and LAST_VALUE up to the current row or of all rows",
    ),
    (
        "ROWS BETWEEN, RANGE BETWEEN",
        "frames of up to 1,000 rows, and by distance of up to 1,000 days or whole numbers: `ORDER BY day RANGE BETWEEN "
        "INTERVAL 30 DAY PRECEDING AND CURRENT ROW`. Frames without an end on one side have any length",
    ),
    (
        "LATERAL, CROSS APPLY, OUTER APPLY",
        "`LATERAL (SELECT v.day FROM visits v WHERE v.id = p.id ORDER BY v.day LIMIT 1)`, compared by = alone; lists "
        "of constants and expressions of the outer row",
    ),
    (
        "UNNEST, explode",
        "`FROM visits v, UNNEST(v.tags) AS t(tag)`: one row for each element of a list column that the owner declares "
        "with `elements: 8`; also in SELECT, and as LATERAL VIEW. `list_contains(tags, 'a')`, `'a' = ANY(tags)`, "
        "`list_has_any`, `list_has_all`, `len(tags)` and `tags[1]` read a list without adding rows",
    ),
    ("generate_series, VALUES", "lists of at most 1,000 constants in FROM"),
    (
        "PIVOT, UNPIVOT",
        "PIVOT of a subquery that names its columns, with its values listed; UNPIVOT of listed columns",
    ),
    ("parameters", "`?`, or `$1`, `$2`, …"),
)


def kinds(function: Function) -> str:
    """List the kinds of arguments that a function accepts, with the kind of its result."""
    every = tuple(Kind)
    accepted: dict[str, set[str]] = {}
    for count in range(1, 5):
        for first in every:
            for other in every if count > 1 else (first,):
                for last in every if count > 2 else (other,):
                    given = (first, *[other] * (count - 2), last)[:count] if count > 1 else (first,)
                    result = function.kind(given)
                    if result is not None:
                        accepted.setdefault(result.value, set()).add(first.value)
    return "; ".join(f"{result} of {_listed(sorted(names))}" for result, names in accepted.items())


def _listed(names: list[str]) -> str:
    return "any" if len(names) == len(tuple(Kind)) else ", ".join(names)


def spellings(name: str) -> str:
    """List how a function is written in a query."""
    nodes = [node for node, (function, _) in FUNCTION_NODES.items() if function == name]
    written = [word.lower() for node in nodes if issubclass(node, exp.Func) for word in node.sql_names()]
    written += [word for word, function in FUNCTION_NAMES.items() if function == name]
    return ", ".join(f"`{word}`" for word in dict.fromkeys([name, *written]))


def engines(name: str) -> str:
    """List the engines that have a function."""
    return ", ".join(dialect.name for dialect in ENGINES if name in dialect.spellings)


def bounds(function: Function) -> str:
    """Say what is known about the range of a result."""
    return "unknown" if function.range is rules.unknown else "from the arguments"


def aggregate_names(name: str) -> str:
    nodes = [
        node.sql_names()[0].lower()
        for node, (function, _) in AGGREGATE_NODES.items()
        if function == name and issubclass(node, exp.Func)
    ]
    nodes += [word for word, (function, _) in AGGREGATE_NAMES.items() if function == name]
    return ", ".join(f"`{word}`" for word in dict.fromkeys([name, *nodes]))


def table(header: str, rows: Iterable[Iterable[str]]) -> str:
    """Write a table."""
    names = header.split(" | ")
    lines = [f"| {header} |", f"|{'---|' * len(names)}"]
    lines += [f"| {' | '.join(cell.replace('|', '∣') for cell in row)} |" for row in rows]
    return "\n".join(lines) + "\n"


def page() -> str:
    """Write the page."""
    needs = {"any": "any", "bounded": "numbers with bounds", "listed": "listed values or bounds"}
    functions = [
        (spellings(name), kinds(function), function.total, bounds(function), engines(name))
        for name, function in sorted(FUNCTIONS.items())
        if name != "decimal"
    ]
    aggregates = [
        (
            aggregate_names(name),
            needs.get(str(getattr(function, "argument", "any")), "any"),
            (type(function).__doc__ or "").split("\n")[0],
        )
        for name, function in AGGREGATES.items()
    ]
    return FORM.format(
        recipes=table("to get | write", RECIPES),
        dialects=", ".join(DIALECTS),
        clauses=table("clause | meaning", CLAUSES),
        aggregates=table("name | argument | what it is", aggregates),
        within=", ".join(f"`{name}`" for name in (*UNIT_FUNCTIONS, *ARG_EXTREMES)),
        functions=table("name | result and arguments | on unusual values | range of the result | engines", functions),
    )


def main() -> None:
    """Write the page."""
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
