"""Whether an expression can be NULL, so that GROUP BY gives NULL a group of its own.

A column can be NULL if its owner declares it `nullable`, or if an outer join puts NULL there. A function is NULL where
an argument is, or where it has no value (a division by zero, a CASE without ELSE).

Tested in tests/sql/test_null_groups.py.
"""

from fractions import Fraction

from hubbub.core.schema import Kind
from hubbub.sql.expressions import Expr, FunctionCall, Literal
from hubbub.sql.ranges import Range
from hubbub.sql.rules import range_of

#: Casts that give NULL for a text that is not of the type.
_CASTS = frozenset({"to_integer", "to_real", "to_float", "to_date", "to_timestamp", "to_boolean"})
#: Functions of which NULL is an argument like any other, and which are never NULL.
_NEVER = frozenset({"is_null", "is_distinct"})


def nullable(expr: Expr) -> bool:
    """Tell whether an expression can be NULL, given which of its columns can."""
    if isinstance(expr, Literal):
        return expr.value is None
    if not isinstance(expr, FunctionCall):
        return expr.facts.null
    args = expr.args
    match expr.function:
        case name if name in _NEVER:
            return False
        case "case":
            return any(nullable(value) for value in (*args[1::2], args[-1]))
        case "coalesce" | "greatest" | "least":
            return all(nullable(arg) for arg in args)
        case "nullif":
            return True
    return any(nullable(arg) for arg in args) or _undefined(expr)


def _undefined(call: FunctionCall) -> bool:
    """Tell whether a function can have no value although its arguments have one."""
    last = range_of(call.args[-1])
    match call.function:
        case "div" | "intdiv" | "mod":
            return last.low is None or last.high is None or last.low <= 0 <= last.high
        case "sqrt":
            return last.low is None or last.low < 0
        case "ln" | "log10" | "log2":
            return last.low is None or last.low <= 0
        case "power":
            base = range_of(call.args[0])
            return base.low is None or base.low <= 0
        case "to_integer":
            # a number that does not fit
            bits = call.args[1].value if isinstance(call.args[1], Literal) else None
            return call.args[0].kind is Kind.TEXT or not _fits(range_of(call.args[0]), bits)
    return call.function in _CASTS and call.args[0].kind is Kind.TEXT


def _fits(within: Range, bits: object) -> bool:
    size = Fraction(2) ** (bits - 1) if isinstance(bits, int) else Fraction(0)
    return within.low is not None and within.high is not None and -size <= within.low and within.high < size - 1
