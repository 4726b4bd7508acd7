"""Values as JSON and back: what travels between a server and its clients, exactly.

Exact numbers are text such as "1/10", dates are ISO text. A public value that JSON has no word for is an object with
one: {"number": "1/3"}, {"date": "2020-01-31"}, {"timestamp": "2020-01-31T12:00:00"}.
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

Form = dict[str, Any]
"""What `json.dumps` takes as it is."""


def value(given: "Value") -> Any:
    """Give a public value for JSON.

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
        f"A parameter of type {type(given).__name__} cannot be used, or not with this value.",
        "Hand in a bool, int, Fraction, str, date or a datetime without zone, of moderate size.",
    )


def read_value(form: object) -> "Value":
    """Read a public value; a JSON number with a point is the decimal that it shows.

    >>> read_value({"number": "1/3"}), read_value(0.1), read_value({"date": "2020-01-31"})
    (Fraction(1, 3), Fraction(1, 10), datetime.date(2020, 1, 31))
    """
    match form:
        case bool() | int() | str():
            return form
        case float():
            return numbers.exact(form, "a parameter")
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
        "a value is not of a form that can be read.",
        'Give true, 7, 0.5, "text", {"number": "1/3"}, {"date": "2020-01-31"} or {"timestamp": "2020-01-31T12:00:00"}.',
    )


def maybe(given: object | None) -> str | None:
    """Give a number as text, or nothing as nothing."""
    return None if given is None else str(given)


def fraction(form: Mapping[str, Any], name: str) -> Fraction | None:
    """Read an exact number that may be missing."""
    return None if form[name] is None else Fraction(form[name])
