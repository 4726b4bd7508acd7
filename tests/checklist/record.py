"""What the checklist knows of one row: the place in the papers, the command that a user types, and its figures."""

import json
import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Literal

Paper = Literal["2005", "2006", "slides", "2011", "2014"]


@dataclass(frozen=True)
class Place:
    """Where a paper states something: the paper, the number of its section in `PAPERS`, and what to look for there."""

    paper: Paper
    section: str
    label: str = ""


@dataclass(frozen=True)
class Figure:
    """A figure in the output of a command.

    `at` is a regular expression with one group, or a path into JSON output: "$.rows.0.1". `expected` is a number (the
    figure is rounded to as many digits), a text, or a range. `source` says where the expected value comes from; it is
    never the program itself.
    """

    name: str
    at: str
    expected: str | tuple[float, float]
    source: str

    def read(self, output: str) -> str:
        """Find the figure in the output of the command."""
        if self.at.startswith("$."):
            return _at(self.at[2:], json.loads(output))
        match = re.search(self.at, output, re.MULTILINE)
        if match is None:
            raise LookupError(f"no {self.name} in the output")
        return match.group(1)

    def holds(self, figure: str) -> bool:
        """Compare the figure with the expected value or range."""
        number = _number(figure)
        if isinstance(self.expected, tuple):
            return number is not None and self.expected[0] <= float(number) <= self.expected[1]
        expected = _number(self.expected)
        if number is None or expected is None:
            return figure == self.expected
        return number == expected or round(number, -int(expected.as_tuple().exponent)) == expected

    @property
    def target(self) -> str:
        """The expected value or range, as text."""
        if isinstance(self.expected, str):
            return self.expected
        return f"{self.expected[0]:g} to {self.expected[1]:g}"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row of the list. Without a command it is printed as open."""

    number: int
    places: tuple[Place, ...]
    says: str  # what the papers say, in one sentence of our own
    lives: str = ""  # where a user finds it: command, function, page or document, in Markdown
    command: str = ""  # what a user types
    figures: tuple[Figure, ...] = ()
    language: Literal["shell", "python"] = "shell"
    server: bool = False  # start a server first; HUBBUB_URL and HUBBUB_TOKEN are set
    quick: bool = False  # part of the tests: must take less than two seconds


def shown(figure: str) -> str:
    """A figure as it is printed: long decimals are cut to four digits."""
    number = _number(figure) if "/" not in figure else None
    return f"{float(number):.4g}" if number is not None and len(figure) > 8 else figure


def _number(text: str) -> Decimal | None:
    """Read a number: 1,234 and 12.5% and 1/8 are numbers, too."""
    plain = text.replace(",", "").replace("−", "-").removeprefix("±").removesuffix("%")
    numerator, slash, denominator = plain.partition("/")
    try:
        return Decimal(numerator) / Decimal(denominator) if slash else Decimal(plain)
    except (InvalidOperation, ZeroDivisionError):
        return None


def _at(path: str, value: object) -> str:
    """Follow a path of names and numbers into JSON."""
    for step in path.split("."):
        if isinstance(value, list):
            value = value[int(step)]
        elif isinstance(value, dict) and step in value:
            value = value[step]
        else:
            raise LookupError(f"no {step} of {path} in the output")
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
