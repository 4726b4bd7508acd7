"""Scopes of names, owners of rows, and the state of binding one query."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from hubbub.core.schema import Kind, Table, Value
from hubbub.core.unit import Relation
from hubbub.errors import QueryError
from hubbub.sql.conditions import Conditions
from hubbub.sql.expressions import Col, Expr, Facts, FunctionCall
from hubbub.sql.relations import Rel
from hubbub.sql.text import SourceText, quote

MAX_SIZE = 20_000
MAX_SCANS = 16

#: How often the generated SQL repeats the argument of a function.
_REPEATS = dict.fromkeys(
    ("div", "mod", "intdiv", "sqrt", "ln", "log10", "log2", "nullif", "to_text", "exp", "to_real", "to_float"), 2
) | dict.fromkeys(("power", "width_bucket", "to_date", "to_timestamp", "date_shift", "day_shift"), 5)


@dataclass(frozen=True, slots=True)
class Owner:
    """The privacy unit that owns a row: a value of the privacy ID column, or (`kind` None) the row itself.

    Two tables have the same owner only if both declare the same entity; equal column names are not enough. A table
    that declares none has an owner of its own, named by `table`.
    """

    entity: str
    kind: Kind | None
    relation: Relation
    table: str = ""

    def mismatch(self, other: "Owner") -> tuple[str, str]:
        """Return why rows of two different owners cannot be matched, and the remedy."""
        if self.kind is None or other.kind is None:
            return (
                "A table with row-level privacy cannot be queried together with another private table.",
                "Query it on its own.",
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
    """A column that an expression can name; the privacy ID column has no `col`."""

    name: str
    table: str | None
    col: Col | None


@dataclass(frozen=True, slots=True)
class BoundRelation:
    """A relation with its column names and the owner of its rows (None: public)."""

    rel: Rel
    columns: tuple[VisibleColumn, ...]
    owner: Owner | None

    def with_table(self, table: str | None) -> tuple[VisibleColumn, ...]:
        """Return the columns under another table name."""
        return tuple(VisibleColumn(c.name, table, c.col) for c in self.columns)


AggregateHandler = Callable[[exp.Expr], Expr]


@dataclass(frozen=True, slots=True)
class NameScope:
    """The columns that an expression can name, the clause it is in, and the handler of its aggregates."""

    columns: tuple[VisibleColumn, ...]
    clause: str
    aggregate: AggregateHandler | None = None


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
    scans: int = 0
    _count: int = 0

    def error(self, at: exp.Expr | int | None, code: str, message: str, remedy: str) -> QueryError:
        """Build the error for a place in the text."""
        return self.text.error(at, code, message, remedy)

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
            raise self.error(
                node, code, "One table is public and the other is private.", "Query each table on its own."
            )

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
        and (table is None or (column.table is not None and matches(column.table, table)))
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
    raise ctx.error(
        node,
        "HB506",
        f"There is no column {quote(node.sql())}.",
        f"Columns of {', '.join(tables) or 'the subquery'}: {known}." if known else "Use a constant here.",
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
    """Tell whether an expression is just the privacy ID column."""
    inner = node.unnest() if isinstance(node, exp.Paren) else node
    if not isinstance(inner, exp.Column) or isinstance(inner.this, exp.Star):
        return False
    column = find(ctx, scope, inner)
    return column is not None and column.col is None
