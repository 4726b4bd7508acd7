"""Exact JSON encoding of the values exchanged between a server and its clients.

Exact numbers are strings such as "1/10", dates are ISO strings. A public value without a JSON type is an object with
one key: {"number": "1/3"}, {"date": "2020-01-31"}, {"timestamp": "2020-01-31T12:00:00"}.
"""

from collections.abc import Mapping
from contextlib import suppress
from datetime import date, datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from hubbub.core import numbers
from hubbub.errors import ParameterError, QueryError

if TYPE_CHECKING:
    from hubbub.core.schema import Value

Json = dict[str, Any]
"""An object that `json.dumps` accepts."""


def value(given: "Value") -> Any:
    """Encode a public value for JSON.

    >>> value(7), value(Fraction(1, 3)), value(date(2020, 1, 31))
    (7, {'number': '1/3'}, {'date': '2020-01-31'})
    """
    match given:
        case bool() | int() | str():
            return given
        case Fraction():
            return {"number": str(given)}
        case datetime() if given.tzinfo is None:
            return {"timestamp": given.isoformat()}
        case date() if not isinstance(given, datetime):
            return {"date": given.isoformat()}
    raise QueryError(
        "HB509",
        f"This parameter has an unsupported type or value ({type(given).__name__}).",
        "Pass a bool, int, Fraction, str (up to 10,000 characters), date, or datetime without a time zone.",
    )


def read_value(form: object) -> "Value":
    """Decode a public value; a JSON number with a decimal point is the decimal it shows.

    >>> read_value({"number": "1/3"}), read_value(0.1), read_value({"date": "2020-01-31"})
    (Fraction(1, 3), Fraction(1, 10), datetime.date(2020, 1, 31))
    """
    match form:
        case bool() | int() | str():
            return form
        case float():
            return numbers.exact(form, "parameter")
        case {"number": str(text), **rest} if not rest:
            with suppress(ValueError, ZeroDivisionError):
                return Fraction(text)
        case {"date": str(text), **rest} if not rest:
            with suppress(ValueError):
                return date.fromisoformat(text)
        case {"timestamp": str(text), **rest} if not rest:
            with suppress(ValueError):
                return datetime.fromisoformat(text)
    raise ParameterError(
        "HB139",
        "The value has an unsupported JSON type.",
        'Use true, 7, 0.5, "text", {"number": "1/3"}, {"date": "2020-01-31"} or {"timestamp": "2020-01-31T12:00:00"}.',
    )


def optional_text(given: object | None) -> str | None:
    """Encode a number as a string, and None as None."""
    return None if given is None else str(given)


def optional_fraction(form: Mapping[str, Any], name: str) -> Fraction | None:
    """Decode an exact number that may be None."""
    return None if form[name] is None else Fraction(form[name])
