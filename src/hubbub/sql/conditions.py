"""What the conditions of a query say about its values: group keys and clamping bounds that nobody had to declare.

`WHERE state IN ('CA', 'NY') GROUP BY state` has two groups, and `WHERE x BETWEEN 0 AND 100` bounds AVG(x).

Tested in tests/sql/test_conditions.py.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from hubbub.core.schema import Bounds, Kind, Value
from hubbub.sql.domains import MAX_VALUES, null_is_possible, with_values
from hubbub.sql.expressions import Col, Expr, Facts, FunctionCall, Literal, facts
from hubbub.sql.functions import build
from hubbub.sql.nulls import nullable
from hubbub.sql.prune import names
from hubbub.sql.ranges import Range
from hubbub.sql.restrictions import Restriction, either, same_value
from hubbub.sql.rules import DATED, is_integer, range_of

_NEGATED = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}
_FLIPPED = {"eq": "eq", "ne": "ne", "lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}
#: Functions whose result can be other than NULL although an argument is NULL (BETWEEN is false below its lower end).
_TESTS = frozenset({"is_null", "is_distinct", "between"})
_TOLERATES_NULL = frozenset({"case", "coalesce", "greatest", "least", "and", "or", "nullif"}) | _TESTS
_PRESENT = Restriction(null=False)
#: The largest magnitude of numbers with which every engine computes without overflow.
_SAFE = Fraction(2) ** 53

Restrictions = Mapping[Expr, Restriction]


@dataclass
class Conditions:
    """What holds for every row that reaches the expression that is bound next.

    Theorem (Conditions bind). Let a row reach an aggregate of a query. Then every expression in `known` has, on that
    row, a value that its restriction allows.
    Proof    A row reaches an aggregate only if each WHERE, each inner ON and each HAVING of a subquery on its path is
             true (not NULL) for it. By induction over the condition: AND is true if all its parts are; OR, if one is,
             so what all parts imply holds; NOT p is true if p is false. A comparison, IN, BETWEEN and LIKE are true or
             false only if their operands are not NULL, and a function that gives NULL for NULL is not NULL only if its
             arguments are not. Engines compare numbers as doubles, texts byte by byte and dates by their value, so an
             operand of a true `=` or IN is one of the listed values, and one of `<` lies below. ON of an outer join
             adds nothing about the kept side, and allows NULL on the other.
    Assumes  names of columns are unique in a query, and a WITH is bound anew where it is used.
    Charges  nothing. Sensitivities do not depend on it: the engine clamps and looks up every row again.
    Tested   tests/sql/test_conditions.py::test_rows_that_meet_a_condition_have_what_it_says
             tests/sql/test_conditions.py::test_groups_and_bounds_are_taken_from_the_query
    """

    known: dict[Expr, Restriction] = field(default_factory=dict)
    equal: list[tuple[Expr, Expr]] = field(default_factory=list)  #: of inner joins

    def add(self, predicate: Expr) -> None:
        """Take note of a condition that is true of every row from here on."""
        self._meet(self.implied(predicate, truth=True))
        for a, b in self.equal:
            self._meet(self._compared(a, "eq", b))

    def equate(self, a: Expr, b: Expr) -> None:
        """Take note of an equality of two expressions."""
        self.equal.append((a, b))
        self._meet(self._compared(a, "eq", b))

    def with_condition(self, predicate: Expr | None) -> "Conditions":
        """Return a copy in which another condition is true."""
        copy = Conditions(dict(self.known), self.equal)
        if predicate is not None:
            copy.add(predicate)
        return copy

    def carry(self, col: Col, expr: Expr) -> None:
        """Take note of a new column that is computed by an expression."""
        restriction = self._restriction(expr)
        if restriction.applied(col) != col.facts:
            self.known[col] = restriction

    def unite(self, col: Col, parts: Iterable[Expr]) -> None:
        """Take note of a new column that has the values of one of several expressions."""
        self.known[col] = either([self._restriction(part) for part in parts])

    def _restriction(self, expr: Expr) -> Restriction:
        shadow = self.shadow(expr)
        within = range_of(shadow)
        return Restriction(within.low, within.high, facts(shadow).values, null=nullable(shadow))

    def outer_join(self, columns: Iterable[Col]) -> None:
        """Take note that an outer join puts NULL in these columns where nothing matches."""
        for col in columns:
            self.known.setdefault(col, Restriction())
            self.equal = [pair for pair in self.equal if not any(col.name in names(expr) for expr in pair)]
            for expr in self.known:
                if col.name in names(expr):
                    self.known[expr] = replace(self.known[expr], null=True)

    def shadow(self, expr: Expr) -> Expr:
        """Return an expression with the facts that hold here. It is only asked for facts and never rendered."""
        if isinstance(expr, Literal):
            return expr
        rebuilt: Expr = expr
        if isinstance(expr, FunctionCall):
            rebuilt = build(expr.function, tuple(self.shadow(arg) for arg in expr.args)) or expr
        restriction = self.known.get(expr)
        if restriction is None:
            return rebuilt
        # a name of its own for each restricted expression: two of them may have the same facts
        name = expr.name if isinstance(expr, Col) else f"$known{list(self.known).index(expr)}"
        return Col(name, expr.kind, restriction.applied(rebuilt))

    def bounded(self, expr: Expr) -> Expr:
        """Return a numeric argument with the bounds that hold here.

        Where the engine could meet larger numbers in rows that the condition drops, the value is clamped, so that the
        engine cannot overflow whichever it evaluates first; on rows that meet the condition this changes nothing.
        """
        if isinstance(expr, Literal) or not expr.kind.numeric:
            return expr
        bounds, own = facts(self.shadow(expr)).bounds, expr.facts.bounds
        if bounds is None or bounds == own:
            return expr
        if bounds.low == bounds.high:
            # a condition such as x = 5: keep a range, because the accuracy of an average is relative to its range
            bounds = Bounds(bounds.low, bounds.high + 1)
        # the query gives both bounds, so that none need to be found
        auto = expr.facts.auto and (own is None or bounds.low == own.low or bounds.high == own.high)
        narrowed = replace(expr.facts, bounds=bounds, auto=auto)
        if own is not None and max(abs(own.low), abs(own.high)) <= _SAFE:
            return replace(expr, facts=narrowed)
        return _clamped(expr, bounds, narrowed)

    def listed(self, expr: Expr) -> Expr:
        """Return an expression with the finite list of its values, if there is one, and whether NULL is possible."""
        if isinstance(expr, Literal):
            return expr
        shadow = with_values(self.shadow(expr))
        return replace(expr, facts=replace(expr.facts, values=facts(shadow).values, null=null_is_possible(shadow)))

    def _meet(self, restrictions: Restrictions) -> None:
        for expr, restriction in restrictions.items():
            self.known[expr] = self.known.get(expr, Restriction()).met(restriction)

    def implied(self, predicate: Expr, *, truth: bool) -> Restrictions:
        """Return what a condition says if it is true, or if it is false (not NULL)."""
        if not isinstance(predicate, FunctionCall):
            return {} if isinstance(predicate, Literal) else {predicate: Restriction(values=(truth,), null=False)}
        function, args = predicate.function, predicate.args
        match function, truth:
            case ("and", True) | ("or", False):
                return _all(self.implied(arg, truth=truth) for arg in args)
            case ("and", False) | ("or", True):
                return _any([self.implied(arg, truth=truth) for arg in args])
            case "not", _:
                return self.implied(args[0], truth=not truth)
            case "coalesce", True if args[1:] == (Literal(False, Kind.BOOLEAN),):  # noqa: FBT003
                return self.implied(args[0], truth=True)
        if function in _NEGATED:
            return self._compared(args[0], function if truth else _NEGATED[function], args[1])
        if function in _TOLERATES_NULL - _TESTS:
            return {}
        return self._tested(predicate, truth=truth)

    def _tested(self, predicate: FunctionCall, *, truth: bool) -> Restrictions:
        args = predicate.args
        match predicate.function, truth:
            case "is_null", True:
                return {args[0]: Restriction(values=(), null=True)}
            case "is_null", False:
                return _present(args[0])
            case "is_distinct", _ if truth or not any(isinstance(arg, Literal) for arg in args):
                return {}
            case "is_distinct", False:
                return self._compared(args[0], "eq", args[1])
            case "in", True:
                return {args[0]: _listed(args[0], args[1:]), **_inside(args[0])}
            case "in", False:
                return {args[0]: Restriction(excluded=_constants(args[1:]), null=False), **_inside(args[0])}
            case "between", True:
                return _all([self._compared(args[0], "ge", args[1]), self._compared(args[0], "le", args[2])])
            case "between", False:
                return _any([self._compared(args[0], "lt", args[1]), self._compared(args[0], "gt", args[2])])
        return {predicate: Restriction(values=(truth,), null=False), **_inside(predicate)}

    def _compared(self, a: Expr, operator: str, b: Expr) -> Restrictions:
        sides = [(a, operator, b), (b, _FLIPPED[operator], a)]
        return _all(
            {left: _side(left, sign, self.shadow(right)), **_inside(left)}
            for left, sign, right in sides
            if not isinstance(left, Literal)
        )


def _clamped(expr: Expr, bounds: Bounds, narrowed: Facts) -> Expr:
    low, high = (Literal(end, Kind.REAL) for end in (bounds.low, bounds.high))
    below = FunctionCall("lt", (expr, low), Kind.BOOLEAN)
    above = FunctionCall("gt", (expr, high), Kind.BOOLEAN)
    return FunctionCall("case", (below, low, above, high, expr), expr.kind, narrowed)


def _present(expr: Expr) -> Restrictions:
    """Say that an expression is not NULL, and so are the arguments of a function that gives NULL for NULL."""
    return {} if isinstance(expr, Literal) else {expr: _PRESENT, **_inside(expr)}


def _inside(expr: Expr) -> Restrictions:
    if not isinstance(expr, FunctionCall) or expr.function in _TOLERATES_NULL:
        return {}
    return _all(_present(arg) for arg in expr.args)


def _side(expr: Expr, operator: str, other: Expr) -> Restriction:
    """Restrict one side of a comparison by what is known of the other side."""
    if operator == "ne":
        return Restriction(excluded=_constants([other]), null=False)
    if operator == "eq":
        listed = facts(other).values
        # the ends of a very long range say enough
        values = None if listed is None or len(listed) > MAX_VALUES else _as_kind(listed, expr.kind)
        return replace(_between(expr, range_of(other), strict=False), values=values)
    within = range_of(other)
    if operator in ("lt", "le"):
        return _between(expr, Range(None, within.high), strict=operator == "lt")
    return _between(expr, Range(within.low, None), strict=operator == "gt")


def _between(expr: Expr, within: Range, *, strict: bool) -> Restriction:
    """Restrict an expression to a range; whole numbers and dates to the whole numbers in it."""
    low, high = within.low, within.high
    if not (expr.kind.numeric or expr.kind in DATED):
        return _PRESENT
    if expr.kind in DATED or is_integer(expr):
        low = None if low is None else Fraction(math.floor(low) + 1 if strict else math.ceil(low))
        high = None if high is None else Fraction(math.ceil(high) - 1 if strict else math.floor(high))
    return Restriction(low, high, null=False)


def _listed(expr: Expr, constants: Iterable[Expr]) -> Restriction:
    values = [each.value for each in constants if isinstance(each, Literal) and each.value is not None]
    return Restriction(values=_as_kind(values, expr.kind), null=False)


def _as_kind(values: Iterable[Value], kind: Kind) -> tuple[Value, ...]:
    """Convert constants to the kind of the expression that equals one of them; others can never equal it."""
    converted: dict[object, Value] = {}
    for value in values:
        number = isinstance(value, int | Fraction) and not isinstance(value, bool)
        if number and kind is Kind.INTEGER:
            double = Fraction(float(value))  # type: ignore[arg-type]
            if double.denominator == 1:
                converted.setdefault(float(double), int(double))
        elif number and kind is Kind.REAL:
            converted.setdefault(float(value), Fraction(value))  # type: ignore[arg-type]
        else:
            converted.setdefault(value, value)
    ordered = tuple(converted.values())
    return ordered if kind is Kind.TEXT else tuple(sorted(ordered))


def _constants(exprs: Iterable[Expr]) -> frozenset[object]:
    return frozenset(same_value(each.value) for each in exprs if isinstance(each, Literal) and each.value is not None)


def _all(parts: Iterable[Restrictions]) -> Restrictions:
    """Return what holds if all parts do."""
    merged: dict[Expr, Restriction] = {}
    for part in parts:
        for expr, restriction in part.items():
            merged[expr] = merged.get(expr, Restriction()).met(restriction)
    return merged


def _any(parts: list[Restrictions]) -> Restrictions:
    """Return what holds if one part does: what all of them say."""
    shared = [expr for expr in parts[0] if all(expr in part for part in parts)]
    return {expr: either([part[expr] for part in parts]) for expr in shared}
