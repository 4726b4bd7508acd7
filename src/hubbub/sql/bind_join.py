"""Bind joins with public tables, and of private tables on the privacy ID or a key. Every row keeps its one owner.

Tested in tests/sql/test_bind.py.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal as Choice

from sqlglot import exp

from hubbub.core.schema import Kind
from hubbub.errors import QueryError
from hubbub.sql.bind_apply import apply
from hubbub.sql.bind_expr import condition, scalar
from hubbub.sql.bind_match import Match
from hubbub.sql.bind_outer import Shown, full_join, marked, tests_for_no_match, told_apart, with_nulls
from hubbub.sql.bind_range_joins import RangeCondition, matches_of, range_condition, range_join
from hubbub.sql.bind_scope import (
    BoundRelation,
    Context,
    NameScope,
    Owner,
    VisibleColumn,
    conjuncts,
    find,
    fold_case,
    is_unit,
    owner_place,
)
from hubbub.sql.expressions import Col, Expr, Literal
from hubbub.sql.references import common_owner
from hubbub.sql.relations import OWNERS, Filter, Join, PerUnit, Project, Rel, Scan, columns

_ONE = Literal(1, Kind.INTEGER)


def bind_join(
    ctx: Context, left: BoundRelation, right: BoundRelation, node: exp.Join, where: Sequence[exp.Expr] = ()
) -> BoundRelation:
    """Bind a join of two relations, one of which may be public; `where` are conditions that all joined rows must meet.

    A left join of which only the rows without a match are kept is an anti join: it has no other rows to multiply.
    """
    side, kind = str(node.args.get("side") or "").upper(), str(node.args.get("kind") or "").upper()
    natural = str(node.args.get("method") or "").upper()
    _check_form(ctx, left, right, node, (natural, side, kind))
    node = _natural(ctx, left, right, node) if natural else node
    _check_condition(ctx, node, kind)
    written = (*left.columns, *right.columns)
    pairs, places, extra, merged = _conditions(ctx, left, right, node)
    if side == "RIGHT":
        left, right, pairs, places = right, left, [(b, a) for a, b in pairs], [(b, a) for a, b in places]
    outer = side in ("LEFT", "RIGHT")
    padded = _not_padded(ctx, left, right)
    if side == "FULL":
        return _full_join(ctx, node, left, right, pairs, places, extra, merged)
    if kind in ("SEMI", "ANTI"):
        return _semi_join(ctx, node, left, Match(right, pairs, bool(places)), extra, anti=kind == "ANTI")
    if right.owner is not None and right.owner.others and not outer:
        left, right, pairs, places = right, left, [(b, a) for a, b in pairs], [(b, a) for a, b in places]
    if left.owner is None and right.owner is not None:
        padded, outer = node if outer else None, False
        left, right, pairs = right, left, [(b, a) for a, b in pairs]
    places = places or _along_keys(left, right, pairs)
    if not pairs and not places and right.owner is None and not outer and padded is None:
        pairs = [(_ONE, _ONE)]  # every row with every row of a public table
    _check_owners(ctx, node, left, right, pairs, places)
    right, extra, ranged = _matching(ctx, left, right, extra) if outer else (right, extra, None)
    if outer and right.owner is not None and tests_for_no_match(ctx, left, right, pairs, where):
        match = matches_of(right, pairs, ranged)
        rows = _semi_join(ctx, node, left, match, [], anti=True)
        rel, shown = with_nulls(ctx, rows.rel, right)
        return replace(rows, rel=rel, columns=_in_order(left, right, written, merged, shown))
    if ranged is not None:
        return range_join(ctx, node, left, right, pairs, ranged, written)
    right, shown = marked(ctx, right) if outer and right.owner is not None else (right, {})
    if padded is None:
        _note(ctx, right, pairs, outer=outer)
    how: Choice["inner", "left"] = "left" if outer else "inner"
    joined = Join(left.rel, right.rel, how, tuple(pairs), bool(places), places[0][0] if places else 0)
    # of two columns in USING, a join that keeps the public rows shows the public one
    first, second = (right, left) if padded is not None else (left, right)
    visible = _in_order(first, second, written, merged, shown)
    result = BoundRelation(joined, visible, left.owner, padded)
    return _filtered(ctx, result, left, right, extra)


def _matching(
    ctx: Context, left: BoundRelation, right: BoundRelation, extra: list[exp.Expr]
) -> tuple[BoundRelation, list[exp.Expr], RangeCondition | None]:
    """Keep the rows of the right side of an outer join that meet its conditions on that side, and return the others."""
    here, there = (NameScope(side.columns, "a join condition") for side in (left, right))
    others = list[exp.Expr]()
    for part in extra:
        if part.find(exp.Column) is not None and _side(ctx, here, there, part) != 1:
            others.append(part)
            continue
        kept = condition(ctx, there, part)
        ctx.conditions.add(kept)
        right = replace(right, rel=Filter(right.rel, kept))
    return right, [], _ranged(ctx, left, right, others) if others else None


def _ranged(ctx: Context, left: BoundRelation, right: BoundRelation, parts: Sequence[exp.Expr]) -> RangeCondition:
    """Bind what an outer join of private tables compares besides equalities: by one comparison at most."""
    here, there = (NameScope(side.columns, "a join condition") for side in (left, right))
    private = all(side.owner is not None and not side.owner.others for side in (left, right))
    alone = [_side(ctx, here, there, part) == -1 or not isinstance(part, exp.Binary) for part in parts]
    sides = [
        (_side(ctx, here, there, part),) * 2
        if one
        else (_side(ctx, here, there, part.this), _side(ctx, here, there, part.expression))
        for part, one in zip(parts, alone, strict=True)
    ]
    bound = range_condition(ctx, left, right, list(zip(parts, sides, strict=True))) if private else None
    if bound is None:
        raise ctx.error(
            parts[0],
            "HB513",
            "An outer join compares both tables with =, and two private tables also once with <, <=, >, >= or <>.",
            "Move other conditions to WHERE, or compute them in a subquery.",
        )
    return bound


def _check_condition(ctx: Context, node: exp.Join, kind: str) -> None:
    if node.args.get("on") is None and not node.args.get("using") and kind != "CROSS":
        raise ctx.error(
            node,
            "HB513",
            "The join has no condition.",
            "Write JOIN … ON a.x = b.x, or JOIN … USING (x).",
        )


def _check_form(
    ctx: Context, left: BoundRelation, right: BoundRelation, node: exp.Join, form: tuple[str, str, str]
) -> None:
    """Check the kind of a join, and that its tables have different names."""
    natural, side, kind = form
    matched = kind in ("SEMI", "ANTI") and side in ("", "LEFT") and not natural
    sides = ("", "LEFT", "RIGHT", "FULL")
    plain = natural in ("", "NATURAL") and kind in ("", "INNER", "OUTER", "CROSS") and side in sides
    if not (plain or matched):
        raise ctx.error(
            node,
            "HB513",
            "Only inner, left, right, full, cross, semi and anti joins are supported.",
            "Use JOIN … ON, LEFT JOIN … ON, RIGHT JOIN … ON or FULL JOIN … ON.",
        )
    names = {c.table for c in left.columns if c.table is not None}
    if any(c.table in names for c in right.columns if c.table is not None):
        raise ctx.error(node, "HB507", "Two tables in this query have the same name.", "Give them different aliases.")


def _full_join(
    ctx: Context,
    node: exp.Join,
    left: BoundRelation,
    right: BoundRelation,
    pairs: "Pairs",
    places: "Places",
    extra: Sequence[exp.Expr],
    merged: set[str],
) -> BoundRelation:
    """Bind a full join of two private relations, or of two public ones."""
    if extra:
        raise ctx.error(
            extra[0],
            "HB513",
            "The condition of a full join can only compare columns of its two sides with =.",
            "Filter one side in a subquery, as in FULL JOIN (SELECT … FROM b WHERE …) AS b ON ….",
        )
    if (left.owner is None) != (right.owner is None):
        raise ctx.error(
            node,
            "HB513",
            "A full join with a public table would keep rows that belong to no person.",
            "Put the private table on the left, as in FROM visits v LEFT JOIN sites s ON v.site = s.site. To list the "
            "groups that nobody is in, write SELECT s.site, COUNT(v.cost) FROM sites s LEFT JOIN visits v ON "
            "v.site = s.site GROUP BY s.site.",
        )
    if any(side.owner is not None and side.owner.others for side in (left, right)):
        raise ctx.error(
            node,
            "HB762",
            "An outer join of private tables is not supported where rows have two owners.",
            "Use an inner join.",
        )
    places = places or _along_keys(left, right, pairs)
    _check_owners(ctx, node, left, right, pairs, places)
    return full_join(ctx, node, left, right, pairs, merged, unit=bool(places))


def _semi_join(
    ctx: Context, node: exp.Join, left: BoundRelation, match: Match, extra: list[exp.Expr], *, anti: bool
) -> BoundRelation:
    """Keep the rows that have a match, or those that have none."""
    if extra:
        raise ctx.error(
            node,
            "HB513",
            "The condition of a semi or anti join can only compare columns of its two sides with =.",
            "Use EXISTS or NOT EXISTS, or filter one side in a subquery.",
        )
    if left.owner is None and match.inner.owner is not None:
        raise ctx.error(node, "HB513", "Rows of a public table belong to no person.", "Swap the two tables.")
    owner, other = left.owner, match.inner.owner
    if owner is not None and other is not None:
        places = [(0, 0)] if match.unit else _along_keys(left, match.inner, match.pairs)
        _check_owners(ctx, node, left, match.inner, match.pairs, places)
        if owner.others or other.others:
            why, remedy = owner.mismatch(other)
            raise ctx.error(node, "HB513", why, remedy)
        match = replace(match, unit=True)
    if not anti:
        return match.join(ctx, node, left, "inner")[0]
    rows, has_match = match.mark(ctx, node, left)
    return replace(rows, rel=Filter(rows.rel, apply(ctx, node, "not", [has_match])))


def _filtered(
    ctx: Context, joined: BoundRelation, left: BoundRelation, right: BoundRelation, extra: list[exp.Expr]
) -> BoundRelation:
    """Apply the conditions of a join that are no equalities of its sides."""
    for part in extra:
        if joined.padded is not None and not _reads(ctx, left, part):
            raise padded_error(ctx, joined.padded)
        kept = condition(ctx, NameScope((*left.columns, *right.columns), "a join condition"), part)
        if joined.padded is None:  # else public rows that do not meet it are kept, too
            ctx.conditions.add(kept)
        joined = replace(joined, rel=Filter(joined.rel, kept))
    return joined


def _not_padded(ctx: Context, *sides: BoundRelation) -> exp.Expr | None:
    """Raise if a side of a join has unmatched public rows already."""
    for side in sides:
        if side.padded is not None:
            raise padded_error(ctx, side.padded)
    return None


def _reads(ctx: Context, side: BoundRelation, node: exp.Expr) -> bool:
    """Tell whether an expression names a column of one side of a join."""
    scope = NameScope(side.columns, "a join condition")
    return any(find(ctx, scope, column) is not None for column in node.find_all(exp.Column))


def padded_error(ctx: Context, node: exp.Expr) -> QueryError:
    """Build the error for an outer join whose unmatched public rows would be counted or selected."""
    return ctx.error(
        node,
        "HB513",
        "An outer join that keeps all rows of a public table can only list its groups: the rows that nobody matches "
        "belong to no person.",
        "Group by columns of the public table, and aggregate columns of the private one, as in COUNT(private.x). "
        "Otherwise use an inner join, or put the private table on the left of LEFT JOIN.",
    )


def _along_keys(left: BoundRelation, right: BoundRelation, pairs: "Pairs") -> "Places":
    """Return which owners are equal because a join follows keys."""
    private = left.owner is not None and right.owner is not None
    place = common_owner(left.rel, right.rel, pairs) if private else None
    return [] if place is None else [(place, 0)]


def _natural(ctx: Context, left: BoundRelation, right: BoundRelation, node: exp.Join) -> exp.Join:
    """Write NATURAL JOIN as USING with the columns that both sides have."""
    theirs = {fold_case(column.name) for column in right.columns if _is_plain(column)}
    ours = [fold_case(column.name) for column in left.columns if _is_plain(column)]
    names = list(dict.fromkeys(name for name in ours if name in theirs))
    if not names:
        raise ctx.error(node, "HB513", "The tables of this NATURAL JOIN share no column.", "Use JOIN … ON a.x = b.y.")
    using = [exp.to_identifier(name) for name in names]
    return exp.Join(this=node.this.copy(), using=using, side=node.args.get("side"), kind=node.args.get("kind"))


def _is_plain(column: VisibleColumn) -> bool:
    """Tell whether a column is named without its table, and has a value of its own."""
    return not column.qualified and column.present is None


def _note(ctx: Context, right: BoundRelation, pairs: "Pairs", *, outer: bool) -> None:
    """Take note of what a join says about its rows: an outer join binds neither side, and adds NULL on the right."""
    if outer:
        ctx.conditions.outer_join(c.col for c in right.columns if c.col is not None)
        return
    for a, b in pairs:
        ctx.conditions.equate(a, b)


def _in_order(
    left: BoundRelation, right: BoundRelation, written: Sequence[VisibleColumn], merged: set[str], shown: Shown
) -> tuple[VisibleColumn, ...]:
    """List the columns that can be named after a join, as the text names their tables, because `*` lists them so.

    Of the columns in USING the left one is kept, where the first of them is. In an outer join `shown` has columns that
    are not as they were; there, those in USING can be named by their table.
    """
    double = left.owner is not None and bool(left.owner.others) and right.owner is not None

    def place(column: VisibleColumn) -> int:
        name = fold_case(column.name)
        if name not in merged:
            return next(i for i, each in enumerate(written) if each is column)
        return next(i for i, each in enumerate(written) if fold_case(each.name) == name)

    visible = [(place(column), column) for column in left.columns]
    for column in right.columns:
        changed, twice = shown.get(column, column), fold_case(column.name) in merged
        # the owner of the right side may be one of those of the left side, and has its name there
        if (twice and not shown) or (double and column.col is None):
            continue
        visible.append((place(column), replace(changed, qualified=True) if twice else changed))
    return told_apart([column for _, column in sorted(visible, key=lambda each: each[0])])


Pairs = list[tuple[Expr, Expr]]
#: Which owner of the left side equals which owner of the right side.
Places = list[tuple[int, int]]


def _conditions(
    ctx: Context, left: BoundRelation, right: BoundRelation, node: exp.Join
) -> tuple[Pairs, Places, list[exp.Expr], set[str]]:
    """Split a join condition into pairs of equal columns, which privacy IDs are equal, and the rest."""
    a, b = NameScope(left.columns, "a join condition"), NameScope(right.columns, "a join condition")
    pairs, places, extra, merged = Pairs(), Places(), list[exp.Expr](), set[str]()
    for name in node.args.get("using") or []:
        reference = exp.column(name.copy())
        merged.add(fold_case(str(name.this)))
        if is_unit(ctx, a, reference) and is_unit(ctx, b, reference):
            places.append((owner_place(ctx, a, reference), owner_place(ctx, b, reference)))
        else:
            operands = [_operand(ctx, side, other, reference) for side, other in ((left, right), (right, left))]
            pairs.append(_pair(ctx, node, *operands))
    on = node.args.get("on")
    both = NameScope((*left.columns, *right.columns), "a join condition")
    for inner in [] if on is None else conjuncts(on):
        if isinstance(inner, exp.EQ):
            if is_unit(ctx, both, inner.this) and is_unit(ctx, both, inner.expression):
                sides = _side(ctx, a, b, inner.this), _side(ctx, a, b, inner.expression)
                if sides[0] * sides[1] != -1:
                    raise ctx.error(
                        inner,
                        "HB513",
                        "The privacy ID column is compared with itself.",
                        "Qualify it with both tables, as in a.id = b.id.",
                    )
                first, second = (inner.this, inner.expression)[:: -sides[0]]
                places.append((owner_place(ctx, a, first), owner_place(ctx, b, second)))
                continue
            sides = _side(ctx, a, b, inner.this), _side(ctx, a, b, inner.expression)
            if sides in ((-1, 1), (1, -1)):
                first, second = (inner.this, inner.expression)[:: -sides[0]]
                pairs.append(_pair(ctx, inner, _operand(ctx, left, right, first), _operand(ctx, right, left, second)))
                continue
        extra.append(inner)
    return pairs, places, extra, merged


def _operand(ctx: Context, side: BoundRelation, other: BoundRelation, node: exp.Expr) -> Expr:
    """Bind one side of an equality, which may be the privacy ID column if the other table is public.

    Which rows of a public table a private row matches depends only on its owner's rows and public data.
    """
    scope = NameScope(side.columns, "a join condition")
    if other.owner is None and side.owner is not None and side.owner.kind is not None and is_unit(ctx, scope, node):
        place = owner_place(ctx, scope, node)
        return Col(OWNERS[place], side.owner.each[place].kind or Kind.TEXT)
    return scalar(ctx, scope, node)


def _side(ctx: Context, a: NameScope, b: NameScope, node: exp.Expr) -> int:
    """Return the side that the columns of an expression come from: -1 left, 1 right, 0 both or neither."""
    sides = set()
    for column in node.find_all(exp.Column):
        in_a, in_b = find(ctx, a, column) is not None, find(ctx, b, column) is not None
        sides.add(0 if in_a == in_b else -1 if in_a else 1)
    return sides.pop() if len(sides) == 1 else 0


def _pair(ctx: Context, node: exp.Expr, a: Expr, b: Expr) -> tuple[Expr, Expr]:
    if a.kind is not b.kind and not (a.kind.numeric and b.kind.numeric):
        raise ctx.error(
            node,
            "HB508",
            f"The join compares a column of type {a.kind.value} with one of type {b.kind.value}.",
            "CAST one side to the type of the other.",
        )
    return a, b


def _check_owners(
    ctx: Context, node: exp.Join, left: BoundRelation, right: BoundRelation, pairs: Pairs, places: Places
) -> None:
    """Check the rules by which every row keeps one owner."""
    if right.owner is not None and left.owner is not None:
        if left.owner.kind is None or right.owner.kind is None:
            raise ctx.error(
                node,
                "HB513",
                "A table with row-level privacy can be joined only with public tables.",
                "Query each table on its own.",
            )
        if not places:
            raise ctx.error(
                node,
                "HB513",
                "This join would combine rows of different people.",
                "Add the privacy ID to the condition (… AND a.id = b.id), or join along a declared key.",
            )
        if left.owner.others:
            _check_two_owners(ctx, node, left.owner, right.owner, places)
        else:
            ctx.check_same_owner(node, "HB513", left.owner, right.owner)
    if left.owner is not None and left.owner.kind is None and not _unique(right.rel, [b for _, b in pairs]):
        raise ctx.error(
            node,
            "HB513",
            "A join cannot duplicate rows of a table with row-level privacy.",
            "Join a public table on columns that the data owner has declared unique.",
        )
    if not pairs and not places:
        raise ctx.error(
            node,
            "HB513",
            "The join condition does not compare a column of one table with a column of the other.",
            "Write ON a.x = b.x.",
        )


def _check_two_owners(ctx: Context, node: exp.Join, left: Owner, right: Owner, places: Places) -> None:
    """Check that the right side has one owner, who is an owner of the left side as well."""
    if right.others or len(places) > 1:
        raise ctx.error(
            node,
            "HB762",
            "Two tables whose rows have two owners cannot be joined.",
            "Join tables with one owner, or public tables.",
        )
    if node.args.get("side"):
        raise ctx.error(
            node,
            "HB762",
            "An outer join of private tables is not supported where rows have two owners.",
            "Use an inner join.",
        )
    ctx.check_same_owner(node, "HB762", left.each[places[0][0]], right)


def _unique(rel: Rel, on: list[Expr]) -> bool:
    """Tell whether no two rows of a public relation agree on the join columns."""
    names = {expr.name for expr in on if isinstance(expr, Col)}
    while not isinstance(rel, Scan):
        if isinstance(rel, PerUnit):
            return {name for name, _ in rel.keys} <= names
        if isinstance(rel, Filter):
            rel = rel.input
        elif isinstance(rel, Project):
            names = {expr.name for name, expr in rel.outputs if name in names and isinstance(expr, Col)}
            rel = rel.input
        else:
            return False
    sources = {source for col, source in zip(columns(rel), rel.sources, strict=True) if col.name in names}
    return rel.table.unique is not None and set(rel.table.unique) <= sources
