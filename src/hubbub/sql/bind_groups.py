"""Bind GROUP BY of the outermost query: keys, and grouping sets from ROLLUP, CUBE and GROUPING SETS.

Tested in tests/sql/test_bind.py.
"""

import itertools
import math
from collections.abc import Callable, Sequence

from sqlglot import exp

from hubbub.sql.bind_aggregate_call import has_aggregate
from hubbub.sql.bind_expr import scalar
from hubbub.sql.bind_names import resolve_item, strip_alias
from hubbub.sql.bind_scope import Context, NameScope, is_unit
from hubbub.sql.expressions import Expr, facts

MAX_KEYS = 16
MAX_SETS = 64

Sets = tuple[tuple[int, ...], ...]
KeyIndex = Callable[[exp.Expr], int]


def bind_groups(
    ctx: Context, scope: NameScope, node: exp.Select, items: Sequence[exp.Expr]
) -> tuple[tuple[tuple[str, Expr], ...], Sets]:
    """Bind the keys of GROUP BY with their names, and list the grouping sets as indices of keys."""
    clause = node.args.get("group")
    if clause is None:
        return (), ((),)
    keys: dict[Expr, tuple[int, str]] = {}

    def key_index(part: exp.Expr) -> int:
        target = resolve_item(ctx, scope, part, items, alias_first=False)
        if is_unit(ctx, scope, target):
            raise ctx.error(
                part,
                "HB516",
                "GROUP BY the privacy ID column would release one group per person.",
                "Group by it inside a subquery, and aggregate over all people in the outer query.",
            )
        expr = scalar(ctx, scope, target)
        return keys.setdefault(expr, (len(keys), ctx.new_name("key")))[0]

    if clause.args.get("all") and clause.expressions:
        raise ctx.error(
            clause,
            "HB503",
            "GROUP BY ALL cannot be combined with other grouping keys.",
            "List all keys, or write only GROUP BY ALL.",
        )
    if clause.args.get("all"):
        parts = [strip_alias(item) for item in items if not has_aggregate(item)]
        sets = [tuple(dict.fromkeys(key_index(part) for part in parts))]
    else:
        choices = [_choices(ctx, part, key_index) for part in clause.expressions]
        if math.prod(len(choice) for choice in choices) > MAX_SETS:
            raise ctx.error(
                clause, "HB518", f"The query has more than {MAX_SETS} grouping sets.", "Use fewer columns in CUBE."
            )
        sets = [tuple(dict.fromkeys(itertools.chain(*chosen))) for chosen in itertools.product(*choices)]
    if len({frozenset(chosen) for chosen in sets}) < len(sets):
        raise ctx.error(
            clause, "HB503", "The same grouping set occurs twice and would be charged twice.", "Remove one of them."
        )
    if len(keys) > MAX_KEYS:
        raise ctx.error(
            clause, "HB518", f"GROUP BY has more than {MAX_KEYS} expressions.", "Group by fewer expressions."
        )
    return tuple((name, expr) for expr, (_, name) in keys.items()), tuple(tuple(sorted(chosen)) for chosen in sets)


def key_values(ctx: Context, node: exp.Expr, expr: Expr) -> Expr:
    """Return a key with the finite list of its values in the rows that meet the conditions, if there is one."""
    key = ctx.conditions.listed(expr)
    if facts(key).values == () and not facts(key).null:
        raise ctx.error(
            node.args.get("where") or node.args.get("group"),
            "HB569",
            "The conditions of this query exclude every value of a grouping key, so that no group can have rows.",
            "Change the condition. A value outside the declared bounds is read as the nearest bound, and one that is "
            "not in the declared list as NULL.",
        )
    return key


def _choices(ctx: Context, part: exp.Expr, key_index: KeyIndex) -> list[tuple[int, ...]]:
    if isinstance(part, exp.Rollup):
        members = [_member(inner, key_index) for inner in part.expressions]
        return [tuple(itertools.chain(*members[:n])) for n in range(len(members), -1, -1)]
    if isinstance(part, exp.Cube):
        members = [_member(inner, key_index) for inner in part.expressions]
        if len(members) > 6:
            raise ctx.error(
                part, "HB518", "CUBE has more than 6 columns.", "List the sets that you need in GROUPING SETS."
            )
        masks = itertools.product((True, False), repeat=len(members))
        return [tuple(itertools.chain(*(m for m, used in zip(members, mask, strict=True) if used))) for mask in masks]
    if isinstance(part, exp.GroupingSets):
        return [
            chosen
            for inner in part.expressions
            for chosen in (
                _choices(ctx, inner, key_index)
                if isinstance(inner, exp.Rollup | exp.Cube | exp.GroupingSets)
                else [_member(inner, key_index)]
            )
        ]
    return [_member(part, key_index)]


def _member(part: exp.Expr, key_index: KeyIndex) -> tuple[int, ...]:
    if isinstance(part, exp.Tuple):
        return tuple(key_index(inner) for inner in part.expressions)
    return (key_index(part.unnest() if isinstance(part, exp.Paren) else part),)
