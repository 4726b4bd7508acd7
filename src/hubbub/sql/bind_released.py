"""What happens to released answers: LIMIT, the largest few, and an outer query over an aggregated one.

All of this is post-processing: it sees noisy answers alone and costs nothing.
"""

from dataclasses import replace

from sqlglot import exp

from hubbub.core.schema import Kind
from hubbub.sql.bind_expr import condition, scalar
from hubbub.sql.bind_from import Around
from hubbub.sql.bind_names import distinct_names, output_name, referred, unaliased
from hubbub.sql.bind_scope import Context, Scope, Visible, matches
from hubbub.sql.expressions import Call, Col, Expr, Literal
from hubbub.sql.functions import build
from hubbub.sql.query import Order, Query

MAX_LIMIT = 1_000_000


def limit(ctx: Context, node: exp.Expr) -> int | None:
    """Read LIMIT n or FETCH FIRST n ROWS ONLY."""
    clause = node.args.get("limit")
    if clause is None:
        return None
    amount = clause.args.get("count") if isinstance(clause, exp.Fetch) else clause.args.get("expression")
    found = scalar(ctx, Scope((), "LIMIT"), amount) if amount is not None else Literal(1, Kind.INTEGER)
    if not (isinstance(found, Literal) and type(found.value) is int and 0 <= found.value <= MAX_LIMIT):
        raise ctx.refusal(clause, "HB508", f"LIMIT is a whole number up to {MAX_LIMIT}.", "Write the number.")
    return found.value


def is_top(query: Query) -> bool:
    """Recognize a question for the keys of the largest counts, and nothing else about them."""
    if len(query.aggregates) != 1 or len(query.order) != 1 or len(query.sets) != 1 or not query.limit or not query.keys:
        return False
    asked, by = query.aggregates[0], query.order[0]
    names = {key.name for key in query.keys}
    return (
        asked.function in ("count", "count_units")
        and by.descending
        and by.expr == Col(asked.name, Kind.INTEGER)
        and query.having is None
        and len(query.sets[0]) == len(query.keys)
        and all(isinstance(expr, Col) and expr.name in names for _, expr in query.select)
    )


def derived(node: exp.Select, around: Around) -> tuple[exp.Expr, Around, str | None] | None:
    """Find the one sub-query that a query reads, with what it can see and the name it goes by."""
    clause = node.args.get("from_")
    if clause is None or node.args.get("joins"):
        return None
    read = clause.this
    alias = read.args.get("alias")
    name = None if alias is None or alias.this is None else str(alias.this.this)
    if alias is not None and alias.args.get("columns"):
        return None
    if isinstance(read, exp.Subquery):
        return read.this, around, name
    if isinstance(read, exp.Table) and isinstance(read.this, exp.Identifier):
        found = around.find(read.this)
        if found is not None and not found[0].args["alias"].args.get("columns"):
            return found[0].this, found[1], name or str(read.this.this)
    return None


def over_released(ctx: Context, node: exp.Select, inner: Query, name: str | None) -> Query:
    """Bind SELECT … WHERE … ORDER BY … LIMIT over the answers of an aggregated query: one query that does both."""
    columns = tuple(Visible(label, name, Col(f"${i}", expr.kind)) for i, (label, expr) in enumerate(inner.select))
    answers = {f"${i}": expr for i, (_, expr) in enumerate(inner.select)}
    scope = Scope(columns, "the sub-query")

    def answer(part: exp.Expr) -> Expr:
        return _filled(scalar(ctx, scope, part), answers)

    items: list[exp.Expr] = []
    for item in node.expressions:
        star = item if isinstance(item, exp.Star) else item.this if isinstance(item, exp.Column) else None
        if not isinstance(star, exp.Star):
            items.append(item)
            continue
        table = item.args.get("table") if isinstance(item, exp.Column) else None
        if table is not None and not (name is not None and matches(name, table)):
            raise ctx.refusal(item, "HB506", "This star stands for no columns.", "Name the table as in FROM.")
        items.extend(exp.column(exp.to_identifier(label, quoted=True)) for label, _ in inner.select)
    where, order, most = node.args.get("where"), node.args.get("order"), limit(ctx, node)
    if inner.limit is not None and (where is not None or order is not None):
        raise ctx.refusal(
            where or order,
            "HB517",
            "The sub-query is cut off by its LIMIT before this is applied.",
            "Put WHERE, ORDER BY and LIMIT on one level.",
        )
    kept = inner.having
    if where is not None:
        condition(ctx, scope, where.this)
        passed = answer(where.this)
        both = passed if kept is None else build("and", (kept, passed))
        kept = passed if both is None else both
    terms = [
        Order(
            answer(referred(ctx, scope, term.this, items, alias_first=True)),
            bool(term.args.get("desc")),
            bool(term.args.get("nulls_first")),
        )
        for term in ([] if order is None else order.expressions)
    ]
    labels = distinct_names(ctx, [(output_name(item), isinstance(item, exp.Alias), item) for item in items])
    query = replace(
        inner,
        select=tuple(zip(labels, [answer(unaliased(item)) for item in items], strict=True)),
        having=kept,
        order=tuple(terms) or inner.order,
        limit=most if inner.limit is None else inner.limit if most is None else min(most, inner.limit),
    )
    return replace(query, top=is_top(query))


def _filled(expr: Expr, answers: dict[str, Expr]) -> Expr:
    if isinstance(expr, Col):
        return answers.get(expr.name, expr)
    return replace(expr, args=tuple(_filled(arg, answers) for arg in expr.args)) if isinstance(expr, Call) else expr
