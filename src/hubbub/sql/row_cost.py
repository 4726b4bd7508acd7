"""How much work one row can be: every text has a longest length, every expression a size, and both have limits.

Whoever makes one person's row a thousand times as much work as another's learns of her by whether the query ends in
time. So texts that functions look at are cut to `LONGEST` characters at the scan, and three bounds are computed from
the query alone, before anything is charged:

  size    characters of the expression as the engine gets it, with its columns written out: operators for one row
  steps   characters of text that functions look at, for one row
  built   characters of text that `||` makes, for one row

What a dialect repeats in its text (a guard writes its operand two or three times) is counted as often as it stands.
Not cut is a text that is a key, or is counted, or is compared with constants: that takes time by its length once.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from hubbub.core.schema import Kind
from hubbub.errors import QueryError
from hubbub.sql import fanout, render
from hubbub.sql.dialects.base import Dialect
from hubbub.sql.expressions import Call, Col, Expr, Literal
from hubbub.sql.prune import names
from hubbub.sql.query import Query
from hubbub.sql.relations import LONGEST, Cut, Filter, Join, PerUnit, Project, Rel, Scan, Union, columns, public

#: DuckDB takes about 100 µs for a row of so large an expression, with 2,048 rows between two looks at the clock.
MOST_SIZE = 500_000
#: Of all expressions of a query, each counted once.
MOST_STEPS = 2_000_000
MOST_BUILT = 131_072
#: Of all rows that one unit makes by a join.
MOST_TEXT = 1 << 28
#: Characters of a condition on public columns, written or looked at, times the rows of the public tables: DuckDB takes
#: some seconds for so many, and leaves them out where nobody's row is there to meet them.
MOST_PUBLIC = 1 << 34

#: Characters of a number, a truth value or a date that is written as text.
_WRITTEN = 64
#: Steps for a character, where it is looked up in a table or read by a pattern.
_WEIGHTS = {"lower": 8, "upper": 8, "like": 2, "to_real": 8, "to_date": 8, "to_timestamp": 8, "to_boolean": 8}
#: With constants, these look at no more of a text than the constants have.
_COMPARED = frozenset({"eq", "ne", "in", "is_distinct"})
#: These hand a text on and do not look at it.
_PASSED = frozenset({"case", "coalesce", "is_null"})


@dataclass(frozen=True, slots=True)
class Work:
    """What a value is for one row; `length` is that of a text."""

    size: int
    steps: int = 0
    built: int = 0
    length: int = _WRITTEN


def shortened(rel: Rel, exprs: Iterable[Expr], *, every: bool) -> Rel:
    """Cut the texts that functions look at, or every text, to `LONGEST` characters where the table is read."""
    looked: set[str] = set()
    for expr in exprs:
        _look(expr, looked)
    return _shortened(rel, looked, every=every)


def _look(expr: Expr | None, looked: set[str]) -> None:
    if not isinstance(expr, Call):
        return
    plain = expr.function == "is_null" or (
        expr.function in _COMPARED and all(isinstance(arg, Literal) for arg in expr.args[1:])
    )
    if not plain:
        looked |= {arg.name for arg in expr.args if isinstance(arg, Col) and arg.kind is Kind.TEXT}
    for arg in expr.args:
        _look(arg, looked)


def _shortened(rel: Rel, looked: set[str], *, every: bool) -> Rel:  # noqa: C901 - one case a relation
    match rel:
        case Scan():
            listed = {c.name for c in rel.table.columns if c.values is not None}
            short = frozenset(
                col.name
                for col, source in zip(rel.columns, rel.sources, strict=True)
                if col.kind is Kind.TEXT
                and (every or col.name in looked)
                and (source not in listed or col.name in rel.loose)
            )
            return replace(rel, short=short) if short else rel
        case Filter():
            _look(rel.predicate, looked)
        case Project():
            for name, expr in rel.outputs:
                _look(expr, looked)
                if name in looked and isinstance(expr, Col):
                    looked.add(expr.name)
        case PerUnit():
            for name, expr in rel.keys:
                _look(expr, looked)
                if name in looked and isinstance(expr, Col):
                    looked.add(expr.name)
            for name, inner in rel.aggregates:
                _look(inner.argument, looked)
                _look(inner.where, looked)
                if name in looked and isinstance(inner.argument, Col):
                    looked.add(inner.argument.name)
        case Join():
            for pair in rel.on:
                for expr in pair:
                    _look(expr, looked)
            left, right = (_shortened(side, looked, every=every) for side in (rel.left, rel.right))
            return rel if left is rel.left and right is rel.right else replace(rel, left=left, right=right)
        case Union():
            inputs = []
            for each in rel.inputs:
                pairs = zip(columns(each), rel.columns, strict=True)
                mine = {own.name for own, ours in pairs if ours.name in looked}
                inputs.append(_shortened(each, looked | mine, every=every))
            return replace(rel, inputs=tuple(inputs))
        case Cut():
            pass
    below = _shortened(rel.input, looked, every=every)
    return rel if below is rel.input else replace(rel, input=below)


# --- bounds ------------------------------------------------------------------------------------------------------


def weighed(query: Query, rel: Rel, joins: Sequence[tuple[Join, int]], dialect: Dialect) -> None:
    """Refuse a query that is too much work for one row, or too much text in the rows that one unit makes by joins.

    Theorem (Work of a row). For no row does the engine evaluate more than `MOST_SIZE` characters of one expression,
    look at more than `MOST_STEPS` characters of text, or make more than `MOST_BUILT` of them, in all of a query. In all
    rows that a join makes of one unit, columns and keys have at most `MOST_TEXT` characters.
    Proof    By induction over expressions, with each column written out as what it is made of. The text of a call is
             its function's spelling with the texts of its arguments in it; how often each stands there is counted in
             the spelling itself. The length of a text is bounded at the scan, where a function looks at it, and each
             function's result by its arguments' (`||` adds, a part has a constant length, case and trimming keep it).
             The rows of a join are bounded by "Joined rows of a unit".
    Assumes  An engine evaluates an operator at most as often as it stands in the text, columns written out.
    Tested   tests/sql/test_row_cost.py::test_sizes_are_those_of_the_rendered_text
             tests/sql/test_row_cost.py::test_no_text_is_longer_than_its_bound
    """
    meter = Meter(dialect)
    meter.relation(rel)
    for expr in top(query):
        meter.add(expr)
    counted = [each.arguments[0] for each in query.aggregates if each.function == "count_distinct"]
    keys = [key.expr for key in query.keys]
    grouped = max([meter.grouped, meter.letters(keys), *(meter.letters([*keys, each]) for each in counted)])
    for join, most in joins:
        letters = max(grouped, meter.letters(columns(join)))
        if most * letters > MOST_TEXT:
            raise QueryError(
                "HB568",
                f"one unit could make {most:,} rows with up to {letters:,} characters of text in each; the product can "
                f"be at most {MOST_TEXT:,}.",
                "Declare the values of the texts, take a part of each in a sub-query before the join, such as "
                "left(x, 20), or pass smaller rows= or groups=.",
            )


def top(query: Query) -> list[Expr]:
    """Give the expressions that a query computes over its relation."""
    exprs = [key.expr for key in query.keys]
    for aggregate in query.aggregates:
        exprs += [*aggregate.arguments, *([] if aggregate.where is None else [aggregate.where])]
    return exprs


class Meter:
    """Adds up the work of expressions over columns that it has learned of."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._known: dict[str, Work] = {}
        self._steps = 0
        self._built = 0
        self._rows: dict[str, int] = {}  # of the public relation that a column is of
        self._public = 0
        self.grouped = 0  #: the most characters of text that a grouping inside a unit keeps for one row

    def letters(self, exprs: Iterable[Expr | None]) -> int:
        """Add up the lengths of texts."""
        return sum(self.of(expr).length for expr in exprs if expr is not None and expr.kind is Kind.TEXT)

    def know(self, columns: Mapping[str, Work]) -> None:
        """Learn what columns are."""
        self._known.update(columns)

    def add(self, expr: Expr | None) -> Work:
        """Count one more expression of the query, and hold the limits."""
        if expr is None:
            return Work(0)
        work = self.of(expr)
        if not render.never_nan(expr):
            work = Work(2 * work.size, 2 * work.steps, 2 * work.built, work.length)
        # what a column is made of was counted where it is made
        own = [self._known[name] for name in names(expr) if name in self._known]
        self._steps += max(0, work.steps - sum(each.steps for each in own))
        self._built += max(0, work.built - sum(each.built for each in own))
        if work.size > MOST_SIZE:
            raise QueryError(
                "HB526",
                f"an expression has {_about(work.size)} characters once every step of it is made safe; at most "
                f"{MOST_SIZE:,} can be.",
                "Nest fewer functions, or ask in several queries.",
            )
        if max(self._steps, work.steps) > MOST_STEPS:
            raise QueryError(
                "HB527",
                f"the functions of this query could look at {_about(max(self._steps, work.steps))} characters of text "
                f"for one row; at most {MOST_STEPS:,} can be.",
                "Use fewer functions of text, or take a part of it first: left(x, 100).",
            )
        if max(self._built, work.built) > MOST_BUILT:
            raise QueryError(
                "HB528",
                f"|| could make {_about(max(self._built, work.built))} characters of text for one row; at most "
                f"{MOST_BUILT:,} can be.",
                "Join fewer texts, or take a part of each first: left(x, 100) || left(y, 100).",
            )
        return work

    def _add_public(self, expr: Expr) -> None:
        """Count an expression for every row of the public data that it is computed of; others are cut before joins."""
        if isinstance(expr, Call) and expr.function == "and":
            for arg in expr.args:
                self._add_public(arg)
            return
        read = names(expr)
        if isinstance(expr, Call) and read and read <= self._rows.keys():
            work = self.of(expr)
            self._public += (work.size + work.steps) * max(self._rows[name] for name in read)
        if self._public > MOST_PUBLIC:
            raise QueryError(
                "HB529",
                f"what this query computes of public columns is {_about(self._public)} characters of work over all "
                f"their rows; at most {_about(MOST_PUBLIC)} can be.",
                "Use fewer or smaller functions of public columns, or ask the owner to declare a table with them.",
            )

    def relation(self, rel: Rel) -> None:
        """Count what a relation computes, and learn what its columns are."""
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
                self.grouped = max(self.grouped, self.letters(kept))
                self._learn(rel.keys)
                for name, inner in rel.aggregates:
                    self.add(inner.where)
                    argument = self.add(inner.argument)
                    # a value of its own: what it was made of is not written out again
                    self._known[name] = Work(len(name), length=argument.length)
            case Cut():
                self.relation(rel.input)

    def _learn(self, outputs: Sequence[tuple[str, Expr]]) -> None:
        for name, expr in outputs:
            self._known[name] = self.add(expr)

    def _scan(self, rel: Scan) -> None:
        declared = {column.name: column for column in rel.table.columns}
        for col, source in zip(rel.columns, rel.sources, strict=True):
            column = declared[source]
            length = _WRITTEN
            if col.kind is Kind.TEXT:
                listed = [*(column.values or ()), *([] if column.other is None else [column.other])]
                length = min(LONGEST, rel.table.lengths.get(source, LONGEST))
                if column.values is not None and col.name not in rel.loose:
                    length = max((len(str(value)) for value in listed), default=0)
            # written out, a column of a scan is its cast and its bounds; the list of its values is looked at once
            self._known[col.name] = Work(len(self._dialect.scanned(column)), length=length)

    def of(self, expr: Expr) -> Work:
        """Bound the work of an expression."""
        if isinstance(expr, Col):
            return self._known.get(expr.name, Work(len(self._dialect.identifier(expr.name))))
        if isinstance(expr, Literal):
            text = self._dialect.literal(expr.value, expr.kind)
            return Work(len(text), length=len(expr.value) if isinstance(expr.value, str) else _WRITTEN)
        return self._call(expr)

    def _call(self, call: Call) -> Work:
        args = [self.of(arg) for arg in call.args]
        length = _length(call, args)
        size, times = render.repeated(call, self._dialect)
        steps = 1 + _WEIGHTS.get(call.function, 1) * _looked_at(call, args, times)
        built = length if call.function == "concat" else 0
        for work, count in zip(args, times, strict=True):
            size += count * work.size
            steps += count * work.steps
            built += count * work.built
        return Work(size, steps, built, length)


def _looked_at(call: Call, args: Sequence[Work], times: Sequence[int]) -> int:
    """Count the characters of text that a function looks at."""
    texts = [
        work.length * count for work, arg, count in zip(args, call.args, times, strict=True) if arg.kind is Kind.TEXT
    ]
    if call.function in _PASSED or not texts:
        return 0
    if call.function in _COMPARED and all(isinstance(arg, Literal) for arg in call.args[1:]):
        return sum(texts[1:])
    return sum(texts)


def _length(call: Call, args: Sequence[Work]) -> int:
    texts = [work.length for work, arg in zip(args, call.args, strict=True) if arg.kind is Kind.TEXT]
    if call.kind is not Kind.TEXT or not texts:
        return _WRITTEN
    constants: Mapping[int, int] = {
        place: arg.value
        for place, arg in enumerate(call.args)
        if isinstance(arg, Literal) and isinstance(arg.value, int)
    }
    match call.function:
        case "concat":
            return sum(texts)
        case "left" | "right":
            return min(texts[0], constants.get(1, texts[0]))
        case "substr":
            return min(texts[0], constants.get(2, texts[0]))
    return max(texts)


def _largest(parts: Sequence[Work]) -> Work:
    return Work(
        max(each.size for each in parts),
        max(each.steps for each in parts),
        max(each.built for each in parts),
        max(each.length for each in parts),
    )


def _about(count: int) -> str:
    return f"{count:,}" if count < 10**12 else f"10^{len(str(count)) - 1}"
