r"""The text of an analysis: CALL kmeans(table => 'letter', columns => ['x', 'y'], k => 8).

An analysis is asked for like a query, by a text, so whatever carries queries (ledger, server, client, pages, command
line) carries it too. Values are numbers, 'texts', TRUE, FALSE, NULL, [lists] and {'maps': 1}; the canonical text has
one form for each call.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hubbub.core import numbers
from hubbub.errors import QueryError

#: Longest text, and deepest nesting of lists and maps.
LONGEST = 200_000
DEEPEST = 8

_TOKEN = re.compile(
    r"""\s*(?:(?P<text>'(?:[^']|'')*')|(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"""
    r"""|(?P<name>[A-Za-z_][A-Za-z_0-9]*)|(?P<sign>=>|[()\[\]{},:;]))"""
)
_SPACE = re.compile(r"\s*")
_CALL = re.compile(r"\s*call\s", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Call:
    """A name and its arguments, each by name."""

    name: str
    arguments: Mapping[str, Any]

    def text(self) -> str:
        """Write it in its one form.

        >>> Call("kmeans", {"k": 8, "table": "letter", "columns": ["x", "y'"], "seeds": None}).text()
        "CALL kmeans(columns => ['x', 'y'''], k => 8, seeds => NULL, table => 'letter')"
        """
        said = ", ".join(f"{name} => {_written(value)}" for name, value in sorted(self.arguments.items()))
        return f"CALL {self.name}({said})"


def is_call(text: object) -> bool:
    """Say whether a text asks for an analysis."""
    return isinstance(text, str) and _CALL.match(text) is not None


def read(text: str) -> Call:
    """Read a call.

    >>> read("call tree(table => 'adult', depth => 3, share => .5)")
    Call(name='tree', arguments={'table': 'adult', 'depth': 3, 'share': Fraction(1, 2)})
    """
    if len(text) > LONGEST or "\0" in text:
        raise QueryError("HB581", f"a call has at most {LONGEST} characters, none of them NUL.", "Shorten it.")
    tokens = _Tokens(text)
    tokens.take("name")  # CALL
    name, arguments = tokens.take("name").lower(), dict[str, Any]()
    tokens.expect("(")
    while tokens.next != ")":
        argument = tokens.take("name").lower()
        if argument in arguments:
            raise _unreadable(f"{argument} is given twice")
        tokens.expect("=>")
        arguments[argument] = tokens.value(DEEPEST)
        if tokens.next != ")":
            tokens.expect(",")
    tokens.expect(")")
    if tokens.next == ";":
        tokens.expect(";")
    if tokens.next:
        raise _unreadable(f"there is more after the call: {tokens.next[:20]!r}")
    return Call(name, arguments)


class _Tokens:
    """A text, token by token."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0
        self._kind = ""
        self.next = ""
        self._advance()

    def _advance(self) -> None:
        match = _TOKEN.match(self._text, self._place)
        if match is None:
            rest = self._text[_SPACE.match(self._text, self._place).end() :]  # type: ignore[union-attr]
            if rest:
                raise _unreadable(f"at {rest[:20]!r}")
            self._kind, self.next = "end", ""
            return
        self._place = match.end()
        self._kind = match.lastgroup or ""
        self.next = match.group(self._kind)

    def take(self, kind: str) -> str:
        """Take a token of a kind."""
        found = self.next
        if self._kind != kind:
            raise _unreadable(f"a {kind} is missing at {found[:20]!r}")
        self._advance()
        return found

    def expect(self, sign: str) -> None:
        """Take this sign."""
        if self._kind != "sign" or self.next != sign:
            raise _unreadable(f"{sign!r} is missing at {self.next[:20]!r}")
        self._advance()

    def value(self, deep: int) -> Any:
        """Take a value; lists and maps in it go so deep at most."""
        if deep < 0:
            raise _unreadable(f"lists are nested deeper than {DEEPEST}")
        if self._kind == "text":
            return self.take("text")[1:-1].replace("''", "'")
        if self._kind == "number":
            found = numbers.exact(self.take("number"), "a number of the call")
            return int(found) if found.denominator == 1 else found
        if self._kind == "name":
            word = self.take("name").upper()
            if word not in _WORDS:
                raise _unreadable(f"{word!r} is neither a number nor a 'text'")
            return _WORDS[word]
        if self.next == "[":
            return self._list(deep)
        if self.next == "{":
            return self._map(deep)
        raise _unreadable(f"a value is missing at {self.next[:20]!r}")

    def _list(self, deep: int) -> list[Any]:
        self.expect("[")
        found: list[Any] = []
        while self.next != "]":
            found.append(self.value(deep - 1))
            if self.next != "]":
                self.expect(",")
        self.expect("]")
        return found

    def _map(self, deep: int) -> dict[str, Any]:
        self.expect("{")
        found: dict[str, Any] = {}
        while self.next != "}":
            name = self.value(0)
            if not isinstance(name, str) or name in found:
                raise _unreadable("the names of a map are different texts")
            self.expect(":")
            found[name] = self.value(deep - 1)
            if self.next != "}":
                self.expect(",")
        self.expect("}")
        return found


_WORDS: Mapping[str, Any] = {"TRUE": True, "FALSE": False, "NULL": None}


def _written(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "NULL", True: "TRUE", False: "FALSE"}[value]
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_written(str(k))}: {_written(v)}" for k, v in sorted(value.items())) + "}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(map(_written, value)) + "]"
    found = numbers.exact(value, "a number of the call")
    return str(found) if found.denominator == 1 else _decimal(found)


def _decimal(value: Fraction) -> str:
    """Write a fraction as a decimal where it has one, exactly; other fractions are refused.

    >>> _decimal(Fraction(1, 8)), _decimal(Fraction(-3, 200))
    ('0.125', '-0.015')
    """
    for places in range(1, numbers.MAX_PLACES * 4):
        scaled = value * 10**places
        if scaled.denominator == 1:
            digits = str(abs(int(scaled))).rjust(places + 1, "0")
            return f"{'-' if value < 0 else ''}{digits[:-places]}.{digits[-places:]}"
    raise QueryError("HB581", f"{value} has no short decimal form.", "Round it.")


def _unreadable(why: str) -> QueryError:
    return QueryError(
        "HB581",
        f"the call cannot be read: {why}.",
        "Write CALL kmeans(table => 'visits', columns => ['a', 'b'], k => 8).",
    )
