"""The words, clauses and nodes of SQL that a query may be written with, and how they spell the functions of the list.

Whatever is not here is refused: a kind of token, a class of node, an argument set on a node, a value of such an
argument. The functions themselves, with what each does on any value, are in `functions.py`.
"""

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType as T

Args = dict[str, tuple[object, ...] | None]
Node = type[exp.Expr]

#: Words that begin something other than a question.
COMMANDS = frozenset(
    {
        T.ALTER, T.ANALYZE, T.ATTACH, T.BEGIN, T.CACHE, T.COMMAND, T.COMMIT, T.COPY, T.CREATE, T.DELETE, T.DESCRIBE,
        T.DETACH, T.DROP, T.EXECUTE, T.EXPORT, T.GRANT, T.INSERT, T.INSTALL, T.INTO, T.KILL, T.LOAD, T.LOCK, T.MERGE,
        T.PRAGMA, T.REFRESH, T.RENAME, T.REVOKE, T.ROLLBACK, T.SET, T.SHOW, T.SUMMARIZE, T.TRUNCATE, T.UPDATE, T.USE,
    }
)  # fmt: skip

_SIGNS = {
    T.L_PAREN, T.R_PAREN, T.L_BRACKET, T.R_BRACKET, T.COMMA, T.DOT, T.DASH, T.PLUS, T.STAR, T.SLASH, T.DIV, T.MOD,
    T.CARET, T.DSTAR, T.LT, T.LTE, T.GT, T.GTE, T.EQ, T.NEQ, T.DPIPE, T.DCOLON, T.SEMICOLON, T.PARAMETER, T.PLACEHOLDER,
}  # fmt: skip
_CLAUSES = {
    T.ALIAS, T.ALL, T.ASC, T.CUBE, T.DESC, T.DISTINCT, T.FETCH, T.FILTER, T.FIRST, T.FROM, T.GROUP_BY, T.GROUPING_SETS,
    T.HAVING, T.INNER, T.JOIN, T.LEFT, T.LIMIT, T.ON, T.ONLY, T.ORDER_BY, T.OUTER, T.RIGHT, T.ROLLUP, T.ROW, T.ROWS,
    T.SELECT, T.UNION, T.USING, T.WHERE, T.WITH, T.FULL, T.CROSS, T.NATURAL, T.OFFSET, T.RECURSIVE, T.EXISTS, T.OVER,
    T.INTERSECT, T.EXCEPT, T.PARTITION_BY, T.LATERAL, T.VALUES, T.ANTI, T.SEMI, T.FOR,
}  # fmt: skip
_EXPRESSIONS = {
    T.AND, T.OR, T.NOT, T.BETWEEN, T.CASE, T.WHEN, T.THEN, T.ELSE, T.END, T.IN, T.IS, T.ISNULL, T.NOTNULL, T.LIKE,
    T.ILIKE, T.NULL, T.TRUE, T.FALSE, T.INTERVAL, T.ARRAY, T.STRING, T.NUMBER, T.IDENTIFIER, T.VAR, T.YEAR, T.REPLACE,
}  # fmt: skip
#: Words for types.
TYPE_TOKENS = {
    T.BOOLEAN, T.TINYINT, T.SMALLINT, T.INT, T.BIGINT, T.INT128, T.FLOAT, T.DOUBLE, T.DECIMAL, T.CHAR, T.VARCHAR,
    T.TEXT, T.BPCHAR, T.TIMESTAMP, T.TIMESTAMPNTZ, T.TIMESTAMPTZ, T.DATETIME, T.DATE, T.TIME, T.UUID, T.NAME,
    T.UBIGINT, T.UINT, T.USMALLINT, T.UTINYINT,
}  # fmt: skip

#: Kinds of token that may occur. Some only so that the node they make is refused with a better reason.
TOKENS = frozenset(_SIGNS | _CLAUSES | _EXPRESSIONS | TYPE_TOKENS)

#: Words that mean something in statements or clauses that are never answered, and are names everywhere else.
PLAIN_NAMES = frozenset(
    {
        T.COMMENT, T.FORMAT, T.FUNCTION, T.INDEX, T.OBJECT, T.PERCENT, T.PROCEDURE, T.SEQUENCE, T.SESSION, T.VECTOR,
        T.VIEW,
    }
)  # fmt: skip

#: Why some words are refused, and what to write instead.
REASONS: dict[T, tuple[str, str]] = {
    T.COLLATE: ("would compare text by other rules than byte by byte", "Compare lower(x) with lower-case text."),
    T.TABLE_SAMPLE: ("takes a sample, which the noise does not allow for", "Leave it out: the answer covers all rows."),
    T.QUALIFY: ("filters by window functions, which look across people", "Use GROUP BY and HAVING."),
    T.WINDOW: ("names a window, which looks across people", "Use GROUP BY; for each person, a sub-query."),
    T.PIVOT: ("turns values into columns", "Write one aggregate with FILTER (WHERE …) for each column."),
    T.UNPIVOT: ("turns columns into rows", "Write UNION ALL of sub-queries."),
    T.COLON: ("is not answered: parameters are ? or $1", "Write ? or $1 and hand in the values in order."),
    T.HEREDOC_STRING: ("is a string between dollars", "Write it in single quotes."),
    T.BYTE_STRING: ("is a string with escapes", "Write it in plain single quotes, or pass it as a parameter."),
    T.HEX_STRING: ("is a hexadecimal constant", "Write a decimal number or a plain string."),
    T.TILDE: ("matches a regular expression", "Use LIKE with a constant pattern."),
    T.SIMILAR_TO: ("matches a regular expression", "Use LIKE with a constant pattern."),
    T.ESCAPE: ("gives LIKE an escape character", "Use starts_with, ends_with or contains."),
    T.CURRENT_DATE: ("changes, so the answer could not be repeated", "Write the date, or use a parameter."),
    T.CURRENT_TIMESTAMP: ("changes, so the answer could not be repeated", "Write the time, or use a parameter."),
    T.ANY: ("is not answered", "Write x IN (…)."),
    T.UNNEST: ("makes several rows of one", "Use a public table instead."),
}  # fmt: skip

_BINARY: Args = {"this": None, "expression": None}
_UNARY: Args = {"this": None}

#: Operators and functions: the node, the function of the list that it spells, and the node's arguments in order.
SPELLED: dict[Node, tuple[str, tuple[str, ...]]] = {
    exp.Mul: ("mul", ("this", "expression")),
    exp.Div: ("div", ("this", "expression")),
    exp.IntDiv: ("intdiv", ("this", "expression")),
    exp.Mod: ("mod", ("this", "expression")),
    exp.Pow: ("power", ("this", "expression")),
    exp.Abs: ("abs", ("this",)),
    exp.Sign: ("sign", ("this",)),
    exp.Floor: ("floor", ("this",)),
    exp.Ceil: ("ceil", ("this",)),
    exp.Trunc: ("trunc", ("this",)),
    exp.Round: ("round", ("this", "decimals")),
    exp.Sqrt: ("sqrt", ("this",)),
    exp.Ln: ("ln", ("this",)),
    exp.Exp: ("exp", ("this",)),
    exp.WidthBucket: ("width_bucket", ("this", "min_value", "max_value", "num_buckets")),
    exp.EQ: ("eq", ("this", "expression")),
    exp.NEQ: ("ne", ("this", "expression")),
    exp.LT: ("lt", ("this", "expression")),
    exp.LTE: ("le", ("this", "expression")),
    exp.GT: ("gt", ("this", "expression")),
    exp.GTE: ("ge", ("this", "expression")),
    exp.NullSafeNEQ: ("is_distinct", ("this", "expression")),
    exp.Between: ("between", ("this", "low", "high")),
    exp.Not: ("not", ("this",)),
    exp.Nullif: ("nullif", ("this", "expression")),
    exp.Lower: ("lower", ("this",)),
    exp.Upper: ("upper", ("this",)),
    exp.Length: ("length", ("this",)),
    exp.DPipe: ("concat", ("this", "expression")),
    exp.Substring: ("substr", ("this", "start", "length")),
    exp.Left: ("left", ("this", "expression")),
    exp.Right: ("right", ("this", "expression")),
    exp.StrPosition: ("strpos", ("this", "substr")),
    exp.StartsWith: ("starts_with", ("this", "expression")),
    exp.EndsWith: ("ends_with", ("this", "expression")),
    exp.Contains: ("contains", ("this", "expression")),
    exp.Year: ("year", ("this",)),
    exp.Quarter: ("quarter", ("this",)),
    exp.Month: ("month", ("this",)),
    exp.Week: ("week", ("this",)),
    exp.WeekOfYear: ("week", ("this",)),
    exp.Day: ("day", ("this",)),
    exp.DayOfMonth: ("day", ("this",)),
    exp.DayOfYear: ("dayofyear", ("this",)),
    exp.DayOfWeek: ("dow", ("this",)),
    exp.DayOfWeekIso: ("isodow", ("this",)),
    exp.Hour: ("hour", ("this",)),
    exp.Minute: ("minute", ("this",)),
    exp.Second: ("second", ("this",)),
}

#: Functions that the reader does not know by a node of their own, by name.
NAMED: dict[str, str] = {"prefix": "starts_with", "suffix": "ends_with", "btrim": "trim"}

#: Parts of dates as EXTRACT and date_part name them.
PARTS: dict[str, str] = {
    "year": "year", "quarter": "quarter", "month": "month", "week": "week", "day": "day", "doy": "dayofyear",
    "dayofyear": "dayofyear", "dow": "dow", "dayofweek": "dow", "isodow": "isodow", "hour": "hour", "minute": "minute",
    "second": "second",
}  # fmt: skip

#: Aggregates: the node, its name in `query.Aggregate`, and how many values it is over.
AGGREGATES: dict[Node, tuple[str, int]] = {
    exp.Count: ("count", 1),
    exp.Sum: ("sum", 1),
    exp.Avg: ("avg", 1),
    exp.VariancePop: ("var_pop", 1),
    exp.Variance: ("var_samp", 1),
    exp.StddevPop: ("stddev_pop", 1),
    exp.Stddev: ("stddev_samp", 1),
    exp.StddevSamp: ("stddev_samp", 1),
    exp.CovarPop: ("covar_pop", 2),
    exp.CovarSamp: ("covar_samp", 2),
    exp.Corr: ("corr", 2),
    exp.RegrSlope: ("regr_slope", 2),
    exp.RegrIntercept: ("regr_intercept", 2),
    exp.RegrR2: ("regr_r2", 2),
    exp.Median: ("quantile", 1),
    exp.Min: ("min", 1),
    exp.Max: ("max", 1),
}

#: Aggregates with a syntax of their own; `bind_aggregates` reads them.
ODD_AGGREGATES: tuple[Node, ...] = (
    exp.CountIf, exp.Quantile, exp.PercentileCont, exp.PercentileDisc, exp.Mode, exp.WithinGroup, exp.Filter,
)  # fmt: skip

#: Aggregates that the reader knows by name alone.
NAMED_AGGREGATES: dict[str, tuple[str, int]] = {
    "mean": ("avg", 1), "count_star": ("count", 0), "quantile_cont": ("quantile", 2), "quantile_disc": ("quantile", 2),
}  # fmt: skip

_CONSTANTS: dict[Node, Args] = {
    exp.Literal: {"this": None, "is_string": None},
    exp.Boolean: _UNARY,
    exp.Null: {},
    exp.Placeholder: _UNARY,
    exp.Parameter: _UNARY,
    exp.Interval: {"this": None, "unit": None},
    exp.Var: _UNARY,
    exp.Array: {"expressions": None, "bracket_notation": None},
    exp.DataType: {"this": None, "expressions": None},
    exp.DataTypeParam: _UNARY,
}

_STRUCTURE: dict[Node, Args] = {
    exp.Select: dict.fromkeys(
        ("with_", "expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset", "distinct")
    ),
    exp.Union: {**_BINARY, **dict.fromkeys(("distinct", "order", "limit", "with_", "by_name"))},
    exp.Subquery: {"this": None, "alias": None},
    exp.With: {"expressions": None, "recursive": None},
    exp.CTE: {"this": None, "alias": None},
    exp.TableAlias: {"this": None, "columns": None},
    exp.Table: {"this": None, "alias": None, "db": None, "catalog": None},
    exp.Identifier: {"this": None, "quoted": None},
    exp.Column: {"this": None, "table": None},
    exp.Alias: {"this": None, "alias": None},
    exp.Star: {},
    exp.From: _UNARY,
    exp.Join: dict.fromkeys(("this", "on", "using", "side", "kind", "method")),
    exp.Where: _UNARY,
    exp.Group: {"expressions": None, "all": (True,)},
    exp.Rollup: {"expressions": None},
    exp.Cube: {"expressions": None},
    exp.GroupingSets: {"expressions": None},
    exp.Tuple: {"expressions": None},
    exp.Paren: _UNARY,
    exp.Having: _UNARY,
    exp.Order: {"expressions": None},
    exp.Ordered: {"this": None, "desc": None, "nulls_first": None},
    exp.Limit: {"expression": None},
    exp.Offset: {"expression": None},
    exp.Fetch: {"direction": ("FIRST", "NEXT"), "count": None, "limit_options": None},
    exp.LimitOptions: {"rows": (True,)},
    exp.Distinct: {"expressions": None},
    exp.Exists: _UNARY,
}

_SPECIAL: dict[Node, Args] = {
    exp.Add: _BINARY,
    exp.Sub: _BINARY,
    exp.Neg: _UNARY,
    exp.Log: _BINARY,
    exp.And: _BINARY,
    exp.Or: _BINARY,
    exp.NullSafeEQ: _BINARY,
    exp.Is: {**_BINARY, "negate": (True,)},
    exp.In: {"this": None, "expressions": None, "query": None},
    exp.Like: {**_BINARY, "negate": (True,)},
    exp.ILike: {**_BINARY, "negate": (True,)},
    exp.Case: {"this": None, "ifs": None, "default": None},
    exp.If: {"this": None, "true": None, "false": None},
    exp.Coalesce: {"this": None, "expressions": None},
    exp.Greatest: {"this": None, "expressions": None, "ignore_nulls": (True,)},
    exp.Least: {"this": None, "expressions": None, "ignore_nulls": (True,)},
    exp.Trim: {"this": None, "position": ("LEADING", "TRAILING", "BOTH")},
    exp.Concat: {"expressions": None, "safe": (True,), "coalesce": (True,)},
    exp.Cast: {"this": None, "to": None},
    exp.TryCast: {"this": None, "to": None, "safe": (True,)},
    exp.Extract: _BINARY,
    exp.TimestampTrunc: {"this": None, "unit": None},
    exp.DateDiff: {**_BINARY, "unit": None, "date_part_boundary": (True,)},
    exp.Anonymous: {"this": None, "expressions": None},
    exp.CountIf: _UNARY,
    exp.Quantile: {"this": None, "quantile": None},
    exp.PercentileCont: _BINARY,
    exp.PercentileDisc: _BINARY,
    exp.Mode: _UNARY,
    exp.WithinGroup: _BINARY,
    exp.Filter: _BINARY,
}

#: Every class of node that may occur, with the arguments that may be set on it and, where not any, their values.
NODES: dict[Node, Args] = {
    **{node: dict.fromkeys(args) for node, (_, args) in SPELLED.items()},
    **{node: dict.fromkeys(("this", "expression")[:count]) for node, (_, count) in AGGREGATES.items()},
    **_CONSTANTS,
    **_STRUCTURE,
    **_SPECIAL,
}
NODES[exp.Div] |= {"typed": (True,)}
NODES[exp.DPipe] |= {"safe": (True,)}
NODES[exp.Count] |= {"big_int": (True,)}
