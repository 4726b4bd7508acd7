"""Bind window functions in a subquery: each window must be partitioned by the privacy ID column or a key.

Tested in tests/sql/test_windows.py.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial

from sqlglot import exp

from hubbub.core.schema import Bounds, Kind
from hubbub.sql.bind_aggregate_call import bind_call, has_aggregate
from hubbub.sql.bind_aggregates import require_bounds
from hubbub.sql.bind_apply import NULL, apply
from hubbub.sql.bind_expr import scalar
from hubbub.sql.bind_range_frames import REWRITING, by_distance, days
from hubbub.sql.bind_scope import Context, NameScope, Owner, is_unit
from hubbub.sql.bind_union import common_facts
from hubbub.sql.bind_window_nulls import NullsIgnored
from hubbub.sql.expressions import Col, Expr, Facts, FunctionCall, Literal, facts
from hubbub.sql.nodes import WINDOW_NODES
from hubbub.sql.prune import names
from hubbub.sql.references import names_owner
from hubbub.sql.relations import Rel, SortTerm, WindowFunction, window_expressions
from hubbub.sql.text import quote
from hubbub.sql.windows import AGGREGATES

#: Maximum number of rows in a frame that moves with the current row, and maximum offset.
MAX_FRAME = 1_000
_MAX_ROWS = Fraction(2) ** 63  #: of one unit
_RANKS = ("row_number", "rank", "dense_rank")
_REMEDY = "Write, for example, LAG(x) OVER (PARTITION BY id ORDER BY day)."


@dataclass
class WindowBinder:
    """Binds the window functions of one SELECT to columns; `finish` rewrites the expressions inside of them.

    `rel` is what the columns of the scope belong to, where a key in it may name the owner.
    """

    ctx: Context
    scope: NameScope
    owner: Owner | None
    finish: Callable[[exp.Expr, Expr], Expr]
    rel: Rel | None = None  #: whose columns may name the owner
    functions: list[tuple[str, WindowFunction]] = field(default_factory=list)

    def bind(self, part: exp.Expr) -> Expr:
        """Bind an expression inside of a window function."""
        return self.finish(part, scalar(self.ctx, self.scope, part))

    def values(self, parts: Iterable[exp.Expr]) -> dict[exp.Expr, Expr]:
        """Bind all window functions in some expressions, and return the column of each."""
        return {node: self._column(node) for part in parts for node in windows(part)}

    def _column(self, node: exp.Window) -> Col:
        wanted = self._function(node)
        return wanted if isinstance(wanted, Col) else self._add(node, wanted)

    def _add(self, node: exp.Expr, wanted: WindowFunction) -> Col:
        for _, other in self.functions:
            if replace(other, column=wanted.column) == wanted:
                return other.column
        size = 1 if wanted.argument is None else self.ctx.check_size(wanted.argument, node)
        col = self.ctx.new_column(wanted.function, wanted.column.kind, wanted.column.facts, size)
        self.functions.append((col.name, replace(wanted, column=col)))
        return col

    def stages(self) -> list[tuple[tuple[str, WindowFunction], ...]]:
        """Group the functions so that each reads columns of earlier groups alone."""
        stage = dict[str, int]()
        for name, function in self.functions:
            read = [stage[col] for expr in window_expressions(function) for col in names(expr) if col in stage]
            stage[name] = 1 + max(read, default=-1)
        groups = [[pair for pair in self.functions if stage[pair[0]] == place] for place in sorted({*stage.values()})]
        return [tuple(group) for group in groups]

    def _error(self, node: exp.Expr, message: str, remedy: str = _REMEDY) -> Exception:
        return self.ctx.error(node, "HB742", message, remedy)

    def _function(self, node: exp.Window) -> WindowFunction | Col:
        partition = self._partition(node)
        called, ignores = node.this, isinstance(node.this, exp.IgnoreNulls)
        called = called.this if ignores else called
        ordered = node.args.get("order")
        terms = [] if ordered is None else [t for t in ordered.expressions if not is_unit(self.ctx, self.scope, t.this)]
        order = tuple(
            SortTerm(self.bind(t.this), bool(t.args.get("desc")), bool(t.args.get("nulls_first"))) for t in terms
        )
        frame, peers = self._frame(node, [term.expr.kind for term in order])
        distance = peers == "distance"
        if distance and frame is not None:
            term, frame = by_distance(self.ctx, node, order, frame)
            order = (term,)
        function = WINDOW_NODES.get(type(called))
        if function is None:
            if peers == "rows" and not order:
                raise self._error(node, "A frame of rows needs an ORDER BY in its window.")
            if peers == "following":
                # the current row with its peers and all that follow: the same in the opposite order
                order = tuple(SortTerm(t.expr, not t.descending, not t.nulls_first) for t in order)
            made = self._aggregate(node)
            made = replace(made, partition=partition, order=() if peers == "all" else order, frame=frame)
            made = replace(made, distance=distance)
            return replace(made, column=self._aggregated(made))
        made = self._ranked(node, called, function[0])
        if distance:
            raise self._error(
                node,
                f"{made.function} is not supported with a RANGE frame with an offset.",
                "Use ROWS, or an aggregate such as MIN or MAX.",
            )
        if made.function != "row_number" and not order:
            raise self._error(node, f"{made.function} needs an ORDER BY in its window.")
        if ignores:
            rewriting = NullsIgnored(self.ctx, node, partition, order, partial(self._add, node))
            return self._ignoring(node, made, rewriting.column(made, frame, peers))
        return self._framed(node, replace(made, partition=partition, order=order), frame, peers)

    def _ignoring(self, node: exp.Window, made: WindowFunction, column: Col | None) -> Col:
        if column is None:
            raise self._error(
                node,
                f"{made.function} with IGNORE NULLS is not supported in this form.",
                "Use FIRST_VALUE or LAST_VALUE up to the current row or of all rows, or LAG or LEAD by one row.",
            )
        return column

    def _framed(
        self, node: exp.Window, made: WindowFunction, frame: tuple[int | None, int | None] | None, peers: str
    ) -> WindowFunction:
        """Give a function the frame that it reads."""
        if made.function == "last_value" and frame is None and peers == "preceding":
            # up to the current row and its peers: the last of the rows that have its place in the order
            return replace(made, partition=(*made.partition, *(term.expr for term in made.order)), frame=(None, None))
        reads_frame = made.function in ("first_value", "last_value", "nth_value")
        if not reads_frame:
            return made
        if frame is None and peers == "all":
            frame = (None, None)
        if frame is None and made.function == "first_value" and peers == "preceding":
            frame = (None, 0)
        if frame is None or (made.function == "nth_value" and frame[0] is not None):
            raise self._error(
                node,
                f"{made.function} is not supported with this frame.",
                "Add ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING.",
            )
        return replace(made, frame=frame)

    def _partition(self, node: exp.Window) -> tuple[Expr, ...]:
        """Bind PARTITION BY, which must contain the privacy ID of rows that have one, or a key that names the owner."""
        parts = node.args.get("partition_by") or []
        others = [part for part in parts if not is_unit(self.ctx, self.scope, part)]
        if self.owner is not None and self.owner.kind is None:
            raise self.ctx.error(
                node,
                "HB741",
                "On a table with row-level privacy, a window would combine rows of different people.",
                "Remove it. A window needs a table with a privacy ID column.",
            )
        if self.owner is not None and self.owner.others:
            raise self.ctx.error(
                node,
                "HB741",
                "These rows have two owners, and a window by one of them would combine rows of several others.",
                "Remove the window, or use a table whose rows have one owner.",
            )
        partition = tuple(map(self.bind, others))
        keyed = self.rel is not None and names_owner(self.rel, partition)
        if self.owner is not None and len(others) == len(parts) and not keyed:
            unit = next((c.name for c in self.scope.columns if c.is_unit), None)
            raise self.ctx.error(
                node,
                "HB741",
                "This window would combine rows of different people.",
                f"Add the privacy ID to it: OVER (PARTITION BY {unit}, …). For equal parts of all people, ask for "
                "QUANTILE_CONT(x, [0.25, 0.5, 0.75]), and then group by CASE WHEN x < 10 THEN 1 … END with its values."
                if unit
                else "Select the privacy ID column in the inner query and partition by it.",
            )
        return partition

    # --- frames --------------------------------------------------------------------------------------------------

    def _frame(self, node: exp.Window, kinds: list[Kind]) -> tuple[tuple[int | None, int | None] | None, str]:
        """Return the frame in rows, or None and which rows are read: all, or the preceding or following with peers.

        `kinds` are those of the ORDER BY. With "distance", the frame is one of values of the order instead of rows.
        """
        spec = node.args.get("spec")
        if spec is None:
            return None, "preceding" if node.args.get("order") is not None else "all"
        dated = kinds[:1] == [Kind.DATE] and spec.args.get("kind") == "RANGE"
        ends = (
            self._bound(node, spec.args.get("start"), spec.args.get("start_side"), dated=dated),
            self._bound(node, spec.args.get("end") or "CURRENT ROW", spec.args.get("end_side"), dated=dated),
        )
        first, last = ends
        if first == "UNBOUNDED FOLLOWING" or last == "UNBOUNDED PRECEDING":
            raise self._error(node, "The frame of this window ends before it starts.", "Swap its bounds.")
        low = None if first == "UNBOUNDED PRECEDING" else 0 if isinstance(first, str) else first
        high = None if last == "UNBOUNDED FOLLOWING" else 0 if isinstance(last, str) else last
        if low is None and high is None:
            return None, "all"
        distance = spec.args.get("kind") == "RANGE"
        if distance and low is None and high == 0:
            return None, "preceding"
        if distance and low == 0 and high is None:
            return None, "following"
        if low is not None and high is not None and not 0 <= high - low < MAX_FRAME:
            raise self._error(
                node,
                f"A frame that moves must have 1 to {MAX_FRAME:,} {'days or values' if distance else 'rows'}.",
                "Use closer bounds, or UNBOUNDED PRECEDING.",
            )
        return (low, high), "distance" if distance else "rows"

    def _bound(self, node: exp.Expr, bound: object, side: object, *, dated: bool) -> int | str:
        if bound == "CURRENT ROW":
            return "CURRENT ROW"
        if bound == "UNBOUNDED" and side in ("PRECEDING", "FOLLOWING"):
            return f"UNBOUNDED {side}"
        if isinstance(bound, exp.Interval):
            distance = days(bound) if dated else None
            if distance is None or side not in ("PRECEDING", "FOLLOWING"):
                raise self._error(node, "This interval cannot be the bound of a frame.", REWRITING)
            return -distance if side == "PRECEDING" else distance
        if isinstance(bound, exp.Expr) and side in ("PRECEDING", "FOLLOWING"):
            rows = self._constant(node, bound, "The bound of a frame")
            return -rows if side == "PRECEDING" else rows
        raise self._error(node, "This frame is not supported.", "Use ROWS BETWEEN … AND ….")

    def _constant(self, node: exp.Expr, part: exp.Expr, what: str, low: int = 0) -> int:
        value = self.bind(part)
        if not (isinstance(value, Literal) and type(value.value) is int and low <= value.value <= MAX_FRAME):
            raise self._error(node, f"{what} must be a whole number from {low} to {MAX_FRAME:,}.", "Write a constant.")
        return value.value

    # --- functions -----------------------------------------------------------------------------------------------

    def _ranked(self, node: exp.Window, inner: exp.Expr, name: str) -> WindowFunction:
        if name in _RANKS:
            known = Facts(Bounds(Fraction(1), _MAX_ROWS), None, Fraction(1))
            return WindowFunction(name, None, (), (), Col("", Kind.INTEGER, known))
        if name in ("percent_rank", "cume_dist"):
            return WindowFunction(name, None, (), (), Col("", Kind.REAL, Facts(Bounds(Fraction(0), Fraction(1)))))
        if inner.args.get("this") is None:
            raise self._error(node, f"{name} needs an argument.")
        if name == "ntile":
            count = self._constant(node, inner.this, "The number of buckets", 1)
            known = Facts(Bounds(Fraction(1), Fraction(count)), None, Fraction(1))
            return WindowFunction(name, None, (), (), Col("", Kind.INTEGER, known), number=count)
        argument = self.bind(inner.this)
        known = replace(facts(self.ctx.conditions.shadow(argument)), null=True, required=False)
        column = Col("", argument.kind, known)
        if name in ("first_value", "last_value"):
            return WindowFunction(name, argument, (), (), column)
        offset = inner.args.get("offset")
        least = 1 if name == "nth_value" else 0
        number = 1 if offset is None else self._constant(node, offset, f"The offset of {name}", least)
        default = inner.args.get("default")
        if default is None:
            return WindowFunction(name, argument, (), (), column, number=number)
        value = self.bind(default)
        fits = isinstance(value, Literal) and (
            value.value is None or value.kind is argument.kind or (value.kind.numeric and argument.kind.numeric)
        )
        if not isinstance(value, Literal) or not fits:
            raise self._error(
                node, f"The default of {name} must be a constant of the same type.", "Use COALESCE around the function."
            )
        if value.value is None:
            return WindowFunction(name, argument, (), (), column, number=number)
        merged = replace(common_facts(column, Col("", value.kind, facts(value))), null=True)
        kind = Kind.REAL if value.kind is Kind.REAL else argument.kind
        return WindowFunction(name, argument, (), (), Col("", kind, merged), None, number, value)

    def _aggregate(self, node: exp.Window) -> WindowFunction:
        """Bind an aggregate; FILTER becomes a CASE, which all engines have in windows."""
        if not has_aggregate(node.this):
            raise self._error(node, f"{quote(node.this.key.upper())} is not supported as a window function.")
        call = bind_call(self.ctx, self.scope, node.this)
        if call.function not in AGGREGATES or call.level is not None:
            raise self._error(
                node,
                f"{quote(call.function)} is not supported as a window function.",
                "Use COUNT, SUM, AVG, MIN or MAX, or ROW_NUMBER, RANK, LAG, LEAD, FIRST_VALUE or LAST_VALUE.",
            )
        argument = self.finish(node, call.arguments[0]) if call.arguments else None
        where = None if call.where is None else self.finish(node, call.where)
        if argument is not None:
            argument = self.ctx.conditions.with_condition(where).bounded(argument)
        if call.function in ("sum", "avg") and argument is not None:
            argument = require_bounds(self.ctx, node, call.function, argument)
        if where is not None:
            bounds = None if argument is None else facts(argument)
            counted = argument or Literal(1, Kind.INTEGER)
            argument = apply(self.ctx, node, "case", [where, counted, NULL])
            if bounds is not None and isinstance(argument, FunctionCall):
                argument = replace(argument, facts=replace(bounds, null=True))
        return WindowFunction(call.function, argument, (), (), Col("", Kind.INTEGER))

    def _aggregated(self, made: WindowFunction) -> Col:
        """Return the column of an aggregate over a frame."""
        low, high = (None, None) if made.distance else made.frame or (None, None)
        most = Fraction(high - low + 1) if low is not None and high is not None else _MAX_ROWS
        known = Facts() if made.argument is None else facts(made.argument)
        if made.function == "count" or made.argument is None:
            return Col("", Kind.INTEGER, Facts(Bounds(Fraction(0), most), None, Fraction(1)))
        if made.function == "sum" and known.bounds is not None:
            ends = min(known.bounds.low, Fraction(0)) * most, max(known.bounds.high, Fraction(0)) * most
            return Col("", made.argument.kind, Facts(Bounds(*ends), None, known.step, null=True))
        if made.function == "avg":
            return Col("", Kind.REAL, Facts(known.bounds, null=True))
        return Col("", made.argument.kind, replace(known, null=True, required=False))


def windows(part: exp.Expr) -> Iterator[exp.Window]:
    """List the window functions in an expression."""
    for node in part.walk(prune=lambda inner: isinstance(inner, exp.Query | exp.Window)):
        if isinstance(node, exp.Window):
            yield node
