"""Options of queries and their JSON encoding. See `hubbub.curator.question.Question`.

Tested in tests/client/test_alike.py.
"""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from secrets import token_hex
from typing import Any, Literal, TypedDict, cast

from hubbub.core import numbers, wire
from hubbub.core.numbers import Number
from hubbub.core.schema import Value
from hubbub.errors import ParameterError

#: Receives the progress of a run, from 0 to 1, and what it does now.
Progress = Callable[[float, str], None]


def ignore_progress(_: float, __: str) -> None:
    """Ignore the progress of a run."""


class Options(TypedDict, total=False):
    """The options of `estimate` and `query`: see `Question`."""

    epsilon: Number | None
    within: Number | None
    delta: Number | None
    parameters: Sequence[Value | float | Decimal]
    groups: int | None
    rows: int | None
    weights: Mapping[str, Number] | None
    raw: bool
    dialect: str
    intervals: str
    combine: bool
    noise: Literal["laplace", "gaussian"] | None


def request_key(key: str | None, *, fresh: bool) -> str | None:
    """Return the key of a query: a new one if it asks for fresh noise."""
    if fresh and key is not None:
        raise ParameterError(
            "HB768",
            "Both key and fresh were given.",
            "Pass a new key to name the answer, or only fresh=True (--fresh on the command line).",
        )
    return token_hex(16) if fresh else key


def exact_parameter(given: Value | float | Decimal) -> Value:
    """Convert a parameter to an exact value: 0.1 is one tenth.

    >>> exact_parameter(0.1), exact_parameter("0.1")
    (Fraction(1, 10), '0.1')
    """
    return numbers.exact(given, "parameter") if isinstance(given, float | Decimal) else given


def to_json(options: Options) -> wire.Json:
    """Encode options as JSON values, or raise as a server would."""
    encoded: wire.Json = dict(options)
    for name in ("epsilon", "within", "delta"):
        if encoded.get(name) is not None:
            encoded[name] = _number(encoded[name], name)
    if "parameters" in encoded:
        encoded["parameters"] = [wire.value(exact_parameter(value)) for value in encoded["parameters"]]
    if encoded.get("weights") is not None:
        encoded["weights"] = {name: _number(value, f"weight of {name}") for name, value in encoded["weights"].items()}
    return encoded


def from_json(given: Mapping[str, Any]) -> Options:
    """Decode options from JSON; the query validates their values."""
    unknown = set(given) - set(Options.__annotations__)
    if unknown:
        raise ParameterError(
            "HB139", f"Unknown option {min(unknown)!r}.", f"Choose one of: {', '.join(Options.__annotations__)}."
        )
    decoded = dict(given)
    if "parameters" in decoded:
        decoded["parameters"] = tuple(wire.read_value(value) for value in decoded["parameters"])
    return cast("Options", decoded)


def _number(given: Number, name: str) -> int | float | str:
    if isinstance(given, str):
        return given
    exact = numbers.exact(given, name)
    return str(exact) if isinstance(given, Fraction | Decimal) else given
