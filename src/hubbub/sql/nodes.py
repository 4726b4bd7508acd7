"""The allow-list of SQL syntax nodes, and which function of `functions.py` each of them stands for.

Every class of node, every argument set on a node, and every value of such an argument must be listed here.

Tested in tests/sql/test_parse.py.
"""

from sqlglot import exp

Args = dict[str, tuple[object, ...] | None]
Node = type[exp.Expr]

_BINARY: Args = {"this": None, "expression": None}
_UNARY: Args = {"this": None}

#: Operators and functions: the node, the function that it stands for, and the node's arguments in order.
FUNCTION_NODES: dict[Node, tuple[str, tuple[str, ...]]] = {
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
    exp.Sin: ("sin", ("this",)),
    exp.Cos: ("cos", ("this",)),
    exp.Tan: ("tan", ("this",)),
    exp.Asin: ("asin", ("this",)),
    exp.Acos: ("acos", ("this",)),
    exp.Atan: ("atan", ("this",)),
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
    exp.Replace: ("replace", ("this", "expression", "replacement")),
    exp.SplitPart: ("split_part", ("this", "delimiter", "part_index")),
    exp.RegexpLike: ("regexp", ("this", "expression")),
    exp.StrToTime: ("parse_time", ("this", "format")),
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
    exp.DateFromParts: ("make_date", ("year", "month", "day")),
    exp.Hour: ("hour", ("this",)),
    exp.Minute: ("minute", ("this",)),
    exp.Second: ("second", ("this",)),
}

#: Functions for which sqlglot has no node class, by name.
FUNCTION_NAMES: dict[str, str] = {"prefix": "starts_with", "suffix": "ends_with", "btrim": "trim"} | {
    name: name for name in ("regexp_extract", "regexp_replace")
}

#: Date parts, as named in EXTRACT and date_part.
DATE_PARTS: dict[str, str] = {
    "year": "year",
    "quarter": "quarter",
    "month": "month",
    "week": "week",
    "day": "day",
    "doy": "dayofyear",
    "dayofyear": "dayofyear",
    "dow": "dow",
    "dayofweek": "dow",
    "isodow": "isodow",
    "hour": "hour",
    "minute": "minute",
    "second": "second",
}

#: Aggregates: the node, its name in `query.Aggregate`, and its number of arguments.
AGGREGATE_NODES: dict[Node, tuple[str, int]] = {
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
    exp.LogicalOr: ("bool_or", 1),
    exp.LogicalAnd: ("bool_and", 1),
    exp.Min: ("min", 1),
    exp.Max: ("max", 1),
    exp.ArgMin: ("arg_min", 2),
    exp.ArgMax: ("arg_max", 2),
}

#: Aggregates with special syntax, handled in `bind_aggregate_call`.
SPECIAL_AGGREGATES: tuple[Node, ...] = (
    exp.CountIf,
    exp.ApproxDistinct,
    exp.ApproxQuantile,
    exp.AnyValue,
    exp.IgnoreNulls,
    exp.Grouping,
    exp.GroupingId,
    exp.Quantile,
    exp.PercentileCont,
    exp.PercentileDisc,
    exp.Mode,
    exp.WithinGroup,
    exp.Filter,
)

#: Aggregates for which sqlglot has no node class, by name.
AGGREGATE_NAMES: dict[str, tuple[str, int]] = {
    "mean": ("avg", 1),
    "count_star": ("count", 0),
    "quantile_cont": ("quantile", 2),
    "quantile_disc": ("quantile", 2),
    "approx_percentile": ("quantile", 2),
    "arg_min_null": ("arg_min_null", 2),
    "arg_max_null": ("arg_max_null", 2),
}

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

_SET_OPERATION: Args = {**_BINARY, **dict.fromkeys(("distinct", "order", "limit", "with_", "by_name"))}

_STRUCTURE: dict[Node, Args] = {
    exp.Select: dict.fromkeys(
        ("with_", "expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset", "distinct")
    )
    | {"qualify": None},
    exp.Union: _SET_OPERATION,
    exp.Intersect: _SET_OPERATION,
    exp.Except: _SET_OPERATION,
    exp.Subquery: {"this": None, "alias": None, "joins": None},
    exp.With: {"expressions": None, "recursive": None},
    exp.CTE: {"this": None, "alias": None},
    exp.TableAlias: {"this": None, "columns": None},
    exp.Table: {"this": None, "alias": None, "db": None, "catalog": None, "joins": None},
    exp.Values: {"expressions": None, "alias": None},
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
    exp.Distinct: {"expressions": None, "on": None},
    exp.Exists: _UNARY,
    exp.Qualify: _UNARY,
    exp.Window: {**dict.fromkeys(("this", "partition_by", "order", "spec")), "over": ("OVER",)},
    exp.WindowSpec: {**dict.fromkeys(("start", "start_side", "end", "end_side")), "kind": ("ROWS", "RANGE")},
}

#: Functions of a window, each with its name and the arguments that follow the value.
WINDOW_NODES: dict[Node, tuple[str, tuple[str, ...]]] = {
    exp.RowNumber: ("row_number", ()),
    exp.Rank: ("rank", ()),
    exp.DenseRank: ("dense_rank", ()),
    exp.PercentRank: ("percent_rank", ()),
    exp.CumeDist: ("cume_dist", ()),
    exp.Ntile: ("ntile", ("this",)),
    exp.Lag: ("lag", ("this", "offset", "default")),
    exp.Lead: ("lead", ("this", "offset", "default")),
    exp.FirstValue: ("first_value", ("this",)),
    exp.LastValue: ("last_value", ("this",)),
    exp.NthValue: ("nth_value", ("this", "offset")),
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
    exp.Escape: _BINARY,
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
    exp.MonthsBetween: _BINARY,
    exp.TimestampTrunc: {"this": None, "unit": None},
    exp.DateDiff: {**_BINARY, "unit": None, "date_part_boundary": (True,)},
    exp.Anonymous: {"this": None, "expressions": None},
    exp.CountIf: _UNARY,
    exp.ApproxDistinct: _UNARY,
    exp.ApproxQuantile: {"this": None, "quantile": None},
    exp.AnyValue: _UNARY,
    exp.IgnoreNulls: _UNARY,
    exp.Grouping: {"expressions": None},
    exp.GroupingId: {"expressions": None},
    exp.Quantile: {"this": None, "quantile": None},
    exp.PercentileCont: _BINARY,
    exp.PercentileDisc: _BINARY,
    exp.Mode: _UNARY,
    exp.WithinGroup: _BINARY,
    exp.Filter: _BINARY,
}

#: Functions that write text, bound by `bind_text`.
TEXT_NODES: dict[Node, Args] = {
    exp.Pad: {"this": None, "expression": None, "fill_pattern": None, "is_left": None},
    exp.Repeat: {"this": None, "times": None},
    exp.TimeToStr: {"this": None, "format": None},
    exp.Dayname: _UNARY,
    exp.Monthname: _UNARY,
}

#: Every allowed node class with its allowed arguments and, unless None, the allowed values of each argument.
NODES: dict[Node, Args] = {
    **{node: dict.fromkeys(args) for node, (_, args) in FUNCTION_NODES.items()},
    **{node: dict.fromkeys(("this", "expression")[:count]) for node, (_, count) in AGGREGATE_NODES.items()},
    **{node: dict.fromkeys(args) for node, (_, args) in WINDOW_NODES.items()},
    **_CONSTANTS,
    **_STRUCTURE,
    **_SPECIAL,
    **TEXT_NODES,
}
NODES[exp.Div] |= {"typed": (True,)}
NODES[exp.DPipe] |= {"safe": (True,)}
NODES[exp.Count] |= {"big_int": (True,)}

_OPEN_SET_OPERATION: Args = _SET_OPERATION | {"offset": None}
_SPEC = ("kind", "start", "start_side", "end", "end_side", "exclude")

#: Structure that is also allowed where nothing but released and public rows is read. There any function is parsed;
#: `ordinary_sql` checks the names of those that will run.
OPEN_STRUCTURE: dict[Node, Args] = {
    exp.Union: _OPEN_SET_OPERATION,
    exp.Except: _OPEN_SET_OPERATION,
    exp.Intersect: _OPEN_SET_OPERATION,
    exp.Window: dict.fromkeys(("this", "partition_by", "order", "spec", "over", "alias")),
    exp.WindowSpec: dict.fromkeys(_SPEC),
    exp.IgnoreNulls: _UNARY,
    exp.RespectNulls: _UNARY,
    exp.In: NODES[exp.In] | {"is_global": None},
    exp.Escape: _BINARY,
    exp.Distinct: {"expressions": None, "on": None},
    exp.Order: {"this": None, "expressions": None},
}

_NAMED_FUNCTIONS = (
    "cast",
    "coalesce",
    "concat",
    "date_diff",
    "date_trunc",
    "extract",
    "greatest",
    "least",
    "log",
    "trim",
)
#: The names of all supported functions, for error messages.
CALLABLE = sorted(
    {name for node, (name, _) in FUNCTION_NODES.items() if issubclass(node, exp.Func)} | {*_NAMED_FUNCTIONS}
)
