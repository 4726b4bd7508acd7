"""What may be said about a question beside its text, and how that travels. See `hubbub.curator.question.Question`."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypedDict, cast

from hubbub.core import numbers, wire
from hubbub.core.numbers import Number
from hubbub.core.schema import Value
from hubbub.errors import ParameterError


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


def exact_parameter(given: Value | float | Decimal) -> Value:
    """Take a parameter exactly: 0.1 is one tenth, as everywhere.

    >>> exact_parameter(0.1), exact_parameter("0.1")
    (Fraction(1, 10), '0.1')
    """
    return numbers.exact(given, "a parameter") if isinstance(given, float | Decimal) else given


def to_json(options: Options) -> wire.Json:
    """Give options for JSON; what is not a number is refused here as it would be there."""
    found: wire.Json = dict(options)
    for name in ("epsilon", "within", "delta"):
        if found.get(name) is not None:
            found[name] = _number(found[name], name)
    if "parameters" in found:
        found["parameters"] = [wire.value(exact_parameter(each)) for each in found["parameters"]]
    if found.get("weights") is not None:
        found["weights"] = {name: _number(each, f"the weight of {name}") for name, each in found["weights"].items()}
    return found


def from_json(given: Mapping[str, Any]) -> Options:
    """Read options from JSON; what they say is checked by the question that takes them."""
    unknown = set(given) - set(Options.__annotations__)
    if unknown:
        raise ParameterError(
            "HB139", f"there is no option called {min(unknown)!r}.", f"There are {', '.join(Options.__annotations__)}."
        )
    found = dict(given)
    if "parameters" in found:
        found["parameters"] = tuple(wire.read_value(each) for each in found["parameters"])
    return cast("Options", found)


def _number(given: Number, name: str) -> int | float | str:
    if isinstance(given, str):
        return given
    exact = numbers.exact(given, name)
    return str(exact) if isinstance(given, Fraction | Decimal) else given
