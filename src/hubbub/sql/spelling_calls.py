"""Spellings of calls and of windows that stand for others: REGR_COUNT, APPROX_QUANTILES, = ANY, named windows.

Tested in tests/sql/test_spelling_calls.py.
"""

import re
from fractions import Fraction

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres

from hubbub.sql.nodes import Args, Node
from hubbub.sql.spelling_dates import Rewriter, differs, repeat
from hubbub.sql.text import SourceText, quote

_TWO: Args = {"this": None, "expression": None}
NODES: dict[Node, Args] = {
    exp.RegrCount: _TWO,
    exp.RegrAvgx: _TWO,
    exp.RegrAvgy: _TWO,
    exp.ApproxQuantiles: _TWO,
    exp.Bracket: {"this": None, "expressions": None, "offset": (0, 1), "safe": (True,)},
    exp.ToChar: {"this": None, "format": None},
    exp.Dayname: {"this": None, "abbreviated": (True,)},
    exp.Monthname: {"this": None, "abbreviated": (True,)},
    exp.Any: {"this": None},
    exp.RespectNulls: {"this": None},
    exp.SimilarTo: {"this": None, "expression": None},
    exp.RegexpExtract: dict.fromkeys(
        ("this", "expression", "group", "null_if_pos_overflow", "null_if_no_match", "empty_if_group_missing")
    ),
    exp.RegexpReplace: dict.fromkeys(("this", "expression", "replacement", "modifiers", "single_replace")),
}
#: Signs of SIMILAR TO that stand for any text and any character.
_WILDCARDS = {"%": "[\x01-\U0010ffff]*", "_": "[\x01-\U0010ffff]"}
#: The format of dates of Snowflake, which sqlglot does not translate, longest first.
_SNOWFLAKE = (
    *(("YYYY", "%Y"), ("HH24", "%H"), ("MON", "%b"), ("MM", "%m"), ("DD", "%d"), ("DY", "%a"), ("MI", "%M")),
    ("SS", "%S"),
)


def _present(*parts: exp.Expr) -> exp.Expr:
    tests = [exp.Not(this=exp.Is(this=part, expression=exp.Null())) for part in parts]
    return exp.Where(this=exp.and_(*tests, copy=False, wrap=False))


def _regression(node: exp.Expr, _: str, source: SourceText) -> exp.Expr:
    """REGR_COUNT, REGR_AVGX and REGR_AVGY(y, x): over the rows in which neither is NULL."""
    y, x = (repeat(node.args[name], source) for name in ("this", "expression"))
    if isinstance(node, exp.RegrCount):
        return exp.Filter(this=exp.Count(this=exp.Star()), expression=_present(y, x))
    averaged, other = (x, y) if isinstance(node, exp.RegrAvgx) else (y, x)
    return exp.Filter(this=exp.Avg(this=averaged), expression=_present(other))


def _element(node: exp.Expr, _: str, source: SourceText) -> exp.Expr | None:
    """APPROX_QUANTILES(x, n)[OFFSET(k)]: the quantile of level k/n."""
    lists, places = node.this, node.expressions
    if isinstance(lists, exp.Column):
        return None  # `sql.lists` decides
    numbers = [lists.args.get("expression") if isinstance(lists, exp.ApproxQuantiles) else None, *places]
    texts = [str(each.this) if isinstance(each, exp.Literal) else "" for each in numbers]
    if len(texts) != 2 or not all(text.isdecimal() and len(text) < 7 for text in texts) or int(texts[0]) == 0:
        raise source.error(
            node,
            "HB504",
            "Elements of lists are not supported, except one of APPROX_QUANTILES.",
            "Write APPROX_QUANTILES(x, 100)[OFFSET(90)].",
        )
    level = Fraction(int(texts[1]), int(texts[0]))
    return exp.ApproxQuantile(this=lists.this, quantile=exp.Literal.number(format(float(level), ".12g")))


def _quantiles(node: exp.Expr, _: str, source: SourceText) -> None:
    if not isinstance(node.parent, exp.Bracket):
        raise source.error(
            node,
            "HB504",
            "A list of quantiles is not supported in this form.",
            "Write one element, as in APPROX_QUANTILES(x, 100)[OFFSET(90)].",
        )


def any_of(node: exp.Expr, source: SourceText) -> exp.Expr | None:
    """Write x = ANY (ARRAY[…]) as IN; None for another comparison."""
    right = node.expression
    if not isinstance(right, exp.Any):
        return None
    listed = right.this.unnest() if isinstance(right.this, exp.Paren) else right.this
    if isinstance(listed, exp.Column) and isinstance(node, exp.EQ):
        return None  # `sql.lists` decides
    if not isinstance(listed, exp.Array) or not isinstance(node, exp.EQ):
        raise source.error(
            node, "HB503", "ANY compares with a constant list by = alone.", "Write x = ANY (ARRAY[1, 2]), or x IN (…)."
        )
    return exp.In(this=node.this, expressions=listed.expressions)


def _quantifier(node: exp.Expr, _: str, source: SourceText) -> None:
    if not isinstance(node.parent, exp.EQ | exp.NEQ):
        raise source.error(node, "HB503", f"{quote(node.key.upper())} is not supported here.", "Write x IN (…).")


def windows(node: exp.Expr, source: SourceText) -> None:
    """Write the definition of each named window after its OVER."""
    named = {str(window.this.name).lower(): window for window in node.args.get("windows") or []}
    if not named:
        return
    for window in [each for each in node.find_all(exp.Window) if each.args.get("alias") is not None]:
        if window.find_ancestor(exp.Select) is not node:
            continue
        definition = named.get(str(window.args["alias"].name).lower())
        if definition is None or definition.args.get("alias") is not None:
            raise source.error(window, "HB501", "This window has no definition.", "Write WINDOW w AS (…).")
        if any(window.args.get(name) for name in ("partition_by", "order", "spec")):
            raise source.error(
                window, "HB503", "A named window cannot be extended.", "Write the window after OVER in full."
            )
        for name in ("partition_by", "order", "spec"):
            part = definition.args.get(name)
            window.set(name, [each.copy() for each in part] if isinstance(part, list) else part and part.copy())
        window.set("alias", None)
    node.set("windows", None)


def _window(node: exp.Expr, _: str, source: SourceText) -> exp.Expr | None:
    """RATIO_TO_REPORT(x) OVER (…) is the share of x in its sum."""
    function = node.this
    if not isinstance(function, exp.Anonymous) or function.name.lower() != "ratio_to_report":
        return None
    if len(function.expressions) != 1 or node.args.get("order") is not None:
        raise source.error(node, "HB501", "RATIO_TO_REPORT takes one argument and no ORDER BY.", "Change the call.")
    whole = node.copy()
    whole.set("this", exp.Sum(this=function.expressions[0].copy()))
    share = exp.Div(this=exp.Paren(this=repeat(function.expressions[0], source)), expression=whole)
    return exp.Paren(this=share)


def _regexp_part(node: exp.Expr, dialect: str, source: SourceText) -> exp.Expr:
    """REGEXP_EXTRACT and REGEXP_SUBSTR: without a match an empty text in DuckDB and Spark, and NULL elsewhere."""
    group = node.args.get("group") or exp.Literal.number("1" if dialect == "spark" else "0")
    if dialect == "bigquery" and isinstance(node.expression, exp.Literal) and "(" in str(node.expression.this):
        group = exp.Literal.number("1")
    found = exp.Anonymous(this="regexp_extract", expressions=[node.this, node.expression, group])
    if dialect not in ("duckdb", "spark"):
        return found
    present = exp.Not(this=exp.Is(this=repeat(node.this, source), expression=exp.Null()))
    return exp.If(this=present, true=exp.Coalesce(this=found, expressions=[exp.Literal.string("")]))


def _regexp_replaced(node: exp.Expr, _: str, source: SourceText) -> exp.Expr:
    """REGEXP_REPLACE: of the first match in DuckDB and PostgreSQL unless it says 'g', and of all elsewhere."""
    flags = node.args.get("modifiers")
    flag = "" if flags is None else str(flags.this)
    if flag not in ("", "g") or (flags is not None and not isinstance(flags, exp.Literal)):
        raise source.error(node, "HB504", "The only flag of REGEXP_REPLACE that is supported is 'g'.", "Remove others.")
    every = exp.Boolean(this=flag == "g" or not node.args.get("single_replace"))
    new = node.args.get("replacement") or exp.Literal.string("")
    return exp.Anonymous(this="regexp_replace", expressions=[node.this, node.expression, new, every])


def _similar(node: exp.Expr, dialect: str, source: SourceText) -> exp.Expr:
    """SIMILAR TO: of the whole text; a regular expression in DuckDB, and one with the signs of LIKE in PostgreSQL."""
    pattern = str(node.expression.this) if isinstance(node.expression, exp.Literal) else ""
    if not (isinstance(node.expression, exp.Literal) and node.expression.is_string):
        raise source.error(node, "HB508", "The pattern of SIMILAR TO must be a constant.", "Write it in quotes.")
    if dialect not in ("duckdb", "postgres") or (dialect == "duckdb" and re.search(r"[%_]", pattern)):
        raise differs(
            source,
            node,
            "SIMILAR TO",
            dialect,
            "In DuckDB % and _ are no wildcards of it. Write LIKE, or REGEXP_LIKE(x, '^(a|b)[0-9]+$').",
        )
    if dialect == "postgres":
        if re.search(r"\\|\[[^\]]*[%_\[]", pattern):
            raise differs(source, node, "This pattern of SIMILAR TO", dialect, "Write REGEXP_LIKE(x, '^(a|b)[0-9]+$').")
        pattern = re.sub(r"[%_.^$]", lambda sign: _WILDCARDS.get(sign[0], f"\\{sign[0]}"), pattern)
    return exp.RegexpLike(this=node.this, expression=exp.Literal.string(f"^({pattern})$"))


def _date_text(node: exp.Expr, dialect: str, _: SourceText) -> exp.Expr | None:
    """Write formats of dates in DuckDB's letters; a conversion without a format is a cast."""
    form = node.args.get("format")
    if form is None:
        return exp.Cast(this=node.this, to=exp.DataType(this=exp.DType.TEXT))
    if not isinstance(form, exp.Literal):
        return None
    text = str(form.this).replace("strict", "")
    if isinstance(node, exp.ToChar) and dialect == "snowflake":
        text = text.upper()
        for word, field in _SNOWFLAKE:
            text = text.replace(word, field)
    elif isinstance(node, exp.ToChar) and dialect == "duckdb" and "%" not in text:
        # DuckDB has no TO_CHAR, so this is PostgreSQL's; names of months and days are filled up with blanks there
        read = Postgres.format_time(exp.Literal.string(text))
        text = text if read is None or re.search("%[aAbB]", str(read.this)) else str(read.this)
    return exp.TimeToStr(this=node.this, format=exp.Literal.string(text))


def _named_part(node: exp.Expr, _: str, __: SourceText) -> exp.Expr | None:
    if not node.args.get("abbreviated"):
        return None
    letter = "%b" if isinstance(node, exp.Monthname) else "%a"
    return exp.TimeToStr(this=node.this, format=exp.Literal.string(letter))


REWRITERS: dict[Node, Rewriter] = {
    **dict.fromkeys((exp.RegrCount, exp.RegrAvgx, exp.RegrAvgy), _regression),
    exp.Bracket: _element,
    exp.ApproxQuantiles: _quantiles,
    exp.Any: _quantifier,
    exp.Window: _window,
    exp.RegexpExtract: _regexp_part,
    exp.RegexpReplace: _regexp_replaced,
    exp.SimilarTo: _similar,
    exp.RespectNulls: lambda node, *_: node.this,
    exp.ToChar: _date_text,
    exp.TimeToStr: _date_text,
    exp.Dayname: _named_part,
    exp.Monthname: _named_part,
}
