"""Check SQL that reads nothing but released and public rows, as DuckDB itself parses it, before it runs there.

Such a query runs in a locked, empty database, so that nothing private is within its reach. What it may call is listed
by name all the same: no function that reads files, settings, the clock or the network, draws random numbers, writes a
text of any length, or works on one value for longer than in proportion to it: DuckDB stops between values only.

Tested in tests/sql/test_ordinary_sql.py.
"""

import json
from collections.abc import Collection, Iterator, Sequence
from datetime import date, datetime
from fractions import Fraction
from typing import Any

from sqlglot import exp

from hubbub.core.schema import Value
from hubbub.sql import local_database
from hubbub.sql.text import SourceText, quote

_OPERATORS = "+ - * / // % ** ^ & | << >> ~ ~~ !~~ ~~* !~~* ^@ || = != < > <= >= @ not and or is in between cast"
_NUMBERS = """
    abs acos acosh add asin asinh atan atan2 atanh bit_count cbrt ceil ceiling cos cosh cot degrees divide even exp
    factorial fdiv floor fmod gamma gcd greatest greatest_common_divisor isfinite isinf isnan lcm
    least_common_multiple least lgamma ln log log10 log2 mod multiply nextafter pi pow power radians round
    round_even sign signbit sin sinh sqrt subtract tan tanh trunc xor width_bucket
"""
_TEXTS = """
    ascii bar bit_length char_length character_length chr concat concat_ws contains
    ends_with hamming ilike_escape instr jaccard lcase left len length
    like_escape lower ltrim md5 mismatches not_ilike_escape not_like_escape octet_length ord overlay
    position prefix regexp_extract regexp_full_match regexp_matches regexp_replace replace reverse right rtrim
    sha256 split_part starts_with string_split str_split split strip_accents strlen strpos substr substring suffix
    translate trim ucase unicode upper url_decode url_encode
"""
_DATES = """
    age century date_add date_diff date_part date_sub date_trunc datediff datepart datesub datetrunc day dayname
    dayofmonth dayofweek dayofyear days_in_month decade epoch epoch_ms era hour isodow isoyear julian last_day
    make_date make_timestamp microsecond millennium millisecond minute month monthname quarter second strftime
    strptime time_bucket to_centuries to_days to_decades to_hours to_microseconds to_milliseconds to_minutes
    to_months to_quarters to_seconds to_weeks to_years try_strptime week weekday weekofyear year yearweek
"""
_CHOICES = "coalesce if ifnull nullif typeof row struct_pack struct_extract list_value list_contains list_extract"
_AGGREGATES = """
    any_value approx_count_distinct arbitrary arg_max arg_min argmax argmin array_agg avg bit_and bit_or bit_xor
    bool_and bool_or corr count count_if count_star countif covar_pop covar_samp entropy favg first fsum geomean
    geometric_mean group_concat grouping grouping_id histogram kahan_sum kurtosis kurtosis_pop last list listagg mad
    max max_by mean median min min_by mode product quantile quantile_cont quantile_disc regr_avgx regr_avgy
    regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy sem skewness stddev stddev_pop
    stddev_samp string_agg sum sumkahan var_pop var_samp variance wavg weighted_avg approx_quantile
"""
_WINDOWS = """
    row_number rank dense_rank rank_dense percent_rank cume_dist ntile lag lead first_value last_value nth_value
"""
#: Everything that a query over released or public rows may call, by DuckDB's name.
ORDINARY = frozenset(" ".join((_OPERATORS, _NUMBERS, _TEXTS, _DATES, _CHOICES, _AGGREGATES, _WINDOWS)).split())


def check_ordinary(sql: str, tables: Collection[str], source: SourceText) -> None:
    """Raise unless a SELECT, as DuckDB parses it, calls ordinary functions and reads these tables and its own CTEs.

    Theorem (Nothing else is called). Every function and every table in the text that runs is on a list of names.
    Proof    DuckDB's own parser gives the tree of the very text that runs, and every node that names a function or
             reads a table is looked up. A table function, and a node of another kind that reads something, is refused.
             A column without its table is a function of DuckDB if no column has its name: these names are refused.
    Assumes  DuckDB runs what its parser read.
    Charges  nothing.
    Tested   tests/sql/test_ordinary_sql.py::test_only_listed_functions_and_tables_pass
             tests/sql/test_ordinary_sql.py::test_no_name_reads_the_clock_or_the_session
    """
    parsed = json.loads(
        local_database.connection("parser").execute("SELECT json_serialize_sql($1)", [sql]).fetchall()[0][0]
    )
    if parsed.get("error"):
        raise source.error(None, "HB501", "DuckDB cannot parse this query.", "Check the syntax of its outer part.")
    names = {name.lower() for name in tables}
    nodes = list(_nodes(parsed))
    for node in nodes:
        for entry in (node.get("cte_map") or {}).get("map") or ():
            names.add(str(entry["key"]).lower())
    for node in nodes:
        called, kind = node.get("function_name"), node.get("type")
        if called is not None and str(called).lower() not in ORDINARY:
            raise source.error(
                None,
                "HB504",
                f"The function {quote(str(called))} is not available in queries over released or public rows.",
                "Use an ordinary function of numbers, text or dates, an aggregate, or a window function.",
            )
        name = [str(each).lower() for each in node.get("column_names") or ()]
        if kind == "COLUMN_REF" and len(name) == 1 and name[0] in _VALUES:
            raise source.error(
                None,
                "HB504",
                f"{quote(name[0])} is not available in queries over released or public rows.",
                f'If it is a column, name its table, as in t."{name[0]}", or give it another name where it is made.',
            )
        is_table = kind == "BASE_TABLE" and str(node.get("table_name")).lower() in names
        qualified = kind == "BASE_TABLE" and (node.get("schema_name") or node.get("catalog_name"))
        if kind in _SOURCES and (not is_table or qualified):
            raise source.error(
                None,
                "HB505",
                "The query reads something that is neither a declared public table nor a result of this query.",
                "Read tables, subqueries and CTEs only.",
            )


#: What DuckDB computes without parentheses where no column has the name: the clock, and names of the session. It parses
#: them as columns, also in quotes, and looks for a column first; with its table in front, the name is a column alone.
_VALUES = frozenset(
    {
        *("current_catalog", "current_date", "current_role", "current_schema", "current_time", "current_timestamp"),
        *("current_user", "localtime", "localtimestamp", "session_user", "user"),
    }
)
#: Kinds of DuckDB's table references that read something by name.
_SOURCES = frozenset({"BASE_TABLE", "TABLE_FUNCTION", "SHOW_REF", "COLUMN_DATA", "DELIM_GET", "BOUND_TABLE_REF"})


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    stack = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            yield node
            stack += node.values()
        elif isinstance(node, list):
            stack += node


def with_parameters(tree: exp.Expr, values: Sequence[Value], source: SourceText) -> tuple[exp.Expr, set[int]]:
    """Replace parameters by their values; return the numbers of those that are used, too."""
    used = set()

    def substituted(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Placeholder | exp.Parameter):
            return node
        name = node.name if isinstance(node, exp.Placeholder) else str(node.this.name)
        number = int(name) if name.isdecimal() and len(name) < 6 else 0
        if not 1 <= number <= len(values):
            raise source.error(
                None, "HB509", "A parameter has no value.", "Pass one value for each ?, or for $1, $2, …."
            )
        used.add(number)
        return _literal(values[number - 1])

    return tree.transform(substituted), used


def _literal(value: Value) -> exp.Expr:
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, int | Fraction):
        number = exp.Literal.number(str(abs(value) if isinstance(value, int) else abs(float(value))))
        return exp.Neg(this=number) if value < 0 else number
    if isinstance(value, date):
        kind = "timestamp" if isinstance(value, datetime) else "date"
        return exp.cast(exp.Literal.string(value.isoformat()), kind)
    return exp.Literal.string(str(value).replace("\0", ""))


_KINDS = {"BOOLEAN": "boolean", "VARCHAR": "text", "DATE": "date", "FLOAT": "real", "DOUBLE": "real"}
_INTEGERS = frozenset(
    f"{sign}{size}" for sign in ("", "U") for size in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
)


def kind_of(duckdb_type: str) -> str:
    """Return the kind of a DuckDB type; intervals and nested types are shown as text."""
    if duckdb_type in _INTEGERS:
        return "integer"
    if duckdb_type.endswith("]"):
        return "text"
    if duckdb_type.startswith("DECIMAL"):
        return "real"
    return "timestamp" if duckdb_type.startswith("TIMESTAMP") else _KINDS.get(duckdb_type, "text")
