"""The parts of a screen: its controls, and what it shows for their values.

A screen is a pure function of its controls. The command line, the web page and JSON show the same reading of it.

Tested in tests/semantics/screens/test_screens.py.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Literal

from hubbub.core import numbers
from hubbub.core.numbers import readable
from hubbub.core.reals import Enclosure
from hubbub.errors import ParameterError
from hubbub.semantics.screens.figures import Figure

#: Values of ε on a slider.
EPSILONS = (
    "0.01",
    "0.05",
    "0.1",
    "0.2",
    "0.3",
    "0.4",
    "0.5",
    "0.7",
    "1",
    "1.0986",
    "1.5",
    "2",
    "3",
    "4",
    "5",
    "7",
    "10",
)
#: Values of δ on a slider.
DELTAS = ("1e-15", "1e-12", "1e-10", "1e-9", "1e-8", "1e-7", "1e-6", "1e-5", "1e-4", "1e-3", "0.01", "0.05")

_LONGEST = 200
_TINY = Fraction(1, 10**30)  # enclosures of 0 are this narrow
_FOUR = Context(prec=4, rounding=ROUND_CEILING)
_NUMBER = re.compile(r"(almost |at most )?[−-]?[\d.,]+(e[+-]?\d+)?%?|∞|–|")


@dataclass(frozen=True, slots=True)
class Control:
    """One parameter of a screen.

    kind     a real or whole number within bounds, one of several choices, or a text that the screen reads itself
    steps    the positions of its slider, or the choices
    """

    name: str
    label: str
    default: str
    kind: Literal["real", "whole", "choice", "text"]
    steps: tuple[str, ...] = ()
    low: Fraction = Fraction(0)
    high: Fraction = Fraction(0)

    def read(self, text: str) -> Fraction | int | str:
        """Read a value, or reject it with a remedy."""
        text = text.strip()
        if self.kind == "real":
            return numbers.in_range(text, self.name, self.low, self.high)
        if self.kind == "whole":
            number = numbers.in_range(text, self.name, self.low, self.high)
            if number.denominator != 1:
                raise ParameterError("HB103", f"{self.name}={text} is not a whole number.", "Use a whole number.")
            return int(number)
        if self.kind == "choice" and text not in self.steps:
            raise ParameterError(
                "HB691", f"{self.name} cannot be {text[:60]!r}.", f"Use one of: {', '.join(self.steps)}."
            )
        if len(text) > _LONGEST:
            raise ParameterError("HB691", f"{self.name} is too long.", f"Use at most {_LONGEST} characters.")
        return text


def real(name: str, label: str, default: str, *, steps: Iterable[str], low: str, high: str) -> Control:
    """Return a control for a real number."""
    return Control(name, label, default, "real", tuple(steps), Fraction(low), Fraction(high))


def whole(name: str, label: str, default: int, *, steps: Iterable[int], low: int, high: int) -> Control:
    """Return a control for a whole number."""
    return Control(name, label, str(default), "whole", tuple(map(str, steps)), Fraction(low), Fraction(high))


def choice(name: str, label: str, *options: str) -> Control:
    """Return a control with several choices, of which the first is the default."""
    return Control(name, label, options[0], "choice", options)


def epsilon(default: str = "1", *, high: str = "10") -> Control:
    """Return the control for ε."""
    steps = [step for step in EPSILONS if Fraction(step) <= Fraction(high)]
    return real("epsilon", "ε", default, steps=steps, low="0.001", high=high)


def delta(default: str = "1e-6", *, high: str = "0.5") -> Control:
    """Return the control for a positive δ."""
    return real("delta", "δ", default, steps=DELTAS, low="1e-30", high=high)


@dataclass(frozen=True, slots=True)
class Reading:
    """What a screen shows for some values of its controls; `headings` and `rows` form a table."""

    sentences: tuple[str, ...]
    headings: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    figure: Figure | None = None
    warnings: tuple[str, ...] = ()

    @property
    def numeric(self) -> tuple[int, ...]:
        """The columns of the table that hold only numbers."""
        columns = enumerate(zip(*self.rows, strict=True))
        return tuple(index for index, cells in columns if all(_NUMBER.fullmatch(cell) for cell in cells))


@dataclass(frozen=True, slots=True)
class Screen:
    """One explanation: its name, what it shows and where that is from, its controls, and how it is computed."""

    name: str
    title: str
    about: str
    controls: tuple[Control, ...]
    compute: Callable[..., Reading]

    def values(self, given: Mapping[str, str]) -> dict[str, str]:
        """Return the text of every control: as given, or its default; reject names that the screen does not have."""
        known = {control.name: control.default for control in self.controls}
        for name in given:
            if name not in known:
                raise ParameterError(
                    "HB692",
                    f"{self.name} has no parameter {name[:60]!r}.",
                    f"It has: {', '.join(known)}." if known else "It has no parameters.",
                )
        return known | {name: text for name, text in given.items() if text.strip()}

    def read(self, given: Mapping[str, str], fixed: Mapping[str, Fraction | str] | None = None) -> Reading:
        """Compute the reading for these values of the controls; `fixed` ones are not read from text."""
        values = self.values(given)
        parsed = {control.name: control.read(values[control.name]) for control in self.controls}
        return self.compute(**parsed | dict(fixed or {}))

    def to_json(self, given: Mapping[str, str], reading: Reading) -> dict[str, object]:
        """Return a reading as JSON values."""
        return {"screen": self.name, "title": self.title, "parameters": self.values(given)} | asdict(reading)


def share(chance: Fraction | Enclosure) -> str:
    """Format a probability as a percentage with a tenth, or with two digits below 0.1%.

    >>> share(Fraction(3, 4)), share((Fraction(1, 3), Fraction(1, 3))), share(Fraction(16, 10**5)), share(Fraction(0))
    ('75.0%', '33.3%', '0.016%', '0%')
    >>> share(Fraction(1, 10**9)), share(1 - Fraction(1, 10**9)), share(Fraction(1))
    ('1e-07%', 'almost 100%', '100%')
    """
    middle = (chance[0] + chance[1]) / 2 if isinstance(chance, tuple) else chance
    percent = float(100 * middle)
    if middle == 0:
        return "0%"
    if percent < 0.1:
        return f"{percent:.2g}%"
    if middle == 1:
        return "100%"
    return "almost 100%" if percent >= 99.95 else f"{percent:.1f}%"


def ceiling(value: Fraction) -> str:
    """Format a bound with four digits, rounded up; an excess of 10⁻²⁰ comes from enclosing it and is ignored.

    >>> ceiling(Fraction(1, 3)), ceiling(Fraction(1, 2)), ceiling(Fraction(1, 10**7)), ceiling(Fraction(0))
    ('0.3334', '0.5', '1e-07', '0')
    """
    value -= value / 10**20
    return f"{float(_FOUR.divide(Decimal(value.numerator), Decimal(value.denominator))):g}"


def decimal(value: Fraction | float | tuple[Fraction | float, Fraction | float]) -> str:
    """Format a number with four digits; ∞ where it is unbounded.

    >>> decimal(Fraction(1, 3)), decimal((Fraction(2), Fraction(2))), decimal(float("inf"))
    ('0.3333', '2', '∞')
    """
    if isinstance(value, tuple):
        value = 0.0 if value[0] <= 0 and value[1] < _TINY else (value[0] + value[1]) / 2
    number = float(value)
    return "∞" if number == float("inf") else readable(number, 4)
