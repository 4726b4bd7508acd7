"""Check queries over an outer join that keeps all rows of a public table, as a list of groups.

Tested in tests/sql/test_public_keys.py.
"""

from collections.abc import Sequence

from sqlglot import exp

from hubbub.sql.bind_join import padded_error
from hubbub.sql.bind_scope import BoundRelation, Context, NameScope, find
from hubbub.sql.expressions import Expr, facts
from hubbub.sql.prune import names
from hubbub.sql.query_levels import clauses, plain_aggregates
from hubbub.sql.relations import Filter, Join, Rel, columns

#: Nodes that give NULL for NULL.
_STRICT = (exp.Column, exp.Identifier, exp.Literal, exp.Paren, exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Distinct)


def check_padded(ctx: Context, node: exp.Select, rows: BoundRelation, keys: Sequence[Expr]) -> None:
    """Check that unmatched rows of a public table change nothing but which groups there are.

    Theorem (Kept groups). Let every key be a function of columns of the public table with a finite list of values, and
    every aggregate have an argument that is NULL where the private columns are NULL. Then the outer join has the same
    aggregates as the inner join in every group that the inner join has, and no value in all others.
    Proof    An unmatched row has NULL in every private column, and aggregates ignore NULL. All listed groups are
             in the answer anyway, whether they have rows or not.
    Assumes  nothing.   Charges  nothing.
    Tested   tests/sql/test_public_keys.py::test_an_outer_join_of_public_keys_is_what_sql_says
    """
    if rows.padded is None:
        return
    private = _private(rows.rel)
    listed = bool(private) and all(
        names(key) and not names(key) & private and facts(key).values is not None for key in keys
    )
    aggregated = [each for part in clauses(node) for each in plain_aggregates(part)]
    if not private or not listed or not all(_ignores_unmatched(ctx, rows, private, each) for each in aggregated):
        raise padded_error(ctx, rows.padded)


def _private(rel: Rel) -> set[str]:
    while isinstance(rel, Filter):
        rel = rel.input
    return {col.name for col in columns(rel.left)} if isinstance(rel, Join) else set()


def _ignores_unmatched(ctx: Context, rows: BoundRelation, private: set[str], node: exp.Expr) -> bool:
    """Tell whether the argument of an aggregate is NULL wherever the private columns are."""
    while isinstance(node, exp.Filter):
        node = node.this
    argument = node.this
    if argument is None or isinstance(argument, exp.Star) or not all(isinstance(n, _STRICT) for n in argument.walk()):
        return False
    scope = NameScope(rows.columns, "an aggregate")
    found = [find(ctx, scope, column) for column in argument.find_all(exp.Column)]
    return any(each is not None and (each.col is None or each.col.name in private) for each in found)
