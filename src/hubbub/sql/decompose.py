"""Take an aggregation apart: a release of its keys and aggregates, and the expressions over them.

Tested in tests/sql/test_after.py.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from hubbub.sql.after_intervals import ROW
from hubbub.sql.bind_from import bind_rows
from hubbub.sql.bind_names import distinct_names, expand_aliases, output_name, resolve_item, strip_alias
from hubbub.sql.bind_scope import Context, NameScope, find
from hubbub.sql.bind_select import select_items
from hubbub.sql.bind_tables import CteScope
from hubbub.sql.generate import duckdb_sql
from hubbub.sql.query_levels import clauses, has_window, nested_queries, only_rows, plain_aggregates, window_operands
from hubbub.sql.text import quote


@dataclass
class Decomposition:
    """An aggregation as a release of its keys and aggregates, and the expressions over them."""

    ctx: Context
    node: exp.Select
    scope: NameScope
    items: Sequence[exp.Expr]
    keys: dict[str, exp.Expr] = field(default_factory=dict)
    measured: dict[str, exp.Expr] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, ctx: Context, node: exp.Select, ctes: CteScope) -> "Decomposition":
        """Bind the rows that an aggregation reads, and list its keys."""
        rows = bind_rows(ctx, only_rows(node), ctes)
        scope = NameScope(rows.columns, "GROUP BY or in another aggregate")
        parts = cls(ctx, node, scope, select_items(ctx, node, rows.columns))
        for leaf in parts.leaves():
            parts.keys.setdefault(parts.canonical(leaf), leaf)
        for item in parts.items:
            if isinstance(item, exp.Alias):
                parts.labels.setdefault(parts.canonical(item.this), item.alias)
        return parts

    def _label(self, canonical: str, node: exp.Expr) -> str:
        """Name a column of the release after the output that it is, or after what it computes."""
        taken = [self.labels.get(each) for each in (*self.keys, *self.measured)]
        name = self.labels.get(canonical) or output_name(node)
        others = [each for each in taken if each is not None]
        while canonical not in self.labels and name in others:
            name += "_"
        return self.labels.setdefault(canonical, name)

    def leaves(self) -> list[exp.Expr]:
        """List the expressions of GROUP BY, with positions and aliases resolved."""
        group = self.node.args.get("group")
        if group is None:
            return []
        if group.args.get("all"):
            items = [strip_alias(item) for item in self.items]
            return [item for item in items if next(plain_aggregates(item), None) is None and not has_window(item)]
        stack, leaves = list(reversed(group.expressions)), list[exp.Expr]()
        while stack:
            part = stack.pop()
            if isinstance(part, exp.Rollup | exp.Cube | exp.GroupingSets | exp.Tuple):
                stack.extend(reversed(part.expressions))
            else:
                leaves.append(resolve_item(self.ctx, self.scope, _bare(part), self.items, alias_first=False))
        return leaves

    def canonical(self, node: exp.Expr) -> str:
        """Write an expression so that equal ones are equal: columns by what they refer to, without parentheses."""

        def named(part: exp.Expr) -> exp.Expr:
            column = find(self.ctx, self.scope, part) if isinstance(part, exp.Column) and part.name else None
            if column is None:
                return part
            col = column.col or column.present
            bound = "$unit" if col is None else col.name
            return exp.column(exp.to_identifier(bound, quoted=True))

        return duckdb_sql(_bare(node).copy().transform(named), self.ctx.text)

    def over(self, release: Callable[[exp.Select], str], rewrite: Callable[[exp.Expr], None]) -> exp.Expr:
        """Return the query over the noisy result: `release` names its release, `rewrite` rewrites its subqueries."""
        labels = distinct_names(
            self.ctx, [(output_name(item), isinstance(item, exp.Alias), item) for item in self.items]
        )
        outputs = [
            exp.alias_(self.after(strip_alias(item)), label, quoted=True)
            for item, label in zip(self.items, labels, strict=True)
        ]
        outer = exp.Select(expressions=outputs)
        having, qualify, order = (self.node.args.get(name) for name in ("having", "qualify", "order"))
        if having is not None:
            outer.set("where", exp.Where(this=self.after(self._expanded(having.this))))
        if qualify is not None:
            outer.set("qualify", exp.Qualify(this=self.after(self._expanded(qualify.this))))
        if order is not None:
            outer.set("order", exp.Order(expressions=[self._term(term) for term in order.expressions]))
        elif self.node.args.get("distinct") is None:
            outer.set("order", exp.Order(expressions=[exp.column(exp.to_identifier(ROW, quoted=True))]))
        for name in ("distinct", "limit", "offset"):
            if (part := self.node.args.get(name)) is not None:
                outer.set(name, part.copy())
        name = release(self._release())
        outer.set("from_", exp.From(this=exp.Table(this=exp.to_identifier(name, quoted=True))))
        for part in clauses(outer):
            for inner in list(nested_queries(part)):
                rewrite(inner)
        return outer

    def _release(self) -> exp.Select:
        """Write the release: every key and every aggregate is a column."""
        parts = {**self.keys, **self.measured}
        columns = [exp.alias_(each.copy(), self._label(name, each), quoted=True) for name, each in parts.items()]
        release = exp.Select(expressions=columns)
        for name in ("from_", "where"):
            if (part := self.node.args.get(name)) is not None:
                release.set(name, part.copy())
        release.set("joins", [join.copy() for join in self.node.args.get("joins") or []])
        group = self.node.args.get("group")
        if group is None:
            return release
        if group.args.get("all"):
            release.set("group", exp.Group(expressions=[key.copy() for key in self.keys.values()]))
            return release
        copied = group.copy()
        for part in list(copied.expressions):
            self._resolve_leaves(part)
        release.set("group", copied)
        return release

    def _resolve_leaves(self, part: exp.Expr) -> None:
        if isinstance(part, exp.Rollup | exp.Cube | exp.GroupingSets | exp.Tuple):
            for inner in list(part.expressions):
                self._resolve_leaves(inner)
            return
        part.replace(resolve_item(self.ctx, self.scope, _bare(part), self.items, alias_first=False).copy())

    def _expanded(self, node: exp.Expr) -> exp.Expr:
        return expand_aliases(self.scope, node, self.items, self.ctx)

    def _term(self, term: exp.Expr) -> exp.Expr:
        copied = term.copy()
        target = resolve_item(self.ctx, self.scope, term.this, self.items, alias_first=True)
        copied.set("this", self.after(self._expanded(target) if target is term.this else target))
        return copied

    def after(self, node: exp.Expr) -> exp.Expr:
        """Write an expression over the columns of the release."""
        if isinstance(node, exp.Select | exp.SetOperation):
            return node.copy()
        if not isinstance(node, exp.Window):
            key = self.canonical(node)
            if key in self.keys:
                return _column(self._label(key, node))
            if next(plain_aggregates(node), None) is node:
                self.measured.setdefault(key, node)
                return _column(self._label(key, node))
        if isinstance(node, exp.Column):
            windowed = node.find_ancestor(exp.Window) is not None
            raise self.ctx.error(
                node,
                "HB511",
                f"{quote(node.name)} must appear in GROUP BY or inside an aggregate."
                + (" A window beside GROUP BY reads its noisy result." if windowed else ""),
                "Add it to GROUP BY, or use it in an aggregate such as AVG or COUNT."
                + (
                    " For a window over the rows of each person, use a subquery and PARTITION BY the privacy ID."
                    if windowed
                    else ""
                ),
            )
        copied = node.copy()
        for child, twin in zip(_operands(node), _operands(copied), strict=True):
            twin.replace(self.after(child))
        return copied


def _operands(node: exp.Expr) -> list[exp.Expr]:
    return window_operands(node) if isinstance(node, exp.Window) else list(node.iter_expressions())


def _column(name: str) -> exp.Expr:
    return exp.column(exp.to_identifier(name, quoted=True))


def _bare(node: exp.Expr) -> exp.Expr:
    return node.unnest() if isinstance(node, exp.Paren) else node
