"""Spellings of tables that stand for others: PIVOT and UNPIVOT, constant lists in UNNEST, series of numbers and days.

    FROM (SELECT site, year, cost FROM visits) PIVOT (SUM(cost) FOR year IN (1, 2))
    → FROM (SELECT site, SUM(cost) FILTER (WHERE year = 1) AS "1", … FROM (…) GROUP BY site)
    FROM (SELECT id, a, b FROM visits) UNPIVOT (x FOR what IN (a, b))
    → FROM (SELECT id, 'a' AS what, a AS x FROM (…) WHERE a IS NOT NULL UNION ALL SELECT id, 'b', b FROM (…) …)
    UNNEST([6, 12]) AS t(hour), generate_series(0, 23) AS t(hour) → (VALUES (6), (12)) AS t(hour), …

What comes out is bound as if it had been written, so nothing here needs a proof of privacy.

Tested in tests/sql/test_spelling_tables.py.
"""

from collections.abc import Iterator, Sequence
from datetime import date, timedelta

from sqlglot import exp

from hubbub.core.schema import Kind
from hubbub.sql import dates
from hubbub.sql.nodes import Args, Node
from hubbub.sql.spelling_dates import Rewriter
from hubbub.sql.text import SourceText
from hubbub.sql.tokens import ONE_ROW_EACH

#: Maximum number of rows of a series, and of columns of a PIVOT.
MAX_SERIES = 1_000
MAX_COLUMNS = 50
#: Arguments that sqlglot sets on a PIVOT and that are not read: how its dialect names columns.
_NAMING = (
    *("columns", "identify_pivot_strings", "prefixed_pivot_columns", "pivot_column_naming", "value_columns_first"),
    "default_on_null",
)

NODES: dict[Node, Args] = {
    exp.Pivot: dict.fromkeys(("this", "expressions", "using", "group", "fields", "unpivot", "alias", *_NAMING)),
    exp.PivotAlias: {"this": None, "alias": None},
    exp.Unnest: {"expressions": None, "alias": None},
    exp.Explode: {"this": None},
    exp.ArrayContains: {"this": None, "expression": None},
    exp.ArrayContainsAll: {"this": None, "expression": None},
    exp.ArrayOverlaps: {"this": None, "expression": None},
    exp.ArraySize: {"this": None, "expression": None},
    exp.GenerateSeries: {"start": None, "end": None, "step": None, "is_end_exclusive": (True,)},
    exp.ExplodingGenerateSeries: {"start": None, "end": None, "step": None},
    exp.GenerateDateArray: {"start": None, "end": None, "step": None},
}


def as_query(tree: exp.Expr) -> exp.Expr:
    """Return the query of a PIVOT statement; another tree stays as it is."""
    if not isinstance(tree, exp.Pivot) or tree.args.get("unpivot"):
        return tree
    return exp.Select(expressions=[exp.Star()], from_=exp.From(this=exp.Subquery(this=tree)))


# --- PIVOT and UNPIVOT -------------------------------------------------------------------------------------------


def _pivoted(node: exp.Expr, dialect: str, source: SourceText) -> exp.Expr | None:
    """Rewrite a subquery that is followed by PIVOT or UNPIVOT."""
    pivots = node.args.get("pivots") or []
    if not pivots:
        return None
    pivot, inner = pivots[0], node.copy()
    if len(pivots) > 1 or len(pivot.args.get("fields") or []) != 1:
        raise source.error(
            pivot, "HB503", "Several PIVOT of one table are not supported.", "Put the first into a subquery."
        )
    inner.set("pivots", None)
    if pivot.args.get("unpivot"):
        query = _unpivot(inner, pivot, dialect, source)
    else:
        query = _pivot(inner, pivot, pivot.expressions, pivot.args["fields"][0], None, dialect, source)
    alias = pivot.args.get("alias") or node.args.get("alias")
    names = [] if alias is None else alias.args.get("columns") or []
    if names and isinstance(query, exp.Select):
        if len(names) != len(query.expressions):
            raise source.error(
                pivot, "HB507", "The alias of this PIVOT has too many or too few columns.", "Name all columns."
            )
        query.set(
            "expressions",
            [exp.alias_(part.unalias(), name.copy()) for part, name in zip(query.expressions, names, strict=True)],
        )
    named = None if alias is None else exp.TableAlias(this=alias.this)
    return exp.Subquery(this=query, alias=named, joins=node.args.get("joins"))


def _statement(node: exp.Expr, dialect: str, source: SourceText) -> exp.Expr | None:
    """Rewrite PIVOT t ON x IN (…) USING SUM(y) GROUP BY z."""
    if node.this is None:
        return None  # it follows a table
    fields, group = node.expressions, node.args.get("group")
    if len(fields) != 1 or not isinstance(fields[0], exp.In) or not node.args.get("using"):
        raise source.error(
            node,
            "HB503",
            "This PIVOT would read its columns from the data.",
            "List the values of one column, as in PIVOT t ON year IN (1, 2) USING SUM(cost) GROUP BY site.",
        )
    keys = None if group is None else list(group.expressions)
    return _pivot(node.this, node, node.args["using"], fields[0], keys, dialect, source)


def _pivot(
    inner: exp.Expr,
    node: exp.Expr,
    aggregates: Sequence[exp.Expr],
    field: exp.Expr,
    keys: list[exp.Expr] | None,
    dialect: str,
    source: SourceText,
) -> exp.Select:
    """Write one aggregate with FILTER for each value; the other columns are the keys."""
    values = field.expressions
    constants = [value.this if isinstance(value, exp.PivotAlias | exp.Alias) else value for value in values]
    plain = all(isinstance(each, exp.Column if dialect == "tsql" else exp.Literal) for each in constants)
    if not plain or len(aggregates) * len(values) > MAX_COLUMNS or not values or field.args.get("query") is not None:
        raise source.error(
            node, "HB503", f"A PIVOT has a list of at most {MAX_COLUMNS} constant values.", "List fewer values."
        )
    if keys is None:
        used = {column.name.lower() for part in (*aggregates, field.this) for column in part.find_all(exp.Column)}
        keys = [exp.column(name.copy()) for name in _names(inner, node, source) if name.name.lower() not in used]
    items = [key.copy() for key in keys]
    for value in values:
        for aggregate in aggregates:
            items.append(_filtered(aggregate, field.this, value, dialect, alone=len(aggregates) == 1))
    query = exp.Select(expressions=items, from_=exp.From(this=inner))
    if keys:
        query.set("group", exp.Group(expressions=[key.copy() for key in keys]))
    return query


def _filtered(aggregate: exp.Expr, column: exp.Expr, value: exp.Expr, dialect: str, *, alone: bool) -> exp.Expr:
    constant = value.this if isinstance(value, exp.PivotAlias | exp.Alias) else value
    label = value.alias if constant is not value else str(constant.name)
    if isinstance(constant, exp.Column):
        constant = exp.Literal.string(constant.name)  # [2021] of T-SQL
    elif constant is value and dialect == "snowflake" and constant.is_string:
        label = f"'{label}'"
    if dialect == "bigquery" and label[:1].isdigit():
        label = f"_{label}"
    prefix = aggregate.alias if isinstance(aggregate, exp.Alias) else ""
    if prefix and not (alone and dialect == "spark"):
        label = f"{prefix}_{label}" if dialect == "bigquery" else f"{label}_{prefix}"
    elif not alone:
        label = f"{label}_{aggregate.sql(dialect='duckdb').lower()}"
    test = exp.EQ(this=column.copy(), expression=constant.copy())
    kept = exp.Filter(this=aggregate.unalias().copy(), expression=exp.Where(this=test))
    return exp.alias_(kept, label, quoted=True)


def _unpivot(inner: exp.Expr, pivot: exp.Expr, dialect: str, source: SourceText) -> exp.Expr:
    """Write one SELECT for each column, united; rows whose value is NULL are left out."""
    field, amounts = pivot.args["fields"][0], pivot.expressions
    listed = field.expressions
    plain = all(isinstance(part, exp.Column | exp.Alias | exp.PivotAlias) for part in listed)
    if len(amounts) != 1 or not plain or len(listed) > MAX_COLUMNS:
        raise source.error(
            pivot, "HB503", "This UNPIVOT is not supported.", "Write UNPIVOT (x FOR what IN (a, b)), or UNION ALL."
        )
    columns = {
        part.unalias().name.lower() if isinstance(part, exp.Alias) else _column(part).name.lower() for part in listed
    }
    others = [name for name in _names(inner, pivot, source) if name.name.lower() not in columns]
    sides = list[exp.Expr]()
    for part in listed:
        column = _column(part)
        label = part.alias if part is not column else column.name
        if dialect == "snowflake" and part is column and not column.this.args.get("quoted"):
            label = label.upper()
        present = exp.Not(this=exp.Is(this=column.copy(), expression=exp.Null()))
        items: list[exp.Expr] = [exp.column(name.copy()) for name in others]
        items.append(exp.alias_(exp.Literal.string(label), field.this.name))
        items.append(exp.alias_(column.copy(), amounts[0].name))
        sides.append(exp.Select(expressions=items, from_=exp.From(this=inner.copy()), where=exp.Where(this=present)))
    query = sides[0]
    for side in sides[1:]:
        query = exp.Union(this=query, expression=side, distinct=False)
    return query


def has_name(item: exp.Expr) -> bool:
    """Tell whether an item of SELECT has a name in every dialect: an alias, or that of a column."""
    return isinstance(item, exp.Alias | exp.Column) and not item.is_star and bool(item.alias_or_name)


def _column(part: exp.Expr) -> exp.Expr:
    return part.this if isinstance(part, exp.Alias | exp.PivotAlias) else part


def _names(inner: exp.Expr, node: exp.Expr, source: SourceText) -> list[exp.Identifier]:
    """List the columns of a subquery, which must name them."""
    query = inner.this if isinstance(inner, exp.Subquery) else None
    while isinstance(query, exp.SetOperation):
        query = query.this
    items = query.expressions if isinstance(query, exp.Select) else []
    if not items or not all(map(has_name, items)):
        raise source.error(
            node,
            "HB503",
            "PIVOT and UNPIVOT group by all other columns, so these must be named.",
            "Name them in a subquery, as in FROM (SELECT site, year, cost FROM visits) PIVOT (…).",
        )
    return [
        item.args["alias"] if isinstance(item, exp.Alias) else exp.to_identifier(item.alias_or_name) for item in items
    ]


def table(node: exp.Expr, _: str, source: SourceText) -> exp.Expr | None:
    """Rewrite generate_series(…) in FROM; a table followed by PIVOT needs a subquery that names its columns."""
    if node.args.get("pivots"):
        _names(node, node.args["pivots"][0], source)
    if isinstance(node.this, exp.GenerateSeries | exp.ExplodingGenerateSeries | exp.GenerateDateArray):
        return _values(node, _series(node.this, source), node.args.get("alias"))
    return None


# --- lists and series --------------------------------------------------------------------------------------------


def _unnest(node: exp.Expr, _: str, source: SourceText) -> exp.Expr | None:
    """Write a constant list, or a series, as VALUES; of a column, `sql.lists` decides."""
    listed = node.expressions[0] if len(node.expressions) == 1 else None
    alias = node.args.get("alias")
    in_from = isinstance(node.parent, exp.From | exp.Join)
    if in_from and isinstance(listed, exp.GenerateSeries | exp.ExplodingGenerateSeries | exp.GenerateDateArray):
        return _values(node, _series(listed, source), alias)
    if in_from and isinstance(listed, exp.Array) and listed.expressions:
        return _values(node, [part.copy() for part in listed.expressions], alias)
    if isinstance(listed, exp.Column) and isinstance(node.parent, exp.Join | exp.Lateral):
        return None
    raise source.error(node, "HB503", "UNNEST reads a list in FROM, after the table that it belongs to.", ONE_ROW_EACH)


def _values(node: exp.Expr, items: Sequence[exp.Expr], alias: exp.Expr | None) -> exp.Expr:
    columns = [] if alias is None else alias.args.get("columns") or []
    name = None if alias is None else alias.this
    if name is not None and not columns:
        columns = [name]  # UNNEST(…) AS x and generate_series(…) AS x name the column as well
    columns = columns or [exp.to_identifier("generate_series" if isinstance(node, exp.Table) else "unnest")]
    table = name if name is not None else exp.to_identifier(f"{columns[0].name}_list")
    named = exp.TableAlias(this=table.copy(), columns=[column.copy() for column in columns])
    values = exp.Values(expressions=[exp.Tuple(expressions=[item]) for item in items], alias=named)
    values.meta.update(node.meta)
    return values


def _only_in_from(node: exp.Expr, _: str, source: SourceText) -> None:
    if not isinstance(node.parent, exp.Table | exp.Unnest):
        raise source.error(
            node, "HB503", "A series is supported in FROM alone.", "Write FROM generate_series(0, 23) AS t(hour)."
        )


def _series(node: exp.Expr, source: SourceText) -> list[exp.Expr]:
    """Write out a series of whole numbers or of days."""
    start, end, step = (node.args.get(name) for name in ("start", "end", "step"))
    if node.args.get("is_end_exclusive") and end is None:
        start, end = exp.Literal.number("0"), start
    number = [_whole(part) for part in (start, end)]
    by = 1 if step is None else _whole(step)
    last = 1 if node.args.get("is_end_exclusive") else 0
    if None not in number and by:
        first, final = (int(each or 0) for each in number)
        final -= last * (1 if by > 0 else -1)
        count = (final - first) // by + 1
        if 0 < count <= MAX_SERIES:
            return [_integer(first + place * by) for place in range(count)]
    day = [_day(part) for part in (start, end)]
    if day[0] is not None and day[1] is not None:
        days = list(_days(day[0], day[1], step))
        days = days[:-1] if last and days[-1:] == [day[1]] else days
        if 0 < len(days) <= MAX_SERIES:
            return [
                exp.Cast(this=exp.Literal.string(each.isoformat()), to=exp.DataType(this=exp.DType.DATE))
                for each in days
            ]
    raise source.error(
        node,
        "HB508",
        f"A series consists of 1 to {MAX_SERIES:,} constant whole numbers or days.",
        "Write generate_series(0, 23), or generate_series(DATE '2024-01-01', DATE '2024-12-31', INTERVAL 1 MONTH).",
    )


def _whole(part: exp.Expr | None) -> int | None:
    sign = 1
    while isinstance(part, exp.Paren | exp.Neg):
        sign, part = -sign if isinstance(part, exp.Neg) else sign, part.this
    text = str(part.this) if isinstance(part, exp.Literal) and not part.is_string else ""
    return sign * int(text) if text.isdecimal() and len(text) < 16 else None


def _integer(value: int) -> exp.Expr:
    number = exp.Literal.number(str(abs(value)))
    return exp.Neg(this=number) if value < 0 else number


def _day(part: exp.Expr | None) -> date | None:
    while isinstance(part, exp.Paren | exp.Cast):
        part = part.this
    text = str(part.this) if isinstance(part, exp.Literal) and part.is_string else ""
    return dates.parse(text, Kind.DATE)


def _days(first: date, last: date, step: exp.Expr | None) -> Iterator[date]:
    size, unit = 1, "day"
    if isinstance(step, exp.Interval):
        size, unit = (
            _whole(exp.Literal.number(str(step.this.name))) or 0,
            str(step.args["unit"].name).lower().rstrip("s"),
        )
    months = {"month": 1, "quarter": 3, "year": 12}.get(unit, 0) * size
    length = {"day": 1, "week": 7}.get(unit, 0) * size
    if months + length <= 0 or (months and first.day > 28):
        return
    for place in range(MAX_SERIES + 1):
        month = first.month - 1 + place * months
        year = first.year + month // 12
        if year > dates.LAST.year or place * length > (dates.LAST - first).days:
            return
        day = first.replace(year=year, month=month % 12 + 1) + timedelta(days=place * length)
        if day > last:
            return
        yield day


REWRITERS: dict[Node, Rewriter] = {
    exp.Subquery: _pivoted,
    exp.Pivot: _statement,
    exp.Unnest: _unnest,
    exp.GenerateSeries: _only_in_from,
    exp.ExplodingGenerateSeries: _only_in_from,
    exp.GenerateDateArray: _only_in_from,
}
