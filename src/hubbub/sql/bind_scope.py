"""Scopes of names, owners of rows, and the state of binding one query."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from sqlglot import exp

from hubbub.core.schema import Bounds, Kind, Table, Value
from hubbub.core.unit import Relation
from hubbub.errors import QueryError
from hubbub.sql.conditions import Conditions
from hubbub.sql.expressions import Col, Expr, Facts, FunctionCall
from hubbub.sql.relations import Rel
from hubbub.sql.text import SourceText, quote

MAX_SIZE = 20_000
MAX_SCANS = 16
#: Nodes that binding one statement may visit, a second or two; the queries of the suites need less than 1,000.
MAX_BOUND = 40_000

#: How often the generated SQL repeats the argument of a function.
_REPEATS = dict.fromkeys(
    ("div", "mod", "intdiv", "sqrt", "ln", "log10", "log2", "nullif", "to_text", "exp", "to_real", "to_float"), 2
) | dict.fromkeys(("power", "width_bucket", "to_date", "to_timestamp", "date_shift", "day_shift", "make_date"), 5)


@dataclass(frozen=True, slots=True)
class Owner:
    """The privacy unit that owns a row: a value of the privacy ID column, or (`kind` None) the row itself.

    Two tables have the same owner only if both declare the same entity; equal column names are not enough. A table
    that declares none has an owner of its own, named by `table`. `others` are further owners of the same rows.
    """

    entity: str
    kind: Kind | None
    relation: Relation
    table: str = ""
    others: tuple["Owner", ...] = ()

    @property
    def each(self) -> tuple["Owner", ...]:
        """All owners of a row, each alone."""
        return (replace(self, others=()), *self.others)

    def mismatch(self, other: "Owner") -> tuple[str, str]:
        """Return why rows of two different owners cannot be matched, and the remedy."""
        if self.kind is None or other.kind is None:
            return (
                "A table with row-level privacy cannot be queried together with another private table.",
                "Query it on its own.",
            )
        if self.others or other.others:
            return (
                "Rows of one side have two owners, and those of the other side do not have the same owners.",
                "Join a table with one owner on that owner's column, or a public table.",
            )
        undeclared = [owner.table for owner in (self, other) if owner.table]
        if undeclared:
            return (
                "These tables are not declared to contain the same people.",
                "If equal privacy IDs in both tables mean the same person, ask the data owner to declare "
                f"`unit: {{column: …, entity: person}}` for both ({' and '.join(undeclared)} declared none).",
            )
        if self.entity != other.entity:
            return (
                f"The tables have different privacy units: {self.entity} and {other.entity}.",
                "Query each table on its own, or ask the data owner to declare one entity for both.",
            )
        return (
            "The tables have the same entity, but privacy ID columns of different types or different neighboring "
            "relations.",
            "Query each table on its own, or ask the data owner to declare one column type and one relation.",
        )


@dataclass(frozen=True, slots=True)
class VisibleColumn:
    """A column that an expression can name; a privacy ID column has no `col`, and `place` tells which owner it is.

    present    of a privacy ID that may be missing after an outer join: a column that is NULL where it is
    cover      names of such columns, one of which has a value in every row: after a full join
    qualified  whether it is named only together with its table, and not listed by `*`
    """

    name: str
    table: str | None
    col: Col | None
    place: int = 0
    present: Col | None = None
    cover: frozenset[str] = frozenset()
    qualified: bool = False

    @property
    def is_unit(self) -> bool:
        """Whether this is the privacy ID of every row."""
        return self.col is None and self.present is None


@dataclass(frozen=True, slots=True)
class BoundRelation:
    """A relation with its column names and the owner of its rows (None: public).

    padded  the outer join that also keeps the rows of a public table which nobody matches: they belong to no person and
            are not in `rel`, so that only aggregates of private columns, by keys of the public table, may read it
    """

    rel: Rel
    columns: tuple[VisibleColumn, ...]
    owner: Owner | None
    padded: exp.Expr | None = None

    def with_table(self, table: str | None) -> tuple[VisibleColumn, ...]:
        """Return the columns under another table name."""
        return tuple(replace(c, table=table) for c in self.columns if not c.qualified)


AggregateHandler = Callable[[exp.Expr], Expr]


@dataclass(frozen=True, slots=True)
class NameScope:
    """The columns that an expression can name, the clause it is in, and the handler of its aggregates."""

    columns: tuple[VisibleColumn, ...]
    clause: str
    aggregate: AggregateHandler | None = None


#: Binds a subquery with the common table expressions that it sees, the rows around it, and the conditions on them.
ReleaseValue = Callable[
    ["Context", exp.Subquery, Any, BoundRelation, Sequence[exp.Expr]], tuple[BoundRelation, Expr] | None
]


@dataclass
class Context:
    """The state of binding one query: text, declarations, parameters, and names assigned so far."""

    text: SourceText
    tables: Mapping[str, Table]
    parameters: Sequence[Value]
    dialect: str
    used: list[Table] = field(default_factory=list)
    parameters_used: set[int] = field(default_factory=set)
    sizes: dict[str, int] = field(default_factory=dict)
    mentions: dict[str, exp.Expr] = field(default_factory=dict)  #: the last node that named a bound column
    conditions: Conditions = field(default_factory=Conditions)  #: of the rows that are bound so far
    #: the subqueries and window functions of the SELECT that is bound now, with the columns that hold their values
    values: Mapping[exp.Expr, Expr] = field(default_factory=dict)
    #: binds a subquery over everybody's rows as a release of its own, and returns the outer rows with its value; None
    #: for another subquery
    release_value: "ReleaseValue | None" = None
    is_trial: bool = False  #: what is bound here is bound again
    scans: int = 0
    marks: int = 0  #: of outer joins
    naturals: dict[str, Bounds] = field(default_factory=dict)  #: of counts and sums within a unit, by column
    bound: Counter[str] = field(default_factory=Counter)  #: the nodes that were bound, also in trials and releases
    _count: int = 0

    def trial(self) -> "Context":
        """Return the context for a query that is bound only to see whether, or as what, it can be bound."""
        return Context(
            self.text,
            self.tables,
            self.parameters,
            self.dialect,
            release_value=self.release_value,
            is_trial=True,
            bound=self.bound,
            _count=self._count,  # its columns may be compared with those of an outer query
        )

    @contextmanager
    def without_values(self) -> Iterator[None]:
        """Bind an expression over the outer row, which has no columns for the values of subqueries and windows yet.

        Those of the subquery that was bound last are columns of its rows, even if the same text stands outside of it.
        """
        values, self.values = self.values, {}
        try:
            yield
        finally:
            self.values = values

    def error(self, at: exp.Expr | int | None, code: str, message: str, remedy: str) -> QueryError:
        """Build the error for a place in the text."""
        return self.text.error(at, code, message, remedy)

    def spend(self, node: exp.Expr) -> None:
        """Count the nodes of a SELECT that is bound, or raise: one that is read in two places is bound in both.

        Each reader of a WITH item binds it, in trials and for releases too, so nested items double at every level.
        """
        self.bound["nodes"] += sum(1 for _ in node.walk())
        if self.bound["nodes"] > MAX_BOUND:
            raise self.error(
                node,
                "HB746",
                "This query grows too large when its WITH items and subqueries are written out.",
                "Nest fewer of them in one another, or run some of them as queries of their own.",
            )

    def check_same_owner(self, node: exp.Expr, code: str, a: Owner | None, b: Owner | None) -> None:
        """Raise unless the rows of two relations belong to the same privacy units.

        Theorem (Declared entities). Let a query match the units of several private tables, or unite their rows, and let
        this function accept it. Then one unit of the entity that all of them declare, taken out of every table at once,
        takes out of the result only rows that carry its name: it is one neighbor, at the stated sensitivity.
        Proof    Owners are equal only if their tables declare one entity, column type and relation, or are one table. A
                 unit is then one value of one type in all of them, which equality in the engine neither splits nor
                 merges, and the theorem of one owner for each row (`render.relation`) applies with that unit. Without
                 the declaration, equal values in two tables may be two people: a join makes the rows of one depend on
                 the presence of the other, and a step by either moves the answer.
        Assumes  equal values in tables of one declared entity are one person: the owner's word.
        Charges  nothing by itself.
        Tested   tests/sql/test_entities.py::test_every_accepted_match_moves_by_no_more_than_one_unit_has
                 tests/sql/test_entities.py::test_two_people_of_one_number_move_a_join_by_more_than_one_has
        """
        if a is not None and b is not None and a != b:
            raise self.error(node, code, *a.mismatch(b))
        if a != b:
            counted = (
                "Count the private rows of each public one, and choose among the noisy counts: SELECT p.k, COUNT(t.x) "
                "AS n FROM public_table p LEFT JOIN private_table t ON t.k = p.k GROUP BY p.k HAVING COUNT(t.x) < 1."
            )
            remedy = counted if code == "HB514" else "Query each table on its own."
            raise self.error(node, code, "One table is public and the other is private.", remedy)

    def new_name(self, stem: str) -> str:
        """Return a name that is unique in this query."""
        self._count += 1
        return f"{stem}_{self._count}"

    def new_column(self, stem: str, kind: Kind, facts: Facts, size: int) -> Col:
        """Return a new column and remember the size of its expression."""
        col = Col(self.new_name(stem), kind, facts)
        self.sizes[col.name] = size
        return col

    def check_size(self, expr: Expr, node: exp.Expr | None) -> int:
        """Return the size of an expression with its columns written out; raise if it is too large."""
        size = self._size(expr)
        if size > MAX_SIZE:
            raise self.error(
                node,
                "HB518",
                "The generated SQL for this expression would be too large.",
                "Simplify the expression, or split it over several queries.",
            )
        return size

    def _size(self, expr: Expr) -> int:
        if isinstance(expr, Col):
            return self.sizes.get(expr.name, 1)
        if not isinstance(expr, FunctionCall):
            return 1
        inside = sum(self._size(arg) for arg in expr.args)
        unbounded = expr.facts.bounds is None and expr.function in ("add", "sub", "mul", "neg")
        return min(1 + inside * _REPEATS.get(expr.function, 1) + unbounded, MAX_SIZE + 1)


def fold_case(name: str) -> str:
    """Convert ASCII letters to lower case, as SQL does with unquoted names.

    >>> fold_case("Straße"), fold_case("AGE")
    ('straße', 'age')
    """
    return "".join(c.lower() if c.isascii() else c for c in name)


def matches(name: str, identifier: exp.Identifier) -> bool:
    """Tell whether an identifier refers to a name: exactly if quoted, otherwise ignoring case."""
    written = str(identifier.this)
    return name == written if identifier.args.get("quoted") else fold_case(name) == fold_case(written)


def find(ctx: Context, scope: NameScope, node: exp.Column) -> VisibleColumn | None:
    """Return the only column that a name refers to, or None."""
    name, table = node.this, node.args.get("table")
    candidates = [
        column
        for column in scope.columns
        if isinstance(name, exp.Identifier)
        and matches(column.name, name)
        and (not column.qualified if table is None else column.table is not None and matches(column.table, table))
    ]
    if len(candidates) > 1:
        exact = [column for column in candidates if column.name == str(name.this)]
        if len(exact) == 1 and len({column.name for column in candidates}) > 1:
            return exact[0]
        raise ctx.error(
            node,
            "HB507",
            f"The column name {quote(node.sql())} is ambiguous.",
            "Qualify it with the table (t.name), or quote the exact name.",
        )
    return candidates[0] if candidates else None


def resolve(ctx: Context, scope: NameScope, node: exp.Column) -> VisibleColumn:
    """Return the only column that a name refers to, or raise."""
    column = find(ctx, scope, node)
    if column is not None:
        return column
    tables = sorted({column.table for column in scope.columns if column.table})
    known = ", ".join(dict.fromkeys(column.name for column in scope.columns))
    quoted = not node.table and bool(node.this.args.get("quoted"))
    hint = " Text is written in single quotes: 'North'." if quoted else ""
    raise ctx.error(
        node,
        "HB506",
        f"There is no column {quote(node.sql())}.",
        f"Columns of {', '.join(tables) or 'the subquery'}: {known}.{hint}" if known else "Use a constant here.",
    )


def conjuncts(node: exp.Expr) -> list[exp.Expr]:
    """Return the operands of a (parenthesized) AND in the order of the text."""
    inner = node.unnest() if isinstance(node, exp.Paren) else node
    if not isinstance(inner, exp.And):
        return [inner]
    parts, stack = list[exp.Expr](), [inner.expression, inner.this]
    while stack:
        part = stack.pop()
        part = part.unnest() if isinstance(part, exp.Paren) else part
        if isinstance(part, exp.And):
            stack += [part.expression, part.this]
        else:
            parts.append(part)
    return parts


def is_unit(ctx: Context, scope: NameScope, node: exp.Expr) -> bool:
    """Tell whether an expression is just the privacy ID column, or COALESCE of those of both sides of an outer join."""
    column = _named_column(ctx, scope, node)
    return column is not None and column.is_unit


def missing_unit(ctx: Context, scope: NameScope, node: exp.Expr) -> Col | None:
    """Return the mark of a privacy ID that may be missing after an outer join; None for any other expression."""
    column = _named_column(ctx, scope, node)
    return None if column is None or column.col is not None else column.present


def owner_place(ctx: Context, scope: NameScope, node: exp.Expr) -> int:
    """Return which owner a privacy ID column names: 0 unless rows have two."""
    column = _named_column(ctx, scope, node)
    return 0 if column is None else column.place


def _named_column(ctx: Context, scope: NameScope, node: exp.Expr) -> VisibleColumn | None:
    inner = node.unnest() if isinstance(node, exp.Paren) else node
    if isinstance(inner, exp.Coalesce):
        return _first_present([_named_column(ctx, scope, part) for part in (inner.this, *inner.expressions)])
    if not isinstance(inner, exp.Column) or isinstance(inner.this, exp.Star):
        return None
    return find(ctx, scope, inner)


def _first_present(parts: Sequence[VisibleColumn | None]) -> VisibleColumn | None:
    """Return the privacy ID as COALESCE of columns of which one is there in every row; None: it is something else.

    Outer joins compare the privacy IDs of both sides, so that each of them is the owner of the row, or missing.
    """
    units = [part for part in parts if part is not None and part.col is None]
    if not units or len(units) != len(parts) or len({part.place for part in units}) > 1:
        return None
    there = {part.present.name for part in units if part.present is not None}
    whole = any(part.is_unit or (part.cover and part.cover <= there) for part in units)
    return replace(units[0], present=None, cover=frozenset(), qualified=False) if whole else None
