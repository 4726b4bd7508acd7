"""Other spellings of what the binder knows: the tree of a query in any dialect → a tree with the meaning of DuckDB's.

A query is read by sqlglot in its dialect and checked against the allow-lists; then each spelling here is replaced by
nodes of `nodes.py`. What a dialect means differently and what has no equal is rejected by name, never approximated.

Tested in tests/sql/test_spellings.py.
"""

from collections.abc import Callable

from sqlglot import exp

from hubbub.sql import spelling_calls, spelling_clauses, spelling_dates, spelling_tables
from hubbub.sql.nodes import Args, Node
from hubbub.sql.spelling_dates import differs, repeat
from hubbub.sql.text import SourceText, quote

#: Dialects in which a query can be written; each is read by sqlglot.
DIALECTS = ("duckdb", "postgres", "spark", "bigquery", "snowflake", "tsql")
#: Schemas that a database has without being asked for one. hubbub has one namespace, so they can be left out.
DEFAULT_SCHEMAS = frozenset({"main", "public", "dbo", "default"})
#: Scale of a DECIMAL that states none, by dialect; in PostgreSQL it has any scale.
_DECIMAL_SCALES = {"duckdb": (18, 3), "bigquery": (38, 9), "spark": (10, 0), "snowflake": (38, 0), "tsql": (18, 0)}
_DType = exp.DType
#: Types that have another name in hubbub.
_TYPES: dict[exp.DType, exp.DType] = {
    _DType.NVARCHAR: _DType.VARCHAR,
    _DType.NCHAR: _DType.CHAR,
    _DType.BPCHAR: _DType.CHAR,
    _DType.BIT: _DType.BOOLEAN,
    _DType.DATETIME2: _DType.TIMESTAMP,
}
#: In these dialects TIMESTAMP is a point in time, which hubbub reads in UTC.
_ZONED = ("spark", "bigquery", "snowflake")
#: The one type of integers in these dialects, whatever it is called.
_INTEGERS = {"bigquery": _DType.BIGINT, "snowflake": _DType.INT128}
_SIZED = (_DType.TINYINT, _DType.SMALLINT, _DType.INT, _DType.BIGINT)
_TEXTS = (_DType.CHAR, _DType.VARCHAR, _DType.TEXT)
#: Longer texts are not cut, because functions read fewer characters of a text.
MAX_LENGTH = 10**6
#: The length of a text type that states none.
_LENGTHS = {
    ("postgres", _DType.CHAR): "1",
    ("snowflake", _DType.CHAR): "1",
    ("tsql", _DType.VARCHAR): "30",
}

_TWO: Args = {"this": None, "expression": None}
#: Nodes that are rewritten, with their allowed arguments and values.
SPELLING_NODES: dict[Node, Args] = {
    exp.Nvl2: {"this": None, "true": None, "false": None},
    exp.DecodeCase: {"expressions": None},
    exp.SafeDivide: _TWO,
    exp.ConcatWs: dict.fromkeys(("expressions", "safe", "coalesce", "flatten")),
    exp.Convert: {"this": None, "expression": None, "safe": (True,)},
    exp.Pi: {},
    exp.Degrees: {"this": None},
    exp.Radians: {"this": None},
    **spelling_dates.NODES,
    **spelling_calls.NODES,
    **spelling_tables.NODES,
    **spelling_clauses.NODES,
}
#: Arguments that sqlglot sets in some dialects and that change nothing on supported values, or that are rewritten.
SPELLING_ARGS: dict[Node, Args] = {
    exp.Div: {"safe": (True,)},
    exp.Coalesce: {"is_null": (True,)},
    exp.Column: {"db": None, "catalog": None},
    exp.Length: {"binary": (True,)},
    exp.Left: {"negative_length_returns_empty": (True,)},
    exp.Right: {"negative_length_returns_empty": (True,)},
    exp.StrPosition: {"clamp_position": (True,)},
    exp.Substring: {"zero_start": (True,)},
    exp.CountIf: {"zero_on_all_null": (True,)},
    exp.Select: {"windows": None, "laterals": None},
    exp.Subquery: {"pivots": None},
    exp.Table: {"pivots": None},
    exp.Array: {"value_constructor": None, "struct_name_inheritance": None},
    exp.ArgMin: {"count": None},
    exp.ArgMax: {"count": None},
    exp.Round: {"casts_non_integer_decimals": (True,)},
    exp.TryCast: {"requires_string": (True,)},
    exp.TimestampTrunc: {"input_type_preserved": (True,)},
    exp.DateDiff: {"big_int": (True,)},
    exp.StrToTime: {"safe": (True,), "target_type": None, "default_year": None},
}

Rewriter = Callable[[exp.Expr, str, SourceText], exp.Expr | None]


def rewrite(tree: exp.Expr, dialect: str, source: SourceText) -> exp.Expr:
    """Replace every spelling in a tree, innermost first."""
    for node in reversed(list(tree.walk())):
        rewriter = _NAMED.get(str(node.name).lower()) if isinstance(node, exp.Anonymous) else _REWRITERS.get(type(node))
        replacement = None if rewriter is None else rewriter(node, dialect, source)
        for name in SPELLING_ARGS.get(type(node), ()):
            node.set(name, None)
        if replacement is not None and node is not tree:
            node.replace(replacement)
    return tree


def paren(node: exp.Expr) -> exp.Paren:
    """Put an expression in parentheses."""
    return exp.Paren(this=node)


# --- names -------------------------------------------------------------------------------------------------------


def _table(node: exp.Expr, dialect: str, source: SourceText) -> exp.Expr | None:
    """Drop a default schema, unless a WITH clause could be meant without it; write out a series."""
    series = spelling_tables.table(node, dialect, source)
    if series is not None:
        return series
    schema = node.args.get("db")
    if schema is None or node.args.get("catalog") is not None or not isinstance(node.this, exp.Identifier):
        return None
    root = node.root()
    hidden = any(cte.alias.lower() == str(node.this.this).lower() for cte in root.find_all(exp.CTE))
    if str(schema.name).lower() in DEFAULT_SCHEMAS and not hidden:
        node.set("db", None)
    return None


def _column(node: exp.Expr, _: str, source: SourceText) -> None:
    schema = node.args.get("db")
    if schema is None:
        return
    if node.args.get("catalog") is not None or str(schema.name).lower() not in DEFAULT_SCHEMAS:
        raise source.error(
            node, "HB505", f"There is no column {quote(node.sql())}.", "Name it by its table: table.column."
        )
    node.set("db", None)


# --- conditions --------------------------------------------------------------------------------------------------


def _is_null(node: exp.Expr) -> exp.Expr:
    return exp.Is(this=node, expression=exp.Null())


def _nvl2(node: exp.Expr, _: str, __: SourceText) -> exp.Expr:
    present = exp.Not(this=_is_null(node.this))
    return exp.If(this=present, true=node.args["true"], false=node.args.get("false"))


def _decode(node: exp.Expr, _: str, source: SourceText) -> exp.Expr:
    """DECODE(x, value, result, …, default), in which NULL equals NULL."""
    operand, *rest = node.expressions
    if len(rest) < 2:
        raise source.error(node, "HB501", "DECODE needs a value and a result.", "Write DECODE(x, value, result, …).")
    default = rest[-1] if len(rest) % 2 else None
    pairs = list(zip(rest[0::2], rest[1::2], strict=False))
    if not any(isinstance(value, exp.Null) for value, _ in pairs):
        return exp.Case(this=operand, ifs=[exp.If(this=v, true=r) for v, r in pairs], default=default)
    tests = [
        _is_null(repeat(operand, source))
        if isinstance(v, exp.Null)
        else exp.EQ(this=repeat(operand, source), expression=v)
        for v, _ in pairs
    ]
    return exp.Case(ifs=[exp.If(this=t, true=r) for t, (_, r) in zip(tests, pairs, strict=True)], default=default)


def _row_in(node: exp.Expr, _: str, source: SourceText) -> exp.Expr | None:
    """(a, b) IN ((1, 2), …): each row is a conjunction of equalities."""
    if not isinstance(node.this, exp.Tuple) or node.args.get("query") is not None:
        return None
    rows = [_row_equal(node, node.this, other, source) for other in node.expressions]
    return paren(exp.or_(*rows, copy=False, wrap=False))


def _row_eq(node: exp.Expr, _: str, source: SourceText) -> exp.Expr | None:
    if not isinstance(node.this, exp.Tuple):
        return spelling_calls.any_of(node, source)
    equal = _row_equal(node, node.this, node.expression, source)
    return exp.Not(this=equal) if isinstance(node, exp.NEQ) else equal


def _row_equal(node: exp.Expr, row: exp.Expr, other: exp.Expr, source: SourceText) -> exp.Expr:
    if not isinstance(other, exp.Tuple) or len(other.expressions) != len(row.expressions):
        raise source.error(node, "HB508", "These rows have different lengths.", "Write (a, b) IN ((1, 2), (3, 4)).")
    pairs = zip(row.expressions, other.expressions, strict=True)
    equal = [exp.EQ(this=repeat(a, source), expression=b.copy()) for a, b in pairs]
    return paren(exp.and_(*equal, copy=False, wrap=False))


def _extreme(node: exp.Expr, dialect: str, source: SourceText) -> exp.Expr | None:
    """GREATEST and LEAST of BigQuery and Snowflake are NULL if an argument is."""
    if dialect not in ("bigquery", "snowflake"):
        return None
    parts = [node.this, *node.expressions]
    missing = [_is_null(repeat(part, source)) for part in parts if not isinstance(part, exp.Literal)]
    if not missing:
        return None
    copies = [part.copy() for part in node.expressions]
    extreme = type(node)(this=node.this.copy(), expressions=copies, ignore_nulls=True)
    return exp.If(this=exp.or_(*missing, copy=False, wrap=False), true=exp.Null(), false=extreme)


# --- numbers and text --------------------------------------------------------------------------------------------


def _number(text: str) -> exp.Expr:
    return exp.Literal.number(text)


def _degrees(node: exp.Expr, _: str, __: SourceText) -> exp.Expr:
    return paren(exp.Mul(this=paren(node.this), expression=_number("57.29577951308232")))


def _radians(node: exp.Expr, _: str, __: SourceText) -> exp.Expr:
    return paren(exp.Mul(this=paren(node.this), expression=_number("0.017453292519943295")))


def _divide(node: exp.Expr, _: str, __: SourceText) -> exp.Expr:
    return paren(exp.Div(this=paren(node.this), expression=paren(node.expression), typed=False, safe=False))


def _concat(node: exp.Expr, _: str, __: SourceText) -> exp.Expr | None:
    """CONCAT is NULL if an argument is, where the dialect does not read NULL as empty."""
    if node.args.get("coalesce") or len(node.expressions) < 2:
        return None
    first, *rest = node.expressions
    for part in rest:
        first = exp.DPipe(this=first, expression=part, safe=True)
    return paren(first)


def _concat_ws(node: exp.Expr, dialect: str, source: SourceText) -> exp.Expr:
    """CONCAT_WS leaves out NULL: each part brings its separator, and the first separator is cut off."""
    separator, *parts = node.expressions
    if not (isinstance(separator, exp.Literal) and separator.is_string) or not parts:
        raise source.error(
            node, "HB508", "The separator of CONCAT_WS must be a text constant.", "Write CONCAT_WS('-', a, b)."
        )
    if not node.args.get("coalesce"):
        raise differs(source, node, "CONCAT_WS", dialect, "Write a || '-' || b.")
    led = [exp.DPipe(this=separator.copy(), expression=paren(part), safe=True) for part in parts]
    joined = (
        exp.Concat(expressions=led, safe=True, coalesce=True)
        if len(led) > 1
        else exp.Coalesce(this=led[0], expressions=[exp.Literal.string("")])
    )
    return exp.Substring(this=joined, start=_number(str(len(str(separator.this)) + 1)))


def _length(node: exp.Expr, dialect: str, _: SourceText) -> exp.Expr | None:
    """LEN of T-SQL does not count the blanks at the end."""
    if dialect != "tsql":
        return None
    return exp.Length(this=exp.Trim(this=node.this, position="TRAILING"))


# --- types -------------------------------------------------------------------------------------------------------


def _type(node: exp.Expr, dialect: str, source: SourceText) -> None:
    kind = _TYPES.get(node.this, node.this)
    if kind is _DType.SMALLDATETIME or (kind is _DType.CHAR and dialect == "tsql"):
        raise differs(
            source, node, f"The type {node.this.value}", dialect, "Use DATETIME2 for times, and VARCHAR for text."
        )
    if dialect in ("tsql", "snowflake") and kind is _DType.FLOAT:
        kind = _DType.DOUBLE
    if kind in _SIZED:
        kind = _INTEGERS.get(dialect, kind)
    if (dialect, kind) in _LENGTHS and node.this is not _DType.BPCHAR and not node.expressions:
        node.set("expressions", [exp.DataTypeParam(this=_number(_LENGTHS[dialect, kind]))])
    if dialect in _ZONED and kind in (_DType.TIMESTAMPTZ, _DType.TIMESTAMPLTZ):
        kind = _DType.TIMESTAMP
    if kind is _DType.DECIMAL and len(node.expressions) < 2:
        digits = [str(part.name) for part in node.expressions] or list(map(str, _DECIMAL_SCALES.get(dialect, ())))
        kind = kind if digits else _DType.DOUBLE
        params = [*digits, "0"][:2] if digits else []
        node.set("expressions", [exp.DataTypeParam(this=_number(text)) for text in params])
    node.set("this", kind)


def _cast(node: exp.Expr, _: str, __: SourceText) -> exp.Expr | None:
    """Cut a text to the length of its type, which DuckDB ignores; blanks that fill up CHAR count in no comparison."""
    kind = node.args["to"]
    length = str(kind.expressions[0].name) if kind.this in _TEXTS and len(kind.expressions) == 1 else ""
    if not length.isdecimal():
        return None
    text: exp.Expr = type(node)(this=node.this, to=exp.DataType(this=_DType.TEXT), safe=node.args.get("safe"))
    text = text if int(length) > MAX_LENGTH else exp.Left(this=text, expression=_number(length))
    return exp.Trim(this=text, position="TRAILING") if kind.this is _DType.CHAR else text


def _convert(node: exp.Expr, dialect: str, source: SourceText) -> exp.Expr:
    cast = exp.Cast(this=node.expression, to=node.this)
    return _cast(cast, dialect, source) or cast


def _arg_extreme(node: exp.Expr, dialect: str, source: SourceText) -> exp.Expr | None:
    """MAX_BY and MIN_BY: in these dialects the value may be NULL, while DuckDB passes over such rows."""
    if node.args.get("count") is not None:
        raise source.error(
            node,
            "HB501",
            "A list of the first rows is not supported.",
            "Leave the number out, or use ROW_NUMBER() OVER (PARTITION BY id ORDER BY …) in a subquery.",
        )
    if dialect not in ("spark", "bigquery", "snowflake"):
        return None
    name = "arg_max_null" if isinstance(node, exp.ArgMax) else "arg_min_null"
    return exp.Anonymous(this=name, expressions=[node.this, node.expression])


def _select(node: exp.Expr, _: str, source: SourceText) -> None:
    spelling_calls.windows(node, source)
    spelling_clauses.select(node, source)


_REWRITERS: dict[Node, Rewriter] = {
    exp.ArgMin: _arg_extreme,
    exp.ArgMax: _arg_extreme,
    exp.Table: _table,
    exp.Column: _column,
    exp.Nvl2: _nvl2,
    exp.DecodeCase: _decode,
    exp.In: _row_in,
    exp.EQ: _row_eq,
    exp.NEQ: _row_eq,
    exp.Greatest: _extreme,
    exp.Least: _extreme,
    exp.SafeDivide: _divide,
    exp.Pi: lambda *_: _number("3.141592653589793"),
    exp.Degrees: _degrees,
    exp.Radians: _radians,
    exp.Concat: _concat,
    exp.ConcatWs: _concat_ws,
    exp.Length: _length,
    exp.DataType: _type,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Convert: _convert,
    **spelling_dates.REWRITERS,
    **spelling_calls.REWRITERS,
    **spelling_tables.REWRITERS,
    **spelling_clauses.REWRITERS,
    exp.Select: _select,
}
#: Nodes that may be replaced, so that none of their arguments may be unknown.
REWRITTEN = frozenset(_REWRITERS)


def _call(build: Callable[..., exp.Expr], least: int, most: int) -> Rewriter:
    """Rewrite a function that sqlglot has no class for, given the numbers of arguments that it takes."""

    def rewriter(node: exp.Expr, _: str, source: SourceText) -> exp.Expr:
        if not least <= len(node.expressions) <= most:
            raise source.error(
                node, "HB501", f"{quote(str(node.name))} has too many or too few arguments.", "Change the arguments."
            )
        return build(*node.expressions)

    return rewriter


#: Functions that sqlglot has no class for in some dialect, by name.
_NAMED: dict[str, Rewriter] = {
    "iff": _call(lambda a, b, c=None: exp.If(this=a, true=b, false=c), 2, 3),
    "isnull": _call(lambda a, b=None: paren(_is_null(a)) if b is None else exp.Coalesce(this=a, expressions=[b]), 1, 2),
    "zeroifnull": _call(lambda a: exp.Coalesce(this=a, expressions=[_number("0")]), 1, 1),
    "nullifzero": _call(lambda a: exp.Nullif(this=a, expression=_number("0")), 1, 1),
    "square": _call(lambda a: exp.Pow(this=a, expression=_number("2")), 1, 1),
    "mid": _call(lambda a, b, c=None: exp.Substring(this=a, start=b, length=c), 2, 3),
    "var": _call(lambda a: exp.Variance(this=a), 1, 1),
    "varp": _call(lambda a: exp.VariancePop(this=a), 1, 1),
    "regexp_substr": _call(lambda a, b: exp.Anonymous(this="regexp_extract", expressions=[a, b, _number("0")]), 2, 2),
    "every": _call(lambda a: exp.LogicalAnd(this=a), 1, 1),
    "std": _call(lambda a: exp.Stddev(this=a), 1, 1),
    "stdevp": _call(lambda a: exp.StddevPop(this=a), 1, 1),
    "regexp_contains": _call(lambda a, b: exp.RegexpLike(this=a, expression=b), 2, 2),
    "regexp_matches": _call(lambda a, b: exp.RegexpLike(this=a, expression=b), 2, 2),
    "count_big": _call(lambda a: exp.Count(this=a, big_int=True), 1, 1),
    **spelling_dates.NAMED,
}


# --- meaning that depends on types -------------------------------------------------------------------------------

_WHOLE = frozenset({*_SIZED, _DType.INT128})
_FRACTIONAL = (_DType.DOUBLE, _DType.FLOAT, _DType.DECIMAL)


def is_ambiguous(tree: exp.Expr, dialect: str) -> bool:
    """Tell whether the text of a tree leaves open what the binder decides by the dialect and the types of operands."""
    return dialect != "duckdb" and any(
        isinstance(node, exp.Div)
        or (isinstance(node, exp.Add) and dialect == "tsql")
        or (isinstance(node, exp.Cast) and node.to.this in _WHOLE)
        # lists with NULL, and the length of an empty list
        or isinstance(node, exp.ArrayContains | exp.ArrayOverlaps)
        or (isinstance(node, exp.ArraySize) and node.args.get("expression") is not None)
        for node in tree.walk()
    )


def settle(tree: exp.Expr, dialect: str, source: SourceText) -> exp.Expr:
    """Rewrite what DuckDB itself will run, over released or public rows, where the binder is not asked.

    Types are not known here, so what depends on them is written for all types, or refused.
    """
    rounding = {"spark": exp.Trunc, "tsql": exp.Trunc, "bigquery": exp.Round, "snowflake": exp.Round}.get(dialect)
    for node in reversed(list(tree.walk())) if dialect != "duckdb" else ():
        if isinstance(node, exp.Div) and node.args.get("typed") and not (_has_fraction(node)):
            raise differs(source, node, "A division of integers", dialect, "Write a * 1.0 / b, or FLOOR(a * 1.0 / b).")
        if isinstance(node, exp.Like | exp.ILike) and any(sign in node.expression.sql() for sign in "[\\"):
            raise differs(source, node, "This pattern of LIKE", dialect, "Use one LIKE for each character.")
        if isinstance(node, exp.Cast) and node.to.this in _WHOLE and rounding is not None:
            node.set("this", rounding(this=node.this))
    return tree


def _has_fraction(node: exp.Expr) -> bool:
    """Tell whether a number in an expression is certainly no integer, so that its division keeps the fraction."""
    if isinstance(node, exp.Cast):
        return node.to.this in _FRACTIONAL
    if isinstance(node, exp.Literal):
        return not node.is_string and not str(node.this).isdecimal()
    if isinstance(node, exp.Paren | exp.Neg):
        return _has_fraction(node.this)
    arithmetic = isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Div)
    return arithmetic and (_has_fraction(node.this) or _has_fraction(node.expression))
