"""Queries over list columns, written as queries over the columns of their elements.

    SELECT tag, COUNT(*) FROM visits v, UNNEST(v.tags) AS t(tag) GROUP BY tag      where tags has `elements: 2`
    → SELECT CASE t."tag#" WHEN 1 THEN v."tags[1]" WHEN 2 THEN v."tags[2]" END AS tag, COUNT(*)
      FROM visits v CROSS JOIN (VALUES (1), (2)) AS t("tag#") WHERE t."tag#" <= v."tags[]" GROUP BY …
    list_contains(tags, 'a') → the same as "tags[1]" = 'a' OR "tags[2]" = 'a', where the list is not NULL

What comes out is bound as if it had been written, so nothing here needs a proof of privacy: a person's rows are
multiplied by the rows of a public list, and the bounds of such a join hold.

Tested in tests/sql/test_lists.py.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from hubbub.core.list_columns import element_name, length_name, part_of
from hubbub.core.schema import Table
from hubbub.errors import QueryError
from hubbub.sql.bind_scope import MAX_BOUND, Context, fold_case
from hubbub.sql.text import quote
from hubbub.sql.tokens import ONE_ROW_EACH

#: The numbers of elements of the list columns of a table or query, by name.
Lists = Mapping[str, int]

_NONE: Lists = {}
_LENGTHS = (exp.ArraySize, exp.Length)
_NAMED_LENGTHS = ("cardinality", "array_length", "len")
_OF_SEVERAL = {"list_has_all": exp.ArrayContainsAll, "array_has_all": exp.ArrayContainsAll} | dict.fromkeys(
    ("arrays_overlap", "list_has_any", "array_has_any"), exp.ArrayOverlaps
)


def with_lists(ctx: Context, tree: exp.Expr) -> exp.Expr:
    """Return a query without list columns. The tree is copied where it is changed."""
    known = {table.name: lists_of(table) for table in ctx.tables.values()}
    if any(known.values()):
        tree = tree.copy()
        _Lists(ctx, known).query(tree, {})
    for node in tree.find_all(exp.Unnest, exp.Explode, exp.Any, exp.Bracket):
        listed = _column(node)
        if listed is not None:
            raise _no_list(ctx, node, listed)
    return tree


def lists_of(table: Table) -> Lists:
    """Return the list columns of a table, each with the number of its elements."""
    names = {column.name for column in table.columns if not column.hidden}
    found: dict[str, int] = {}
    for name in names:
        part = part_of(name)
        if part is not None and length_name(part[0]) in names:
            found[part[0]] = max(found.get(part[0], 0), part[1])
    return found


@dataclass(frozen=True)
class _List:
    """A column that is a list: its name and number of elements, and the table before its name."""

    name: str
    count: int
    table: exp.Expr | None

    def part(self, place: int) -> exp.Expr:
        """Name the column of an element, or of the length (0)."""
        name = element_name(self.name, place) if place else length_name(self.name)
        table = None if self.table is None else self.table.copy()
        return exp.Column(this=exp.to_identifier(name, quoted=True), table=table)

    def parts(self) -> list[exp.Expr]:
        """Name the columns of all elements."""
        return [self.part(place) for place in range(1, self.count + 1)]


@dataclass
class _Sources:
    """What a SELECT reads: the lists of each table by its alias, and the names of all columns."""

    lists: list[tuple[str, Lists]] = field(default_factory=list)
    names: set[str] = field(default_factory=set)

    def find(self, node: exp.Expr | None) -> _List | None:
        """Return the list that an expression names, if it names one."""
        column = node.unnest() if isinstance(node, exp.Paren) else node
        if not isinstance(column, exp.Column) or isinstance(column.this, exp.Star):
            return None
        for alias, lists in self.lists:
            if column.table and fold_case(column.table) != alias:
                continue
            for name, count in lists.items():
                if fold_case(name) == fold_case(column.name):
                    return _List(name, count, column.args.get("table"))
        return None


@dataclass
class _Lists:
    ctx: Context
    known: Mapping[str, Lists]
    written: int = 0

    def spend(self, node: exp.Expr, listed: _List, value: exp.Expr | None = None) -> None:
        """Count the nodes that are written for all elements of a list, or raise before they are written."""
        self.written += listed.count * (5 + (0 if value is None else sum(1 for _ in value.walk())))
        if self.written > MAX_BOUND:
            raise self.ctx.error(
                node,
                "HB746",
                "This query grows too large when its lists are written as their elements.",
                "Compare lists with fewer values, or compute the comparison once in a subquery.",
            )

    def query(self, node: exp.Expr, ctes: Mapping[str, Lists]) -> Lists:
        """Rewrite a query in place, and return the lists among its columns."""
        if isinstance(node, exp.Subquery):
            return self.query(node.this, ctes)
        if isinstance(node, exp.Table):
            return self._table(node, ctes)
        clause = node.args.get("with_")
        for cte in [] if clause is None else clause.expressions:
            ctes = {**ctes, fold_case(cte.alias): self.query(cte.this, ctes)}
        if isinstance(node, exp.SetOperation):
            first = self.query(node.this, ctes)
            self.query(node.expression, ctes)
            return first
        return self._select(node, ctes) if isinstance(node, exp.Select) else _NONE

    def _table(self, node: exp.Table, ctes: Mapping[str, Lists]) -> Lists:
        name = fold_case(node.name)
        if name in ctes:
            return ctes[name]
        return next((lists for table, lists in self.known.items() if fold_case(table) == name), _NONE)

    def _select(self, node: exp.Select, ctes: Mapping[str, Lists]) -> Lists:
        sources, unnested = _Sources(), list[exp.Join]()
        clause = node.args.get("from_")
        joins = node.args.get("joins") or []
        for source in [*([] if clause is None else [clause.this]), *(join.this for join in joins)]:
            self._source(source, ctes, sources)
        for inner in list(_nested(node)):
            self.query(inner, ctes)
        for join in joins:
            if isinstance(join.this, exp.Unnest) and _column(join.this) is not None:
                unnested.append(join)
        starred = any(item.is_star for item in node.expressions)
        if unnested and starred:
            raise self.ctx.error(unnested[0], "HB503", "`*` is not supported beside UNNEST.", "Name the columns.")
        for join in unnested:
            self._unnest(node, join, sources)
        for part in list(_own(node)):
            self._call(part, sources)
        outputs = {name: count for _, lists in sources.lists for name, count in lists.items()} if starred else {}
        self._shown(node, sources, outputs)
        for part in _own(node):
            listed = sources.find(part)
            if listed is not None:
                raise self.ctx.error(
                    part,
                    "HB503",
                    f"{quote(listed.name)} is a list.",
                    f"Write FROM t, UNNEST(t.{listed.name}) AS e(x), list_contains({listed.name}, 'a'), "
                    f"len({listed.name}) or {listed.name}[1].",
                )
        return outputs

    def _shown(self, node: exp.Select, sources: _Sources, outputs: dict[str, int]) -> None:
        """Write a list that is selected as the columns of its parts, and note it among the outputs."""
        items = list[exp.Expr]()
        for item in node.expressions:
            listed = None if item.is_star else sources.find(item.unalias())
            if listed is None:
                items.append(item)
                continue
            name = item.alias_or_name
            outputs[name] = listed.count
            names = [*(element_name(name, place) for place in range(1, listed.count + 1)), length_name(name)]
            parts = [*listed.parts(), listed.part(0)]
            items += [exp.alias_(part, label, quoted=True) for part, label in zip(parts, names, strict=True)]
        node.set("expressions", items)

    def _source(self, node: exp.Expr, ctes: Mapping[str, Lists], sources: _Sources) -> None:
        if isinstance(node, exp.Table | exp.Subquery):
            sources.lists.append((fold_case(node.alias_or_name), self.query(node, ctes)))
            sources.names |= self._names(node, ctes)
            for join in node.args.get("joins") or []:
                self._source(join.this, ctes, sources)

    def _names(self, node: exp.Expr, ctes: Mapping[str, Lists]) -> set[str]:
        """List the columns of a table or subquery, as far as they are known."""
        if isinstance(node, exp.Subquery):
            return {fold_case(name) for name in node.this.named_selects if name != "*"}
        name = fold_case(node.name)
        tables = () if name in ctes else self.ctx.tables.values()
        found = next((each.columns for each in tables if fold_case(each.name) == name), ())
        return {fold_case(each.name) for each in found if not each.hidden}

    # --- one row for each element ------------------------------------------------------------------------------------

    def _unnest(self, node: exp.Select, join: exp.Join, sources: _Sources) -> None:
        """Write UNNEST of a column as a join with the places of its elements."""
        column = _column(join.this)
        listed = sources.find(column)
        if listed is None:
            raise _no_list(self.ctx, join.this, column)
        on = join.args.get("on")
        if join.args.get("side") or not (on is None or (isinstance(on, exp.Boolean) and on.this)):
            raise self.ctx.error(
                join,
                "HB503",
                "An outer or conditional join with UNNEST is not supported.",
                "Write FROM t, UNNEST(t.x).",
            )
        alias = join.this.args.get("alias")
        names = [] if alias is None else alias.args.get("columns") or []
        table = exp.to_identifier("unnest") if alias is None or alias.this is None else alias.this
        name = names[0] if names else table
        place = exp.Column(this=exp.to_identifier(f"{name.name}#", quoted=True), table=table.copy())
        case = exp.Case(
            this=place,
            ifs=[exp.If(this=_number(i), true=part) for i, part in enumerate(listed.parts(), 1)],
        )
        for each in list(node.find_all(exp.Column)):
            near = each.find_ancestor(exp.Select) is node
            named = fold_case(each.name) == fold_case(name.name)
            plain = near and not each.table
            if named and plain and fold_case(name.name) in sources.names:
                raise self.ctx.error(
                    each,
                    "HB507",
                    f"The column name {quote(each.name)} is ambiguous.",
                    f"Write {table.name}.{name.name} for the element.",
                )
            if named and (fold_case(each.table) == fold_case(table.name) or plain):
                self.spend(each, listed)
                shown = each.parent is node and each.arg_key == "expressions"
                each.replace(exp.alias_(case.copy(), each.this.copy()) if shown else case.copy())
        rows = [exp.Tuple(expressions=[_number(i)]) for i in range(1, listed.count + 1)]
        join.set("this", exp.Values(expressions=rows, alias=exp.TableAlias(this=table, columns=[place.this.copy()])))
        join.set("on", None)
        join.set("kind", "CROSS")
        exists = exp.LTE(this=place.copy(), expression=listed.part(0))
        where = node.args.get("where")
        node.set(
            "where", exp.Where(this=exists if where is None else exp.And(this=exp.paren(where.this), expression=exists))
        )

    # --- functions of lists ------------------------------------------------------------------------------------------

    def _call(self, node: exp.Expr, sources: _Sources) -> None:
        """Replace one function of a list by an expression over its elements."""
        named = node.name.lower() if isinstance(node, exp.Anonymous) else ""
        arguments = node.expressions if named else [node.this, node.args.get("expression")]
        listed = sources.find(arguments[0]) if arguments and isinstance(arguments[0], exp.Expr) else None
        if isinstance(node, exp.EQ):
            self._any(node, sources)
        elif listed is None:
            return
        elif isinstance(node, _LENGTHS) or named in _NAMED_LENGTHS:
            length = listed.part(0)
            dimension = isinstance(node, exp.ArraySize) and node.args.get("expression") is not None
            # PostgreSQL's array_length(x, 1) of an empty array is NULL
            empty = dimension and self.ctx.dialect != "duckdb"
            node.replace(exp.Nullif(this=length, expression=_number(0)) if empty else length)
        elif isinstance(node, exp.ArrayContains):
            self.spend(node, listed, node.expression)
            spark = self.ctx.dialect == "spark"  # where NULL among the elements may be any value
            node.replace((_is_any if spark else _contains)(listed, node.expression))
        elif isinstance(node, exp.ArrayContainsAll | exp.ArrayOverlaps) or named in _OF_SEVERAL:
            self._several(node, listed, arguments[1], every=_OF_SEVERAL.get(named, type(node)) is exp.ArrayContainsAll)
        elif isinstance(node, exp.Bracket):
            self._element(node, listed)
        elif isinstance(node, exp.Count) or (isinstance(node, exp.Is) and isinstance(node.expression, exp.Null)):
            node.set("this", listed.part(0))

    def _any(self, node: exp.EQ, sources: _Sources) -> None:
        """Rewrite x = ANY (list)."""
        right = node.expression
        listed = sources.find(right.this) if isinstance(right, exp.Any) else None
        if listed is None:
            return
        self.spend(node, listed, node.this)
        node.replace(_is_any(listed, node.this))

    def _several(self, node: exp.Expr, listed: _List, values: exp.Expr | None, *, every: bool) -> None:
        if not isinstance(values, exp.Array) or not values.expressions:
            raise self.ctx.error(
                node, "HB503", "This function compares a list with constants.", "Write list_has_any(x, ['a', 'b'])."
            )
        unknown = not every and self.ctx.dialect == "spark"
        for value in values.expressions:
            self.spend(node, listed, value)
        tests = [(_is_any if unknown else _contains)(listed, value) for value in values.expressions]
        joined = exp.and_(*tests, copy=False) if every else exp.or_(*tests, copy=False)
        node.replace(exp.paren(joined, copy=False))

    def _element(self, node: exp.Bracket, listed: _List) -> None:
        (index,) = node.expressions if len(node.expressions) == 1 else (None,)
        text = str(index.this) if isinstance(index, exp.Literal) and not index.is_string else ""
        place = int(text) + 1 - int(node.args.get("offset") or 0) if text.isdecimal() and len(text) < 7 else 0
        if not 1 <= place <= listed.count:
            raise self.ctx.error(
                node,
                "HB503",
                f"An element of {quote(listed.name)} has a constant place, and {listed.count} elements are read.",
                f"Write {listed.name}[1], or FROM t, UNNEST(t.{listed.name}) AS e(x).",
            )
        node.replace(listed.part(place))


def _contains(listed: _List, value: exp.Expr) -> exp.Case:
    """Write that a list has an element: NULL for no list or value, and false where only NULL could be it."""
    return exp.Case(
        ifs=[exp.If(this=each, true=exp.Null()) for each in (_is_null(listed.part(0)), *_missing(value))],
        default=exp.Coalesce(this=_equal(listed, value), expressions=[exp.false()]),
    )


def _is_any(listed: _List, value: exp.Expr) -> exp.Case:
    """Write x = ANY (list): NULL for no list, and where no element is x, but x or an element is NULL."""
    there = exp.GTE(this=listed.part(0), expression=_number(1))
    unknown = [exp.And(this=there, expression=each) for each in _missing(value)]
    for place in range(1, listed.count + 1):
        has = exp.GTE(this=listed.part(0), expression=_number(place))
        unknown.append(exp.And(this=has, expression=_is_null(listed.part(place))))
    return exp.Case(
        ifs=[
            exp.If(this=_is_null(listed.part(0)), true=exp.Null()),
            exp.If(this=_equal(listed, value), true=exp.true()),
            exp.If(this=exp.or_(*unknown, copy=False), true=exp.Null()),
        ],
        default=exp.false(),
    )


def _equal(listed: _List, value: exp.Expr) -> exp.Expr:
    return exp.or_(*(exp.EQ(this=part, expression=value.copy()) for part in listed.parts()), copy=False)


def _is_null(value: exp.Expr) -> exp.Expr:
    return exp.Is(this=value.copy(), expression=exp.Null())


def _missing(value: exp.Expr) -> list[exp.Expr]:
    """List the condition that a value is NULL, which constants are not."""
    return [_is_null(value)] if value.find(exp.Column) is not None else []


def _number(value: int) -> exp.Expr:
    return exp.Literal.number(value)


def _column(node: exp.Expr) -> exp.Column | None:
    """Return the column that UNNEST, ANY or an index reads, if it reads one."""
    inner = node.expressions[0] if isinstance(node, exp.Unnest) and len(node.expressions) == 1 else node.this
    inner = inner.unnest() if isinstance(inner, exp.Paren) else inner
    return inner if isinstance(inner, exp.Column) else None


def _no_list(ctx: Context, node: exp.Expr, column: exp.Column | None) -> QueryError:
    name = "This column" if column is None else quote(column.name)
    return ctx.error(node, "HB503", f"{name} is not a list that queries can read.", ONE_ROW_EACH)


def _own(node: exp.Select) -> Iterator[exp.Expr]:
    """List the nodes of the expressions of a SELECT, the innermost last, without those of subqueries."""
    stack: list[exp.Expr] = []
    for name, value in node.args.items():
        if name not in ("from_", "joins", "with_"):
            stack += value if isinstance(value, list) else [value] if isinstance(value, exp.Expr) else []
    stack += [join.args["on"] for join in node.args.get("joins") or [] if join.args.get("on") is not None]
    while stack:
        current = stack.pop()
        if not isinstance(current, exp.Select | exp.SetOperation):
            yield current
            stack.extend(current.iter_expressions())


def _nested(node: exp.Select) -> Iterator[exp.Expr]:
    """List the subqueries in the expressions of a SELECT."""
    for part in _own(node):
        yield from (each for each in part.iter_expressions() if isinstance(each, exp.Select | exp.SetOperation))
