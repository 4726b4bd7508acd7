"""Bound the work for one row: the length of every text and the size of every expression are limited.

If one person's row could take a thousand times as long as another's, an analyst could learn about that person from
whether the query finishes in time. Texts that functions read are therefore truncated to `MAX_TEXT_LENGTH` characters at
the scan, and three bounds are computed from the query alone, before anything is charged:

  size    characters of the expression as the engine gets it, with its columns expanded
  steps   characters of text that functions read, for one row
  built   characters of text that `||` produces, for one row

Text that a dialect repeats (a guard writes its operand two or three times) counts each time.
Texts that are only keys, counted, or compared with constants are not truncated: they are read once.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from hubbub.core.schema import Kind
from hubbub.errors import QueryError
from hubbub.sql import fanout, render
from hubbub.sql.aggregates.table import aggregate_function
from hubbub.sql.dialects.base import Dialect
from hubbub.sql.expressions import Col, Expr, FunctionCall, Literal
from hubbub.sql.patterns import size_of
from hubbub.sql.prune import names
from hubbub.sql.query import Query
from hubbub.sql.relations import (
    MAX_TEXT_LENGTH,
    Filter,
    Join,
    PerUnit,
    Project,
    Rel,
    Scan,
    Truncate,
    Union,
    UnitWindow,
    columns,
    public,
    window_expressions,
)

#: DuckDB takes about 100 µs per row for such an expression, and checks for interrupts every 2,048 rows.
MAX_SIZE = 500_000
#: Over all expressions of a query, each counted once.
MAX_STEPS = 2_000_000
MAX_BUILT = 131_072
#: Over all rows that one unit produces in a join.
MAX_JOINED_TEXT = 1 << 28
#: Characters of a condition on public columns, written or read, times the rows of the public tables. DuckDB takes some
#: seconds for this, and skips it if no private row matches.
MAX_PUBLIC_WORK = 1 << 34

#: Characters of a number, boolean or date as text.
_VALUE_LENGTH = 64
#: Steps per character for functions that look it up in a table or match a pattern.
_WEIGHTS = {"like": 2, "replace": 4} | dict.fromkeys(
    ("lower", "upper", "to_real", "to_date", "to_timestamp", "to_boolean", "parse_time"), 8
)
#: Compared with constants, these read at most as many characters as the constants have.
_COMPARED = frozenset({"eq", "ne", "in", "is_distinct"})
#: These pass a text on without reading it.
_PASS_THROUGH = frozenset({"case", "coalesce", "is_null"})


@dataclass(frozen=True, slots=True)
class RowCost:
    """The cost of a value for one row; `length` is the maximum length of a text."""

    size: int
    steps: int = 0
    built: int = 0
    length: int = _VALUE_LENGTH


def truncate_texts(rel: Rel, exprs: Iterable[Expr], *, every: bool) -> Rel:
    """Truncate the texts that functions read, or every text, to `MAX_TEXT_LENGTH` characters in the scan."""
    read_texts: set[str] = set()
    for expr in exprs:
        _collect_read(expr, read_texts)
    return _shortened(rel, read_texts, every=every)


def _collect_read(expr: Expr | None, read_texts: set[str]) -> None:
    if not isinstance(expr, FunctionCall):
        return
    plain = expr.function == "is_null" or (
        expr.function in _COMPARED and all(isinstance(arg, Literal) for arg in expr.args[1:])
    )
    if not plain:
        read_texts |= {arg.name for arg in expr.args if isinstance(arg, Col) and arg.kind is Kind.TEXT}
    for arg in expr.args:
        _collect_read(arg, read_texts)


def _shortened(rel: Rel, read_texts: set[str], *, every: bool) -> Rel:  # noqa: C901 - one case a relation
    match rel:
        case Scan():
            listed = {c.name for c in rel.table.columns if c.values is not None}
            short = frozenset(
                col.name
                for col, source in zip(rel.columns, rel.sources, strict=True)
                if col.kind is Kind.TEXT
                and (every or col.name in read_texts)
                and (source not in listed or col.name in rel.loose)
            )
            return replace(rel, short=short) if short else rel
        case Filter():
            _collect_read(rel.predicate, read_texts)
        case Project():
            for name, expr in rel.outputs:
                _collect_read(expr, read_texts)
                if name in read_texts and isinstance(expr, Col):
                    read_texts.add(expr.name)
        case PerUnit():
            for name, expr in rel.keys:
                _collect_read(expr, read_texts)
                if name in read_texts and isinstance(expr, Col):
                    read_texts.add(expr.name)
            for name, inner in rel.aggregates:
                _collect_read(inner.argument, read_texts)
                _collect_read(inner.where, read_texts)
                if name in read_texts and isinstance(inner.argument, Col):
                    read_texts.add(inner.argument.name)
        case Join():
            for pair in rel.on:
                for expr in pair:
                    _collect_read(expr, read_texts)
            left, right = (_shortened(side, read_texts, every=every) for side in (rel.left, rel.right))
            return rel if left is rel.left and right is rel.right else replace(rel, left=left, right=right)
        case Union():
            inputs = []
            for each in rel.inputs:
                pairs = zip(columns(each), rel.columns, strict=True)
                mine = {own.name for own, ours in pairs if ours.name in read_texts}
                inputs.append(_shortened(each, read_texts | mine, every=every))
            return replace(rel, inputs=tuple(inputs))
        case UnitWindow():
            # the rows of a unit are sorted, with all their columns
            read_texts |= {column.name for column in columns(rel.input) if column.kind is Kind.TEXT}
            for _, function in rel.functions:
                for expr in window_expressions(function):
                    _collect_read(expr, read_texts)
        case Truncate():
            pass
    below = _shortened(rel.input, read_texts, every=every)
    return rel if below is rel.input else replace(rel, input=below)


# --- bounds ------------------------------------------------------------------------------------------------------


def check_row_cost(query: Query, rel: Rel, joins: Sequence[tuple[Join, int]], dialect: Dialect) -> None:
    """Raise an error if a query is too much work for one row, or one unit can produce too much text in joins.

    Theorem (Work of a row). For no row does the engine evaluate more than `MAX_SIZE` characters of one expression,
    look at more than `MAX_STEPS` characters of text, or make more than `MAX_BUILT` of them, in all of a query. In all
    rows that a join makes of one unit, columns and keys have at most `MAX_JOINED_TEXT` characters.
    Proof    By induction over expressions, with each column written out as what it is made of. The text of a call is
             its function's spelling with the texts of its arguments in it; how often each stands there is counted in
             the spelling itself. The length of a text is bounded at the scan, where a function looks at it, and each
             function's result by its arguments' (`||` adds, a part has a constant length, case and trimming keep it).
             The rows of a join are bounded by "Joined rows of a unit".
    Assumes  An engine evaluates an operator at most as often as it stands in the text, columns written out.
    Tested   tests/sql/test_row_cost.py::test_sizes_are_those_of_the_rendered_text
             tests/sql/test_row_cost.py::test_no_text_is_longer_than_its_bound
    """
    meter = CostMeter(dialect)
    meter.relation(rel)
    for expr in output_expressions(query):
        meter.add(expr)
    counted = [each.arguments[0] for each in query.aggregates if aggregate_function(each.function).groups_by_value]
    keys = [key.expr for key in query.keys]
    grouped = max([meter.grouped, meter.text_length(keys), *(meter.text_length([*keys, each]) for each in counted)])
    for join, most in joins:
        text_length = max(grouped, meter.text_length(columns(join)))
        if most * text_length > MAX_JOINED_TEXT:
            raise QueryError(
                "HB568",
                f"One unit could produce {most:,} rows with up to {text_length:,} characters of text each; the product "
                f"cannot exceed {MAX_JOINED_TEXT:,}.",
                "Declare the values of the text columns, shorten them in a subquery before the join, as in "
                "left(x, 20), or pass a smaller rows= or groups=.",
            )


def output_expressions(query: Query) -> list[Expr]:
    """Return the expressions that a query computes over its relation."""
    exprs = [key.expr for key in query.keys]
    for aggregate in query.aggregates:
        exprs += [*aggregate.arguments, *([] if aggregate.where is None else [aggregate.where])]
    return exprs


class CostMeter:
    """Adds up the cost of expressions over known columns."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._known: dict[str, RowCost] = {}
        self._steps = 0
        self._built = 0
        self._rows: dict[str, int] = {}  # the number of rows of the public relation of each column
        self._public = 0
        self.grouped = 0  #: maximum characters of text that a grouping inside a unit keeps for one row

    def text_length(self, exprs: Iterable[Expr | None]) -> int:
        """Add up the maximum lengths of text expressions."""
        return sum(self.of(expr).length for expr in exprs if expr is not None and expr.kind is Kind.TEXT)

    def record(self, columns: Mapping[str, RowCost]) -> None:
        """Record the cost of columns."""
        self._known.update(columns)

    def add(self, expr: Expr | None) -> RowCost:
        """Add an expression of the query, and check the limits."""
        if expr is None:
            return RowCost(0)
        work = self.of(expr)
        if not render.never_nan(expr):
            work = RowCost(2 * work.size, 2 * work.steps, 2 * work.built, work.length)
        # the cost of a column was counted where it is computed
        columns_read = [self._known[name] for name in names(expr) if name in self._known]
        self._steps += max(0, work.steps - sum(each.steps for each in columns_read))
        self._built += max(0, work.built - sum(each.built for each in columns_read))
        if work.size > MAX_SIZE:
            raise QueryError(
                "HB526",
                f"An expression has {_about(work.size)} characters after expansion into safe SQL; the maximum is "
                f"{MAX_SIZE:,}.",
                "Nest fewer functions, or use several queries.",
            )
        if max(self._steps, work.steps) > MAX_STEPS:
            raise QueryError(
                "HB527",
                f"The functions of this query could read {_about(max(self._steps, work.steps))} characters of text per "
                f"row; the maximum is {MAX_STEPS:,}.",
                "Use fewer text functions, or shorten the text first: left(x, 100).",
            )
        if max(self._built, work.built) > MAX_BUILT:
            raise QueryError(
                "HB528",
                f"|| could produce {_about(max(self._built, work.built))} characters of text per row; the maximum is "
                f"{MAX_BUILT:,}.",
                "Concatenate fewer texts, or shorten each first: left(x, 100) || left(y, 100).",
            )
        return work

    def _add_public(self, expr: Expr) -> None:
        """Add the cost of an expression for every row of the public table that it reads."""
        if isinstance(expr, FunctionCall) and expr.function == "and":
            for arg in expr.args:
                self._add_public(arg)
            return
        read = names(expr)
        if isinstance(expr, FunctionCall) and read and read <= self._rows.keys():
            work = self.of(expr)
            self._public += (work.size + work.steps) * max(self._rows[name] for name in read)
        if self._public > MAX_PUBLIC_WORK:
            raise QueryError(
                "HB529",
                f"The expressions over public columns amount to {_about(self._public)} characters of work over all "
                f"rows; the maximum is {_about(MAX_PUBLIC_WORK)}.",
                "Use fewer functions of public columns, or ask the data owner to declare a table with the results.",
            )

    def relation(self, rel: Rel) -> None:
        """Add the cost of a relation, and record that of its columns."""
        self._relation(rel)
        match rel:
            case Filter():
                self._add_public(rel.predicate)
            case Project():
                for name, expr in rel.outputs:
                    self._add_public(expr)
                    read = names(expr)
                    if read and read <= self._rows.keys():
                        self._rows[name] = max(self._rows[each] for each in read)
            case Join():
                for pair in rel.on:
                    for expr in pair:
                        self._add_public(expr)
            case _:
                pass
        if public(rel):
            size = fanout.rows(rel) or 0
            self._rows |= {column.name: size for column in columns(rel)}

    def _relation(self, rel: Rel) -> None:  # noqa: C901 - one case a relation
        match rel:
            case Scan():
                self._scan(rel)
            case Filter():
                self.relation(rel.input)
                self.add(rel.predicate)
            case Project():
                self.relation(rel.input)
                self._learn(rel.outputs)
            case Join():
                self.relation(rel.left)
                self.relation(rel.right)
                for pair in rel.on:
                    for expr in pair:
                        self.add(expr)
            case Union():
                for each in rel.inputs:
                    self.relation(each)
                for place, column in enumerate(rel.columns):
                    parts = [self.of(columns(each)[place]) for each in rel.inputs]
                    self._known[column.name] = _largest(parts)
            case PerUnit():
                self.relation(rel.input)
                kept = [*(expr for _, expr in rel.keys), *(inner.argument for _, inner in rel.aggregates)]
                self.grouped = max(self.grouped, self.text_length(kept))
                self._learn(rel.keys)
                for name, inner in rel.aggregates:
                    self.add(inner.where)
                    argument = self.add(inner.argument)
                    # an aggregate is a new value, so its argument is not expanded again
                    self._known[name] = RowCost(len(name), length=argument.length)
            case UnitWindow():
                self.relation(rel.input)
                for name, function in rel.functions:
                    parts = [self.add(expr) for expr in window_expressions(function)]
                    length = parts[0].length if function.argument is not None else _VALUE_LENGTH
                    default = function.default.value if function.default is not None else None
                    # a new value, whose argument is not expanded again
                    self._known[name] = RowCost(
                        len(name), length=max(length, len(default) if isinstance(default, str) else 0)
                    )
            case Truncate():
                self.relation(rel.input)

    def _learn(self, outputs: Sequence[tuple[str, Expr]]) -> None:
        for name, expr in outputs:
            self._known[name] = self.add(expr)

    def _scan(self, rel: Scan) -> None:
        declared = {column.name: column for column in rel.table.columns}
        for col, source in zip(rel.columns, rel.sources, strict=True):
            column = declared[source]
            length = _VALUE_LENGTH
            if col.kind is Kind.TEXT:
                listed = [*(column.values or ()), *([] if column.other is None else [column.other])]
                length = min(MAX_TEXT_LENGTH, rel.table.lengths.get(source, MAX_TEXT_LENGTH))
                if column.values is not None and col.name not in rel.loose:
                    length = max((len(str(value)) for value in listed), default=0)
            # a column of a scan expands to its cast and its bounds; the list of its values is read once
            self._known[col.name] = RowCost(len(self._dialect.scanned(column)), length=length)

    def of(self, expr: Expr) -> RowCost:
        """Bound the cost of an expression."""
        if isinstance(expr, Col):
            return self._known.get(expr.name, RowCost(len(self._dialect.column(expr))))
        if isinstance(expr, Literal):
            text = self._dialect.literal(expr.value, expr.kind)
            return RowCost(len(text), length=len(expr.value) if isinstance(expr.value, str) else _VALUE_LENGTH)
        return self._call(expr)

    def _call(self, call: FunctionCall) -> RowCost:
        args = [self.of(arg) for arg in call.args]
        length = _length(call, args)
        size, times = render.repeated(call, self._dialect)
        steps = 1 + _weight(call) * _characters_read(call, args, times)
        built = length if call.function in ("concat", "replace", "regexp_replace") else 0
        for work, count in zip(args, times, strict=True):
            size += count * work.size
            steps += count * work.steps
            built += count * work.built
        return RowCost(size, steps, built, length)


def _weight(call: FunctionCall) -> int:
    """Return the steps per character; of a regular expression, the number of its states."""
    pattern = call.args[1].value if call.function.startswith("regexp") and isinstance(call.args[1], Literal) else None
    return (size_of(pattern) or 1) if isinstance(pattern, str) else _WEIGHTS.get(call.function, 1)


def _characters_read(call: FunctionCall, args: Sequence[RowCost], times: Sequence[int]) -> int:
    """Return the number of characters of text that a function reads."""
    texts = [
        work.length * count for work, arg, count in zip(args, call.args, times, strict=True) if arg.kind is Kind.TEXT
    ]
    if call.function in _PASS_THROUGH or not texts:
        return 0
    if call.function in _COMPARED and all(isinstance(arg, Literal) for arg in call.args[1:]):
        return sum(texts[1:])
    return sum(texts)


def _length(call: FunctionCall, args: Sequence[RowCost]) -> int:
    texts = [work.length for work, arg in zip(args, call.args, strict=True) if arg.kind is Kind.TEXT]
    if call.kind is not Kind.TEXT or not texts:
        return _VALUE_LENGTH
    constants: Mapping[int, int] = {
        place: arg.value
        for place, arg in enumerate(call.args)
        if isinstance(arg, Literal) and isinstance(arg.value, int)
    }
    match call.function:
        case "concat":
            return sum(texts)
        case "replace":
            return texts[0] * max(1, -(-texts[2] // max(1, texts[1])))
        case "regexp_replace":
            return texts[0] * max(1, texts[2])
        case "regexp_extract":
            return texts[0]
        case "left" | "right":
            return min(texts[0], constants.get(1, texts[0]))
        case "substr":
            return min(texts[0], constants.get(2, texts[0]))
    return max(texts)


def _largest(parts: Sequence[RowCost]) -> RowCost:
    return RowCost(
        max(each.size for each in parts),
        max(each.steps for each in parts),
        max(each.built for each in parts),
        max(each.length for each in parts),
    )


def _about(count: int) -> str:
    return f"{count:,}" if count < 10**12 else f"10^{len(str(count)) - 1}"
