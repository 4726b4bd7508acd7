"""Read one column of hubbub.yaml: its type, bounds, values, and whether analysts may use it."""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime, timedelta
from fractions import Fraction

from hubbub.config.document import KEYS, check_keys, expect_mapping, reject
from hubbub.core import numbers
from hubbub.core.list_columns import MAX_ELEMENTS, element_name, length_name
from hubbub.core.schema import Bounds, Column, Kind, Value
from hubbub.engines.base import Field
from hubbub.errors import HubbubError

MAX_VALUES = 10**6
_LARGEST = Fraction(10**15)
#: The public maximum of the magnitude of a column whose bounds are found by each query.
_AUTO = Fraction(10**12)
_DAY = 86_400_000_000  # in microseconds

_TYPES = ", ".join(kind.value for kind in Kind)


def read_column(value: object, field: Field, path: str) -> Column | None:
    """Read a column's declaration for a field of the source; None if its type is not supported.

    >>> read_column({"bounds": [0, 110]}, Field("age", "text in a CSV file", None), "columns.age")
    Column(name='age', kind=<Kind.REAL: 'real'>, bounds=Bounds(low=Fraction(0, 1), high=Fraction(110, 1)),
           step=None, values=None, other=None, hidden=False, nullable=False, auto=False, required=False)
    """
    entry = expect_mapping(value if value is not None else {}, path)
    check_keys(entry, path, KEYS["datasets.*.columns.*"])
    kind = _kind(entry, field, path)
    if kind is None:
        return None
    hidden, nullable, required = (_flag(entry, name, path) for name in ("hidden", "nullable", "required"))
    if required and nullable:
        reject("HB416", path, "is both required and nullable", "Remove one: a required column has no NULL.")
    bounds = _bounds(entry, kind, path)
    step = _step(entry, kind, bounds, path)
    values = _values(entry, kind, path)
    other = _other(entry, kind, values, path)
    if bounds is not None and values is not None:
        reject("HB416", path, "has both bounds and values", "Remove `bounds`: values say more.")
    if values is not None and kind.numeric:
        ends = [Fraction(value) for value in values if isinstance(value, int | Fraction)]
        bounds = Bounds(min(ends), max(ends))
    auto = entry.get("bounds") == "auto"
    return Column(field.name, kind, bounds, step, values, other, hidden, nullable, auto, required)


def read_list(value: object, field: Field, path: str) -> tuple[Column, ...] | None:
    """Read a list column as the columns of its elements and of its length; None if its `elements` are not declared."""
    entry = expect_mapping(value if value is not None else {}, path)
    check_keys(entry, path, KEYS["datasets.*.columns.*"])
    count = entry.get("elements")
    if field.element is None or count is None:
        if count is not None:
            why = f"is for lists whose elements are supported, and this column is {field.type}"
            reject("HB414", f"{path}.elements", why, "Remove it.")
        return None
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MAX_ELEMENTS:
        remedy = "Write the largest number of elements that a list has: `elements: 8`."
        reject("HB414", f"{path}.elements", f"is not a whole number from 1 to {MAX_ELEMENTS}", remedy)
    one = Field(field.name, field.type, field.element)
    element = read_column({name: each for name, each in entry.items() if name != "elements"}, one, path)
    if element is None:
        return None
    if element.required:
        reject("HB416", f"{path}.required", "is not for lists, which may be empty", "Remove it.")
    most = Bounds(Fraction(0), Fraction(count))
    length = Column(length_name(field.name), Kind.INTEGER, most, hidden=element.hidden, nullable=element.nullable)
    places = range(1, count + 1)
    return (*(replace(element, name=element_name(field.name, place)) for place in places), length)


def _flag(entry: Mapping[str, object], name: str, path: str) -> bool:
    value = entry.get(name, False)
    if not isinstance(value, bool):
        reject("HB414", f"{path}.{name}", "is neither true nor false", "Write true or false.")
    return value


def _kind(entry: Mapping[str, object], field: Field, path: str) -> Kind | None:
    named = entry.get("type")
    if named is not None:
        try:
            return Kind(named)
        except ValueError:
            reject("HB414", f"{path}.type", f"is {named!r}", f"Write one of: {_TYPES}.")
    if field.kind is not None or not field.untyped:
        return field.kind
    # a CSV file has no types, and a guess from its values would depend on the data
    ends = entry.get("bounds")
    if ends == "auto":
        return Kind.REAL
    if isinstance(ends, list) and ends:
        return next((kind for kind in (Kind.DATE, Kind.TIMESTAMP) if type(ends[0]) in _CLASSES[kind]), Kind.REAL)
    listed = entry.get("values")
    if isinstance(listed, list) and listed:
        for kind, types in _CLASSES.items():
            if all(type(value) in types for value in listed):
                return kind
    return Kind.TEXT


_CLASSES: Mapping[Kind, tuple[type, ...]] = {
    Kind.BOOLEAN: (bool,),
    Kind.INTEGER: (int,),
    Kind.REAL: (int, float),
    Kind.TEXT: (str,),
    Kind.DATE: (date,),
    Kind.TIMESTAMP: (date, datetime),
}


def _number(value: object, path: str) -> Fraction:
    try:
        return numbers.in_range(value, path, -_LARGEST, _LARGEST)  # type: ignore[arg-type]
    except HubbubError as error:
        raise type(error)("HB416", error.message, error.remedy) from None


def _bounds(entry: Mapping[str, object], kind: Kind, path: str) -> Bounds | None:
    value = entry.get("bounds")
    path += ".bounds"
    if value is None:
        return None
    dated = kind in (Kind.DATE, Kind.TIMESTAMP)
    if not kind.numeric and not dated:
        reject("HB416", path, f"are for numbers and dates, but this column is {kind.value}", "Remove them.")
    if value == "auto" and not dated:
        return Bounds(-_AUTO, _AUTO)
    if not isinstance(value, list) or len(value) != 2:
        example = "[2020-01-01, 2020-12-31]" if dated else "[0, 110]"
        reject("HB416", path, "are not a list of two values", f"Write `bounds: {example}`.")
    read = _moment if dated else _number
    low, high = (read(bound, f"{path}[{index}]") for index, bound in enumerate(value))
    if not low < high:
        reject("HB416", path, "are not in increasing order", "Put the smaller bound first.")
    return Bounds(low * _unit(kind), high * _unit(kind))


def _moment(value: object, path: str) -> Fraction:
    """Read a date or a time in UTC, with or without quotes, as days since 1970-01-01."""
    if isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?", value, re.ASCII):
        with suppress(ValueError):
            value = datetime.fromisoformat(value)
    if not isinstance(value, date) or (isinstance(value, datetime) and value.tzinfo is not None):
        reject("HB416", path, "is not a date, or has a time zone", "Write 2020-01-31 or 2020-01-31 12:00:00.")
    moment = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
    return Fraction((moment - datetime(1970, 1, 1)) // timedelta(microseconds=1), _DAY)


def _unit(kind: Kind) -> int:
    """The steps per day: timestamps are counted in microseconds, dates in days."""
    return _DAY if kind is Kind.TIMESTAMP else 1


def _step(entry: Mapping[str, object], kind: Kind, bounds: Bounds | None, path: str) -> Fraction | None:
    value = entry.get("step")
    if value is None:
        return None
    if bounds is None or kind is not Kind.REAL:
        reject("HB416", f"{path}.step", "is only for a real column with bounds", "Remove it.")
    step = _number(value, f"{path}.step")
    if not 0 < step <= bounds.high - bounds.low:
        reject(
            "HB416",
            f"{path}.step",
            "must be positive and at most the width of the bounds",
            "Use a value such as `step: 0.01`.",
        )
    if max(abs(bounds.low), abs(bounds.high)) / step > _LARGEST:
        reject("HB416", f"{path}.step", "is too small for these bounds", "Use a larger step.")
    return step


def _values(entry: Mapping[str, object], kind: Kind, path: str) -> tuple[Value, ...] | None:
    listed = entry.get("values")
    path += ".values"
    if listed is None:
        return (False, True) if kind is Kind.BOOLEAN else None
    if not isinstance(listed, list) or not 0 < len(listed) <= MAX_VALUES:
        reject("HB415", path, "is not a list of values", "Write `values: [North, South]`.")
    values = tuple(_value(value, kind, f"{path}[{index}]") for index, value in enumerate(listed))
    if len(set(values)) < len(values):
        reject("HB415", path, "has a duplicate value", "List each value once.")
    return values


def _value(value: object, kind: Kind, path: str) -> Value:
    if kind is Kind.REAL and type(value) in (int, float):
        return _number(value, path)
    if kind is Kind.TIMESTAMP and type(value) is date:
        return datetime(value.year, value.month, value.day)
    if type(value) not in _CLASSES[kind] or (isinstance(value, str) and "\0" in value):
        quotes = "Put it in quotes: YAML does not read yes, no, on, off, 1 or 2020-01-01 as text."
        remedy = quotes if kind is Kind.TEXT else f"Write a value that is {kind.value}."
        reject("HB415", path, f"is {value!r}, but the column is {kind.value}", remedy)
    if isinstance(value, datetime) and value.tzinfo is not None:
        reject("HB415", path, "has a time zone", "Write the time in UTC, without one.")
    return value  # type: ignore[return-value]


def _other(entry: Mapping[str, object], kind: Kind, values: tuple[Value, ...] | None, path: str) -> Value | None:
    if entry.get("other") is None:
        return None
    path += ".other"
    if values is None:
        reject("HB415", path, "needs a list of values", "Add `values: […]`, or remove `other`.")
    other = _value(entry["other"], kind, path)
    if other in values:
        reject("HB415", path, "is one of the values", "Choose a key that is not in the list.")
    return other
