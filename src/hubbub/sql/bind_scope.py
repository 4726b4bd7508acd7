"""What can be named where: scopes of columns, the owner of rows, and the state of one binding."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from hubbub.core.schema import Kind, Table, Value
from hubbub.core.unit import Relation
from hubbub.errors import QueryError
from hubbub.sql.expressions import Call, Col, Expr, Facts
from hubbub.sql.parse import Text, quote
from hubbub.sql.relations import Rel

MAX_WEIGHT = 20_000
MAX_SCANS = 16

#: How often the rendered text repeats what a function is applied to.
_REPEATS = {
    "div": 2,
    "mod": 2,
    "intdiv": 2,
    "sqrt": 2,
    "ln": 2,
    "log10": 2,
    "log2": 2,
    "power": 5,
    "width_bucket": 5,
    "nullif": 2,
    "to_text": 2,
    "to_date": 5,
    "to_timestamp": 5,
    "date_shift": 5,
    "day_shift": 5,
    "exp": 2,
    "to_real": 2,
    "to_float": 2,
}


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose a row is: the value of a unit column of some entity, or (kind None) nobody's but its own.

    Two tables have one owner only where both declare the same entity: that their columns share a name says nothing. A
    table without one has an owner of its own, named by `table`.
    """

    entity: str
    kind: Kind | None
    relation: Relation
    table: str = ""

    def apart(self, other: "Owner") -> tuple[str, str]:
        """Say why rows of these two cannot be matched, and what to declare."""
        if self.kind is None or other.kind is None:
            return "Where each row is a unit by itself, a table is matched with no other.", "Query it on its own."
        undeclared = [each.table for each in (self, other) if each.table]
        if undeclared:
            return (
                "These tables are not declared to hold the same people.",
                "If equal units of the two tables are the same person, the data owner can declare it: "
                f"`unit: {{column: …, entity: person}}` in both ({' and '.join(undeclared)} declared none).",
            )
        if self.entity != other.entity:
            return (
                f"One table protects each {self.entity}, the other each {other.entity}.",
                "Query each table on its own. If both hold the same people, the data owner can declare one entity.",
            )
        return (
            "The two tables protect the same entity, but with unit columns of different types or under different "
            "relations.",
            "Query each table on its own, or ask the data owner to declare one column type and one relation.",
        )


@dataclass(frozen=True, slots=True)
class Visible:
    """A column that an expression can name; without a `col` it is the unit itself."""

    name: str
    table: str | None
    col: Col | None


@dataclass(frozen=True, slots=True)
class Source:
    """A bound FROM: a relation, the names in it, and whose its rows are (None: public)."""

    rel: Rel
    columns: tuple[Visible, ...]
    owner: Owner | None

    def named(self, table: str | None) -> tuple[Visible, ...]:
        """Give the columns under another table name."""
        return tuple(Visible(c.name, table, c.col) for c in self.columns)


OnAggregate = Callable[[exp.Expr], Expr]


@dataclass(frozen=True, slots=True)
class Scope:
    """Where names of an expression are looked up, and what becomes of an aggregate in it."""

    columns: tuple[Visible, ...]
    place: str
    aggregate: OnAggregate | None = None


@dataclass
class Context:
    """One binding: the text, what is declared, the parameters, and names given so far."""

    text: Text
    tables: Mapping[str, Table]
    parameters: Sequence[Value]
    dialect: str
    used: list[Table] = field(default_factory=list)
    parameters_used: set[int] = field(default_factory=set)
    weights: dict[str, int] = field(default_factory=dict)
    places: dict[str, exp.Expr] = field(default_factory=dict)  #: where a bound column was last named
    scans: int = 0
    _count: int = 0

    def refusal(self, place: exp.Expr | int | None, code: str, reason: str, remedy: str) -> QueryError:
        """Refuse the query at a place of its text."""
        return self.text.refusal(place, code, reason, remedy)

    def one_owner(self, node: exp.Expr, code: str, a: Owner | None, b: Owner | None) -> None:
        """Refuse to put the rows of two relations together unless they belong to the same units.

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
            raise self.refusal(node, code, *a.apart(b))
        if a != b:
            raise self.refusal(node, code, "One side is public, the other private.", "Query each table on its own.")

    def name(self, stem: str) -> str:
        """Give a name that nothing else in this query has."""
        self._count += 1
        return f"{stem}_{self._count}"

    def col(self, stem: str, kind: Kind, facts: Facts, weight: int) -> Col:
        """Give a new column and note how much it is made of."""
        col = Col(self.name(stem), kind, facts)
        self.weights[col.name] = weight
        return col

    def weigh(self, expr: Expr, node: exp.Expr | None) -> int:
        """Measure an expression with everything that its columns are made of; refuse it if it is out of measure."""
        weight = self._weight(expr)
        if weight > MAX_WEIGHT:
            raise self.refusal(
                node,
                "HB518",
                "This expression is too large once every step of it is made safe.",
                "Break it into several queries, or simplify it.",
            )
        return weight

    def _weight(self, expr: Expr) -> int:
        if isinstance(expr, Col):
            return self.weights.get(expr.name, 1)
        if not isinstance(expr, Call):
            return 1
        inside = sum(self._weight(arg) for arg in expr.args)
        unbounded = expr.facts.bounds is None and expr.function in ("add", "sub", "mul", "neg")
        return min(1 + inside * _REPEATS.get(expr.function, 1) + unbounded, MAX_WEIGHT + 1)


def folded(name: str) -> str:
    """Fold the case of ASCII letters, as names without quotes do.

    >>> folded("Straße"), folded("AGE")
    ('straße', 'age')
    """
    return "".join(c.lower() if c.isascii() else c for c in name)


def matches(name: str, identifier: exp.Identifier) -> bool:
    """Say whether a written name means this one: exactly if quoted, else in any case."""
    written = str(identifier.this)
    return name == written if identifier.args.get("quoted") else folded(name) == folded(written)


def find(ctx: Context, scope: Scope, node: exp.Column) -> Visible | None:
    """Find the one column that a name means; None if there is none."""
    name, table = node.this, node.args.get("table")
    found = [
        column
        for column in scope.columns
        if isinstance(name, exp.Identifier)
        and matches(column.name, name)
        and (table is None or (column.table is not None and matches(column.table, table)))
    ]
    if len(found) > 1:
        exact = [column for column in found if column.name == str(name.this)]
        if len(exact) == 1 and len({column.name for column in found}) > 1:
            return exact[0]
        raise ctx.refusal(
            node,
            "HB507",
            f"{quote(node.sql())} could mean several columns.",
            "Write the table before it (t.name), or quote the exact name.",
        )
    return found[0] if found else None


def resolve(ctx: Context, scope: Scope, node: exp.Column) -> Visible:
    """Find the one column that a name means, or refuse."""
    found = find(ctx, scope, node)
    if found is not None:
        return found
    tables = sorted({column.table for column in scope.columns if column.table})
    known = ", ".join(sorted({column.name for column in scope.columns})[:12])
    raise ctx.refusal(
        node,
        "HB506",
        f"There is no column {quote(str(node.name))} in {scope.place}.",
        f"Columns of {', '.join(tables)[:80] or 'it'}: {known[:300]}." if known else "Check its spelling.",
    )


def conjuncts(node: exp.Expr) -> list[exp.Expr]:
    """Give the parts of a condition that must all be true, through brackets, in the order of the text."""
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


def is_unit(ctx: Context, scope: Scope, node: exp.Expr) -> bool:
    """Say whether an expression is the unit's column, bare."""
    inner = node.unnest() if isinstance(node, exp.Paren) else node
    if not isinstance(inner, exp.Column) or isinstance(inner.this, exp.Star):
        return False
    found = find(ctx, scope, inner)
    return found is not None and found.col is None
