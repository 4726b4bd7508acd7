"""Evaluate conditions and keys of a receipt for given values of columns, apart from the rest of hubbub.

The checker imports nothing from the rest of hubbub but other files of the checker. Functions that it does not know are
`UnknownFunctionError`, and the checker says that it did not evaluate them.

Tested in tests/audit/test_receipt_atoms.py.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime
from fractions import Fraction
from itertools import product
from typing import Any

from hubbub.audit.receipt_loss import ReceiptError

#: The most combinations of values that are tried.
_MOST = 10_000


class UnknownFunctionError(Exception):
    """The checker does not compute this function."""


def value_of(form: object) -> Any:
    """Read a value of a receipt: numbers are exact."""
    match form:
        case {"number": str(text)}:
            return Fraction(text)
        case {"date": str(text)}:
            return date.fromisoformat(text)
        case {"timestamp": str(text)}:
            return datetime.fromisoformat(text)
        case bool() | str() | None:
            return form
        case int() | float():
            return Fraction(form)
    raise ReceiptError("A value of a column has no known form.")


def tree_of(text: str) -> Any:
    """Read an expression: the name of a function, its arguments, and the kind of the result."""
    try:
        tree = json.loads(text)
    except ValueError:
        raise ReceiptError("An expression is no JSON.") from None
    if not isinstance(tree, list) or len(tree) != 3:
        raise ReceiptError("An expression has not the form that it should have.")
    return tree


def written(tree: Any) -> str:
    """Write an expression in the one form of a receipt."""
    return json.dumps(tree, separators=(",", ":"), ensure_ascii=False)


def evaluated(tree: Any, known: Mapping[str, Any]) -> Any:
    """Compute an expression; `known` has the values of parts by their text. NULL is None."""
    text = written(tree)
    if text in known:
        return known[text]
    name, content, _ = tree
    if name == "column":
        if content not in known:
            raise UnknownFunctionError
        return known[content]
    if name == "value":
        return value_of(content)
    args = [evaluated(each, known) for each in content]
    if name == "case":
        return next((args[i + 1] for i in range(0, len(args) - 1, 2) if args[i] is True), args[-1])
    if name in _LOGIC:
        return _LOGIC[name](args)
    if name not in _FUNCTIONS:
        raise UnknownFunctionError
    if any(each is None for each in args):
        return None
    try:
        return _FUNCTIONS[name](*args)
    except TypeError:
        raise UnknownFunctionError from None


def _and(args: Sequence[Any]) -> bool | None:
    return False if False in args else None if None in args else True


def _or(args: Sequence[Any]) -> bool | None:
    return True if True in args else None if None in args else False


def _between(args: Sequence[Any]) -> bool | None:
    x, low, high = args
    pairs = [None if x is None or low is None else x >= low, None if x is None or high is None else x <= high]
    return _and(pairs)


_LOGIC: Mapping[str, Any] = {
    "and": _and,
    "or": _or,
    "between": _between,
    "is_null": lambda args: args[0] is None,
    "is_distinct": lambda args: args[0] != args[1],
    "coalesce": lambda args: next((each for each in args if each is not None), None),
}
_FUNCTIONS: Mapping[str, Any] = {
    "not": lambda x: not x,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "in": lambda a, *rest: a in rest,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "neg": lambda a: -a,
    "intdiv": lambda a, b: None if b == 0 else Fraction(int(a / b)),
    "floor": lambda a: Fraction(a.__floor__()),
    "year": lambda day: Fraction(day.year),
    "month": lambda day: Fraction(day.month),
}


def keys_of(form: Mapping[str, Any]) -> list[tuple[Any, list[Any]]]:
    """List the keys of a grouping set with their values; NULL is the last where it is one."""
    return [
        (tree_of(key["of"]), [*map(value_of, key["values"]), *([None] if key["null"] else [])]) for key in form["keys"]
    ]


def cell_finder(where: Sequence[str], form: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], int]:
    """Return what gives the place of the cell that rows with known values are in; −1 for none."""
    conditions, keys, kept = [tree_of(each) for each in where], keys_of(form), form.get("kept")

    def find(known: Mapping[str, Any]) -> int:
        if any(evaluated(condition, known) is not True for condition in conditions):
            return -1
        number = 0
        for key, values in keys:
            value = evaluated(key, known)
            if value not in values:
                return -1
            number = number * len(values) + values.index(value)
        if kept is None:
            return number
        return int(kept.index(number)) if number in kept else -1

    return find


def combinations(columns: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Give every combination of the values of columns, by the name of the column."""
    count = 1
    for column in columns:
        count *= len(column["values"])
    if count > _MOST:
        raise ReceiptError("A receipt lists too many values of columns.")
    for chosen in product(*(map(value_of, column["values"]) for column in columns)):
        yield {column["of"]: value for column, value in zip(columns, chosen, strict=True)}
