"""Check the arguments of a CALL against the type hints of the analysis."""

import types
from collections.abc import Callable, Mapping
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from hubbub.core import numbers
from hubbub.errors import ParameterError, QueryError

_WORDS: Mapping[Any, str] = {
    str: "a quoted string",
    int: "an integer",
    bool: "TRUE or FALSE",
    Fraction: "a number",
    dict: "a map",
    Decimal: "a number",
    float: "a number",
    type(None): "NULL",
}


def check_arguments(name: str, function: Callable[..., Any], given: Mapping[str, object]) -> dict[str, object]:
    """Convert the arguments to the types that the function expects, or reject them."""
    hints, converted = get_type_hints(function), dict[str, object]()
    for argument, value in given.items():
        hint = hints[argument]
        read = value if fits(value, hint) or not isinstance(value, str) else _read(value, hint)
        if not fits(read, hint):
            raise QueryError("HB583", f"Invalid value for argument {argument} of {name}.", f"Expected {_shown(hint)}.")
        converted[argument] = read
    return converted


def _read(text: str, hint: Any) -> object:
    """Interpret a string as a list with one entry or as an exact number such as '0.2', where one is expected."""
    if fits([text], hint):
        return [text]
    with suppress(ParameterError):
        if fits(Fraction(1, 2), hint):
            return numbers.exact(text, "a number")
    return text


def fits(value: object, hint: Any) -> bool:
    """Return whether a value of a call matches a type hint.

    >>> fits(["a"], list[str]), fits("a", list[str]), fits(True, int), fits(None, int | None), fits(3, Fraction)
    (True, False, False, True, True)
    """
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any or hint is object:
        return True
    if origin in (Union, types.UnionType):
        return any(fits(value, each) for each in inner)
    if origin is Literal:
        return any(type(value) is type(each) and value == each for each in inner)
    if origin is list:
        return isinstance(value, list) and all(fits(each, inner[0]) for each in value)
    if origin is dict:
        return isinstance(value, dict) and all(fits(each, inner[1]) for each in value.values())
    if hint in (int, Fraction, float, Decimal):
        return isinstance(value, int if hint is int else int | Fraction) and not isinstance(value, bool)
    return isinstance(value, hint)


def _shown(hint: Any) -> str:
    """Describe a type hint for people."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(_shown(each) for each in inner))
    if origin is Literal:
        return " or ".join(f"'{each}'" for each in inner)
    if origin is list:
        return "a list: ['a', 'b']"
    if origin is dict:
        return "a map: {'a': 1}"
    return _WORDS.get(hint, getattr(hint, "__name__", "another value"))
