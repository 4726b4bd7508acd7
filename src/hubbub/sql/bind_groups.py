"""GROUP BY of the outermost query: keys, and grouping sets from ROLLUP, CUBE and GROUPING SETS."""

import itertools
from collections.abc import Callable, Sequence

from sqlglot import exp

from hubbub.sql.bind_aggregates import has_aggregate
from hubbub.sql.bind_expr import scalar
from hubbub.sql.bind_names import referred, unaliased
from hubbub.sql.bind_scope import Context, Scope, is_unit
from hubbub.sql.expressions import Expr

MAX_KEYS = 16
MAX_SETS = 64

Sets = tuple[tuple[int, ...], ...]
Place = Callable[[exp.Expr], int]


def groups(
    ctx: Context, scope: Scope, node: exp.Select, items: Sequence[exp.Expr]
) -> tuple[tuple[tuple[str, Expr], ...], Sets]:
    """Bind the keys of GROUP BY, each with a name, and list the grouping sets as places among them."""
    clause = node.args.get("group")
    if clause is None:
        return (), ((),)
    keys: dict[Expr, tuple[int, str]] = {}

    def place(part: exp.Expr) -> int:
        target = referred(ctx, scope, part, items, alias_first=False)
        if is_unit(ctx, scope, target):
            raise ctx.refusal(
                part,
                "HB516",
                "Groups of one person each cannot be released.",
                "Group by the unit inside a sub-query, and ask about the people as a crowd outside it.",
            )
        expr = scalar(ctx, scope, target)
        return keys.setdefault(expr, (len(keys), ctx.name("key")))[0]

    if clause.args.get("all") and clause.expressions:
        raise ctx.refusal(clause, "HB503", "After GROUP BY ALL stands nothing else.", "List the keys instead.")
    if clause.args.get("all"):
        parts = [unaliased(item) for item in items if not has_aggregate(item)]
        sets = [tuple(dict.fromkeys(place(part) for part in parts))]
    else:
        choices = [_choices(ctx, part, place) for part in clause.expressions]
        if _count(choices) > MAX_SETS:
            raise ctx.refusal(clause, "HB518", f"More than {MAX_SETS} grouping sets.", "Use fewer columns in CUBE.")
        sets = [tuple(dict.fromkeys(itertools.chain(*chosen))) for chosen in itertools.product(*choices)]
    if len({frozenset(chosen) for chosen in sets}) < len(sets):
        raise ctx.refusal(
            clause, "HB503", "The same grouping set is asked for twice, and would be paid twice.", "Remove one."
        )
    if len(keys) > MAX_KEYS:
        raise ctx.refusal(clause, "HB518", f"More than {MAX_KEYS} expressions in GROUP BY.", "Group by fewer.")
    return tuple((name, expr) for expr, (_, name) in keys.items()), tuple(tuple(sorted(chosen)) for chosen in sets)


def _count(choices: list[list[tuple[int, ...]]]) -> int:
    total = 1
    for choice in choices:
        total *= len(choice)
    return total


def _choices(ctx: Context, part: exp.Expr, place: Place) -> list[tuple[int, ...]]:
    if isinstance(part, exp.Rollup):
        members = [_member(inner, place) for inner in part.expressions]
        return [tuple(itertools.chain(*members[:n])) for n in range(len(members), -1, -1)]
    if isinstance(part, exp.Cube):
        members = [_member(inner, place) for inner in part.expressions]
        if len(members) > 6:
            raise ctx.refusal(part, "HB518", "CUBE of more than 6 columns.", "Write the GROUPING SETS that you need.")
        masks = itertools.product((True, False), repeat=len(members))
        return [tuple(itertools.chain(*(m for m, used in zip(members, mask, strict=True) if used))) for mask in masks]
    if isinstance(part, exp.GroupingSets):
        return [
            chosen
            for inner in part.expressions
            for chosen in (
                _choices(ctx, inner, place)
                if isinstance(inner, exp.Rollup | exp.Cube | exp.GroupingSets)
                else [_member(inner, place)]
            )
        ]
    return [_member(part, place)]


def _member(part: exp.Expr, place: Place) -> tuple[int, ...]:
    if isinstance(part, exp.Tuple):
        return tuple(place(inner) for inner in part.expressions)
    return (place(part.unnest() if isinstance(part, exp.Paren) else part),)
