"""Bind `FROM a, b, c WHERE …`: equalities in WHERE that connect two items become the conditions of inner joins.

The items can be in any order. Their first private table comes first, and each step joins the first item that an
equality connects with the tables so far, private ones before public ones. An item that nothing connects is a public
table, every row of which is combined with every row (`bind_join`).

Tested in tests/sql/test_spellings.py.
"""

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from hubbub.errors import QueryError
from hubbub.sql.bind_join import bind_join
from hubbub.sql.bind_scope import BoundRelation, Context, NameScope, conjuncts, find

#: What stands between two commas, with the node that errors point at.
FromItem = tuple[BoundRelation, exp.Expr]


def is_comma(node: exp.Expr) -> bool:
    """Tell whether a join is a comma, or a JOIN without a condition of its own."""
    return not any(node.args.get(name) for name in ("on", "using", "side", "kind", "method"))


def combine(ctx: Context, items: Sequence[FromItem], where: exp.Expr | None) -> tuple[BoundRelation, list[exp.Expr]]:
    """Join all items, and return the result with the conditions that are left for the filter."""
    rest = [] if where is None else conjuncts(where)
    waiting = list(items)
    first = next((item for item in waiting if item[0].owner is not None), waiting[0])
    waiting.remove(first)
    rows = first[0]
    while waiting:
        rows, place, used = _next(ctx, rows, waiting, [*rest, *_implied(rest)])
        del waiting[place]
        rest = [part for part in rest if not any(part is each for each in used)]
    shown = [column for item, _ in items for column in item.columns]
    # * lists the columns in the order of the text
    return replace(rows, columns=tuple(sorted(rows.columns, key=shown.index))), rest


def _next(
    ctx: Context, rows: BoundRelation, waiting: Sequence[FromItem], conditions: Sequence[exp.Expr]
) -> tuple[BoundRelation, int, list[exp.Expr]]:
    """Join the first item that can be joined, and return its place; if none can, raise the first reason."""
    links = [[part for part in conditions if _connects(ctx, rows, item, part)] for item, _ in waiting]
    ordered = sorted(range(len(waiting)), key=lambda place: (not links[place], waiting[place][0].owner is None))
    reason: QueryError | None = None
    for place in ordered:
        (item, node), used = waiting[place], links[place]
        on = exp.and_(*used, copy=True, wrap=False) if used else None
        join = exp.Join(this=node.copy(), on=on, kind=None if used else "CROSS")
        try:
            return bind_join(ctx, rows, item, join), place, used
        except QueryError as error:
            reason = reason or error
    if reason is None:
        raise TypeError("there is nothing to join")
    raise reason


def _connects(ctx: Context, rows: BoundRelation, item: BoundRelation, part: exp.Expr) -> bool:
    """Tell whether a condition is an equality of columns of the tables so far with columns of an item."""
    if not isinstance(part, exp.EQ) or part.find(exp.Select) is not None:
        return False
    sides = {_side(ctx, rows, item, operand) for operand in (part.this, part.expression)}
    return sides == {-1, 1}


def _side(ctx: Context, rows: BoundRelation, item: BoundRelation, node: exp.Expr) -> int:
    """Return -1 if all columns of an operand are those of the tables so far, 1 if they are the item's, otherwise 0."""
    sides = set()
    for column in node.find_all(exp.Column):
        try:
            places = [find(ctx, NameScope(each.columns, "WHERE"), column) is not None for each in (rows, item)]
        except QueryError:  # ambiguous: the filter reports it
            return 0
        sides.add(0 if places[0] == places[1] else -1 if places[0] else 1)
    return sides.pop() if len(sides) == 1 else 0


def _implied(parts: Sequence[exp.Expr]) -> list[exp.Expr]:
    """List the equalities that every branch of an OR contains; the OR itself stays a condition."""
    implied = list[exp.Expr]()
    for part in parts:
        inner = part.unnest() if isinstance(part, exp.Paren) else part
        if isinstance(inner, exp.Or):
            first, *others = [conjuncts(branch) for branch in _branches(inner)]
            implied += [each for each in first if isinstance(each, exp.EQ) and all(each in more for more in others)]
    return implied


def _branches(node: exp.Or) -> list[exp.Expr]:
    branches, stack = list[exp.Expr](), [node.expression, node.this]
    while stack:
        part = stack.pop()
        part = part.unnest() if isinstance(part, exp.Paren) else part
        if isinstance(part, exp.Or):
            stack += [part.expression, part.this]
        else:
            branches.append(part)
    return branches
