"""The kinds of fields that a receipt has: one type, one range and one spelling each.

Python would accept −1 as a count, True as 1 and "1e3" as a fraction, and JSON allows duplicate names. Like the checker,
this file imports nothing from the rest of hubbub.

Tested in tests/audit/test_receipt_format.py.
"""

import json
import re
from collections.abc import Callable, Mapping
from datetime import date
from fractions import Fraction
from math import isfinite
from typing import Any, NoReturn

#: Larger than every sensitivity, count or sequence that hubbub writes, and small enough to compute with.
LARGEST = 10**30
STORED = 2**62  # larger than every number that a ledger stores
_LONGEST = 2000  # characters of a fraction
_FRACTION = re.compile(r"(0|[1-9][0-9]*)(/[1-9][0-9]*)?", re.ASCII)
_HASH = re.compile(r"[0-9a-f]{64}", re.ASCII)

Check = Callable[[object, str], None]


class FormatError(Exception):
    """A field is malformed; the text says which."""


def parse_json(text: str) -> object:
    """Read unambiguous JSON: no duplicate names, no NaN, no excessive nesting."""
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_constant)
    except RecursionError:
        raise ValueError("The document is nested too deeply.") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("A name is duplicated.")
    return fields


def _constant(_: str) -> NoReturn:
    raise ValueError("NaN and Infinity are not valid JSON.")


def refuse(where: str, why: str) -> NoReturn:
    """Raise: this field is malformed."""
    raise FormatError(f"{where} {why}")


def record(fields: Mapping[str, Check], optional: Mapping[str, Check] | None = None) -> Check:
    """Accept an object with exactly these fields."""
    more = optional or {}

    def check(value: object, where: str) -> None:
        if not isinstance(value, dict):
            refuse(where, "is not an object.")
        if not fields.keys() <= value.keys() <= fields.keys() | more.keys():
            refuse(where, "has missing or unknown fields.")
        for name, content in value.items():
            (fields.get(name) or more[name])(content, f"{where}.{name}")

    return check


def true(value: object, where: str) -> None:
    """Accept true."""
    if value is not True:
        refuse(where, "is not true.")


def list_of(item: Check, *, least: int = 0) -> Check:
    """Accept a list of at least so many such items."""

    def check(value: object, where: str) -> None:
        if not isinstance(value, list) or len(value) < least:
            refuse(where, "is not a list." if least == 0 else f"is not a list of at least {least}.")
        for content in value:
            item(content, where)

    return check


def optional(item: Check) -> Check:
    """Accept null or such a value."""

    def check(value: object, where: str) -> None:
        if value is not None:
            item(value, where)

    return check


def integer(low: int, high: int = LARGEST) -> Check:
    """Accept an integer in a range; true is none."""

    def check(value: object, where: str) -> None:
        if type(value) is not int or not low <= value <= high:  # a bool is an int to isinstance
            refuse(where, f"is not an integer of at least {low}." if low >= 0 else "is not an integer.")

    return check


def fraction(*, zero: bool = False, most: Fraction | None = None) -> Check:
    """Accept a fraction in lowest terms, as Python writes it."""

    def check(value: object, where: str) -> None:
        if not isinstance(value, str) or len(value) > _LONGEST or not _FRACTION.fullmatch(value):
            refuse(where, "is not an exact number.")
        number = Fraction(value)
        if str(number) != value or (number == 0 and not zero) or (most is not None and not number <= most):
            refuse(where, "is not an exact number in its range.")

    return check


def signed(value: object, where: str) -> None:
    """Accept a fraction in lowest terms with either sign."""
    bare = value.removeprefix("-") if isinstance(value, str) else value
    fraction(zero=bare == value)(bare, where)


def one_of(*values: str) -> Check:
    """Accept one of these texts."""

    def check(value: object, where: str) -> None:
        if not isinstance(value, str) or value not in values:
            refuse(where, "is not one of the allowed values.")

    return check


def text(value: object, where: str) -> None:
    """Accept a text."""
    if not isinstance(value, str):
        refuse(where, "is not a text.")


def name(value: object, where: str) -> None:
    """Accept a printable text that is not empty."""
    if not isinstance(value, str) or not value or not value.isprintable():
        refuse(where, "is not a name.")


def version(value: object, where: str) -> None:
    """Accept the name of a version of data."""
    if not isinstance(value, str) or not re.fullmatch(r"[1-9][0-9]{0,18}(-[0-9a-f]{16})?", value, re.ASCII):
        refuse(where, "is not a version.")


def hash_value(value: object, where: str) -> None:
    """Accept a hash in hexadecimal digits."""
    if not isinstance(value, str) or not _HASH.fullmatch(value):
        refuse(where, "is not a hash.")


def flag(value: object, where: str) -> None:
    """Accept true or false."""
    if not isinstance(value, bool):
        refuse(where, "is neither true nor false.")


def any_object(value: object, where: str) -> None:
    """Accept any object."""
    if not isinstance(value, dict):
        refuse(where, "is not an object.")


def real(value: object, where: str) -> None:
    """Accept a finite number."""
    if type(value) not in (int, float) or not isfinite(value):  # type: ignore[arg-type]
        refuse(where, "is not a finite number.")


def anything(_: object, __: str) -> None:
    """Accept any value; the type of the column is checked later."""


def dated(parse: Callable[[str], date]) -> Check:
    """Accept a date or a time as this function reads it and Python writes it."""

    def check(value: object, where: str) -> None:
        try:
            if not isinstance(value, str) or parse(value).isoformat() != value:
                refuse(where, "is not a date.")
        except ValueError:
            refuse(where, "is not a date.")

    return check
