"""Bind names in FROM: common table expressions, declared tables, and aliases of columns.

Tested in tests/sql/test_bind.py.
"""

from dataclasses import dataclass, replace

from sqlglot import exp

from hubbub.core.schema import Table
from hubbub.sql.bind_scope import BoundRelation, Context, matches
from hubbub.sql.text import quote


@dataclass(frozen=True, slots=True)
class CteScope:
    """The common table expressions that a query can see, each with the ones that it can see itself."""

    names: tuple[tuple[exp.CTE, "CteScope | None"], ...] = ()

    def find(self, identifier: exp.Identifier) -> "tuple[exp.CTE, CteScope] | None":
        """Return the nearest definition of a name."""
        for cte, visible in reversed(self.names):
            if matches(str(cte.args["alias"].this.this), identifier):
                return cte, visible or CteScope()
        return None


def bind_with(ctx: Context, query: exp.Expr, ctes: CteScope) -> CteScope:
    """Add the WITH clause of a query to its CTE scope; each CTE sees the ones before it."""
    clause = query.args.get("with_")
    if clause is None:
        return ctes
    if clause.args.get("recursive"):
        raise ctx.error(
            clause,
            "HB503",
            "WITH RECURSIVE is not supported: its running time can depend on the data.",
            "For a list of numbers or days, write FROM generate_series(0, 23) AS t(hour). Otherwise remove RECURSIVE.",
        )
    names = list(ctes.names)
    for cte in clause.expressions:
        name = cte.args["alias"].this
        if any(matches(str(other.args["alias"].this.this), name) for other, _ in names[len(ctes.names) :]):
            raise ctx.error(
                cte, "HB507", f"The WITH clause defines {quote(str(name.this))} twice.", "Use different names."
            )
        names.append((cte, CteScope(tuple(names))))
    return CteScope(tuple(names))


def rename_columns(ctx: Context, node: exp.Expr, rows: BoundRelation) -> BoundRelation:
    """Apply the column names of an alias such as t(a, b)."""
    alias = node.args.get("alias")
    names = [] if alias is None else alias.args.get("columns") or []
    if not names:
        return rows
    if len(names) != len(rows.columns):
        raise ctx.error(
            node,
            "HB506",
            f"The alias names {len(names)} columns, but there are {len(rows.columns)}.",
            "Name every column.",
        )
    return replace(
        rows,
        columns=tuple(replace(c, name=str(n.this)) for n, c in zip(names, rows.columns, strict=True)),
    )


def find_table(ctx: Context, node: exp.Table) -> Table:
    """Return the declared table that a name refers to."""
    candidates = [table for table in ctx.tables.values() if matches(table.name, node.this)]
    exact = [table for table in candidates if table.name == str(node.this.this)]
    if len(exact or candidates) != 1:
        known = ", ".join(sorted(table.name for table in ctx.tables.values())[:12])
        raise ctx.error(
            node,
            "HB507" if candidates else "HB505",
            f"The table name {quote(str(node.this.this))} is ambiguous."
            if candidates
            else f"There is no table {quote(str(node.this.this))}.",
            "Quote the exact name." if candidates else f"Tables: {known[:300]}.",
        )
    return (exact or candidates)[0]
